/** What the ledger counts for a processed request. */
interface Counted {
  /** Devices in the request. */
  tokens: readonly string[];
  /** Devices whose message was accepted. */
  accepted: readonly string[];
  /** Reason, if the request was refused. */
  reason?: string;
}

/**
 * Record of the processed requests of a gateway: counters, also by device, and the last requests
 * with their bodies. `Seen` is the recorded form of a request.
 */
export class Ledger<Seen> {
  /** Number of processed requests without token calls, whatever the response. */
  total = 0;
  /** Number of accepted messages: one per device and request. */
  accepted = 0;
  tokenCalls = 0;
  readonly violations: string[] = [];
  readonly #seen = new Map<string, number>();
  readonly #delivered = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  readonly #ring: Seen[] = [];
  readonly #capacity: number;
  #waiting: { isDone(): boolean; resolve(): void }[] = [];

  /** `capacity` is the number of recent requests that are stored with their bodies. */
  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  /** Records a request. */
  add(request: Seen, counted: Counted): void {
    for (const token of counted.tokens) increment(this.#seen, token);
    for (const token of counted.accepted) increment(this.#delivered, token);
    this.#ring[this.total % this.#capacity] = request;
    this.count(counted.accepted.length, counted.reason);
  }

  /**
   * Counts a request only in the totals. For very many requests, whose full record would need too
   * much memory.
   */
  count(accepted: number, reason?: string): void {
    this.total += 1;
    this.accepted += accepted;
    if (reason !== undefined) increment(this.#refusals, reason);
    if (this.#waiting.length > 0) this.#wake();
  }

  seen(token: string): number {
    return this.#seen.get(token) ?? 0;
  }

  delivered(token: string): number {
    return this.#delivered.get(token) ?? 0;
  }

  refusals(reason: string): number {
    return this.#refusals.get(reason) ?? 0;
  }

  get distinct(): number {
    return this.#seen.size;
  }

  /** The last requests, oldest first. */
  get requests(): Seen[] {
    const start = this.total > this.#capacity ? this.total % this.#capacity : 0;
    return [...this.#ring.slice(start), ...this.#ring.slice(0, start)];
  }

  until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ isDone, resolve });
    });
  }

  forget(): void {
    this.total = 0;
    this.accepted = 0;
    this.tokenCalls = 0;
    this.violations.length = 0;
    this.#seen.clear();
    this.#delivered.clear();
    this.#refusals.clear();
    this.#ring.length = 0;
  }

  #wake(): void {
    const done = this.#waiting.filter(({ isDone }) => isDone());
    this.#waiting = this.#waiting.filter((waiter) => !done.includes(waiter));
    for (const { resolve } of done) resolve();
  }
}

const increment = (counts: Map<string, number>, key: string): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);
