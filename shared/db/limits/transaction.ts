import type pg from 'pg';

/** Options of a transaction. */
export interface TransactionOptions {
  /** Uses one read-only snapshot for all statements. */
  isSnapshot?: boolean;
  /** Time limit of a statement; the pool's by default. */
  statementTimeoutMs?: number;
  /** Time limit of waiting for a lock; that of the statement by default. */
  lockTimeoutMs?: number;
  /** Disables parallel workers and JIT compilation, which no time limit ends. */
  isSingle?: boolean;
  /** Limit of all rows read, in bytes. */
  maxBytes?: number;
}

/** Error of a transaction that reads more than `maxBytes`. */
export class ResultTooLarge extends Error {
  override name = 'ResultTooLarge';
}

/** Returns the statements that begin a transaction, for one round trip. */
export function beginText(options: TransactionOptions): string {
  const { isSnapshot, statementTimeoutMs, lockTimeoutMs, isSingle } = options;
  return [
    isSnapshot ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN',
    ...(statementTimeoutMs === undefined
      ? []
      : [`SET LOCAL statement_timeout = ${Math.round(statementTimeoutMs)}`]),
    ...(lockTimeoutMs === undefined ? [] : [`SET LOCAL lock_timeout = ${Math.round(lockTimeoutMs)}`]),
    ...(isSingle ? ['SET LOCAL max_parallel_workers_per_gather = 0', 'SET LOCAL jit = off'] : []),
  ].join('; ');
}

const rowEvent = 'dataRow';
/** Bytes of rows parsed per turn of the event loop: a few milliseconds of work. */
const bytesPerTurn = 64 * 1024;

/**
 * Runs `work` and closes the connection as soon as more than `maxBytes` of rows arrive, so that an oversize result is
 * never held in memory. Pauses between chunks for other calls; Node alone reads megabytes from a socket in one turn.
 * Throws `ResultTooLarge`.
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
