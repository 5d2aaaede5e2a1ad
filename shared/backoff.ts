import { randomInt } from 'node:crypto';

export interface BackoffLimits {
  firstMs: number;
  maxMs: number;
}

/** Limits for the waits between the attempts of one request. */
export interface RetryLimits extends BackoffLimits {
  /** Longest wait that the peer can request. */
  maxRequestedMs: number;
}

/** Returns the wait after a number of failures. It doubles with each failure, up to `maxMs`. */
export const backoffMs = (failures: number, { firstMs, maxMs }: BackoffLimits): number =>
  Math.min(firstMs * 2 ** Math.min(failures, 30), maxMs);

/**
 * Returns the longer of our minimum wait and the wait that the peer requests; null if there is
 * neither. The peer cannot lower our minimum.
 */
export function longerWait(
  floorMs: number | null | undefined,
  requestedMs: number | null | undefined,
): number | null {
  const longest = Math.max(floorMs ?? 0, requestedMs ?? 0);
  return longest > 0 ? longest : null;
}

/**
 * Returns the shortest wait before the next attempt: half of the backoff, or `minWaitMs` if that is
 * longer.
 */
export function minRetryMs(
  failures: number,
  minWaitMs: number | null,
  limits: RetryLimits,
): number {
  const half = Math.ceil(backoffMs(failures, limits) / 2);
  return Math.max(half, Math.min(minWaitMs ?? 0, limits.maxRequestedMs));
}

/**
 * Returns the wait before the next attempt: the longest of the backoff, our minimum and the wait
 * that the peer requests, plus jitter. All retries use this function, so that no value of a peer
 * can use up the attempts (protocol/delivery.md#retries).
 */
export function retryMs(failures: number, minWaitMs: number | null, limits: RetryLimits): number {
  const shortest = minRetryMs(failures, minWaitMs, limits);
  const half = Math.ceil(backoffMs(failures, limits) / 2);
  // A requested wait is about right. A second of jitter is enough to spread the clients that got
  // the same response.
  return shortest + randomInt((shortest > half ? Math.min(half, 1000) : half) + 1);
}
