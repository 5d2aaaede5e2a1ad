import type { ActiveBatch } from '../requests/active-batch.ts';

/** Slots that streams take by their number; more than are ever open, so that a place is nearly always free. */
const ringSlots = 2048;
/** For those whose place is wanted by a much younger stream. */
const spareSlots = 1024;

/** A reply of which more than the status is kept; few streams have one. */
export interface PartialResponse {
  retryAfter: string | undefined;
  /** Copies: what is read is not kept. */
  chunks: Buffer[];
  bytes: number;
  /** What the peer used of the stream's window, padding included. */
  flowBytes: number;
}

/**
 * What is known of the streams that are open: columns of numbers over a ring of slots, so that a stream costs
 * no object. Streams are numbered in the order they are opened (RFC 9113 5.1.1), so the slot follows from the
 * number; one that outlived 2048 younger ones moves to a spare slot and is found by its number in a map.
 */
export class StreamTable {
  /** Streams that may be open at a time. */
  static readonly capacity = spareSlots;
  /** Stream number by slot; 0: free. */
  readonly ids = new Uint32Array(ringSlots + spareSlots);
  readonly batches: (ActiveBatch | null)[] = new Array<ActiveBatch | null>(ringSlots + spareSlots).fill(null);
  readonly indices = new Uint32Array(ringSlots + spareSlots);
  readonly writtenAtMs = new Float64Array(ringSlots + spareSlots);
  /** How much its connection had read when it was written. */
  readonly readsBefore = new Float64Array(ringSlots + spareSlots);
  readonly statuses = new Uint16Array(ringSlots + spareSlots);
  readonly partials: (PartialResponse | null)[] = new Array<PartialResponse | null>(
    ringSlots + spareSlots,
  ).fill(null);
  count = 0;
  readonly #moved = new Map<number, number>();

  /** Slot of an open stream, -1 when it is not open. */
  find(id: number): number {
    const slot = (id >>> 1) & (ringSlots - 1);
    if (this.ids[slot] === id) return slot;
    return this.#moved.size === 0 ? -1 : (this.#moved.get(id) ?? -1);
  }

  /** Opens a stream; its number is above all before it, and fewer than `capacity` are open. */
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

  /** Slots of all open streams, the oldest first. */
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
