import type { ActiveBatch } from '../requests/active-batch.ts';

/**
 * Slots by stream id. There are more slots than open streams, so the slot of a new stream is nearly
 * always free.
 */
const ringSlots = 2048;
/** Slots for old streams whose slot was taken by a newer stream. */
const spareSlots = 1024;

/** The parts of a response other than its status. Few responses have such parts. */
export interface PartialResponse {
  retryAfter: string | undefined;
  /** Value of `TransportOptions.responseHeader`. */
  header: string | undefined;
  /** Copies, because read buffers are reused. */
  chunks: Buffer[];
  bytes: number;
  /** Bytes taken from the stream's window, including padding. */
  flowBytes: number;
}

/**
 * State of the open streams. Typed arrays over a ring of slots avoid an object per stream. Stream
 * ids grow (RFC 9113 5.1.1), so the id determines the slot. If a stream is still open after 2048
 * newer streams, it moves to a spare slot, which a map finds.
 */
export class StreamTable {
  /** Stream id by slot; 0 if the slot is free. */
  readonly ids = new Uint32Array(ringSlots + spareSlots);
  readonly batches: (ActiveBatch | null)[] = new Array<ActiveBatch | null>(
    ringSlots + spareSlots,
  ).fill(null);
  readonly indices = new Uint32Array(ringSlots + spareSlots);
  readonly writtenAtMs = new Float64Array(ringSlots + spareSlots);
  /** Number of reads on the connection before the request was written. */
  readonly readsBefore = new Float64Array(ringSlots + spareSlots);
  readonly statuses = new Uint16Array(ringSlots + spareSlots);
  readonly partials: (PartialResponse | null)[] = new Array<PartialResponse | null>(
    ringSlots + spareSlots,
  ).fill(null);
  count = 0;
  readonly #moved = new Map<number, number>();

  /** Returns the slot of an open stream; -1 if the stream is not open. */
  find(id: number): number {
    const slot = (id >>> 1) & (ringSlots - 1);
    if (this.ids[slot] === id) return slot;
    return this.#moved.size === 0 ? -1 : (this.#moved.get(id) ?? -1);
  }

  /**
   * Opens a stream and returns its slot. Requires that the id is the highest so far and that fewer
   * than `spareSlots` streams are open.
   */
  open(id: number): number {
    const slot = (id >>> 1) & (ringSlots - 1);
    if (this.ids[slot] !== 0) this.#move(slot);
    this.ids[slot] = id;
    this.statuses[slot] = 0;
    this.count += 1;
    return slot;
  }

  close(slot: number): void {
    if (slot >= ringSlots) this.#moved.delete(this.ids[slot] ?? 0);
    this.ids[slot] = 0;
    this.batches[slot] = null;
    this.partials[slot] = null;
    this.count -= 1;
  }

  /** Returns the slots of all open streams, oldest first. */
  openSlots(): number[] {
    if (this.count === 0) return [];
    const slots: number[] = [];
    this.ids.forEach((id, slot) => {
      if (id !== 0) slots.push(slot);
    });
    return slots.sort((a, b) => (this.ids[a] ?? 0) - (this.ids[b] ?? 0));
  }

  #move(slot: number): void {
    let spare = ringSlots;
    while (this.ids[spare] !== 0) spare += 1;
    const id = this.ids[slot] ?? 0;
    this.ids[spare] = id;
    this.batches[spare] = this.batches[slot] ?? null;
    this.indices[spare] = this.indices[slot] ?? 0;
    this.writtenAtMs[spare] = this.writtenAtMs[slot] ?? 0;
    this.readsBefore[spare] = this.readsBefore[slot] ?? 0;
    this.statuses[spare] = this.statuses[slot] ?? 0;
    this.partials[spare] = this.partials[slot] ?? null;
    this.#moved.set(id, spare);
    this.partials[slot] = null;
  }
}

/**
 * Limit of the open requests, in seconds of responses. These requests are still in flight when a
 * push is stopped.
 */
const aheadSeconds = 0.4;
/** Response time above which requests are assumed to wait in a queue of the peer. */
const lateSeconds = 0.8;
/** For distant peers, both limits are at least this number of round trips. */
const aheadTrips = 2;
const lateTrips = 3;
/**
 * Stream limit of a new connection. From there it reaches any limit of the peer in a few tenths of
 * a second.
 */
const firstStreams = 100;
const minStreams = 16;
const measureMs = 100;
/** Minimum time for which the quickest response is remembered. */
const memoryMs = 30_000;

/**
 * Congestion window: limits the requests in flight on a connection. If requests are written faster
 * than the peer responds, they wait in a queue of the peer. This makes nothing faster, delays the
 * stop of a push, and causes more unknown results if the connection breaks. So the limit follows
 * the response rate, and doubles while responses are quick.
 */
export class StreamWindow {
  #limit = firstStreams;
  #measuredAtMs: number;
  #forgetAtMs: number;
  #responses = 0;
  #slowest = 0;
  #latest = 0;
  #changedAtMs: number;
  #quickest = Number.POSITIVE_INFINITY;
  #quickestBefore = Number.POSITIVE_INFINITY;
  #wasFull = false;

  constructor(nowMs: number) {
    this.#measuredAtMs = nowMs;
    this.#changedAtMs = nowMs;
    this.#forgetAtMs = nowMs + memoryMs;
  }

  /** Returns the maximum number of open streams for the peer's limit. */
  limitFor(peerLimit: number): number {
    return Math.min(peerLimit, this.#limit);
  }

  /** Records a response. `seconds` is the time since its request was written. */
  onResponse(seconds: number): void {
    this.#responses += 1;
    this.#latest = seconds;
    if (seconds > this.#slowest) this.#slowest = seconds;
    if (seconds < this.#quickest) this.#quickest = seconds;
  }

  /** Records that the limit has delayed requests. */
  onFull(): void {
    this.#wasFull = true;
  }

  /** Adjusts the limit. Called after responses were read. */
  onRead(nowMs: number): void {
    const passedMs = nowMs - this.#measuredAtMs;
    if (passedMs < measureMs || this.#responses === 0) return;
    const trip = Math.min(this.#quickest, this.#quickestBefore);
    const ahead = Math.max(aheadSeconds, aheadTrips * trip);
    // Responses to requests that were written before the last change do not show the effect of this
    // change.
    const isRecent = nowMs - this.#latest * 1000 >= this.#changedAtMs;
    if (this.#slowest > Math.max(lateSeconds, lateTrips * trip)) {
      const responsesAhead = Math.ceil((this.#responses * 1000 * ahead) / passedMs);
      this.#change(Math.max(minStreams, Math.min(responsesAhead, this.#limit)), nowMs);
    } else if (this.#wasFull && isRecent && this.#slowest < ahead)
      this.#change(this.#limit * 2, nowMs);
    this.#measuredAtMs = nowMs;
    this.#responses = 0;
    this.#slowest = 0;
    this.#wasFull = false;
    if (nowMs < this.#forgetAtMs) return;
    this.#forgetAtMs = nowMs + memoryMs;
    this.#quickestBefore = this.#quickest;
    this.#quickest = Number.POSITIVE_INFINITY;
  }

  #change(limit: number, nowMs: number): void {
    this.#limit = limit;
    this.#changedAtMs = nowMs;
  }
}
