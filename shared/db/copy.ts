import pg from 'pg';
import type { Handle } from './pool.ts';

/** Value of a row: objects as JSON text, times as ISO 8601. */
export type CopyValue = string | number | boolean | null | string[] | Buffer;

export interface CopyTarget {
  /** Constant names, never a client's text. */
  table: string;
  columns: readonly string[];
}

/** Size of one protocol message, which `pg` copies in memory. */
const chunkBytes = 256 * 1024;

/**
 * Writes rows, each encoded by `copyText`, through COPY, several times as fast as INSERT. Sends all rows before the database
 * responds, so the caller limits their number. Needs a single connection or a transaction, not a pool; without a
 * transaction it is one by itself.
 */
export async function copyIn(tx: Handle, { table, columns }: CopyTarget, rows: string[]): Promise<void> {
  if (!(tx instanceof pg.Client)) throw new Error('COPY needs one connection');
  const chunks = chunksOf(rows);
  await new Promise<void>((resolve, reject) => {
    tx.query(new CopyIn(`COPY ${table} (${columns.join(', ')}) FROM STDIN`, { chunks, resolve, reject }));
  });
}

/** Methods of `pg` in copy mode, missing from its types. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

interface CopyJob {
  chunks: Iterable<Buffer>;
  resolve(): void;
  reject(error: Error): void;
}

/** Statement in the form that `pg` runs: it calls these methods by name. */
class CopyIn implements pg.Submittable {
  readonly #text: string;
  readonly #job: CopyJob;

  constructor(text: string, job: CopyJob) {
    this.#text = text;
    this.#job = job;
  }

  submit(connection: pg.Connection): void {
    connection.query(this.#text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    for (const chunk of this.#job.chunks) connection.sendCopyFromChunk(chunk);
    connection.endCopyFrom();
  }

  handleCommandComplete(): void {
    // `handleReadyForQuery` marks the end of the statement.
  }

  handleError(error: Error): void {
    this.#job.reject(error);
  }

  handleReadyForQuery(): void {
    this.#job.resolve();
  }
}

function* chunksOf(rows: string[]): Generator<Buffer> {
  let text = '';
  for (const row of rows) {
    text += `${row}\n`;
    if (text.length < chunkBytes) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}

/**
 * Encodes values as a row, or a part of one, in the text format of COPY; `\t` joins parts. The string is flat: a concatenated
 * one would keep its parts, which garbage collection then copies.
 */
export const copyText = (values: CopyValue[]): string => values.map(encoded).join('\t');

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

/** Returns a list as the text of an array, several times as fast as `pg`. */
export function arrayText(items: readonly (string | number | boolean | null | undefined)[]): string {
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
