import type pg from 'pg';

/** How a transaction runs. */
export interface TransactionOptions {
  /** One snapshot for all its statements, which write nothing. */
  isSnapshot?: boolean;
  /** Ends each statement that runs longer; the pool's limit when absent. */
  statementTimeoutMs?: number;
  /** Its statements take one process of the database each: no parallel workers, and no compiling, which nothing ends. */
  isSingle?: boolean;
  /** Bytes of all rows that it reads. */
  maxBytes?: number;
}

/** What a transaction reads is more than its terms allow. */
export class ResultTooLarge extends Error {
  override name = 'ResultTooLarge';
}

/** The first statements of a transaction, in one round trip. */
export function beginText({ isSnapshot, statementTimeoutMs, isSingle }: TransactionOptions): string {
  return [
    isSnapshot ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN',
    ...(statementTimeoutMs === undefined
      ? []
      : [`SET LOCAL statement_timeout = ${Math.round(statementTimeoutMs)}`]),
    ...(isSingle ? ['SET LOCAL max_parallel_workers_per_gather = 0', 'SET LOCAL jit = off'] : []),
  ].join('; ');
}

const rowEvent = 'dataRow';
/** Rows that are parsed within one turn of the event loop: a few milliseconds' work. */
const bytesPerTurn = 64 * 1024;

/**
 * Runs `work`, and breaks the connection as soon as more than `maxBytes` of rows came over it: what is too large is
 * neither sent nor kept, whatever its rows hold. Reads many rows with pauses for other calls: left to itself Node takes
 * megabytes from a socket in one go. Throws `ResultTooLarge`.
 */
export async function limitResultBytes<T>(
  { connection }: Pick<pg.Client, 'connection'>,
  maxBytes: number | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (maxBytes === undefined) return work();
  let bytes = 0;
  let bytesOfTurn = 0;
  const goOn = () => {
    bytesOfTurn = 0;
    connection.stream.resume();
  };
  const count = ({ length }: { length: number }) => {
    bytes += length;
    bytesOfTurn += length;
    if (bytes > maxBytes) connection.stream.destroy();
    else if (bytesOfTurn > bytesPerTurn && !connection.stream.isPaused()) {
      connection.stream.pause();
      setImmediate(goOn);
    }
  };
  connection.on(rowEvent, count);
  try {
    return await work();
  } catch (error) {
    throw bytes > maxBytes ? new ResultTooLarge('too many bytes', { cause: error }) : error;
  } finally {
    connection.off(rowEvent, count);
  }
}
