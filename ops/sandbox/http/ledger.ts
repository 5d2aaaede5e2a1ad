import type { IncomingHttpHeaders } from 'node:http';

/** One processed request. */
export interface SeenCall {
  method: string;
  /** With its query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Devices that it names. */
  tokens: readonly string[];
  status: number;
  /** Number of its connection, from 1. */
  connection: number;
}

/** Record of processed requests: counters by device, and the last requests with bodies. Counts token calls separately. */
export class CallLedger {
  /** Requests processed, whatever the response. */
  total = 0;
  /** Accepted messages: one per device and request. */
  accepted = 0;
  tokenCalls = 0;
  readonly violations: string[] = [];
  readonly #seen = new Map<string, number>();
  readonly #delivered = new Map<string, number>();
  readonly #ring: SeenCall[] = [];
  readonly #capacity: number;
  #waiting: { isDone(): boolean; resolve(): void }[] = [];

  /** `capacity`: number of recent requests that are kept with their bodies. */
  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  add(call: SeenCall, accepted: readonly string[]): void {
    for (const token of call.tokens) this.#seen.set(token, (this.#seen.get(token) ?? 0) + 1);
    for (const token of accepted) this.#delivered.set(token, (this.#delivered.get(token) ?? 0) + 1);
    this.#ring[this.total % this.#capacity] = call;
    this.total += 1;
    this.accepted += accepted.length;
    if (this.#waiting.length > 0) this.#wake();
  }

  seen(token: string): number {
    return this.#seen.get(token) ?? 0;
  }

  delivered(token: string): number {
    return this.#delivered.get(token) ?? 0;
  }

  get distinct(): number {
    return this.#seen.size;
  }

  /** The last requests, oldest first. */
  get requests(): SeenCall[] {
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
    this.#ring.length = 0;
  }

  #wake(): void {
    const done = this.#waiting.filter(({ isDone }) => isDone());
    this.#waiting = this.#waiting.filter((waiter) => !done.includes(waiter));
    for (const { resolve } of done) resolve();
  }
}
