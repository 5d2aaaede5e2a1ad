import { huffmanDecode, huffmanRoom } from './huffman.ts';
import {
  defaultTableSize,
  entryOverhead,
  kindOf,
  malformedField,
  retryAfterField,
  staticKinds,
  staticStatuses,
  staticTable,
  statusField,
  wantedField,
} from './static-table.ts';

/**
 * HPACK decoder (RFC 7541). Decodes all fields, because the table depends on them, but keeps only
 * the status, `retry-after` and one further field. Strings of other fields are only created for
 * `onField`.
 */

/**
 * `broken` is a connection error (RFC 7541 2.3). `too_large` means that the header list is larger
 * than the limit.
 */
export type DecodeError = 'broken' | 'too_large';

export interface DecoderLimits {
  /** Our SETTINGS_HEADER_TABLE_SIZE. */
  tableSize: number;
  /** Maximum size of a header list in bytes, counted as in RFC 9113 6.5.2. */
  listSize: number;
  /**
   * Name of a further field to keep. It must not be in the static table. If absent, no further field
   * is kept.
   */
  wanted?: string | undefined;
}

const staticCount = staticTable.length;
/** Far above any valid length and far below the precision limit of numbers. */
const maxInteger = 0x0fff_ffff;
/** Maximum length of the kept value of the wanted field. */
const maxWantedLength = 512;

export class HeaderDecoder {
  /** Status of the last block; 0 if it has none. */
  status = 0;
  retryAfter: string | undefined;
  /** First value of the wanted field, cut to `maxWantedLength`. */
  wanted: string | undefined;
  /** True if the block can be decoded but is not a valid response. */
  isMalformed = false;
  readonly #table: ReceivedTable;
  readonly #limits: DecoderLimits;
  #block: Uint8Array = new Uint8Array();
  #at = 0;
  #end = 0;
  #listSize = 0;
  #hasField = false;
  #hasRegular = false;
  #onField: ((name: string, value: string) => void) | undefined;

  constructor(limits: DecoderLimits = { tableSize: defaultTableSize, listSize: 65_536 }) {
    this.#limits = limits;
    this.#table = new ReceivedTable(limits.tableSize);
  }

  /**
   * Decodes one whole block. Calls `onField` for each field, with texts of one character per byte.
   */
  decode(
    block: Uint8Array,
    start: number,
    end: number,
    onField?: (name: string, value: string) => void,
  ): DecodeError | null {
    this.status = 0;
    this.retryAfter = undefined;
    this.wanted = undefined;
    this.isMalformed = false;
    this.#block = block;
    this.#at = start;
    this.#end = end;
    this.#listSize = 0;
    this.#hasField = false;
    this.#hasRegular = false;
    this.#onField = onField;
    while (this.#at < end) {
      if (!this.#representation(block[this.#at] ?? 0)) return 'broken';
      if (this.#listSize > this.#limits.listSize) return 'too_large';
    }
    return null;
  }

  #representation(first: number): boolean {
    if (first & 0x80) {
      this.#hasField = true;
      return this.#indexed(this.#integer(0x7f));
    }
    if ((first & 0xe0) === 0x20) return this.#resize(this.#integer(0x1f));
    this.#hasField = true;
    const isAdded = (first & 0xc0) === 0x40;
    return this.#literal(this.#integer(isAdded ? 0x3f : 0x0f), isAdded);
  }

  /**
   * Handles a size update. It is only valid before the first field, and up to our table size (RFC
   * 7541 4.2).
   */
  #resize(size: number): boolean {
    if (this.#hasField || size < 0 || size > this.#limits.tableSize) return false;
    this.#table.resize(size);
    return true;
  }

  #indexed(index: number): boolean {
    if (index <= 0 || index > staticCount + this.#table.count) return false;
    if (index > staticCount) {
      const table = this.#table;
      const slot = table.slotOf(index - staticCount - 1);
      const start = table.startOf(slot);
      this.#field(table.kindOf(slot), start, table.nameLengthOf(slot), table.valueLengthOf(slot));
      return true;
    }
    const [name, value] = staticTable[index - 1] ?? ['', ''];
    this.#listSize += name.length + value.length + entryOverhead;
    const status = staticStatuses[index] ?? 0;
    if (status > 0) this.#setStatus(status);
    else if (staticKinds[index] === malformedField) this.isMalformed = true;
    else this.#hasRegular = true;
    this.#onField?.(name, value);
    return true;
  }

  #literal(index: number, isAdded: boolean): boolean {
    const table = this.#table;
    if (index < 0 || index > staticCount + table.count) return false;
    table.makeRoom(this.#limits.tableSize + huffmanRoom(this.#end - this.#at));
    const start = table.tail;
    const nameEnd = index === 0 ? this.#text(start) : this.#knownName(index, start);
    if (nameEnd < 0) return false;
    const valueEnd = this.#text(nameEnd);
    if (valueEnd < 0) return false;
    const nameLength = nameEnd - start;
    const kind = this.#kindOf(index, start, nameEnd);
    this.#field(kind, start, nameLength, valueEnd - nameEnd);
    if (isAdded) table.add(nameLength, valueEnd - nameEnd, kind);
    return true;
  }

  #kindOf(index: number, start: number, end: number): number {
    const table = this.#table;
    if (index > staticCount) return table.kindOf(table.slotOf(index - staticCount - 1));
    if (index > 0) return staticKinds[index] ?? 0;
    const name = table.bytes.toString('latin1', start, end);
    return name === this.#limits.wanted ? wantedField : kindOf(name);
  }

