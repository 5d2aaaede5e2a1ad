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

/**
 * Runs `work` for one item after the other. If an item fails, the others continue, and the first
 * error is thrown at the end. So the rows of one app cannot stop a background job for all apps.
 * Stops at once if the database is unavailable.
 */
export async function forEachItem<T>(
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      errors.push(error);
      if (isConnectionFailure(error)) break;
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Failure of some items of a pass, which has done the others. The cause is the first error. */
export class PartialFailure extends Error {
  /** Largest amount of an item that did not fail. */
  readonly amount: number;

  constructor(cause: unknown, amount: number) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.amount = amount;
  }
}

/**
 * Like `forEachItem`, for work that returns an amount. Returns the largest amount. If items fail,
 * throws a `PartialFailure` with the largest amount of the others.
 */
export async function largestOfItems<T>(
  items: Iterable<T>,
  work: (item: T) => Promise<number>,
): Promise<number> {
  let largest = 0;
  try {
    await forEachItem(items, async (item) => {
      largest = Math.max(largest, await work(item));
    });
  } catch (error) {
    throw new PartialFailure(error, largest);
  }
  return largest;
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
