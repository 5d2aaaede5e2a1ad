import type { IncomingHttpHeaders } from 'node:http2';

/** One processed request. */
export interface SeenRequest {
  token: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  status: number;
  reason: string;
  /** Number of its connection, from 1. */
  connection: number;
  /** Time of processing on the monotonic clock. */
  atMs: number;
}

/** Record of processed requests: cheap counters, and the last requests with their bodies. */
export class Ledger {
  /** Requests processed, whatever the response; without refused streams and those above the last id of a GOAWAY. */
  total = 0;
  /** Requests with response 200. */
  accepted = 0;
  readonly byReason = new Map<string, number>();
  readonly #byToken = new Map<string, number>();
  readonly #ring: SeenRequest[] = [];
  readonly #onRequest: ((request: SeenRequest) => void) | undefined;
  readonly #capacity: number;
  #waiting: { total: number; resolve(): void }[] = [];

  /** With `onRequest` the ledger keeps only counters; the callback gets the requests. */
  constructor(onRequest?: (request: SeenRequest) => void, capacity = 1000) {
    this.#capacity = capacity;
    this.#onRequest = onRequest;
  }

  add(request: SeenRequest): void {
    if (this.#onRequest) this.#onRequest(request);
    else this.#remember(request);
    this.total += 1;
    if (request.status === 200) this.accepted += 1;
    else this.byReason.set(request.reason, (this.byReason.get(request.reason) ?? 0) + 1);
    if (this.#waiting.length > 0) this.#wake();
  }

  seen(token: string): number {
    return this.#byToken.get(token) ?? 0;
  }

  get distinct(): number {
    return this.#byToken.size;
  }

  /** The last requests, oldest first. */
  get requests(): SeenRequest[] {
    const start = this.total > this.#capacity ? this.total % this.#capacity : 0;
    return [...this.#ring.slice(start), ...this.#ring.slice(0, start)];
  }

  waitFor(total: number): Promise<void> {
    if (this.total >= total) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ total, resolve });
    });
  }

  forget(): void {
    this.total = 0;
    this.accepted = 0;
    this.byReason.clear();
    this.#byToken.clear();
    this.#ring.length = 0;
  }

  #remember(request: SeenRequest): void {
    this.#byToken.set(request.token, (this.#byToken.get(request.token) ?? 0) + 1);
    this.#ring[this.total % this.#capacity] = request;
  }

  #wake(): void {
    for (const { total, resolve } of this.#waiting) if (this.total >= total) resolve();
    this.#waiting = this.#waiting.filter(({ total }) => this.total < total);
  }
}
