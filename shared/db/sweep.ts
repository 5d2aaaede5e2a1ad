import type { Handle } from './pool.ts';
import { query } from './query.ts';

/** Rows that a background job deletes when they are old. */
interface OldRows {
  table: string;
  /** Columns that name a row; those of the primary key. */
  key: readonly string[];
  /** Column whose value is the age of a row. */
  column: string;
  /** SQL of the value below which a row is old, from the time `$1`. */
  bound?: string;
  /** Further condition of old rows. */
  condition?: string;
}

/**
 * Deletes rows that are older than a time, the oldest first, up to `limit`. Returns their number.
 */
type Sweep = (db: Handle, before: Date, limit: number) => Promise<number>;

/**
 * Returns the deletion of old rows. Their keys are read in a CTE, not by IN (…): a plan may run the
 * subquery of IN several times, each with its own limit. A row that was renewed in the meantime
 * stays.
 */
export function sweepOf({ table, key, column, bound = '$1', condition = 'true' }: OldRows): Sweep {
  const text = `
    WITH old AS MATERIALIZED (
      SELECT ${key.join(', ')} FROM ${table} WHERE ${column} < ${bound} AND ${condition} ORDER BY ${column} LIMIT $2)
    DELETE FROM ${table} t USING old
     WHERE ${key.map((name) => `t.${name} = old.${name}`).join(' AND ')} AND t.${column} < ${bound}`;
  return (db, before, limit) => query(db).rowCount(text, [before, limit]);
}
