import type { Field } from '../hpack/encoder.ts';
import type {
  NotSent,
  OnResult,
  RequestBatch,
  RequestResult,
  RequestTemplate,
  ResponseDecision,
  TransportReason,
  TransportRequest,
} from '../transport.ts';

/**
 * Batch in progress: a cursor over its requests, the requests that were returned, and the number of
 * missing results.
 */
export class ActiveBatch {
  readonly requests: readonly TransportRequest[];
  readonly template: RequestTemplate;
  /** Header fields that all requests share. */
  readonly fields: readonly Field[];
  /** Path of the base URL followed by the template's path. */
  readonly pathPrefix: string;
  readonly queuedAtMs: number;
  /** Reason why waiting requests must not be sent; null if they may be sent. */
  stopped: TransportReason | null = null;
  /** True while the batch is in the queue. */
  isQueued = false;
  /** Number of requests without a result. */
  #unsettled: number;
  #next = 0;
  /** Requests that were not processed and are sent again first. */
  #returned: number[] = [];
  /** How often each request was returned. Allocated at the first return. */
  #repeats: Uint8Array | null = null;
  #callbackError: unknown;
  readonly #onResult: OnResult;
  readonly #done: (callbackError: unknown) => void;

  constructor(
    batch: RequestBatch,
    options: {
      onResult: OnResult;
      baseUrl: URL;
      nowMs: number;
      done(callbackError: unknown): void;
    },
  ) {
    this.requests = batch.requests;
    this.template = batch.template;
    this.pathPrefix = `${options.baseUrl.pathname.replace(/\/$/, '')}${batch.template.pathPrefix}`;
    this.fields = fieldsOf(batch.template, options.baseUrl.host);
    this.queuedAtMs = options.nowMs;
    this.#unsettled = batch.requests.length;
    this.#onResult = options.onResult;
    this.#done = options.done;
  }

  /** Number of waiting requests. */
  get waiting(): number {
    return this.requests.length - this.#next + this.#returned.length;
  }

  /** Takes the next waiting request. Requires that `waiting` is above 0. */
  take(): number {
    if (this.#returned.length > 0) return this.#returned.pop() ?? -1;
    return this.#next++;
  }

  /**
   * Puts back a request that was not processed; it is taken next. Returns how often it was put
   * back.
   */
  putBack(index: number): number {
    this.#repeats ??= new Uint8Array(this.requests.length);
    const repeats = (this.#repeats[index] ?? 0) + 1;
    this.#repeats[index] = repeats;
    this.#returned.push(index);
    return repeats;
  }

  /** Reverts `putBack` if the request will not be sent again. */
  withdraw(index: number): void {
    const at = this.#returned.lastIndexOf(index);
    if (at >= 0) this.#returned.splice(at, 1);
  }

  /**
   * Reports one result. If the callback throws, the batch stops, and `sendMany` rejects after the
   * last result.
   */
  settle(index: number, result: RequestResult): ResponseDecision {
    let decision: ResponseDecision;
    try {
      decision = this.#onResult(index, result);
    } catch (error) {
      this.#callbackError ??= error;
      decision = 'stop';
    }
    this.#unsettled -= 1;
    if (this.#unsettled === 0) this.#done(this.#callbackError);
    else if (decision === 'stop' && this.stopped === null) this.stop('stopped');
    return decision;
  }

  /** Rejects the waiting requests, and the requests that are put back later. */
  stop(reason: TransportReason): void {
    this.stopped ??= reason;
    this.rejectWaiting({ kind: 'not_sent', reason, afterMs: null });
  }

  /** Rejects the waiting requests. Requests that are put back later may be sent again. */
  rejectWaiting(result: NotSent): void {
    while (this.waiting > 0) this.settle(this.take(), result);
  }
}

/** Returns the shared header fields. Pseudo fields come first (RFC 9113 8.3). */
function fieldsOf(template: RequestTemplate, authority: string): Field[] {
  const batchHeaders = new Set(template.batchHeaders);
  const shared = Object.entries(template.headers).map(
    ([name, value]): Field => ({
      name,
      value,
      scope: batchHeaders.has(name) ? 'batch' : 'connection',
    }),
  );
  return [
    { name: ':method', value: 'POST', scope: 'connection' },
    { name: ':scheme', value: 'https', scope: 'connection' },
    { name: ':authority', value: authority, scope: 'connection' },
    ...shared,
  ];
}

/**
 * Round-robin queue of batches that wait for free streams. Each batch gets a few requests per turn,
 * so that a push to one device does not wait for a push to thousands.
 */
export class BatchQueue {
  readonly #batches: ActiveBatch[] = [];
  #nextIndex = 0;

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }

  /** Queues a batch if it has waiting requests. */
  add(batch: ActiveBatch): void {
    if (batch.isQueued || batch.waiting === 0) return;
    batch.isQueued = true;
    this.#batches.push(batch);
  }

  /** Returns the batch whose turn it is. Removes batches without waiting requests. */
  next(): ActiveBatch | undefined {
    while (this.#batches.length > 0) {
      if (this.#nextIndex >= this.#batches.length) this.#nextIndex = 0;
      const batch = this.#batches[this.#nextIndex];
      if (batch && batch.waiting > 0) {
        this.#nextIndex += 1;
        return batch;
      }
      if (batch) batch.isQueued = false;
      this.#batches.splice(this.#nextIndex, 1);
    }
    return undefined;
  }

  /**
   * Returns a copy of the queue. With `queuedBeforeMs`, only batches that were queued before this
   * time.
   */
  list(queuedBeforeMs = Number.POSITIVE_INFINITY): ActiveBatch[] {
    return this.#batches.filter((batch) => batch.queuedAtMs < queuedBeforeMs);
  }
}
