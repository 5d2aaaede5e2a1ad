import pg from 'pg';
import type { Handle } from './pool.ts';

/** A value of a row; objects come as their JSON text, times as ISO 8601. */
export type CopyValue = string | number | boolean | null | string[] | Buffer;

export interface CopyTarget {
  /** Names of ours, never a client's. */
  table: string;
  columns: readonly string[];
}

/** One message of the protocol holds this much: a message is built in memory once more. */
const chunkBytes = 256 * 1024;

/**
 * Writes rows through COPY, several times as fast as INSERT. All of them are sent before the database has answered:
 * the caller bounds them. Runs on a connection of its own or in a transaction, not on a pool.
 */
export async function copyIn(tx: Handle, { table, columns }: CopyTarget, rows: CopyValue[][]): Promise<void> {
  if (!(tx instanceof pg.Client)) throw new Error('COPY needs one connection');
  const chunks = chunksOf(rows);
  await new Promise<void>((resolve, reject) => {
    tx.query(new CopyIn(`COPY ${table} (${columns.join(', ')}) FROM STDIN`, { chunks, resolve, reject }));
  });
}

/** What `pg` has of a connection in copy mode; its types leave it out. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

interface CopyJob {
  chunks: Iterable<Buffer>;
  resolve(): void;
  reject(error: Error): void;
}

/** A statement that `pg` runs like any other: it calls these by name as the server answers. */
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
    // The statement is over when the server is ready for another one.
  }

  handleError(error: Error): void {
    this.#job.reject(error);
  }

  handleReadyForQuery(): void {
    this.#job.resolve();
  }
}

function* chunksOf(rows: CopyValue[][]): Generator<Buffer> {
  let text = '';
  for (const row of rows) {
    text += `${row.map(copyText).join('\t')}\n`;
    if (text.length < chunkBytes) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const escaped = (text: string): string =>
  text.replace(/[\\\t\n\r]/g, (character) => escapes[character] ?? '');

/** A value in the text format of COPY; `\N` is null. */
function copyText(value: CopyValue): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') return escaped(value);
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? 't' : 'f';
  if (Buffer.isBuffer(value)) return `\\\\x${value.toString('hex')}`;
  return escaped(`{${value.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`);
}
