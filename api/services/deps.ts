import type { Clock } from '../../shared/clock.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Vault } from '../../shared/crypto.ts';
import type { AppCache } from '../../shared/db/app-cache.ts';
import type { QueryLimiter } from '../../shared/db/limits/query-limits.ts';
import type { Database } from '../../shared/db/pool.ts';
import type { DatabaseReadiness } from '../../shared/db/schema/readiness.ts';
import type { WebhookEvents } from '../../shared/db/webhook-events.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';
import type { AbsentKinds } from './push/absent-kinds.ts';

/** Dependencies of the services, opened by `start.ts`. */
export interface ApiDeps {
  config: Pick<
    Config,
    | 'publicUrl'
    | 'trustedProxies'
    | 'smtpUrl'
    | 'adminToken'
    | 'isTest'
    | 'functionsUrl'
    | 'functionsToken'
    | 'metricsToken'
    | 'tryUrl'
    | 'sms'
    | 'oidc'
  >;
  /**
   * Connections for fast statements: saves, logins, reads by id. They are shared fairly between
   * apps.
   */
  db: Database;
  /** Connections for groups of saves. They are not shared by app. */
  savesDb: Database;
  /** Separate connections for health checks and for accepting pushes. */
  admissionDb: Database;
  /** Connections for queries that clients write: conditions, lists, `include`. */
  queries: QueryLimiter;
  queue: JobQueue;
  vault: Vault;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  appCache: AppCache;
  absentKinds: AbsentKinds;
  /** Writes the events of webhooks. */
  webhooks: WebhookEvents;
  /** Checks that the database is migrated and matches CARILLON_SECRET. */
  readiness: DatabaseReadiness;
}
