import { randomInt } from 'node:crypto';

export interface BackoffLimits {
  firstMs: number;
  longestMs: number;
}

/** Limits of the waits between the tries of one request. */
export interface RetryLimits extends BackoffLimits {
  /** Longest wait that the other side can ask for. */
  longestAskedMs: number;
}

/** Returns the wait after so many failures: doubled by each one, up to the longest. */
export const backoffMs = (failures: number, { firstMs, longestMs }: BackoffLimits): number =>
  Math.min(firstMs * 2 ** Math.min(failures, 30), longestMs);

/**
 * Returns the longer of our own floor and the wait that the other side asks for; null without
 * either. The other side never lowers the floor.
 */
export function longerWait(
  floorMs: number | null | undefined,
  askedMs: number | null | undefined,
): number | null {
  const longest = Math.max(floorMs ?? 0, askedMs ?? 0);
  return longest > 0 ? longest : null;
}

/**
 * Returns the shortest wait before the next try: half of the back-off, or what `longerWait`
 * returned.
 */
export function shortestRetryMs(
  failures: number,
  wantedMs: number | null,
  limits: RetryLimits,
): number {
  const half = Math.ceil(backoffMs(failures, limits) / 2);
  return Math.max(half, Math.min(wantedMs ?? 0, limits.longestAskedMs));
}

/**
 * Returns the wait before the next try after so many failures: the longest of the back-off, our
 * floor and the wait that the other side asks for, with jitter on top. All retries use it, so that
 * no number of a peer uses up the tries (protocol/delivery.md#retries).
 */
export function retryMs(failures: number, wantedMs: number | null, limits: RetryLimits): number {
  const shortest = shortestRetryMs(failures, wantedMs, limits);
  const half = Math.ceil(backoffMs(failures, limits) / 2);
  // A wait that was asked for is about right: a second is enough to spread those who got the same
  // answer.
  return shortest + randomInt((shortest > half ? Math.min(half, 1000) : half) + 1);
}
