import { type Finding, found } from '../../../api/services/operator/doctor/finding.ts';
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
  const findings = servers.map(findingOf);
  const isWhole = placingStatements(await readDistribution(db)).length === 0;
  const whole = isWhole
    ? found({ name, status: 'ok', code: 'spreadFine', params: { version } })
    : found({ name, status: 'warn', code: 'spreadPartly', params: { version } });
  return [whole, ...findings];
}

function findingOf({ server, shards, rows, bytes }: ShardServer): Finding {
  const sizes = { rows: Math.round(rows).toLocaleString('en'), megabytes: (bytes / 1e6).toFixed(1) };
  return found({ name, status: 'ok', code: 'spreadServer', params: { server, shards, ...sizes } });
}
