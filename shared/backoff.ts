import { randomInt } from 'node:crypto';

export interface BackoffLimits {
  firstMs: number;
  longestMs: number;
}

/** Returns the wait after so many failures: doubled by each one, up to the longest. */
export const backoffMs = (failures: number, { firstMs, longestMs }: BackoffLimits): number =>
  Math.min(firstMs * 2 ** Math.min(failures, 30), longestMs);

/** Returns a random wait of 1 ms up to `ceilingMs`, so that retries spread evenly. */
export const fullJitterMs = (ceilingMs: number): number => randomInt(1, ceilingMs + 1);
