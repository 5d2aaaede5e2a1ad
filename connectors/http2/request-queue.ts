import type { BatchState, Exchange } from './exchange.ts';

/** First in, first out; what was handed back goes to the front. Taking from the front moves nothing. */
export class RequestQueue {
  #items: Exchange[] = [];
  #head = 0;
  /** Handed back, to go first. */
  #front: Exchange[] = [];

  get length(): number {
    return this.#items.length - this.#head + this.#front.length;
  }

  push(exchange: Exchange): void {
    this.#items.push(exchange);
  }

  pushFront(exchange: Exchange): void {
    this.#front.push(exchange);
  }

  shift(): Exchange | undefined {
    const first = this.#front.pop();
    if (first) return first;
    const exchange = this.#items[this.#head];
    if (!exchange) return undefined;
    this.#head += 1;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > 10_000) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return exchange;
  }

  takeAll(): Exchange[] {
    return this.#take(() => true);
  }

  takeBatch(state: BatchState): Exchange[] {
    return this.#take((exchange) => exchange.state === state);
  }

  /** Looks through the queue only when its oldest member is that old: cheap to call often. */
  takeOlderThan(queuedAtMs: number): Exchange[] {
    const oldest = this.#items[this.#head];
    const isDue = (exchange: Exchange) => exchange.queuedAtMs < queuedAtMs;
    return (oldest && isDue(oldest)) || this.#front.some(isDue) ? this.#take(isDue) : [];
  }

  #take(isTaken: (exchange: Exchange) => boolean): Exchange[] {
    const all = [...this.#front.reverse(), ...this.#items.slice(this.#head)];
    this.#front = [];
    this.#head = 0;
    this.#items = all.filter((exchange) => !isTaken(exchange));
    return all.filter(isTaken);
  }
}
