import type { IncomingHttpHeaders } from 'node:http';

/** One request as the gateway saw it. */
export interface SeenCall {
  method: string;
  /** With its query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Devices it named. */
  tokens: readonly string[];
  status: number;
  /** Which connection it came on, counted from 1. */
  connection: number;
}

/** What a gateway saw: counters by device, and the last requests whole. Calls for access tokens are counted apart. */
export class CallLedger {
  /** Requests processed, whatever the answer. */
  total = 0;
  /** Devices that were accepted, each as often as it was. */
  accepted = 0;
  tokenCalls = 0;
  readonly violations: string[] = [];
  readonly #seen = new Map<string, number>();
  readonly #delivered = new Map<string, number>();
  readonly #ring: SeenCall[] = [];
  readonly #capacity: number;
  #waiting: { isDone(): boolean; resolve(): void }[] = [];

  /** `kept`: how many of the last requests are remembered whole. */
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
