import type { Database, Handle } from '../../../pool.ts';

const oldGroups = `
  SELECT id, push_id AS "pushId", message_id AS "messageId", pending, expires_at <= now() AS "isExpired"
    FROM channel_group WHERE app_id = $1 AND created_at <= $2 ORDER BY id LIMIT $3 FOR UPDATE`;

const addToInboxes = `
  INSERT INTO channel_inbox (app_id, installation, push_id, message_id, position)
  SELECT $1, installation, o.push_id, o.message_id, o.id
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS o (id, push_id, message_id, list),
         unnest(o.list::bigint[]) AS installation
   ORDER BY o.id, installation
  ON CONFLICT (app_id, installation, push_id) DO NOTHING`;

/** Moves groups as `moveToInboxes` does, with a transaction for a page of each app. */
export async function moveInSpread(db: Database, page: { before: Date; limit: number }): Promise<number> {
  const { rows: apps } = await db.query<{ appId: string }>(
    'SELECT app_id AS "appId" FROM channel_group WHERE created_at <= $1 GROUP BY app_id ORDER BY app_id',
    [page.before],
  );
  let expired = 0;
  for (const { appId } of apps)
    for (let moved = page.limit; moved === page.limit; ) {
      const result = await db.transaction((tx) => moveGroupsOfApp(tx, appId, page));
      moved = result.moved;
      expired += result.expired;
    }
  return expired;
}

async function moveGroupsOfApp(
  tx: Handle,
  appId: string,
  { before, limit }: { before: Date; limit: number },
): Promise<{ moved: number; expired: number }> {
  const { rows: old } = await tx.query<GroupRow>(oldGroups, [appId, before, limit]);
  if (old.length === 0) return { moved: 0, expired: 0 };
  const valid = old.filter(({ isExpired }) => !isExpired);
  if (valid.length > 0)
    await tx.query(addToInboxes, [
      appId,
      valid.map(({ id }) => id),
      valid.map(({ pushId }) => pushId),
      valid.map(({ messageId }) => messageId),
      valid.map(({ pending }) => `{${pending.join()}}`),
    ]);
  await tx.query('DELETE FROM channel_group WHERE app_id = $1 AND id = ANY ($2::bigint[])', [
    appId,
    old.map(({ id }) => id),
  ]);
  const lost = old.filter(({ isExpired }) => isExpired);
  return { moved: old.length, expired: lost.reduce((sum, { pending }) => sum + pending.length, 0) };
}

interface GroupRow {
  id: number;
  pushId: number;
  messageId: number;
  pending: number[];
  isExpired: boolean;
}
