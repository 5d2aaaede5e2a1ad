/** Rows of a class by conditions of clients, which come here as our compiler's SQL (shared/query), never as theirs. */
import type { QueryResultRow } from 'pg';
import type { Handle } from '../pool.ts';

/** The tables whose rows clients ask for by conditions. */
export type ClassTable = 'installation' | 'app_user';

/** A list call as SQL: `$1` is the app id, which is the first of `values`. */
export interface Selection {
  condition: string;
  orderBy: string;
  values: unknown[];
  /** The condition uses this many of the values, from the first on; the order uses the rest. */
  conditionValues: number;
  limit: number;
  skip: number;
}

/** `where` of a PUT or DELETE, as SQL of which `$1` is the app id. */
export type RowCondition = Pick<Selection, 'condition' | 'values'>;

export async function selectRows<R extends QueryResultRow>(
  tx: Handle,
  { table, columns }: { table: ClassTable; columns: string },
  { condition, orderBy, values, limit, skip }: Selection,
): Promise<R[]> {
  const n = values.length;
  const { rows } = await tx.query<R>(
    `SELECT ${columns} FROM ${table} WHERE app_id = $1 AND ${condition}
      ORDER BY ${orderBy} LIMIT $${n + 1} OFFSET $${n + 2}`,
    [...values, limit, skip],
  );
  return rows;
}

export async function countRows(tx: Handle, table: ClassTable, selection: Selection): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `SELECT count(*) AS count FROM ${table} WHERE app_id = $1 AND ${selection.condition}`,
    selection.values.slice(0, selection.conditionValues),
  );
  return rows[0]?.count ?? 0;
}

/** True when the row of this key meets the condition. */
export async function rowMeets(
  tx: Handle,
  { table, id }: { table: ClassTable; id: number },
  { condition, values }: RowCondition,
): Promise<boolean> {
  const { rows } = await tx.query<{ is_met: boolean }>(
    `SELECT (${condition}) IS TRUE AS is_met FROM ${table} WHERE app_id = $1 AND id = $${values.length + 1}`,
    [...values, id],
  );
  return rows[0]?.is_met ?? false;
}
