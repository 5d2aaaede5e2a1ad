/**
 * Dynamic table of the decoder (RFC 7541 2.3.2, 4). Stores names and values as bytes in one buffer,
 * and their offsets in ring buffers. Adding a field therefore creates no object.
 */
import { entryOverhead } from './static-table.ts';

export class ReceivedTable {
  /** Bytes of the entries, oldest first. The current literal is decoded behind `tail`. */
  bytes: Buffer;
  /** Offset of the next literal. */
  tail = 0;
  count = 0;
  readonly #starts: Int32Array;
  readonly #nameLengths: Int32Array;
  readonly #valueLengths: Int32Array;
  readonly #kinds: Uint8Array;
  #newest = -1;
  #size = 0;
  #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
    this.bytes = Buffer.allocUnsafeSlow(2 * maxSize + 1024);
    const slots = Math.floor(maxSize / entryOverhead) + 1;
    this.#starts = new Int32Array(slots);
    this.#nameLengths = new Int32Array(slots);
    this.#valueLengths = new Int32Array(slots);
    this.#kinds = new Uint8Array(slots);
  }

  /** Returns the slot of an entry. Index 0 is the newest entry. Requires `index < count`. */
  slotOf(index: number): number {
    const slot = this.#newest - index;
    return slot < 0 ? slot + this.#starts.length : slot;
  }

  startOf(slot: number): number {
    return this.#starts[slot] ?? 0;
  }

  nameLengthOf(slot: number): number {
    return this.#nameLengths[slot] ?? 0;
  }

  valueLengthOf(slot: number): number {
    return this.#valueLengths[slot] ?? 0;
  }

  kindOf(slot: number): number {
    return this.#kinds[slot] ?? 0;
  }

  /** Ensures that `length` bytes fit behind `tail`. May move entries, which invalidates offsets. */
  makeRoom(length: number): void {
    if (this.tail + length <= this.bytes.length) return;
    const oldest = this.count === 0 ? this.tail : this.startOf(this.slotOf(this.count - 1));
    const live = this.tail - oldest;
    const from = this.bytes;
    if (live + length > from.length) this.bytes = Buffer.allocUnsafeSlow(live + length + 1024);
    from.copy(this.bytes, 0, oldest, this.tail);
    for (let index = 0; index < this.count; index++) {
      const slot = this.slotOf(index);
      this.#starts[slot] = this.startOf(slot) - oldest;
    }
    this.tail = live;
  }

  /** Adds the bytes at `tail` as an entry. Evicts the oldest entries until it fits. */
  add(nameLength: number, valueLength: number, kind: number): void {
    const size = nameLength + valueLength + entryOverhead;
    this.#evictTo(this.#maxSize - size);
    // An entry that is larger than the table empties the table and is not added (RFC 7541 4.4).
    if (size > this.#maxSize) return;
    const slot = this.#newest + 1 === this.#starts.length ? 0 : this.#newest + 1;
    this.#starts[slot] = this.tail;
    this.#nameLengths[slot] = nameLength;
    this.#valueLengths[slot] = valueLength;
    this.#kinds[slot] = kind;
    this.#newest = slot;
    this.count += 1;
    this.#size += size;
    this.tail += nameLength + valueLength;
  }

  /** Changes the maximum size. The caller has checked it against our setting. */
  resize(maxSize: number): void {
    this.#maxSize = maxSize;
    this.#evictTo(maxSize);
  }

  #evictTo(size: number): void {
    while (this.#size > size && this.count > 0) {
      const slot = this.slotOf(this.count - 1);
      this.#size -= this.nameLengthOf(slot) + this.valueLengthOf(slot) + entryOverhead;
      this.count -= 1;
    }
    if (this.count === 0) this.#newest = -1;
  }
}
