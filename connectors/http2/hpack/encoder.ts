/**
 * HPACK encoder (RFC 7541) for similar requests. Values that repeat on the connection are indexed,
 * so that they need one byte later. If a value repeats only in a batch, the encoder indexes the
 * name only. Values of a single request are secret or unique, so they are never indexed.
 */
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { defaultTableSize, entryOverhead, staticTable } from './static-table.ts';

/** Where the value of a field repeats. */
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

/**
 * Minimum number of blocks between two evictions, which prevents thrashing. In between, fields that
 * do not fit the table are sent as literals.
 */
const blocksBetweenEvictions = 1000;

/** Output buffer that grows as needed. */
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
  /**
   * Number that changes with the table. A block of an earlier generation must not be sent again.
   */
  generation = 0;
  /** Newest entry first, in the order of their indices. */
  #entries: Entry[] = [];
  #size = 0;
  #maxSize = defaultTableSize;
  /** Size updates to announce: the smallest size and the last size. */
  #updates: number[] = [];
  #blocks = blocksBetweenEvictions;
  #lastEviction = 0;
  readonly #out = new GrowingBuffer();

  /**
   * Applies the peer's SETTINGS_HEADER_TABLE_SIZE, up to the default size. The next block announces
   * the new size, and the smallest size if there were several (RFC 7541 4.2).
   */
  setPeerTableSize(bytes: number): void {
    const size = Math.min(bytes, defaultTableSize);
    if (size === this.#maxSize) return;
    const smallest = Math.min(size, ...this.#updates);
    this.#updates = smallest < size ? [smallest, size] : [size];
    this.#maxSize = size;
    this.#evictTo(size);
    this.generation += 1;
  }

  /** Current entries, newest first. For tests. */
  get entries(): readonly Readonly<Entry>[] {
    return this.#entries;
  }

  /**
   * Encodes fields as one block. If this changes `generation`, the block updates the peer's table
   * and must be sent exactly once.
   */
  encode(fields: readonly Field[]): Buffer {
    this.#blocks += 1;
    for (const size of this.#updates) this.#integer(0x20, 0x1f, size);
    if (this.#updates.length > 0) this.generation += 1;
    this.#updates = [];
    for (const field of fields) this.#field(field);
    return this.#out.take();
  }

  /** Returns the bytes of a never-indexed field up to its value. */
  neverIndexedPrefix(name: string): Buffer {
    this.#literal(0x10, 0x0f, name);
    return this.#out.take();
  }

  /** Counts blocks that were sent as copies of an encoded block. */
  countBlocks(count: number): void {
    this.#blocks += count;
  }

  #field({ name, value, scope }: Field): void {
    const index = scope === 'request' ? 0 : this.#indexOf(name, value);
    const isIndexable = scope === 'connection' || (scope === 'batch' && this.#indexOf(name) === 0);
    if (index > 0) {
      this.#integer(0x80, 0x7f, index);
    } else if (isIndexable && this.#isAffordable(name.length + value.length + entryOverhead)) {
      this.#literal(0x40, 0x3f, name);
      this.#text(value);
      this.#add(name, value);
    } else {
      if (scope === 'request') this.#literal(0x10, 0x0f, name);
      else this.#literal(0x00, 0x0f, name);
      this.#text(value);
    }
  }

  #literal(pattern: number, mask: number, name: string): void {
    const index = this.#indexOf(name);
    this.#integer(pattern, mask, index);
    if (index === 0) this.#text(name);
  }

  /**
   * Returns the index of the field. Without `value`, returns the first index with the name. Returns
   * 0 if the table does not contain it.
   */
  #indexOf(name: string, value?: string): number {
    const matches = (known: string, knownValue: string) =>
      known === name && (value === undefined || knownValue === value);
    const fixed = staticTable.findIndex(([known, knownValue]) => matches(known, knownValue));
    if (fixed >= 0) return fixed + 1;
    const own = this.#entries.findIndex((entry) => matches(entry.name, entry.value));
    return own < 0 ? 0 : staticTable.length + 1 + own;
  }

  #isAffordable(size: number): boolean {
    if (this.#size + size <= this.#maxSize) return true;
    if (size > this.#maxSize / 2) return false;
    // Evictions are rare, so that a small table does not change with each block.
    return this.#blocks - this.#lastEviction >= blocksBetweenEvictions;
  }

  #add(name: string, value: string): void {
    const size = name.length + value.length + entryOverhead;
    if (this.#size + size > this.#maxSize) {
      // Evicts half of the table, so that the other fields of the list fit too.
      this.#evictTo(Math.min(this.#maxSize - size, this.#maxSize / 2));
      this.#lastEviction = this.#blocks;
    }
    this.#entries.unshift({ name, value, size });
    this.#size += size;
    this.generation += 1;
  }

  #evictTo(size: number): void {
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
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80))
      out.bytes[out.length++] = 0x80 | (rest % 0x80);
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
