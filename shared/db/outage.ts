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
  /** Maximum duration of the retries, in ms. */
  patienceMs: number;
}

/**
 * Retries `work` for up to `patienceMs` while the database is unavailable (down, restarting or out
 * of connections). Throws other errors at once.
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

/** Maximum time that a starting process waits for the database to start or recover, in ms. */
const startPatienceMs = 30_000;

/**
 * Resolves when the database answers. Waiting is better than exiting, because a supervisor would
 * restart the process with growing delays. Wrong credentials or a wrong name fail at once.
 */
export async function waitForDatabase(db: Database, log: Logger): Promise<void> {
  const options = { log, message: 'waiting for the database', patienceMs: startPatienceMs };
  await retryDuringOutage(options, () => db.query('SELECT 1'));
}
