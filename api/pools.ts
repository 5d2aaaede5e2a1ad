import type { Config } from '../shared/config/config.ts';
import { QueryLimiter, queryLimitsFor } from '../shared/db/limits/query-limits.ts';
import { waitForDatabase } from '../shared/db/outage.ts';
import { Database, type DatabaseOptions } from '../shared/db/pool.ts';
import { saveSettingsOf } from '../shared/db/tables/installation-saves.ts';
import type { ClosingStack } from '../shared/process/lifecycle.ts';
import type { Logger } from '../shared/process/logging.ts';
import { Semaphore, type SemaphoreLimits } from '../shared/semaphore.ts';

/**
 * Limits of waiting calls. The number of connections, and how many of them one app may use at a
 * time, follow from environment variables (README.md "Connections").
 */
const waiting = {
  calls: { maxWaiting: 2000, maxWaitMs: 5000 },
  admission: { maxWaiting: 1000, maxWaitMs: 5000 },
};

/** Returns the limits of a pool. One app uses at most three fifths of it. */
const limitsOf = (pool: keyof typeof waiting, concurrency: number): Required<SemaphoreLimits> => ({
  ...waiting[pool],
  concurrency,
  perKey: Math.ceil((concurrency * 3) / 5),
});

/** Pools of an api process. */
export interface Pools {
  db: Database;
  /** Connections for groups of saves. */
  savesDb: Database;
  admissionDb: Database;
  queries: QueryLimiter;
}

/**
 * Opens the pools of an api process and waits until the database is reachable. Further connections
 * open when they are needed.
 */
export async function openPools(config: Config, log: Logger, stack: ClosingStack): Promise<Pools> {
  const { databaseUrl, databaseReadUrl, pooler, connections } = config;
  const onError = (error: Error) => log.warn({ err: error }, 'database connection lost');
  const open = (name: string, url: string, size: Partial<DatabaseOptions>): Database => {
    const pool = new Database({
      url,
      applicationName: `carillon ${name}`,
      pooler,
      onError,
      ...size,
    });
    stack.add(name, () => pool.close());
    return pool;
  };
  const shared = (limits: Required<SemaphoreLimits>) => ({
    maxConnections: limits.concurrency,
    turns: new Semaphore(limits),
    isPipelined: true,
  });
  const db = open('api', databaseUrl, shared(limitsOf('calls', connections.calls)));
  await waitForDatabase(db, log);
  const admissionDb = open(
    'api (admission)',
    databaseUrl,
    shared(limitsOf('admission', connections.admission)),
  );
  const savesDb = open('api (saves)', databaseUrl, {
    maxConnections: connections.saves,
    settings: await saveSettingsOf(db),
  });
  const queried = { maxConnections: connections.queries };
  const primary = open('api (queries)', databaseUrl, queried);
  const standby =
    databaseReadUrl === databaseUrl ? primary : open('api (read)', databaseReadUrl, queried);
  const limits = queryLimitsFor(connections.queries);
  return { db, savesDb, admissionDb, queries: new QueryLimiter({ primary, standby, limits }) };
}
