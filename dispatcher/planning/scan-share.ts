import type { Clock } from '../../shared/clock.ts';
import { QueueFull, Semaphore } from '../../shared/semaphore.ts';

export interface ScanShareLimits {
  /** Scans of all apps at a time. */
  atOnce: number;
  /** Scans of one app at a time. */
  perApp: number;
}

/** Longest wait for a scan; after it the job goes back to the queue and frees its permit. */
const maxWaitMs = 100;
/**
 * Interval in which one postponed job of an app returns, so that many of them cost the queue
 * little.
 */
const betweenReturnsMs = 50;
const longestDelayMs = 30_000;

/**
 * Shares the scans of one dispatcher between apps: otherwise a few pushes with a `where` over a
 * large table could use all permits of planning, and both cores of a small database.
 */
export class ScanShare {
  readonly #queue: Semaphore;
  readonly #clock: Clock;
  /** When the next postponed job of an app returns, by the monotonic clock. */
  readonly #nextReturnMs = new Map<string, number>();

  constructor({ atOnce, perApp }: ScanShareLimits, clock: Clock) {
    this.#queue = new Semaphore({
      concurrency: atOnce,
      perKey: perApp,
      maxWaiting: 2 * atOnce,
      maxWaitMs,
    });
    this.#clock = clock;
  }

  /**
   * Runs a scan of an app, or returns the milliseconds after which to retry where the app has its
   * share already.
   */
  async run<T>(
    appId: string,
    scan: () => Promise<T>,
  ): Promise<{ value: T } | { retryAfterMs: number }> {
    try {
      return { value: await this.#queue.run(appId, scan) };
    } catch (error) {
      if (error instanceof QueueFull) return { retryAfterMs: this.#delayMs(appId) };
      throw error;
    }
  }

  #delayMs(appId: string): number {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, timeMs] of this.#nextReturnMs)
      if (timeMs < nowMs) this.#nextReturnMs.delete(id);
    const timeMs = Math.min(
      (this.#nextReturnMs.get(appId) ?? nowMs + maxWaitMs) + betweenReturnsMs,
      nowMs + longestDelayMs,
    );
    this.#nextReturnMs.set(appId, timeMs);
    return timeMs - nowMs;
  }
}
