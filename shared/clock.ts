/** Source of time. No other file reads the system clock. Tests pass a clock that they control. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds of a monotonic clock, for durations. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Resolves after `ms`, or at once if the signal aborts. Never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/**
 * Waits for `work`, but not longer than `ms`. Returns whether it has finished. Rejects if it rejects
 * within this time.
 */
export async function isDoneWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, ms, false);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Durations in milliseconds. */
export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** Offset of China's only time zone from UTC. China has no daylight saving time. */
const chinaOffsetMs = 8 * hourMs;

/** Returns the milliseconds since midnight in China. */
const sinceMidnight = (nowMs: number): number => (nowMs + chinaOffsetMs) % dayMs;

/** Returns the day in UTC as `YYYY-MM-DD`. */
export const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns the day in China as `YYYY-MM-DD`. */
export const chinaDay = (ms: number): string => utcDay(ms + chinaOffsetMs);

/** True if the time in China is from `fromHour` until before `toHour`. */
export function isBetweenHours(nowMs: number, fromHour: number, toHour: number): boolean {
  const hours = sinceMidnight(nowMs) / hourMs;
  return hours >= fromHour && hours < toHour;
}

/** Returns the milliseconds until the next time that it is `hour` o'clock in China. Never 0. */
export function untilHourMs(nowMs: number, hour: number): number {
  const left = hour * 3600_000 - sinceMidnight(nowMs);
  return left > 0 ? left : left + dayMs;
}
