import type { Clock } from '../../shared/clock.ts';
import { QueueFull, Semaphore } from '../../shared/semaphore.ts';

export interface ScanShareLimits {
  /** Maximum concurrent scans of all apps. */
  atOnce: number;
  /** Maximum concurrent scans of one app. */
  perApp: number;
}

/**
 * Maximum wait for a scan. After it the job returns to the queue, so that its concurrency slot is
 * free.
 */
const maxWaitMs = 100;
/**
 * Interval at which the postponed jobs of an app return, one by one. It limits the load on the
 * queue.
 */
const betweenReturnsMs = 50;
const maxDelayMs = 30_000;

/**
 * Shares the scans of one dispatcher between apps. Without it, a few pushes with a `where` over a
 * large table could use all concurrency slots of planning, and all CPUs of a small database.
 */
export class ScanShare {
  readonly #queue: Semaphore;
  readonly #clock: Clock;
  /** When the next postponed job of an app returns (monotonic ms). */
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
   * Runs a scan of an app. If the app has used up its share, returns the milliseconds after which
   * to retry.
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
      nowMs + maxDelayMs,
    );
    this.#nextReturnMs.set(appId, timeMs);
    return timeMs - nowMs;
  }
}
