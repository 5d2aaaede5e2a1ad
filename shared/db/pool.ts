import pg from 'pg';
import Cursor from 'pg-cursor';
import { sleep } from '../clock.ts';
import { connectionUrl } from '../config/database-url.ts';
import type { FairQueue } from '../fairness/fair-queue.ts';
import { currentLane } from './limits/lane.ts';
import { beginText, limitResultBytes, type TransactionOptions } from './limits/transaction.ts';

/**
 * What a statement runs on: the pool, or one connection inside a transaction. Every function in
 * `tables/` takes one as its first argument, so that the caller decides what belongs together.
 */
export interface Handle {
  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<R>>;
}

/** A connection that is lost never says that its cursor is closed. */
const cursorCloseMs = 5000;

/** bigint columns arrive as numbers: ids and counts stay far below 2^53. */
const typeParsers: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (format !== 'binary' && oid === pg.types.builtins.INT8) return Number;
    if (format !== 'binary' && oid === 1016) return (text: string) => parseBigintArray(text);
    return pg.types.getTypeParser(oid, format);
  },
};

function parseBigintArray(text: string): number[] {
  return text === '{}' ? [] : text.slice(1, -1).split(',').map(Number);
}

export interface DatabaseOptions {
  url: string;
  /** Shown in pg_stat_activity: which process asks. */
  applicationName: string;
  maxConnections?: number;
  /** Ends any statement that runs longer; 0 for none. */
  statementTimeoutMs?: number;
  /** Shares the connections between apps (`inLane`); without it they go to the first who asks. */
  turns?: FairQueue;
  onError?: (error: Error) => void;
}

/** A pool of connections to one PostgreSQL. */
export class Database implements Handle {
  readonly url: string;
  readonly #pool: pg.Pool;
  readonly #turns: FairQueue | undefined;

  constructor(options: DatabaseOptions) {
    this.url = options.url;
    this.#turns = options.turns;
    this.#pool = new pg.Pool({
      connectionString: connectionUrl(options.url),
      application_name: options.applicationName,
      max: options.maxConnections ?? 10,
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      statement_timeout: options.statementTimeoutMs ?? 30_000,
      types: typeParsers,
    });
    // An idle connection that breaks emits here; without a listener it would end the process.
    this.#pool.on('error', (error) => options.onError?.(error));
    // The same for one in use: its statement fails as well, and that is what its user hears of.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<R>> {
    return this.#inTurn(() => this.#pool.query<R>(text, values));
  }

  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it throws. Throws `QueueFull` where
   * the connections are shared and the app's share is used up, and `ResultTooLarge` by the terms.
   */
  transaction<T>(work: (tx: Handle) => Promise<T>, terms: TransactionOptions = {}): Promise<T> {
    return this.#inTurn(() => this.#transact(work, terms));
  }

  async #transact<T>(work: (tx: Handle) => Promise<T>, terms: TransactionOptions): Promise<T> {
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      return await limitResultBytes(client, terms.maxBytes, async () => {
        await client.query(beginText(terms));
        const value = await work(client);
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
    return this.#turns ? this.#turns.run(currentLane(), work) : work();
  }

  /**
   * Reads a large result through one server-side cursor in a read-only snapshot, `rows` at a time
   * (develop/decisions.md#why-one-cursor). Ends early when the consumer stops iterating. Takes no turns: for pools that one
   * process has to itself.
   */
  async *scan<R extends pg.QueryResultRow>(
    text: string,
    values: unknown[],
    options: { rows: number; timeoutMs: number },
  ): AsyncGenerator<R[]> {
    const client = await this.#pool.connect();
    let cursor: Cursor<R> | undefined;
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      await client.query(`SET LOCAL statement_timeout = ${Math.round(options.timeoutMs)}`);
      cursor = client.query(new Cursor<R>(text, values, { types: typeParsers }));
      for (
        let page = await cursor.read(options.rows);
        page.length > 0;
        page = await cursor.read(options.rows)
      )
        yield page;
    } finally {
      // An open cursor keeps the connection to itself: nothing else would ever run on it.
      const isClosed = cursor === undefined || (await closeCursor(cursor));
      client.release(isClosed ? await rollBack(client) : new Error('the cursor could not be closed'));
    }
  }

  /** Takes one connection out of the pool for as long as `work` runs. */
  async withConnection<T>(work: (connection: Handle) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  }

  /** Whether the database answers: a process whose database does can do its work. */
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

/** False when the server did not answer in time: the connection is lost and must not be used again. */
function closeCursor(cursor: Cursor): Promise<boolean> {
  const closed = cursor.close().then(
    () => true,
    () => false,
  );
  return Promise.race([closed, sleep(cursorCloseMs).then(() => false)]);
}

/** Ends a transaction that failed; the error says that the connection itself must not be used again. */
async function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** The constraint that a statement would have broken, if that is why it failed. */
export function violatedConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code === '23505' ? error.constraint : undefined;
}

/** True when a row refers to one that is not there. */
export function isMissingReference(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23503';
}

/** True when a table is missing: the database was not migrated. */
export function isUndefinedTable(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '42P01';
}

/** True when PostgreSQL ended one of two transactions that waited for each other: it may be done again. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40P01';
}

/** True when PostgreSQL ended the statement for taking too long. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014';
}

/** Value that PostgreSQL cannot hold: NUL in text, a number out of range, a malformed regular expression. */
export function isInvalidValue(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(22|2201B)/.test(error.code ?? '');
}

/** True when the database could not be asked: gone, restarting, or out of connections. */
export function isConnectionFailure(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|57P0[1-3]|53)/.test(error.code ?? '');
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_)/.test(code) ||
    /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error/.test(
      error.message,
    )
  );
}
