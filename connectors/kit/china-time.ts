import { dayMs, hourMs } from '../../shared/clock.ts';

/** Offset of China's only time zone from UTC; it has no summer time. */
const aheadMs = 8 * hourMs;

/** Returns the milliseconds since midnight in China. */
const sinceMidnight = (nowMs: number): number => (nowMs + aheadMs) % dayMs;

/** Whether the time in China is between two full hours, the first included. */
export function isBetweenHours(nowMs: number, fromHour: number, toHour: number): boolean {
  const hours = sinceMidnight(nowMs) / hourMs;
  return hours >= fromHour && hours < toHour;
}

/** Returns the milliseconds until the next occurrence of a full hour in China; never 0. */
export function untilHourMs(nowMs: number, hour: number): number {
  const left = hour * 3600_000 - sinceMidnight(nowMs);
  return left > 0 ? left : left + dayMs;
}
