/**
 * Selects rows of a class by conditions that clients compose. The SQL comes from the query compiler
 * (shared/query), never from a client.
 */
import type { QueryResultRow } from 'pg';
import { ResultTooLarge } from '../limits/transaction.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';

/** Tables that clients query by conditions. */
export type ClassTable = 'installation' | 'app_user' | 'role';

/** A list call as SQL. `$1` is the app id, the first of `values`. */
export interface Selection {
  condition: string;
  orderBy: string;
  values: unknown[];
  /** Number of leading values that the condition uses. `orderBy` uses the others. */
  conditionValues: number;
  limit: number;
  skip: number;
}

/** `where` of a PUT or DELETE as SQL. `$1` is the app id. */
export type RowCondition = Pick<Selection, 'condition' | 'values'>;

export function selectRows<R extends QueryResultRow>(
  tx: Handle,
  { table, columns }: { table: ClassTable; columns: string },
  { condition, orderBy, values, limit, skip }: Selection,
): Promise<R[]> {
  const n = values.length;
  return query(tx).rows(
    `SELECT ${columns} FROM ${table} WHERE app_id = $1 AND ${condition}
      ORDER BY ${orderBy} LIMIT $${n + 1} OFFSET $${n + 2}`,
    [...values, limit, skip],
  );
}

/**
 * Selects rows by their public ids, unordered. Sums their stored sizes first. Throws
 * `ResultTooLarge` above `maxBytes` without reading the rows.
 */
export async function selectByIds<R extends QueryResultRow>(
  db: Handle,
  { table, columns }: { table: ClassTable; columns: string },
  { appId, objectIds, maxBytes }: { appId: string; objectIds: string[]; maxBytes: number },
): Promise<R[]> {
  const rows = await query(db).rows<R & { totalSize: number; isRow: boolean | null }>(
    `WITH found AS MATERIALIZED (
       SELECT true AS "isRow", ${columns} FROM ${table} WHERE app_id = $1
         AND object_id = ANY($2::text[]))
     SELECT total_size AS "totalSize", found.*
       FROM (SELECT coalesce(sum(pg_column_size(fields)), 0)::bigint AS total_size
         FROM found) AS total
       LEFT JOIN found ON total_size <= $3`,
    [appId, objectIds, maxBytes],
  );
  if (rows[0] && rows[0].totalSize > maxBytes) throw new ResultTooLarge('too many bytes');
  return rows.filter(({ isRow }) => isRow);
}

export const countRows = (tx: Handle, table: ClassTable, selection: Selection) =>
  query(tx).number(
    `SELECT count(*) AS count FROM ${table} WHERE app_id = $1 AND ${selection.condition}`,
    selection.values.slice(0, selection.conditionValues),
  );

/** Returns whether the row with this id meets the condition. */
export const rowMeets = (
  tx: Handle,
  { table, id }: { table: ClassTable; id: number },
  { condition, values }: RowCondition,
) =>
  query(tx).boolean(
    `SELECT (${condition}) IS TRUE AS is_met FROM ${table} WHERE app_id = $1
      AND id = $${values.length + 1}`,
    [...values, id],
  );
