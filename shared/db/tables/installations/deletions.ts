import type { Handle } from '../../pool.ts';
import type { RowCondition } from '../selection.ts';

/** Lists the keys of up to `limit` installations that meet a condition, unordered. */
export async function listMatching(
  tx: Handle,
  { condition, values }: RowCondition,
  limit: number,
): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>(
    `SELECT id FROM installation WHERE app_id = $1 AND (${condition}) LIMIT $${values.length + 1}`,
    [...values, limit],
  );
  return rows.map(({ id }) => id);
}

/** Deletes those of some installations that still meet a condition; returns their number. */
export async function deleteMatching(
  tx: Handle,
  { condition, values }: RowCondition,
  ids: readonly number[],
): Promise<number> {
  const { rowCount } = await tx.query(
    // Locked in the order of their keys, as `lockInstallations` does.
    `WITH matching AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND id = ANY($${values.length + 1}::bigint[]) AND (${condition})
        ORDER BY id FOR UPDATE)
     DELETE FROM installation i USING matching WHERE i.app_id = $1 AND i.id = matching.id`,
    [...values, ids],
  );
  return rowCount ?? 0;
}
