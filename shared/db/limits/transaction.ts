import type pg from 'pg';

/** Options of a transaction. */
export interface TransactionOptions {
  /** Runs all statements in one read-only snapshot. */
  isSnapshot?: boolean;
  /** Timeout of a statement in ms. Default: the timeout of the pool. */
  statementTimeoutMs?: number;
  /** Timeout of waiting for a lock in ms. Default: the timeout of the statement. */
  lockTimeoutMs?: number;
  /** Disables parallel workers and JIT compilation, which no timeout interrupts. */
  isSingle?: boolean;
  /** Maximum bytes of all rows read. */
  maxBytes?: number;
  /** Closes the connection when aborted. This ends the transaction and its running statement. */
  signal?: AbortSignal;
}

/**
 * Interval at which the server checks whether the client of an abortable transaction is still
 * connected, in ms.
 */
const checkIntervalMs = 100;

/** Makes the workers of a sharded database apply the limits too. Has no effect without Citus. */
const limitsOnWorkers = `SET LOCAL citus.propagate_set_commands = 'local'`;

/** Thrown if a transaction reads more than `maxBytes`. */
export class ResultTooLarge extends Error {
  override name = 'ResultTooLarge';
}

/**
 * Returns the statements that begin a transaction, sent in one round trip. `settings` are further
 * statements.
 */
export function beginText(options: TransactionOptions, settings = ''): string {
  const { isSnapshot, statementTimeoutMs, lockTimeoutMs, isSingle, signal } = options;
  return [
    `${isSnapshot ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN'}${settings}`,
    ...(statementTimeoutMs === undefined && lockTimeoutMs === undefined ? [] : [limitsOnWorkers]),
    ...(statementTimeoutMs === undefined
      ? []
      : [`SET LOCAL statement_timeout = ${Math.round(statementTimeoutMs)}`]),
    ...(lockTimeoutMs === undefined
      ? []
      : [`SET LOCAL lock_timeout = ${Math.round(lockTimeoutMs)}`]),
    ...(signal ? [`SET LOCAL client_connection_check_interval = ${checkIntervalMs}`] : []),
    ...(isSingle ? ['SET LOCAL max_parallel_workers_per_gather = 0', 'SET LOCAL jit = off'] : []),
  ].join('; ');
}

/** Runs the statements of a transaction within its limits of time and size. */
export const limitStatements = <T>(
  client: Pick<pg.Client, 'connection'>,
  { signal, maxBytes }: TransactionOptions,
  work: () => Promise<T>,
): Promise<T> => endWhenAborted(client, signal, () => limitResultBytes(client, maxBytes, work));

/** Runs `work`. If `signal` aborts, closes the connection, which ends the statement. */
async function endWhenAborted<T>(
  { connection }: Pick<pg.Client, 'connection'>,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!signal) return work();
  signal.throwIfAborted();
  const close = () => connection.stream.destroy();
  signal.addEventListener('abort', close, { once: true });
  try {
    return await work();
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', close);
  }
}

const rowEvent = 'dataRow';
/** Bytes of rows that are parsed per tick: a few milliseconds of work. */
const bytesPerTick = 64 * 1024;

/**
 * Runs `work`. Closes the connection as soon as more than `maxBytes` of rows arrive, so that an
 * oversized result is never in memory. Yields between chunks, because Node would read megabytes
 * from the socket in one tick. Throws `ResultTooLarge`.
 */
async function limitResultBytes<T>(
  { connection }: Pick<pg.Client, 'connection'>,
  maxBytes: number | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (maxBytes === undefined) return work();
  let bytes = 0;
  let bytesOfTick = 0;
  const goOn = () => {
    bytesOfTick = 0;
    connection.stream.resume();
  };
  const count = ({ length }: { length: number }) => {
    bytes += length;
    bytesOfTick += length;
    if (bytes > maxBytes) connection.stream.destroy();
    else if (bytesOfTick > bytesPerTick && !connection.stream.isPaused()) {
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
