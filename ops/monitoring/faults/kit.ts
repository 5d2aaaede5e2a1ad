import { sleep } from '../../../shared/clock.ts';

/** Resolves when the signal aborts. */
export const ended = (signal: AbortSignal): Promise<void> => sleep(2 ** 30, signal);

/** Repeats `work`, with a pause after each time, until the signal aborts. */
export async function repeat(
  signal: AbortSignal,
  pauseMs: number,
  work: () => Promise<unknown>,
): Promise<void> {
  while (!signal.aborted) {
    await work();
    await sleep(pauseMs, signal);
  }
}
