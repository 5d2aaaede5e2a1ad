import { sleep } from '../clock.ts';
import type { Logger } from '../process/logging.ts';
import { type Database, isConnectionFailure } from './pool.ts';

const firstPauseMs = 100;
const maxPauseMs = 2000;

export interface OutageOptions {
  log: Logger;
  /** What is going on, for the log. */
  message: string;
  /** After this long without a database the failure is the caller's. */
  patienceMs: number;
}

/**
 * Does `work` again as long as the database cannot be reached (gone, restarting, out of connections). Every
 * other failure, and that one after `patienceMs`, is thrown.
 */
export async function retryDuringOutage<T>(options: OutageOptions, work: () => Promise<T>): Promise<T> {
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

/** How long a process waits at its start for a database that is starting too, or recovering. */
const startPatienceMs = 30_000;

/**
 * Resolves when the database answers. A process that starts while PostgreSQL recovers waits for it, in place
 * of dying and being started again and again, later each time. Wrong credentials or a wrong name fail at once.
 */
export async function waitForDatabase(db: Database, log: Logger): Promise<void> {
  const options = { log, message: 'waiting for the database', patienceMs: startPatienceMs };
  await retryDuringOutage(options, () => db.query('SELECT 1'));
}
