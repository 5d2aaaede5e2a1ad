import type { Handle } from './pool.ts';
import { query } from './query.ts';

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
      SELECT ${key.join(', ')} FROM ${table} WHERE ${column} < ${bound} AND ${condition} ORDER BY ${column} LIMIT $2)
    DELETE FROM ${table} t USING old
     WHERE ${key.map((name) => `t.${name} = old.${name}`).join(' AND ')} AND t.${column} < ${bound}`;
  return (db, before, limit) => query(db).rowCount(text, [before, limit]);
}
