import type { ActiveBatch } from '../requests/active-batch.ts';

/** Slots by stream id; more than streams are ever open, so that a slot is nearly always free. */
const ringSlots = 2048;
/** Slots for old streams whose slot a newer stream takes. */
const spareSlots = 1024;

/** Part of a response beside its status; few streams have one. */
export interface PartialResponse {
  retryAfter: string | undefined;
  /** Copies, since read buffers are reused. */
  chunks: Buffer[];
  bytes: number;
  /** Bytes taken from the stream's window, padding included. */
  flowBytes: number;
}

/**
 * State of the open streams: typed arrays over a ring of slots, so that a stream needs no object.
 * Stream ids grow (RFC 9113 5.1.1), so the slot follows from the id. A stream that outlives 2048
 * newer ones moves to a spare slot, which a map finds.
 */
export class StreamTable {
  /** Most streams open at the same time. */
  static readonly capacity = spareSlots;
  /** Stream id by slot; 0: free. */
  readonly ids = new Uint32Array(ringSlots + spareSlots);
  readonly batches: (ActiveBatch | null)[] = new Array<ActiveBatch | null>(
    ringSlots + spareSlots,
  ).fill(null);
  readonly indices = new Uint32Array(ringSlots + spareSlots);
  readonly writtenAtMs = new Float64Array(ringSlots + spareSlots);
  /** Reads of the connection before the request was written. */
  readonly readsBefore = new Float64Array(ringSlots + spareSlots);
  readonly statuses = new Uint16Array(ringSlots + spareSlots);
  readonly partials: (PartialResponse | null)[] = new Array<PartialResponse | null>(
    ringSlots + spareSlots,
  ).fill(null);
  count = 0;
  readonly #moved = new Map<number, number>();

  /** Returns the slot of an open stream; -1 when it is not open. */
  find(id: number): number {
    const slot = (id >>> 1) & (ringSlots - 1);
    if (this.ids[slot] === id) return slot;
    return this.#moved.size === 0 ? -1 : (this.#moved.get(id) ?? -1);
  }

  /**
   * Opens a stream and returns its slot. Its id is the highest so far; fewer than `capacity` are
   * open.
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
