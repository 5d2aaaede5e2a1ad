import { type Handle, isDeadlock } from '../../shared/db/pool.ts';
import type { Merged } from '../../shared/db/tables/import/unwritten.ts';
import type { JsonObject } from '../../shared/domain/json.ts';

/** Functions that read and write the rows of a class. */
export interface RowImport<R> {
  read(record: JsonObject, line: number): R;
  /** Writes a batch of new rows by one statement outside a transaction. Resolves false if it wrote nothing. */
  writeNew?: (connection: Handle, rows: R[]) => Promise<boolean>;
  /** Writes the rows of a batch that are new, in a transaction. */
  merge(tx: Handle, rows: R[]): Promise<Merged>;
}

type Writer<R> = Pick<RowImport<R>, 'writeNew' | 'merge'>;

const maxAttempts = 3;

/** Writes a batch, all of it or nothing. Repeats it after a deadlock with a concurrent call of a client. */
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
