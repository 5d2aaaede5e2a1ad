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
  /** Maximum number of open streams. */
  static readonly capacity = spareSlots;
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
   * than `capacity` streams are open.
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
