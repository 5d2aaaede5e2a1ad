import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '../clock.ts';

/** Work that is done in one tick. */
const maxTickMs = 5;

/**
 * Maps a list in ticks of a few milliseconds, so that a list of megabytes delays no other call:
 * `map` runs for every item in order.
 */
export async function mapInTicks<T, R>(items: readonly T[], map: (item: T) => R): Promise<R[]> {
  const mapped: R[] = [];
  let beganMs = systemClock.monotonicMs();
  for (const item of items) {
    mapped.push(map(item));
    if (systemClock.monotonicMs() - beganMs < maxTickMs) continue;
    await nextTurn();
    beganMs = systemClock.monotonicMs();
  }
  return mapped;
}
