/** Waiting between connection attempts: exponential with jitter, so that a fleet does not knock in step. */
const firstMs = 100;
const longestMs = 30_000;
/** From this many failures on, waiting requests are handed back instead of kept. */
const hopelessAfter = 3;

export class Backoff {
  #failures = 0;
  #untilMs = 0;

  get isUnreachable(): boolean {
    return this.#failures >= hopelessAfter;
  }

  fail(nowMs: number): void {
    const fullMs = Math.min(longestMs, firstMs * 2 ** this.#failures);
    this.#failures += 1;
    this.#untilMs = nowMs + fullMs * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
    this.#untilMs = 0;
  }

  /** Milliseconds until the next attempt may be made; 0 when it may be made now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#untilMs - nowMs));
  }
}
