import type { Database, Handle } from '../../pool.ts';

/** Rows of one table that one pass deletes: 0.1 s of work, also where a push has millions. */
const rowsOfPass = 10_000;

/** Tables with rows of a push, and what names a row beside the push. */
const children = [
  { table: 'push_batch', key: 'id' },
  { table: 'push_failure', key: 'installation' },
  { table: 'push_receipt', key: 'connector, block' },
  { table: 'push_receipt_total', key: 'connector, slot' },
];

const oldPushes = `
  SELECT app_id, id FROM notification
   WHERE created_at < $1 AND state IN ('done', 'failed', 'cancelled') AND finished_at < $1
   ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED`;

const childStatements = children.map(
  ({ table, key }) => `
    WITH part AS MATERIALIZED (
      SELECT c.app_id, c.push_id, ${qualified('c', key)}
        FROM unnest($1::text[], $2::bigint[]) AS p (app_id, id)
        JOIN ${table} c ON c.app_id = p.app_id AND c.push_id = p.id LIMIT ${rowsOfPass})
    DELETE FROM ${table} c USING part
     WHERE c.app_id = part.app_id AND c.push_id = part.push_id
       AND (${qualified('c', key)}) = (${qualified('part', key)})`,
);

function qualified(table: string, key: string): string {
  return key
    .split(', ')
    .map((name) => `${table}.${name}`)
    .join(', ');
}

/**
 * Deletes finished pushes older than the retention (protocol/push-records.md#retention: seven days) with all rows of theirs.
 * A pass is bounded in rows, not in pushes: a push with millions of failures takes many, and its record goes with the last.
 * Returns the number of pushes; `limit`, if a further pass has rows to delete.
 */
export function deleteOldPushes(db: Database, before: Date, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const { rows } = await tx.query<{ app_id: string; id: number }>(oldPushes, [before, limit]);
    if (rows.length === 0) return 0;
    const pushes = [rows.map((row) => row.app_id), rows.map(({ id }) => id)];
    if (await deleteChildren(tx, pushes)) return limit;
    await tx.query(
      `DELETE FROM notification n USING unnest($1::text[], $2::bigint[]) AS p (app_id, id)
        WHERE n.app_id = p.app_id AND n.id = p.id`,
      pushes,
    );
    return rows.length;
  });
}

/** Deletes rows of the pushes. Returns whether more may be left. */
async function deleteChildren(tx: Handle, pushes: unknown[]): Promise<boolean> {
  let isMore = false;
  for (const statement of childStatements) {
    const { rowCount } = await tx.query(statement, pushes);
    if ((rowCount ?? 0) >= rowsOfPass) isMore = true;
  }
  return isMore;
}
