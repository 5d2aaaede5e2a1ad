import type { BatchState, Exchange } from './exchange.ts';

/** Waiting requests of one batch, in order of arrival. */
interface BatchQueue {
  state: BatchState;
  items: Exchange[];
  head: number;
}

/**
 * Queue of requests that wait for a free stream. Batches take turns, one request each, so that a batch of one does not
 * wait for thousands of another push. Returned requests go first.
 */
export class RequestQueue {
  /** Batches in the order of their turns. */
  #batches: BatchQueue[] = [];
  readonly #batchOf = new Map<BatchState, BatchQueue>();
  #turn = 0;
  #waiting = 0;
  /** Returned requests, which go first. */
  #front: Exchange[] = [];

  get length(): number {
    return this.#waiting + this.#front.length;
  }

  push(exchange: Exchange): void {
    let batch = this.#batchOf.get(exchange.state);
    if (!batch) {
      batch = { state: exchange.state, items: [], head: 0 };
      this.#batchOf.set(exchange.state, batch);
      this.#batches.push(batch);
    }
    batch.items.push(exchange);
    this.#waiting += 1;
  }

  pushFront(exchange: Exchange): void {
    this.#front.push(exchange);
  }

  shift(): Exchange | undefined {
    const first = this.#front.pop();
    if (first) return first;
    if (this.#turn >= this.#batches.length) this.#turn = 0;
    const batch = this.#batches[this.#turn];
    const exchange = batch?.items[batch.head];
    if (!batch || !exchange) return undefined;
    batch.head += 1;
    this.#waiting -= 1;
    if (batch.head === batch.items.length) this.#removeBatch(batch);
    else this.#turn += 1;
    return exchange;
  }

  takeAll(): Exchange[] {
    return this.#take(() => true);
  }

  takeBatch(state: BatchState): Exchange[] {
    return this.#take((exchange) => exchange.state === state);
  }

  /** Takes requests queued before a time. Scans the queue only when a batch has one, so frequent calls are cheap. */
  takeOlderThan(queuedAtMs: number): Exchange[] {
    const isDue = (exchange: Exchange | undefined) => (exchange?.queuedAtMs ?? Infinity) < queuedAtMs;
    const hasDue = this.#front.some(isDue) || this.#batches.some((batch) => isDue(batch.items[batch.head]));
    return hasDue ? this.#take(isDue) : [];
  }

  #removeBatch(batch: BatchQueue): void {
    this.#batchOf.delete(batch.state);
    this.#batches.splice(this.#batches.indexOf(batch), 1);
  }

  #take(isTaken: (exchange: Exchange) => boolean): Exchange[] {
    const waiting = this.#batches.flatMap((batch) => batch.items.slice(batch.head));
    const all = [...this.#front.reverse(), ...waiting];
    this.#front = [];
    this.#batches = [];
    this.#batchOf.clear();
    this.#turn = 0;
    this.#waiting = 0;
    for (const exchange of all) if (!isTaken(exchange)) this.push(exchange);
    return all.filter(isTaken);
  }
}
