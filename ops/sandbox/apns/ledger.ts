import type { IncomingHttpHeaders } from 'node:http2';

/** One request as the gateway saw it. */
export interface SeenRequest {
  token: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  status: number;
  reason: string;
  /** Which connection it came on, counted from 1. */
  connection: number;
  /** When it was processed, by the monotonic clock. */
  atMs: number;
}

/** What the gateway saw: cheap counters, and the last requests whole. */
export class Ledger {
  /** Requests processed, whatever the answer; refused streams and those above a GOAWAY's last id are not. */
  total = 0;
  /** Answered with 200. */
  accepted = 0;
  readonly byReason = new Map<string, number>();
  readonly #byToken = new Map<string, number>();
  readonly #ring: SeenRequest[] = [];
  readonly #onRequest: ((request: SeenRequest) => void) | undefined;
  readonly #capacity: number;
  #waiting: { total: number; resolve(): void }[] = [];

  /** With `onRequest` only the counters are kept; who listens may remember more. */
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
