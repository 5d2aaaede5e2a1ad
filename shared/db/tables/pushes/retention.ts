import type { Database, Handle } from '../../pool.ts';
import { type AppRow, forEachApp } from '../sweeps.ts';

/** Rows of one table that one pass deletes: 0.1 s of work, also where a push has millions. */
const rowsOfPass = 10_000;

/** Tables with rows of a push, and what names a row beside the push. */
const children = [
  { table: 'push_batch', key: 'id' },
  { table: 'push_failure', key: 'installation' },
  { table: 'failure_count', key: 'n' },
  { table: 'push_receipt', key: 'connector, block' },
  { table: 'push_receipt_total', key: 'connector, slot' },
];

const isOld = `created_at < $1 AND state IN ('done', 'failed', 'cancelled') AND finished_at < $1`;
const oldPushes = `SELECT app_id, id FROM notification WHERE ${isOld} ORDER BY created_at LIMIT $2`;
const lockOldPushes = `
  SELECT app_id, id FROM notification
   WHERE ${isOld} AND app_id = $2 AND id = ANY($3::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`;

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
    const rows = await forEachApp(tx, { text: oldPushes, values: [before, limit] }, async (appId, ids) => {
      const locked = await tx.query<AppRow>(lockOldPushes, [before, appId, ids]);
      return locked.rows;
    });
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

/** Notes how many recipients a finished push did not reach, for the bound of its app. */
export async function noteFailureCount(
  db: Handle,
  push: { appId: string; id: number },
  n: number,
): Promise<void> {
  await db.query(
    'INSERT INTO failure_count (app_id, push_id, n) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [push.appId, push.id, n],
  );
}

/** The oldest push with failures beyond the bound of its app. */
const surplusPush = `
  SELECT app_id, push_id
    FROM (SELECT app_id, push_id, sum(n) OVER (PARTITION BY app_id ORDER BY push_id DESC) - $1 AS beyond FROM failure_count) AS kept
   WHERE beyond > 0 ORDER BY push_id LIMIT 1`;

/** Reads how many again with the row locked; no rows while another dispatcher deletes them. */
const surplusStatement = `
  WITH held AS MATERIALIZED (
    SELECT n FROM failure_count WHERE app_id = $1 AND push_id = $2 FOR UPDATE SKIP LOCKED),
  surplus AS MATERIALIZED (
    SELECT least(held.n, held.n + newer.n - $3, $4)::bigint AS n
      FROM held, (SELECT coalesce(sum(n), 0) AS n FROM failure_count WHERE app_id = $1 AND push_id > $2) AS newer),
  part AS MATERIALIZED (
    SELECT installation FROM push_failure WHERE app_id = $1 AND push_id = $2 LIMIT (SELECT greatest(n, 0) FROM surplus)),
  deleted AS (
    DELETE FROM push_failure f USING part
     WHERE f.app_id = $1 AND f.push_id = $2 AND f.installation = part.installation)
  UPDATE failure_count c SET n = c.n - s.n FROM surplus s WHERE c.app_id = $1 AND c.push_id = $2 AND s.n > 0
  RETURNING s.n`;

/**
 * Deletes failures beyond the `most` newest ones of an app, those of its oldest push first, at most `rows` in one pass. Counts the pushes
 * that `noteFailureCount` has. Returns the number of failures.
 */
export async function deleteSurplusFailures(
  db: Handle,
  { most, rows: limit = rowsOfPass }: { most: number; rows?: number },
): Promise<number> {
  const { rows: pushes } = await db.query<{ app_id: string; push_id: number }>(surplusPush, [most]);
  const [push] = pushes;
  if (!push) return 0;
  const { rows } = await db.query<{ n: number }>(surplusStatement, [push.app_id, push.push_id, most, limit]);
  return rows[0]?.n ?? 0;
}
