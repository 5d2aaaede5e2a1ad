import { sleep } from '../clock.ts';
import type { Logger } from '../process/logging.ts';
import { isConnectionFailure } from './limits/database-errors.ts';
import type { Database } from './pool.ts';

const firstPauseMs = 100;
const maxPauseMs = 2000;

interface OutageOptions {
  log: Logger;
  /** Log message of each retry. */
  message: string;
  /** Time limit of the retries. */
  patienceMs: number;
}

/**
 * Retries `work` while the database is unreachable (down, restarting, out of connections), for up
 * to `patienceMs`. Throws every other failure at once.
 */
export async function retryDuringOutage<T>(
  options: OutageOptions,
  work: () => Promise<T>,
): Promise<T> {
  const endsAtMs = performance.now() + options.patienceMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectionFailure(error) || performance.now() > endsAtMs) throw error;
      options.log.warn({ err: error }, options.message);
      await sleep(pauseMs);
    }
  }
}

/** Time that a starting process waits for a database that starts or recovers. */
const startPatienceMs = 30_000;

/**
 * Resolves when the database responds. A process that starts while PostgreSQL recovers waits,
 * instead of exiting and being restarted with growing delays. Wrong credentials or a wrong name
 * fail at once.
 */
export async function waitForDatabase(db: Database, log: Logger): Promise<void> {
  const options = { log, message: 'waiting for the database', patienceMs: startPatienceMs };
  await retryDuringOutage(options, () => db.query('SELECT 1'));
}
