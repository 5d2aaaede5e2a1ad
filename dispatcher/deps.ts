import type { Clock } from '../shared/clock.ts';
import type { Vault } from '../shared/crypto.ts';
import type { AppCache } from '../shared/db/app-cache.ts';
import type { Database } from '../shared/db/pool.ts';
import type { ProfileKey } from '../shared/db/tables/gateway-limits.ts';
import type { WebhookEvents } from '../shared/db/webhook-events.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { PendingCounts } from '../shared/pending-counts.ts';
import type { Logger } from '../shared/process/logging.ts';
import type { WaitingJobs } from '../shared/queue/consumer.ts';
import type { JobQueue } from '../shared/queue/queue.ts';
import type { BatchedQueries } from './batched-queries.ts';
import type { Breakers } from './breakers/breakers.ts';
import type { Freezes } from './delivery/freezes.ts';
import type { AudienceSizes } from './planning/batches.ts';
import type { ScanShare } from './planning/scan-share.ts';
import type { SenderPool } from './sending/pool.ts';

/** Dependencies of all parts of a dispatcher. `open-deps.ts` opens them. */
export interface DispatcherDeps {
  db: Database;
  /** Database of scans with `where`: the standby, if there is one. */
  readDb: Database;
  queue: JobQueue;
  vault: Vault;
  appCache: AppCache;
  webhooks: WebhookEvents;
  pool: SenderPool;
  breakers: Breakers;
  freezes: Freezes;
  /** Requests and recipients of each gateway since the last write. */
  gatewayUsage: PendingCounts<ProfileKey>;
  audienceSizes: AudienceSizes;
  scans: ScanShare;
  queries: BatchedQueries;
  /**
   * Limits the single-device pushes in work that have released their concurrency slot of planning.
   */
  singles: WaitingJobs;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Mail address for notices to the operator, if configured. */
  operatorMail: string | undefined;
}
