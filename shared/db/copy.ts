import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Handle } from './pool.ts';

/** Value of a column: objects as JSON text, times as ISO 8601. */
export type CopyValue = string | number | boolean | null | string[] | Buffer;

interface CopyTarget {
  /** Table and column names. They are constants, never text from a client. */
  table: string;
  columns: readonly string[];
}

/** Size of the buffers that rows share, in bytes. */
const chunkBytes = 256 * 1024;

/**
 * A row in the text format of COPY, including its newline. Its bytes are part of a buffer that it
 * shares with the rows before and after it. Garbage collection does not copy these bytes, but it
 * would copy thousands of strings that wait to be written.
 */
export interface CopyRow {
  readonly buffer: Buffer;
  readonly from: number;
  readonly to: number;
}

/** Maximum UTF-8 bytes of one code unit of a string. */
const bytesPerUnit = 3;
const tab = '\t'.charCodeAt(0);

/** Encodes rows for `copyIn`. Rows that are encoded one after the other share buffers. */
export class RowEncoder {
  #buffer = Buffer.alloc(0);
  #end = 0;

  encode(values: readonly CopyValue[]): CopyRow {
    let text = '';
    for (let i = 0; i < values.length; i += 1)
      text += `${i === 0 ? '' : '\t'}${encoded(values[i] ?? null)}`;
    text += '\n';
    const from = this.#reserve(text.length * bytesPerUnit);
    this.#end += this.#buffer.write(text, from);
    return { buffer: this.#buffer, from, to: this.#end };
  }

  /** Encodes a row of two or more values again with another first value. */
  withFirst(value: CopyValue, row: CopyRow): CopyRow {
    const rest = row.buffer.subarray(row.buffer.indexOf(tab, row.from), row.to);
    const first = Buffer.from(encoded(value));
    const from = this.#reserve(first.length + rest.length);
    this.#end += first.copy(this.#buffer, from);
    this.#end += rest.copy(this.#buffer, this.#end);
    return { buffer: this.#buffer, from, to: this.#end };
  }

  /** Returns the offset of the next row. Allocates a new buffer if `length` bytes do not fit. */
  #reserve(bytes: number): number {
    if (this.#buffer.length - this.#end < bytes) {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(chunkBytes, bytes));
      this.#end = 0;
    }
    return this.#end;
  }
}

/**
 * Writes rows through COPY, which is several times as fast as INSERT. Needs a single connection or
 * a transaction, not a pool. Outside of a transaction the COPY is its own transaction.
 */
export async function copyIn(
  tx: Handle,
  { table, columns }: CopyTarget,
  rows: readonly CopyRow[],
): Promise<void> {
  if (!(tx instanceof pg.Client)) throw new Error('COPY needs one connection');
  const copy = tx.query(copyFrom(`COPY ${table} (${columns.join(', ')}) FROM STDIN`));
  await pipeline(Readable.from(chunksOf(rows)), copy);
}

/** Joins consecutive rows into chunks. */
function* chunksOf(rows: readonly CopyRow[]): Generator<Buffer> {
  let buffer: Buffer = Buffer.alloc(0);
  let [from, to] = [0, 0];
  for (const row of rows) {
    if (row.buffer !== buffer || row.from !== to) {
      if (to > from) yield buffer.subarray(from, to);
      ({ buffer, from } = row);
    }
    to = row.to;
  }
  if (to > from) yield buffer.subarray(from, to);
}

const special = /[\\\t\n\r]/;
const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const escaped = (text: string): string =>
  special.test(text) ? text.replace(/[\\\t\n\r]/g, (character) => escapes[character] ?? '') : text;

/** Encodes one value; `\N` is null. */
function encoded(value: CopyValue): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') return escaped(value);
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? 't' : 'f';
  if (Buffer.isBuffer(value)) return `\\\\x${value.toString('hex')}`;
  return escaped(arrayText(value));
}

/** Returns a list in the text format of an array. Several times as fast as `pg`. */
export function arrayText(
  items: readonly (string | number | boolean | null | undefined)[],
): string {
  let text = '{';
  for (let i = 0; i < items.length; i += 1) {
    const item = items[i];
    if (i > 0) text += ',';
    if (typeof item === 'string')
      text += quotedInArray.test(item) ? `"${item.replace(/["\\]/g, '\\$&')}"` : `"${item}"`;
    else text += item === null || item === undefined ? 'NULL' : String(item);
  }
  return `${text}}`;
}
const quotedInArray = /["\\]/;
