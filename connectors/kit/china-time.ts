/** China has one time zone and no summer time: eight hours ahead of UTC. */
const aheadMs = 8 * 3600_000;
const dayMs = 24 * 3600_000;

/** Milliseconds since midnight in China. */
const sinceMidnight = (nowMs: number): number => (nowMs + aheadMs) % dayMs;

/** Whether it is between two full hours in China, the first included. */
export function isBetweenHours(nowMs: number, fromHour: number, toHour: number): boolean {
  const hours = sinceMidnight(nowMs) / 3600_000;
  return hours >= fromHour && hours < toHour;
}

/** Milliseconds until it is next such a full hour in China; never 0. */
export function untilHourMs(nowMs: number, hour: number): number {
  const left = hour * 3600_000 - sinceMidnight(nowMs);
  return left > 0 ? left : left + dayMs;
}
