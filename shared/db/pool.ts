import pg from 'pg';
import { connectionUrl } from '../config/environment.ts';
import { parseExactly } from '../domain/json.ts';
import type { DurationCounts } from '../process/operation-metrics.ts';
import type { Semaphore } from '../semaphore.ts';
import {
  currentApp,
  keepAlive,
  localSettings,
  type Pooler,
  type PoolUse,
  type ServerSettings,
  settingsOf,
  TimedPool,
  UnnamedClient,
} from './limits/client-pool.ts';
import { type FailureKind, failureKind, isConnectionFailure } from './limits/database-errors.ts';
import { beginText, limitStatements, type TransactionOptions } from './limits/transaction.ts';
import type { PreparedStatement } from './prepared.ts';

/**
 * Executes statements: a pool, or the connection of a transaction. Every function in `tables/`
 * takes a handle as its first argument, so that the caller chooses the transaction.
 */
export interface Handle {
  query<R extends pg.QueryResultRow>(
    statement: string | PreparedStatement,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>;
}

/**
 * Work of a transaction. `last` executes one statement, which must be the last one: on a pipelined
 * pool, COMMIT leaves together with it, without a round trip of its own.
 */
export type TransactionWork<T> = (tx: Handle, last: Handle) => Promise<T>;

/** Parses comma-separated ids, with or without braces (the text format of a bigint array). */
export function parseIdList(text: string): number[] {
  const list = text.startsWith('{') ? text.slice(1, -1) : text;
  return list === '' ? [] : list.split(',').map(Number);
}

/** Parses bigint columns as numbers. Ids and counts stay far below 2^53. */
const typeParsers: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (format !== 'binary' && oid === pg.types.builtins.INT8) return Number;
    if (format !== 'binary' && (oid === pg.types.builtins.JSON || oid === pg.types.builtins.JSONB))
      return parseExactly;
    if (format !== 'binary' && oid === 1016) return parseIdList;
    return pg.types.getTypeParser(oid, format);
  },
};

export interface DatabaseOptions {
  url: string;
  /** Name of the process in pg_stat_activity. */
  applicationName: string;
  maxConnections?: number;
  /** Connections that stay open while they are idle. Default 0. */
  minConnections?: number;
  /** Timeout of a statement in ms; 0 for none. */
  statementTimeoutMs?: number;
  /**
   * Shares the connections fairly between apps (`runForApp`). Default: first come, first served.
   */
  fairShare?: Semaphore;
  /** PostgreSQL settings of these connections, by name. */
  settings?: ServerSettings;
  /** Sends a statement before the previous statement is answered. */
  isPipelined?: boolean;
  /** Pooler behind `url`. Default: none. */
  pooler?: Pooler;
  onError?: (error: Error) => void;
}

/**
 * Time after the timeout of a statement in which the server must answer. A server that was lost with
 * its network never applies the timeout, and TCP repeats a request for 15 minutes.
 */
const answerGraceMs = 5000;

/** A pool of connections to one PostgreSQL. */
export class Database implements Handle {
  readonly url: string;
  readonly #name: string;
  readonly #pool: TimedPool;
  readonly #semaphore: Semaphore | undefined;
  /**
   * Settings of every transaction. Set if a pooler is used, because a connection then keeps no
   * settings.
   */
  readonly #localSettings: ServerSettings | undefined;
  /** True if a single statement needs the settings too, and so must run in a transaction. */
  readonly #hasOwnSettings: boolean;
  /** Statement timeout that each connection keeps. Undefined with a pooler. */
  readonly #statementTimeoutMs: number | undefined;
  #failures: Partial<Record<FailureKind, number>> = {};

