import type { Clock } from '../../shared/clock.ts';
import type { Config } from '../../shared/config.ts';
import type { Vault } from '../../shared/crypto.ts';
import type { Directory } from '../../shared/db/directory.ts';
import type { Database } from '../../shared/db/pool.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';

/** What the services work with; opened by `start.ts`, handed down, never looked up. */
export interface Means {
  config: Pick<Config, 'publicUrl' | 'isTest' | 'functionsUrl' | 'functionsToken' | 'metricsToken'>;
  db: Database;
  /** Where `where` scans read: the standby, if there is one. */
  readDb: Database;
  queue: JobQueue;
  vault: Vault;
  clock: Clock;
  metrics: Metrics;
  directory: Directory;
}
