import pg from 'pg';
import { connectionUrl } from '../config/environment.ts';
import { parseExactly } from '../domain/json.ts';
import type { DurationCounts } from '../process/operation-metrics.ts';
import type { Semaphore } from '../semaphore.ts';
import { type FailureKind, failureKind } from './limits/database-errors.ts';
import {
  localSettings,
  type Pooler,
  type PoolUse,
  type ServerSettings,
  settingsOf,
  UnnamedClient,
} from './limits/pooler.ts';
import { currentLane, TimedPool } from './limits/timed-pool.ts';
import { beginText, limitStatements, type TransactionOptions } from './limits/transaction.ts';
import type { PreparedStatement } from './prepared.ts';

/**
 * Executor of statements: the pool, or the connection of a transaction. Every function in `tables/`
 * takes one as its first argument, so that the caller chooses the transaction.
 */
export interface Handle {
  query<R extends pg.QueryResultRow>(
    statement: string | PreparedStatement,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>;
}

/** Parses ids that commas separate, in braces (the text form of a bigint array) or without. */
export function parseIdList(text: string): number[] {
  const list = text.startsWith('{') ? text.slice(1, -1) : text;
  return list === '' ? [] : list.split(',').map(Number);
}

/** Parses bigint columns as numbers: ids and counts stay far below 2^53. */
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
  /** Connections that stay open while they are idle; default 0. */
  minConnections?: number;
  /** Time limit of a statement; 0 for none. */
  statementTimeoutMs?: number;
  /**
   * Shares the connections fairly between apps (`runInLane`); without it they are first come, first
   * served.
   */
  turns?: Semaphore;
  /** Settings of the server for these connections, by name. */
  settings?: ServerSettings;
  /** Sends a statement before the previous one is answered; such a pool has no cursors (`scan`). */
  isPipelined?: boolean;
  /** Pooler that `url` leads to; none by default. */
  pooler?: Pooler;
  onError?: (error: Error) => void;
}

/** A pool of connections to one PostgreSQL. */
export class Database implements Handle {
  readonly url: string;
  readonly #name: string;
  readonly #pool: TimedPool;
  readonly #turns: Semaphore | undefined;
  /** Settings of every transaction, where a connection keeps none; undefined without a pooler. */
  readonly #localSettings: ServerSettings | undefined;
  /** Whether a single statement also needs the settings, and so a transaction. */
  readonly #hasOwnSettings: boolean;
  /** Limit that each connection keeps for its statements; undefined with a pooler. */
  readonly #statementTimeoutMs: number | undefined;
  #failures: Partial<Record<FailureKind, number>> = {};

  constructor(options: DatabaseOptions) {
    const { settings, statementTimeoutMs = 30_000, pooler = 'none' } = options;
    const isPooled = pooler === 'transaction';
    this.url = options.url;
    this.#name = options.applicationName;
    this.#turns = options.turns;
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
      keepAlive: true,
      types: typeParsers,
      pipeline: !isPooled && (options.isPipelined ?? false),
      ...(isPooled ? { Client: UnnamedClient } : { statement_timeout: statementTimeoutMs }),
      ...(settings === undefined || isPooled ? {} : { onConnect: settingsOf(settings) }),
    });
    this.#statementTimeoutMs = isPooled ? undefined : statementTimeoutMs;
    this.#hasOwnSettings = settings !== undefined && isPooled;
    // A broken idle connection emits an error here; without a listener it would end the process.
    this.#pool.on('error', (error) => options.onError?.(error));
    // The same for a connection in use; the error of its statement reaches the caller.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  query<R extends pg.QueryResultRow>(
    statement: string | PreparedStatement,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>> {
    return this.#inTurn(() =>
      this.#hasOwnSettings
        ? this.#transact((tx) => tx.query<R>(statement, values), {})
        : this.#pool.query<R>(statement, values),
    );
  }

  /**
   * Runs one statement that may take so long: alone where that is the limit of all statements of
   * the pool, otherwise in a transaction.
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

  /** Returns how many statements and transactions failed since the last call, by kind. */
  takeFailures(): Partial<Record<FailureKind, number>> {
    const taken = this.#failures;
    this.#failures = {};
    return taken;
  }

  /**
   * Returns how long calls waited for a connection, with the turn of their app, since the last
   * call.
   */
  takeWaits(): DurationCounts {
    return this.#pool.takeWaits();
  }

  /**
   * Returns how many connections are in use, and how many calls wait for one or for their app's
   * turn.
   */
  get use(): PoolUse {
    const { totalCount, idleCount, waitingCount, options } = this.#pool;
    return {
      name: this.#name,
      used: totalCount - idleCount,
      idle: idleCount,
      waiting: waitingCount + (this.#turns?.waiting ?? 0),
      limit: options.max,
    };
  }

  /**
   * Runs `work` in a transaction: commits when it resolves, rolls back when it throws. Throws
   * `QueueFull` if the app's share of the connections is used up, and `ResultTooLarge` over
   * `maxBytes`.
   */
  transaction<T>(work: (tx: Handle) => Promise<T>, terms: TransactionOptions = {}): Promise<T> {
    return this.#inTurn(() => this.#transact(work, terms));
  }

  async #transact<T>(work: (tx: Handle) => Promise<T>, terms: TransactionOptions): Promise<T> {
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      return await limitStatements(client, terms, async () => {
        const begun = client.query(
          beginText(terms, this.#localSettings && localSettings(this.#localSettings)),
        );
        // Pipelined, the first statement follows in the same round trip.
        if (client.pipeline) begun.catch(() => undefined);
        else await begun;
        const value = await work(client);
        await begun;
        await client.query('COMMIT');
        return value;
      });
    } catch (error) {
      failure = await rollBack(client);
      throw error;
    } finally {
      client.release(failure);
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const askedAtMs = performance.now();
    const begin = () => this.#pool.since(askedAtMs, work);
    const running = this.#turns ? this.#turns.run(currentLane(), begin) : work();
    return running.catch((error: unknown) => {
      const kind = failureKind(error);
      if (kind !== undefined) this.#failures[kind] = (this.#failures[kind] ?? 0) + 1;
      throw error;
    });
  }

  /** Reserves one connection of the pool while `work` runs. */
  async withConnection<T>(work: (connection: Handle) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  }

  /**
   * Opens connections, all by default, and runs `work` on each. Rejects with the first failure,
   * after all have ended.
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
        await work(connection.value).finally(() => connection.value.release());
      }),
    );
    const failed = done.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }

  /** Returns whether the database responds. */
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

/** Rolls back a failed transaction; returns an error if the connection must not be reused. */
async function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
