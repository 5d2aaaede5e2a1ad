import type { BatchState, Exchange } from './exchange.ts';

/** The requests of one batch that wait, in the order they came. */
interface BatchQueue {
  state: BatchState;
  items: Exchange[];
  head: number;
}

/**
 * Requests that wait for a free stream. Batches take turns, one request each, so that a batch of one does
 * not wait behind thousands of another push; what was handed back goes before all.
 */
export class RequestQueue {
  /** Lanes in the order of their turns; the first is next. */
  #lanes: BatchQueue[] = [];
  readonly #laneOf = new Map<BatchState, BatchQueue>();
  #turn = 0;
  #waiting = 0;
  /** Handed back, to go first. */
  #front: Exchange[] = [];

  get length(): number {
    return this.#waiting + this.#front.length;
  }

  push(exchange: Exchange): void {
    let lane = this.#laneOf.get(exchange.state);
    if (!lane) {
      lane = { state: exchange.state, items: [], head: 0 };
      this.#laneOf.set(exchange.state, lane);
      this.#lanes.push(lane);
    }
    lane.items.push(exchange);
    this.#waiting += 1;
  }

  pushFront(exchange: Exchange): void {
    this.#front.push(exchange);
  }

  shift(): Exchange | undefined {
    const first = this.#front.pop();
    if (first) return first;
    if (this.#turn >= this.#lanes.length) this.#turn = 0;
    const lane = this.#lanes[this.#turn];
    const exchange = lane?.items[lane.head];
    if (!lane || !exchange) return undefined;
    lane.head += 1;
    this.#waiting -= 1;
    if (lane.head === lane.items.length) this.#closeLane(lane);
    else this.#turn += 1;
    return exchange;
  }

  takeAll(): Exchange[] {
    return this.#take(() => true);
  }

  takeBatch(state: BatchState): Exchange[] {
    return this.#take((exchange) => exchange.state === state);
  }

  /** Looks through the queue only when the oldest member of some batch is that old: cheap to call often. */
  takeOlderThan(queuedAtMs: number): Exchange[] {
    const isDue = (exchange: Exchange | undefined) => (exchange?.queuedAtMs ?? Infinity) < queuedAtMs;
    const hasDue = this.#front.some(isDue) || this.#lanes.some((lane) => isDue(lane.items[lane.head]));
    return hasDue ? this.#take(isDue) : [];
  }

  #closeLane(lane: BatchQueue): void {
    this.#laneOf.delete(lane.state);
    this.#lanes.splice(this.#lanes.indexOf(lane), 1);
  }

  #take(isTaken: (exchange: Exchange) => boolean): Exchange[] {
    const waiting = this.#lanes.flatMap((lane) => lane.items.slice(lane.head));
    const all = [...this.#front.reverse(), ...waiting];
    this.#front = [];
    this.#lanes = [];
    this.#laneOf.clear();
    this.#turn = 0;
    this.#waiting = 0;
    for (const exchange of all) if (!isTaken(exchange)) this.push(exchange);
    return all.filter(isTaken);
  }
}