  constructor(options: DatabaseOptions) {
    const { settings, statementTimeoutMs = 30_000, pooler = 'none' } = options;
    const isPooled = pooler === 'transaction';
    this.url = options.url;
    this.#name = options.applicationName;
    this.#semaphore = options.fairShare;
    this.#localSettings = isPooled
      ? { statement_timeout: statementTimeoutMs, ...settings }
      : undefined;
    this.#pool = new TimedPool({
      connectionString: connectionUrl(options.url),
      application_name: options.applicationName,
      max: options.maxConnections ?? 10,
      min: options.minConnections ?? 0,
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 30_000,
      ...keepAlive,
      ...(statementTimeoutMs > 0 ? { query_timeout: statementTimeoutMs + answerGraceMs } : {}),
      types: typeParsers,
      pipeline: !isPooled && (options.isPipelined ?? false),
      ...(isPooled ? { Client: UnnamedClient } : { statement_timeout: statementTimeoutMs }),
      ...(settings === undefined || isPooled ? {} : { onConnect: settingsOf(settings) }),
    });
    this.#statementTimeoutMs = isPooled ? undefined : statementTimeoutMs;
    this.#hasOwnSettings = settings !== undefined && isPooled;
    // A broken idle connection emits an error here. Without a listener the error would end the
    // process.
    this.#pool.on('error', (error) => options.onError?.(error));
    // A connection in use needs the same handler. The caller gets the error of its statement.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  query<R extends pg.QueryResultRow>(
    statement: string | PreparedStatement,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>> {
    return this.#runQueued(() =>
      this.#hasOwnSettings
        ? this.#transact((tx) => tx.query<R>(statement, values), {})
        : this.#pool.query<R>(statement, values),
    );
  }

  /**
   * Runs one statement with its own timeout. Runs it in a transaction, unless its timeout equals
   * the timeout of the pool.
   */
  queryWithin<R extends pg.QueryResultRow>(
    statementTimeoutMs: number,
    statement: string | PreparedStatement,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>> {
    const run = (handle: Handle) => handle.query<R>(statement, values);
    if (this.#statementTimeoutMs === statementTimeoutMs) return run(this);
    return this.transaction(run, { isSnapshot: true, statementTimeoutMs });
  }

  /** Returns the number of failed statements and transactions since the last call, by kind. */
  takeFailures(): Partial<Record<FailureKind, number>> {
    const taken = this.#failures;
    this.#failures = {};
    return taken;
  }

  /**
   * Returns how long calls waited for a connection since the last call. Includes the wait for their
   * app's turn.
   */
  takeWaits(): DurationCounts {
    return this.#pool.takeWaits();
  }

  /**
   * Returns the connections in use, and the calls that wait for a connection or for their app's
   * turn.
   */
  get use(): PoolUse {
    const { totalCount, idleCount, waitingCount, options } = this.#pool;
    return {
      name: this.#name,
      used: totalCount - idleCount,
      idle: idleCount,
      waiting: waitingCount + (this.#semaphore?.waiting ?? 0),
      limit: options.max,
    };
  }

  /**
   * Runs `work` in a transaction. Commits if it resolves, and rolls back if it throws. Throws
   * `QueueFull` if the app has used up its share of the connections, and `ResultTooLarge` if it
   * reads more than `maxBytes`.
   */
  transaction<T>(work: TransactionWork<T>, options: TransactionOptions = {}): Promise<T> {
    return this.#runQueued(() => this.#transact(work, options));
  }

  async #transact<T>(work: TransactionWork<T>, options: TransactionOptions): Promise<T> {
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    let committed: Promise<unknown> | undefined;
    const committing: Handle = {
      query<R extends pg.QueryResultRow>(
        statement: string | PreparedStatement,
        values?: unknown[],
      ) {
        writeTogether(client);
        const result = client.query<R>(statement, values);
        committed = client.query('COMMIT');
        // If COMMIT fails, the transaction rejects below.
        committed.catch(() => undefined);
        return result;
      },
    };
    try {
      return await limitStatements(client, options, async () => {
        // In a pipelined pool the first statement leaves together with BEGIN.
        if (client.pipeline) writeTogether(client);
        const begun = client.query(
          beginText(options, this.#localSettings && localSettings(this.#localSettings)),
        );
        if (client.pipeline) begun.catch(() => undefined);
        else await begun;
        const tx = withAnswerTimeout(client, options.statementTimeoutMs);
        const value = await work(tx, client.pipeline ? committing : tx);
        await begun;
        await (committed ?? client.query('COMMIT'));
        return value;
      });
    } catch (error) {
      failure = await rollBack(client, error);
      throw error;
    } finally {
      client.release(failure);
    }
  }

  #runQueued<T>(work: () => Promise<T>): Promise<T> {
    const requestedAtMs = performance.now();
    const begin = () => this.#pool.since(requestedAtMs, work);
    const running = this.#semaphore ? this.#semaphore.run(currentApp(), begin) : work();
    return running.catch((error: unknown) => {
      const kind = failureKind(error);
      if (kind !== undefined) this.#failures[kind] = (this.#failures[kind] ?? 0) + 1;
      throw error;
    });
  }

  /** Reserves one connection of the pool while `work` runs. */
  async withConnection<T>(work: (connection: Handle) => Promise<T>): Promise<T> {
    return runOn(await this.#pool.connect(), work);
  }

  /**
   * Opens connections, by default all of the pool, and runs `work` on each. Rejects with the first
   * error after all have ended.
   */
  async warmUp(
    work: (connection: Handle) => Promise<unknown>,
    connections = this.#pool.options.max,
  ): Promise<void> {
    const opened = await Promise.allSettled(
      Array.from({ length: connections }, () => this.#pool.connect()),
    );
    const done = await Promise.allSettled(
      opened.map(async (connection) => {
        if (connection.status === 'rejected') throw connection.reason;
        await runOn(connection.value, work);
      }),
    );
    const failed = done.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }

  /** Returns whether the database answers. */
  isReachable(): Promise<boolean> {
    return this.query('SELECT 1').then(
      () => true,
      () => false,
    );
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

/** Runs `work` on a connection. Closes it if `work` fails, because a statement may still run. */
async function runOn<T>(client: pg.PoolClient, work: (client: Handle) => Promise<T>): Promise<T> {
  let hasFailed = true;
  try {
    const value = await work(client);
    hasFailed = false;
    return value;
  } finally {
    client.release(hasFailed);
  }
}

/** Sends the statements of this tick in one write. */
function writeTogether({ connection: { stream } }: Pick<pg.Client, 'connection'>): void {
  stream.cork();
  process.nextTick(() => stream.uncork());
}

/** Returns a handle to a connection whose statements have their own timeout, if there is one. */
function withAnswerTimeout(client: pg.PoolClient, statementTimeoutMs?: number): Handle {
  if (statementTimeoutMs === undefined) return client;
  const query_timeout = statementTimeoutMs + answerGraceMs;
  return {
    query<R extends pg.QueryResultRow>(statement: string | PreparedStatement, values?: unknown[]) {
      const config = {
        ...(typeof statement === 'string' ? { text: statement } : statement),
        query_timeout,
      };
      return client.query<R>(config, values);
    },
  };
}

/** Rolls back a failed transaction. Returns an error if the connection must not be used again. */
async function rollBack(client: pg.PoolClient, cause: unknown): Promise<Error | undefined> {
  // A server that was lost would not answer.
  if (cause instanceof Error && isConnectionFailure(cause)) return cause;
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
