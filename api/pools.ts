import type { Config } from '../shared/config/config.ts';
import { QueryLimiter, queryConnections } from '../shared/db/limits/query-limits.ts';
import { saveConnections, saveSettings } from '../shared/db/limits/saves.ts';
import { waitForDatabase } from '../shared/db/outage.ts';
import { Database, type DatabaseOptions } from '../shared/db/pool.ts';
import { FairQueue, type FairQueueLimits } from '../shared/fairness/fair-queue.ts';
import type { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';

/** Connections of one api process, and those that one app may use at a time (README.md "Connections"). */
const poolLimits: Record<'calls' | 'admission', Required<FairQueueLimits>> = {
  calls: { atOnce: 10, perLane: 6, maxWaiting: 2000, maxWaitMs: 5000 },
  admission: { atOnce: 5, perLane: 3, maxWaiting: 1000, maxWaitMs: 5000 },
};

/** Pools of an api process. */
export interface Pools {
  db: Database;
  /** Connections for groups of saves. */
  savesDb: Database;
  admissionDb: Database;
  queries: QueryLimiter;
}

/** Opens the pools of an api process and waits until the database answers. Further connections open when they are needed. */
export async function openPools(config: Config, log: Logger, stack: ClosingStack): Promise<Pools> {
  const onError = (error: Error) => log.warn({ err: error }, 'database connection lost');
  const open = (name: string, url: string, size: Partial<DatabaseOptions>): Database => {
    const pool = new Database({ url, applicationName: `carillon ${name}`, onError, ...size });
    stack.add(name, () => pool.close());
    return pool;
  };
  const shared = (limits: Required<FairQueueLimits>) => ({
    maxConnections: limits.atOnce,
    turns: new FairQueue(limits),
    isPipelined: true,
  });
  const { databaseUrl, databaseReadUrl } = config;
  const db = open('api', databaseUrl, shared(poolLimits.calls));
  await waitForDatabase(db, log);
  const admissionDb = open('api (admission)', databaseUrl, shared(poolLimits.admission));
  const savesDb = open('api (saves)', databaseUrl, {
    maxConnections: saveConnections,
    settings: saveSettings,
  });
  const queried = { maxConnections: queryConnections };
  const primary = open('api (queries)', databaseUrl, queried);
  const standby = databaseReadUrl === databaseUrl ? primary : open('api (read)', databaseReadUrl, queried);
  return { db, savesDb, admissionDb, queries: new QueryLimiter({ primary, standby }) };
}
