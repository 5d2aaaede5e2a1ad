import type { Handle } from './pool.ts';
import type { PreparedStatement } from './prepared.ts';

/** A statement and the values of its parameters. */
type Query = [statement: string | PreparedStatement, values?: unknown[]];

/** Page of a list, newest first: up to `limit` rows with ids below `before`; null for the first page. */
export interface PageBefore {
  before: number | null;
  limit: number;
}

/** Page of a list, oldest first: up to `limit` rows with ids above `after`; null for the first page. */
export interface PageAfter {
  after: number | null;
  limit: number;
}

/** Runs a statement and returns its rows. */
export async function queryRows<R extends object>(db: Handle, ...query: Query): Promise<R[]> {
  return (await db.query<R>(...query)).rows;
}

/** Runs a statement and returns its first row; undefined without rows. */
export async function queryRow<R extends object>(db: Handle, ...query: Query): Promise<R | undefined> {
  return (await db.query<R>(...query)).rows[0];
}

/** As `queryRow`, of a statement that always returns a row. */
export async function queryOne<R extends object>(db: Handle, ...query: Query): Promise<R> {
  const row = await queryRow<R>(db, ...query);
  if (!row) throw new Error('the database returned no row');
  return row;
}

/** Runs a statement with one column and returns the values of all rows. */
export async function queryColumn<V>(db: Handle, ...query: Query): Promise<V[]> {
  return (await db.query<Record<string, V>>(...query)).rows.flatMap((row) => Object.values(row));
}

/** Runs a statement and returns the first column of its first row; undefined without rows. */
export async function queryValue<V>(db: Handle, ...query: Query): Promise<V | undefined> {
  const [row] = (await db.query<Record<string, V>>(...query)).rows;
  return row && Object.values(row)[0];
}

/** Runs a statement that returns a number, such as `SELECT count(*)`; 0 without rows. */
export async function queryNumber(db: Handle, ...query: Query): Promise<number> {
  return (await queryValue<number>(db, ...query)) ?? 0;
}

/** Runs a statement that returns a boolean, such as `SELECT EXISTS (…)`; false without rows. */
export async function queryBoolean(db: Handle, ...query: Query): Promise<boolean> {
  return (await queryValue<boolean>(db, ...query)) ?? false;
}

/** Runs a statement and returns how many rows it returned or changed. */
export async function queryRowCount(db: Handle, ...query: Query): Promise<number> {
  return (await db.query(...query)).rowCount ?? 0;
}

/** Runs a statement and returns whether it returned or changed a row. */
export async function hasRows(db: Handle, ...query: Query): Promise<boolean> {
  return (await queryRowCount(db, ...query)) > 0;
}

/** Runs a statement for its effect alone. */
export async function execute(db: Handle, ...query: Query): Promise<void> {
  await db.query(...query);
}

/** Returns members of rows as lists, one for each name, for a statement over `unnest`. */
export const listsOf = <T>(rows: readonly T[], ...names: (keyof T)[]): unknown[][] =>
  names.map((name) => rows.map((row) => row[name]));
