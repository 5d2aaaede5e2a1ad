import type { Handle } from './pool.ts';
import type { PreparedStatement } from './prepared.ts';

type Statement = [statement: string | PreparedStatement, values?: unknown[]];

/**
 * A page of a list, newest first: up to `limit` rows with ids below `before`. The first page has
 * `before: null`.
 */
export interface PageBefore {
  before: number | null;
  limit: number;
}

/**
 * A page of a list, oldest first: up to `limit` rows with ids above `after`. The first page has
 * `after: null`.
 */
export interface PageAfter {
  after: number | null;
  limit: number;
}

/** Runs statements on a handle. Each method returns another form of the result. */
class Query {
  readonly #db: Handle;

  constructor(db: Handle) {
    this.#db = db;
  }

  /** Returns the rows. */
  async rows<R extends object>(...statement: Statement): Promise<R[]> {
    return (await this.#db.query<R>(...statement)).rows;
  }

  /** Returns the first row, or undefined without rows. */
  async row<R extends object>(...statement: Statement): Promise<R | undefined> {
    return (await this.#db.query<R>(...statement)).rows[0];
  }

  /** Like `row`, for a statement that always returns a row. */
  async one<R extends object>(...statement: Statement): Promise<R> {
    const row = await this.row<R>(...statement);
    if (!row) throw new Error('the database returned no row');
    return row;
  }

  /** Returns the values of the only column. */
  async column<V>(...statement: Statement): Promise<V[]> {
    return (await this.rows<Record<string, V>>(...statement)).flatMap((row) => Object.values(row));
  }

  /** Returns the first column of the first row, or undefined without rows. */
  async value<V>(...statement: Statement): Promise<V | undefined> {
    const row = await this.row<Record<string, V>>(...statement);
    return row && Object.values(row)[0];
  }

  /** Returns a number, such as `SELECT count(*)`; 0 without rows. */
  async number(...statement: Statement): Promise<number> {
    return (await this.value<number>(...statement)) ?? 0;
  }

  /** Returns a boolean, such as `SELECT EXISTS (…)`; false without rows. */
  async boolean(...statement: Statement): Promise<boolean> {
    return (await this.value<boolean>(...statement)) ?? false;
  }

  /** Returns the number of rows that the statement returned or changed. */
  async rowCount(...statement: Statement): Promise<number> {
    return (await this.#db.query(...statement)).rowCount ?? 0;
  }

  /** Returns whether the statement returned or changed a row. */
  async hasRows(...statement: Statement): Promise<boolean> {
    return (await this.rowCount(...statement)) > 0;
  }

  /** Runs a statement and ignores its result. */
  async run(...statement: Statement): Promise<void> {
    await this.#db.query(...statement);
  }
}

/** Returns an object that runs statements: `query(db).rows<Link>('SELECT …', [appId])`. */
export const query = (db: Handle): Query => new Query(db);

/** Returns one list of values for each member name, for a statement with `unnest`. */
export const listsOf = <T>(rows: readonly T[], ...names: (keyof T)[]): unknown[][] =>
  names.map((name) => rows.map((row) => row[name]));

/**
 * Returns SQL for the text of a stored reason (`shared/domain/reasons.ts`). Callers filter and
 * count by it.
 */
export const reasonTextSql = (column = 'reason'): string => `split_part(${column}, E'\\t', 1)`;

/** Returns the database's time in epoch ms. It is the only clock that all processes share. */
export async function databaseNow(db: Handle): Promise<number> {
  const { now } = await query(db).one<{ now: Date }>(
    'SELECT clock_timestamp()::timestamptz(3) AS now',
  );
  return now.getTime();
}

/**
 * Returns the time `afterMs` from now by the database's clock, because the clocks of hosts may
 * differ.
 */
export async function dueIn(db: Handle, afterMs: number): Promise<Date> {
  const text = "SELECT clock_timestamp() + $1 * interval '1 millisecond' AS due";
  return (await query(db).one<{ due: Date }>(text, [afterMs])).due;
}

/** Rows that a background job deletes when they are old. */
interface OldRows {
  table: string;
  /** Columns of the primary key. */
  key: readonly string[];
  /** Column that contains the age of a row. */
  column: string;
  /** SQL of the value below which a row is old. `$1` is the time. */
  bound?: string;
  /** Additional condition of old rows. */
  condition?: string;
}

/** Locks a name until `tx` ends. Other transactions that lock the same name wait. */
export async function lockName(tx: Handle, name: string): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name]);
}

/** Deletes rows that are older than a time, oldest first, up to `limit`. Returns their number. */
type Sweep = (db: Handle, before: Date, limit: number) => Promise<number>;

/**
 * Returns a function that deletes old rows. A CTE reads their keys. A subquery with IN may run
 * several times in a plan, each time with its own limit. Rows that were renewed after their keys
 * were read remain.
 */
export function sweepOf({ table, key, column, bound = '$1', condition = 'true' }: OldRows): Sweep {
  const text = `
    WITH old AS MATERIALIZED (
      SELECT ${key.join(', ')} FROM ${table} WHERE ${column} < ${bound} AND ${condition}
        ORDER BY ${column} LIMIT $2)
    DELETE FROM ${table} t USING old
     WHERE ${key.map((name) => `t.${name} = old.${name}`).join(' AND ')}
       AND t.${column} < ${bound}`;
  return (db, before, limit) => query(db).rowCount(text, [before, limit]);
}
