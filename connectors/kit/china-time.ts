import { dayMs, hourMs } from '../../shared/clock.ts';

/** Offset of China's only time zone from UTC. China has no daylight saving time. */
const aheadMs = 8 * hourMs;

/** Returns the milliseconds since midnight in China. */
const sinceMidnight = (nowMs: number): number => (nowMs + aheadMs) % dayMs;

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
