import type { Field } from '../../hpack/encoder.ts';
import type {
  NotSent,
  OnResult,
  RequestBatch,
  RequestResult,
  RequestTemplate,
  ResponseDecision,
  TransportReason,
  TransportRequest,
} from '../../transport.ts';

/** A batch on its way: a cursor over its requests, and the few that were handed back. */
export class ActiveBatch {
  readonly requests: readonly TransportRequest[];
  readonly template: RequestTemplate;
  /** What every request carries before its path and its own header. */
  readonly fields: readonly Field[];
  /** The base URL's path and the template's. */
  readonly pathPrefix: string;
  readonly queuedAtMs: number;
  /** Set once the rest of it must not leave any more. */
  stopped: TransportReason | null = null;
  /** It has a place in the queue. */
  isQueued = false;
  /** How many replies are still owed. */
  #unsettled: number;
  #next = 0;
  /** Handed back, to go first. */
  #returned: number[] = [];
  /** How often each was handed back; made with the first. */
  #repeats: Uint8Array | null = null;
  #callbackError: unknown;
  readonly #onResult: OnResult;
  readonly #done: (defect: unknown) => void;

  constructor(
    batch: RequestBatch,
    options: { onResult: OnResult; baseUrl: URL; nowMs: number; done(defect: unknown): void },
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

  /** Requests that wait. */
  get waiting(): number {
    return this.requests.length - this.#next + this.#returned.length;
  }

  /** Takes the next one that waits; only while `waiting` is not 0. */
  take(): number {
    if (this.#returned.length > 0) return this.#returned.pop() ?? -1;
    return this.#next++;
  }

  /** Puts one back to be taken first; gives how often that was done with it. */
  putBack(index: number): number {
    this.#repeats ??= new Uint8Array(this.requests.length);
    const repeats = (this.#repeats[index] ?? 0) + 1;
    this.#repeats[index] = repeats;
    this.#returned.push(index);
    return repeats;
  }

  /** Takes back what `putBack` put: it is settled otherwise. */
  withdraw(index: number): void {
    const place = this.#returned.lastIndexOf(index);
    if (place >= 0) this.#returned.splice(place, 1);
  }

  /** Tells one reply. What the caller's function throws is kept for the end and stops the batch. */
  settle(index: number, settle: RequestResult): ResponseDecision {
    let decision: ResponseDecision;
    try {
      decision = this.#onResult(index, settle);
    } catch (error) {
      this.#callbackError ??= error;
      decision = 'stop';
    }
    this.#unsettled -= 1;
    if (this.#unsettled === 0) this.#done(this.#callbackError);
    else if (decision === 'stop' && this.stopped === null) this.stop('stopped');
    return decision;
  }

  /** Hands back everything that waits. */
  stop(reason: TransportReason, afterMs: number | null = null): void {
    this.stopped ??= reason;
    this.rejectWaiting({ kind: 'not_sent', reason, afterMs });
  }

  /** The same; what comes back from a connection later may be sent again. */
  rejectWaiting(settle: NotSent): void {
    while (this.waiting > 0) this.settle(this.take(), settle);
  }
}

/** Headers as they go into a block: the pseudo ones first (RFC 9113 8.3). */
function fieldsOf(template: RequestTemplate, authority: string): Field[] {
  const passing = new Set(template.batchHeaders);
  const shared = Object.entries(template.headers).map(
    ([name, value]): Field => ({ name, value, scope: passing.has(name) ? 'batch' : 'connection' }),
  );
  return [
    { name: ':method', value: 'POST', scope: 'connection' },
    { name: ':scheme', value: 'https', scope: 'connection' },
    { name: ':authority', value: authority, scope: 'connection' },
    ...shared,
  ];
}
