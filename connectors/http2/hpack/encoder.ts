/**
 * HPACK as a writer (RFC 7541). Meant for requests that are alike: what lasts goes into the table once and
 * costs a byte afterwards; of what passes only the name goes there; what is secret or unique never does.
 */
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { defaultTableSize, entryOverhead, staticTable } from './static-table.ts';

/** How long a field is of use: on this connection, for this push, or for one request. */
export type FieldScope = 'connection' | 'batch' | 'request';

export interface Field {
  name: string;
  value: string;
  scope: FieldScope;
}

interface Entry {
  name: string;
  value: string;
  size: number;
}

/** The table is not thrashed: what does not fit beside entries younger than this many blocks stays literal. */
const settledAfterBlocks = 1000;

/** Bytes that grow; one per encoder. */
class GrowingBuffer {
  bytes = Buffer.allocUnsafeSlow(4096);
  length = 0;

  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(2 * (this.length + more));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  take(): Buffer {
    const taken = Buffer.from(this.bytes.subarray(0, this.length));
    this.length = 0;
    return taken;
  }
}

export class HeaderEncoder {
  /** Changes whenever the table does: blocks that were encoded before are not to be used again. */
  generation = 0;
  /** Newest first, as its indices are. */
  #entries: Entry[] = [];
  #size = 0;
  #maxSize = defaultTableSize;
  /** Sizes that the peer's table has to be told of, the smallest and the last. */
  #updates: number[] = [];
  #blocks = settledAfterBlocks;
  #lastDrop = 0;
  readonly #out = new GrowingBuffer();

  /**
   * The peer's SETTINGS_HEADER_TABLE_SIZE, at any time. We never use more than the default. A smaller
   * table is told with the next block, as is the smallest of several (RFC 7541 4.2).
   */
  setPeerTableSize(bytes: number): void {
    const size = Math.min(bytes, defaultTableSize);
    if (size === this.#maxSize) return;
    const least = Math.min(size, ...this.#updates);
    this.#updates = least < size ? [least, size] : [size];
    this.#maxSize = size;
    this.#dropTo(size);
    this.generation += 1;
  }

  /** Entries in the table of now, newest first; for tests. */
  get entries(): readonly Readonly<Entry>[] {
    return this.#entries;
  }

  /**
   * Encodes a list of fields as one block. Where `generation` was moved by it, the block says something about
   * the table and may be sent once only.
   */
  encode(fields: readonly Field[]): Buffer {
    this.#blocks += 1;
    for (const size of this.#updates) this.#integer(0x20, 0x1f, size);
    if (this.#updates.length > 0) this.generation += 1;
    this.#updates = [];
    for (const field of fields) this.#field(field);
    return this.#out.take();
  }

  /** What comes before the value of a field that is in no table: a literal that is never indexed, and its name. */
  neverIndexedPrefix(name: string): Buffer {
    this.#literal(0x10, 0x0f, name);
    return this.#out.take();
  }

  /** Counts blocks that were sent from a copy. */
  countBlocks(count: number): void {
    this.#blocks += count;
  }

  #field({ name, value, scope: life }: Field): void {
    const index = life === 'request' ? 0 : this.#indexOf(name, value);
    const isWanted = life === 'connection' || (life === 'batch' && this.#indexOf(name) === 0);
    if (index > 0) {
      this.#integer(0x80, 0x7f, index);
    } else if (isWanted && this.#isAffordable(name.length + value.length + entryOverhead)) {
      this.#literal(0x40, 0x3f, name);
      this.#text(value);
      this.#add(name, value);
    } else {
      if (life === 'request') this.#literal(0x10, 0x0f, name);
      else this.#literal(0x00, 0x0f, name);
      this.#text(value);
    }
  }

  #literal(pattern: number, mask: number, name: string): void {
    const index = this.#indexOf(name);
    this.#integer(pattern, mask, index);
    if (index === 0) this.#text(name);
  }

  /** Index of the field, or of the first with this name; 0 where there is none. */
  #indexOf(name: string, value?: string): number {
    const isIt = (known: string, knownValue: string) =>
      known === name && (value === undefined || knownValue === value);
    const fixed = staticTable.findIndex(([known, knownValue]) => isIt(known, knownValue));
    if (fixed >= 0) return fixed + 1;
    const own = this.#entries.findIndex((entry) => isIt(entry.name, entry.value));
    return own < 0 ? 0 : staticTable.length + 1 + own;
  }

  #isAffordable(size: number): boolean {
    if (this.#size + size <= this.#maxSize) return true;
    if (size > this.#maxSize / 2) return false;
    // Old entries are dropped at their turn, a few at a time; a small table is not turned over by every block.
    return this.#blocks - this.#lastDrop >= settledAfterBlocks;
  }

  #add(name: string, value: string): void {
    const size = name.length + value.length + entryOverhead;
    if (this.#size + size > this.#maxSize) {
      // Half of it at a time, so that the others of the same list find room.
      this.#dropTo(Math.min(this.#maxSize - size, this.#maxSize / 2));
      this.#lastDrop = this.#blocks;
    }
    this.#entries.unshift({ name, value, size });
    this.#size += size;
    this.generation += 1;
  }

  #dropTo(size: number): void {
    while (this.#size > size) this.#size -= this.#entries.pop()?.size ?? this.#size;
  }

  #integer(pattern: number, mask: number, value: number): void {
    const out = this.#out;
    out.reserve(6);
    if (value < mask) {
      out.bytes[out.length++] = pattern | value;
      return;
    }
    out.bytes[out.length++] = pattern | mask;
    let rest = value - mask;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.bytes[out.length++] = 0x80 | (rest % 0x80);
    out.bytes[out.length++] = rest;
  }

  #text(text: string): void {
    const plain = Buffer.from(text, 'latin1');
    const coded = huffmanLength(plain);
    const isShorter = coded < plain.length;
    this.#integer(isShorter ? 0x80 : 0, 0x7f, isShorter ? coded : plain.length);
    const out = this.#out;
    out.reserve(plain.length + 8);
    if (isShorter) out.length = huffmanEncode(plain, out.bytes, out.length);
    else {
      plain.copy(out.bytes, out.length);
      out.length += plain.length;
    }
  }
}
