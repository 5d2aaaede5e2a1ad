import { sleep } from '../shared/clock.ts';
import { isConnectionFailure } from '../shared/db/pool.ts';
import type { Means } from './means.ts';

const firstPauseMs = 100;
const maxPauseMs = 2000;
/** What could not be recorded for this long is given up: the batch is then taken again. */
const patienceMs = 120_000;

/**
 * Does `work` again as long as the database cannot be reached. What a thread has sent is known only here
 * until it is recorded: losing it to a restart of PostgreSQL would send to all of the batch once more.
 */
export async function throughOutage<T>(
  means: Pick<Means, 'log' | 'clock'>,
  work: () => Promise<T>,
): Promise<T> {
  const endsAtMs = means.clock.monotonicMs() + patienceMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectionFailure(error) || means.clock.monotonicMs() > endsAtMs) throw error;
      means.log.warn({ err: error }, 'the database is away; outcomes wait to be recorded');
      await sleep(pauseMs);
    }
  }
}
