import { isDeadlock } from '../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../shared/db/pool.ts';
import type { Merged } from '../../shared/db/tables/imports.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { Row } from './batches.ts';

/** Functions that read and write the rows of a class. */
export interface RowImport<R> {
  /** True if batches without a common key may be written concurrently. */
  isConcurrent?: boolean;
  read(record: JsonObject, line: number): R;
  /**
   * Writes a batch of new rows in one statement outside a transaction. Resolves to false if it
   * wrote nothing.
   */
  writeNew?: (connection: Handle, rows: R[]) => Promise<boolean>;
  /** Writes only the new rows of a batch, in a transaction. */
  merge(tx: Handle, rows: R[]): Promise<Merged>;
}

type Writer<R> = Pick<RowImport<R>, 'writeNew' | 'merge'>;

const maxAttempts = 3;

/** Writes a batch completely or not at all. Retries after a deadlock with a concurrent API call. */
export async function writeRows<R>(
  connection: Handle,
  rows: R[],
  writer: Writer<R>,
  attemptsLeft = maxAttempts,
): Promise<Merged> {
  try {
    if (await writer.writeNew?.(connection, rows)) return { written: rows.length, unwritten: [] };
    return await inTransaction(connection, (tx) => writer.merge(tx, rows));
  } catch (error) {
    if (!isDeadlock(error) || attemptsLeft <= 1) throw error;
    return writeRows(connection, rows, writer, attemptsLeft - 1);
  }
}

async function inTransaction<T>(connection: Handle, work: (tx: Handle) => Promise<T>): Promise<T> {
  try {
    await connection.query('BEGIN');
    const value = await work(connection);
    await connection.query('COMMIT');
    return value;
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * Writes batches concurrently, each over its own connection. Batches with a common key are written
 * one after the other, in file order. So the first of two conflicting records counts, and no batch
 * waits for a lock of another batch.
 */
export class BatchWriters<R extends Row> {
  readonly #free: Handle[];
  readonly #write: (connection: Handle, rows: R[]) => Promise<void>;
  /** Batches that are being written, with the hashes of their keys. */
  readonly #inWork = new Map<Promise<void>, Set<number>>();
  #failures: unknown[] = [];

  constructor(
    connections: readonly Handle[],
    write: (connection: Handle, rows: R[]) => Promise<void>,
  ) {
    this.#free = [...connections];
    this.#write = write;
  }

  /**
   * Resolves when the writing of the batch has started. This may have to wait for other batches.
   * Throws the failure of an earlier batch.
   */
  async add(rows: R[]): Promise<void> {
    const hashes = new Set<number>();
    for (const { keyHashes = [] } of rows) for (const hash of keyHashes) hashes.add(hash);
    let connection = this.#free.pop();
    while (connection === undefined) {
      await Promise.race(this.#inWork.keys());
      connection = this.#free.pop();
    }
    for (const [batch, others] of this.#inWork) if (!hashes.isDisjointFrom(others)) await batch;
    this.#throwFailure();
    this.#start(connection, { rows, hashes });
  }

  /** Resolves when all batches are written. Throws the first failure. */
  async end(): Promise<void> {
    await Promise.all(this.#inWork.keys());
    this.#throwFailure();
  }

  #start(connection: Handle, { rows, hashes }: { rows: R[]; hashes: Set<number> }): void {
    const batch = this.#write(connection, rows)
      .catch((error: unknown) => void this.#failures.push(error))
      .then(() => {
        this.#inWork.delete(batch);
        this.#free.push(connection);
      });
    this.#inWork.set(batch, hashes);
  }

  #throwFailure(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}
