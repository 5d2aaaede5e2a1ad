import type { Clock } from '../../shared/clock.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Vault } from '../../shared/crypto.ts';
import type { AppCache } from '../../shared/db/cache/app-cache.ts';
import type { QueryLimiter } from '../../shared/db/limits/query-limits.ts';
import type { Database } from '../../shared/db/pool.ts';
import type { DatabaseReadiness } from '../../shared/db/readiness.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';

/** What the services work with; opened by `start.ts`, handed down, never looked up. */
export interface ApiDeps {
  config: Pick<Config, 'publicUrl' | 'isTest' | 'functionsUrl' | 'functionsToken' | 'metricsToken'>;
  /** For what is quick: saves, logins, reads by id. Apps take turns. */
  db: Database;
  /** Connections of their own for health checks and the admission of pushes. */
  admissionDb: Database;
  /** For whatever clients put together: conditions, lists, `include`. */
  queries: QueryLimiter;
  queue: JobQueue;
  vault: Vault;
  clock: Clock;
  metrics: Metrics;
  appCache: AppCache;
  /** Whether the database is migrated and CARILLON_SECRET opens it. */
  readiness: DatabaseReadiness;
}
