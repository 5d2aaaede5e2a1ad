import type { Json } from '../../../domain/json.ts';
import type { Handle } from '../../pool.ts';

/** Kinds of things that people save for sending. */
export type SavedKind = 'push-template' | 'audience' | 'test-device';

export interface SavedItem {
  name: string;
  content: Json;
  updatedAt: Date;
  updatedBy: string;
}

interface ItemKey {
  appId: string;
  kind: SavedKind;
  name: string;
}

const columns = `name, content, updated_at AS "updatedAt", updated_by AS "updatedBy"`;

/** Lists the items of a kind by name; their number is limited. */
export async function listSavedItems(db: Handle, appId: string, kind: SavedKind): Promise<SavedItem[]> {
  const { rows } = await db.query<SavedItem>(
    `SELECT ${columns} FROM saved_item WHERE app_id = $1 AND kind = $2 ORDER BY name`,
    [appId, kind],
  );
  return rows;
}

export async function findSavedItem(
  db: Handle,
  { appId, kind, name }: ItemKey,
): Promise<SavedItem | undefined> {
  const { rows } = await db.query<SavedItem>(
    `SELECT ${columns} FROM saved_item WHERE app_id = $1 AND kind = $2 AND name = $3`,
    [appId, kind, name],
  );
  return rows[0];
}

/**
 * Locks the items of an app until `tx` ends, and counts those of a kind beside the named one, so that their limit is exact.
 * Undefined without such an app.
 */
export async function countOtherItems(
  tx: Handle,
  { appId, kind, name }: ItemKey,
): Promise<number | undefined> {
  const locked = await tx.query('SELECT 1 FROM app WHERE app_id = $1 FOR NO KEY UPDATE', [appId]);
  if ((locked.rowCount ?? 0) === 0) return undefined;
  const { rows } = await tx.query<{ n: number }>(
    'SELECT count(*) AS n FROM saved_item WHERE app_id = $1 AND kind = $2 AND name <> $3',
    [appId, kind, name],
  );
  return rows[0]?.n ?? 0;
}

/** Creates or replaces an item. */
export async function putSavedItem(
  tx: Handle,
  { appId, kind, name }: ItemKey,
  { content, updatedBy }: Pick<SavedItem, 'content' | 'updatedBy'>,
): Promise<SavedItem> {
  const { rows } = await tx.query<SavedItem>(
    `INSERT INTO saved_item (app_id, kind, name, content, updated_by) VALUES ($1, $2, $3, $4::jsonb, $5)
     ON CONFLICT (app_id, kind, name)
     DO UPDATE SET content = excluded.content, updated_by = excluded.updated_by, updated_at = excluded.updated_at
     RETURNING ${columns}`,
    [appId, kind, name, JSON.stringify(content), updatedBy],
  );
  const [item] = rows;
  if (!item) throw new Error('the database returned no saved item');
  return item;
}

/** Deletes an item and returns it; undefined without such an item. */
export async function deleteSavedItem(
  tx: Handle,
  { appId, kind, name }: ItemKey,
): Promise<SavedItem | undefined> {
  const { rows } = await tx.query<SavedItem>(
    `DELETE FROM saved_item WHERE app_id = $1 AND kind = $2 AND name = $3 RETURNING ${columns}`,
    [appId, kind, name],
  );
  return rows[0];
}
