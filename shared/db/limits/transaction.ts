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
  /** Ends the transaction, with its running statement, by closing the connection. */
  signal?: AbortSignal;
}

/**
 * Interval in which the server looks whether the connection of an abortable transaction is still
 * there.
 */
const checkIntervalMs = 100;

/** Makes the workers of a sharded database keep the limits too. Without Citus it has no effect. */
const limitsOnWorkers = `SET LOCAL citus.propagate_set_commands = 'local'`;

/** Error of a transaction that reads more than `maxBytes`. */
export class ResultTooLarge extends Error {
  override name = 'ResultTooLarge';
}

/**
 * Returns the statements that begin a transaction, for one round trip; `settings` are such
 * statements as well.
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

/** Runs `work`. An abort of `signal` closes the connection, which ends the statement. */
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
/** Bytes of rows parsed per tick of the event loop: a few milliseconds of work. */
const bytesPerTurn = 64 * 1024;

/**
 * Runs `work` and closes the connection as soon as more than `maxBytes` of rows arrive, so that an
 * oversize result is never held in memory. Pauses between chunks for other calls; Node alone reads
 * megabytes from a socket in one turn. Throws `ResultTooLarge`.
 */
async function limitResultBytes<T>(
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
