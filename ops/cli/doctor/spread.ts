import { type Finding, ok, warn } from '../../../api/services/operator/doctor/finding.ts';
import type { Database } from '../../../shared/db/pool.ts';
import {
  citusVersion,
  placingStatements,
  readDistribution,
  readShardServers,
  type ShardServer,
} from '../../../shared/db/sharding.ts';

const name = 'spread';

/** Tells where the shards of a spread database are; nothing without Citus (operate/distributed.md). */
export async function checkSpread(db: Database): Promise<Finding[]> {
  const version = await citusVersion(db);
  if (version === undefined) return [];
  const servers = await readShardServers(db);
  const findings = servers.map((server) => ok(name, describe(server)));
  const isWhole = placingStatements(await readDistribution(db)).length === 0;
  if (isWhole) return [ok(name, `Citus ${version} spreads the tables by app_id`), ...findings];
  const advice = 'Run `carillon migrate --distribute --plan`, then without --plan.';
  return [warn(name, `Citus ${version} is installed, and not all tables are spread`, advice), ...findings];
}

const describe = ({ server, shards, rows, bytes }: ShardServer) =>
  `${server}: ${shards} shards, about ${Math.round(rows).toLocaleString('en')} rows, ${(bytes / 1e6).toFixed(1)} MB`;