  /**
   * Copies the name of an entry behind the tail, because adding the new entry may evict it. Returns
   * the end of the name.
   */
  #knownName(index: number, at: number): number {
    const table = this.#table;
    if (index > staticCount) {
      const slot = table.slotOf(index - staticCount - 1);
      const from = table.startOf(slot);
      const length = table.nameLengthOf(slot);
      table.bytes.copyWithin(at, from, from + length);
      return at + length;
    }
    const [name] = staticTable[index - 1] ?? [''];
    return at + table.bytes.write(name, at, 'latin1');
  }

  /** Decodes a string to offset `at`, behind the tail. Returns its end, or -1 if it is invalid. */
  #text(at: number): number {
    const isHuffman = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(0x7f);
    const start = this.#at;
    if (length < 0 || start + length > this.#end) return -1;
    this.#at = start + length;
    const { bytes } = this.#table;
    if (isHuffman) return huffmanDecode(this.#block, start, start + length, bytes, at);
    for (let i = 0; i < length; i++) bytes[at + i] = this.#block[start + i] ?? 0;
    return at + length;
  }

  /**
   * Decodes an integer with the prefix `mask` (RFC 7541 5.1). Returns -1 if it is incomplete or too
   * large.
   */
  #integer(mask: number): number {
    if (this.#at >= this.#end) return -1;
    let value = (this.#block[this.#at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 28; shift += 7) {
      if (this.#at >= this.#end) return -1;
      const byte = this.#block[this.#at++] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
      if (value > maxInteger) return -1;
      if ((byte & 0x80) === 0) return value;
    }
    return -1;
  }

  #field(kind: number, start: number, nameLength: number, valueLength: number): void {
    this.#listSize += nameLength + valueLength + entryOverhead;
    const { bytes } = this.#table;
    const valueStart = start + nameLength;
    const valueEnd = valueStart + valueLength;
    if (kind === statusField) this.#setStatus(statusAt(bytes, valueStart, valueEnd));
    else if (kind === malformedField) this.isMalformed = true;
    else {
      this.#hasRegular = true;
      if (kind === retryAfterField)
        this.retryAfter ??= bytes.toString('latin1', valueStart, valueEnd);
      else if (kind === wantedField)
        this.wanted ??= bytes.toString(
          'latin1',
          valueStart,
          Math.min(valueEnd, valueStart + maxWantedLength),
        );
    }
    this.#onField?.(
      bytes.toString('latin1', start, valueStart),
      bytes.toString('latin1', valueStart, valueEnd),
    );
  }

  /**
   * Stores the status. It is valid only once, before all other fields, and with three digits (RFC
   * 9113 8.3).
   */
  #setStatus(status: number): void {
    if (this.status !== 0 || this.#hasRegular || status === 0) this.isMalformed = true;
    this.status = status;
  }
}

function statusAt(bytes: Uint8Array, start: number, end: number): number {
  if (end - start !== 3) return 0;
  let status = 0;
  for (let i = start; i < end; i++) {
    const digit = (bytes[i] ?? 0) - 48;
    if (digit < 0 || digit > 9) return 0;
    status = status * 10 + digit;
  }
  return status >= 100 ? status : 0;
}

/**
 * Dynamic table of the decoder (RFC 7541 2.3.2, 4). Stores names and values as bytes in one buffer,
 * and their offsets in ring buffers. Adding a field therefore creates no object.
 */

class ReceivedTable {
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
