import { backoffMs } from '../../shared/backoff.ts';

const usual = { firstMs: 100, longestMs: 30_000 };
/** Failures after which waiting requests are rejected instead of kept. */
const unreachableAfter = 3;

/** Delay between connection attempts: exponential, with jitter so that processes do not retry in step. */
export class Backoff {
  #failures = 0;
  #untilMs = 0;

  get isUnreachable(): boolean {
    return this.#failures >= unreachableAfter;
  }

  /** Counts a failure; `firstMs` is the delay after the first one. */
  fail(nowMs: number, firstMs = usual.firstMs): void {
    const fullMs = backoffMs(this.#failures, { ...usual, firstMs });
    this.#failures += 1;
    this.#untilMs = nowMs + fullMs * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
    this.#untilMs = 0;
  }

  /** Returns the milliseconds until the next attempt; 0 when it may be made now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#untilMs - nowMs));
  }
}
