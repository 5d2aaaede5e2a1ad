import type { Push } from '../../../domain/pushes/record.ts';
import type { ScheduledPush } from '../../../domain/pushes/schedule.ts';
import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';
import { forEachApp } from '../sweeps.ts';
import { type PushRow, toPush } from './pushes.ts';

/**
 * Counts the pending scheduled pushes of an app and blocks further ones until `tx` ends, so that the limit is exact
 * under concurrent calls (protocol/push.md#scheduled-pushes).
 */
export async function countScheduledLocked(tx: Handle, appId: string): Promise<number> {
  await tx.query('SELECT 1 FROM app WHERE app_id = $1 FOR NO KEY UPDATE', [appId]);
  const { rows } = await tx.query<{ n: number }>(
    'SELECT count(*) AS n FROM scheduled_push WHERE app_id = $1',
    [appId],
  );
  return rows[0]?.n ?? 0;
}

/** Inserts the entry of a scheduled push; the call that cancels it uses the entry's integer id. */
export async function insertScheduledPush(
  tx: Handle,
  appId: string,
  pushId: number,
  pushTime: Date,
): Promise<void> {
  await tx.query('INSERT INTO scheduled_push (app_id, push_id, push_time) VALUES ($1, $2, $3)', [
    appId,
    pushId,
    pushTime,
  ]);
}

/** Lists the pending entries of an app by id; the plan limits their number. */
export async function listScheduled(db: Handle, appId: string): Promise<ScheduledPush[]> {
  const { rows } = await db.query<PushRow & { entry_id: number }>(
    `SELECT n.*, s.id AS entry_id
       FROM scheduled_push s JOIN notification n ON n.app_id = s.app_id AND n.id = s.push_id
      WHERE s.app_id = $1 AND n.state = 'scheduled' ORDER BY s.id`,
    [appId],
  );
  return rows.map((row) => ({ id: row.entry_id, push: toPush(row) }));
}

const entries = `SELECT n.*, s.id AS entry_id
   FROM scheduled_push s JOIN notification n ON n.app_id = s.app_id AND n.id = s.push_id
  WHERE s.app_id = $1 AND n.state = 'scheduled'`;

const toEntry = (row: PushRow & { entry_id: number }): ScheduledPush => ({
  id: row.entry_id,
  push: toPush(row),
});

/** Lists pending entries of an app, the next one first, from the one behind `after` on. */
export async function listScheduledPage(
  db: Handle,
  appId: string,
  { after, limit }: { after: { pushTime: Date; id: number } | null; limit: number },
): Promise<ScheduledPush[]> {
  const { rows } = await db.query<PushRow & { entry_id: number }>(
    `${entries} AND ($2::timestamptz IS NULL OR (s.push_time, s.id) > ($2, $3::bigint))
      ORDER BY s.push_time, s.id LIMIT $4`,
    [appId, after?.pushTime ?? null, after?.id ?? null, limit],
  );
  return rows.map(toEntry);
}

/** Finds a pending entry, and locks it until the transaction ends. */
export async function lockScheduled(
  tx: Handle,
  appId: string,
  entryId: number,
): Promise<ScheduledPush | undefined> {
  // Lock order of the scheduler: the entry first.
  await tx.query('SELECT 1 FROM scheduled_push WHERE app_id = $1 AND id = $2 FOR UPDATE', [appId, entryId]);
  const { rows } = await tx.query<PushRow & { entry_id: number }>(`${entries} AND s.id = $2`, [
    appId,
    entryId,
  ]);
  return rows.map(toEntry)[0];
}

/** Moves a locked entry to another time. */
export async function moveScheduled(
  tx: Handle,
  { id, push }: ScheduledPush,
  { pushTime, expiresAt }: Pick<Push, 'pushTime' | 'expiresAt'>,
): Promise<void> {
  await tx.query('UPDATE scheduled_push SET push_time = $3 WHERE app_id = $1 AND id = $2', [
    push.appId,
    id,
    pushTime,
  ]);
  await tx.query(
    'UPDATE notification SET push_time = $3, expires_at = $4, updated_at = now() WHERE app_id = $1 AND id = $2',
    [push.appId, push.id, pushTime, expiresAt],
  );
}

/**
 * Cancels a pending entry. Returns false without one. The transaction that deletes the entry decides between cancelled
 * and sent; a concurrent scheduler waits for it.
 */
export async function cancelScheduled(tx: Handle, appId: string, entryId: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `WITH entry AS (DELETE FROM scheduled_push WHERE app_id = $1 AND id = $2 RETURNING push_id)
     UPDATE notification n SET state = 'cancelled', updated_at = now(), finished_at = now()
       FROM entry WHERE n.app_id = $1 AND n.id = entry.push_id AND n.state = 'scheduled'`,
    [appId, entryId],
  );
  return (rowCount ?? 0) > 0;
}

const dueEntries =
  'SELECT app_id, id FROM scheduled_push WHERE push_time <= now() ORDER BY push_time, app_id, id LIMIT $1';

const takeEntries = `
  WITH due AS MATERIALIZED (
    SELECT id FROM scheduled_push WHERE app_id = $1 AND id = ANY($2::bigint[]) AND push_time <= now()
     ORDER BY push_time FOR UPDATE SKIP LOCKED),
  entry AS (DELETE FROM scheduled_push s USING due WHERE s.app_id = $1 AND s.id = due.id RETURNING s.push_id)
  UPDATE notification n SET state = 'queued', updated_at = now()
    FROM entry WHERE n.app_id = $1 AND n.id = entry.push_id AND n.state = 'scheduled'
  RETURNING n.id`;

const toNext = prepare(
  'SELECT extract(epoch FROM min(push_time) - clock_timestamp())::float8 * 1000 AS ms FROM scheduled_push',
);

/** Returns the milliseconds until the next entry is due by the database's clock; Infinity without entries. */
export async function msToNextPush(db: Handle): Promise<number> {
  const { rows } = await db.query<{ ms: number | null }>(toNext);
  return rows[0]?.ms ?? Number.POSITIVE_INFINITY;
}

/** Deletes entries that are due by the database's clock, and returns their pushes, now `queued`. */
export async function takeDuePushes(tx: Handle, limit: number): Promise<{ appId: string; pushId: number }[]> {
  return forEachApp(tx, { text: dueEntries, values: [limit] }, async (appId, ids) => {
    const { rows } = await tx.query<{ id: number }>(takeEntries, [appId, ids]);
    return rows.map(({ id }) => ({ appId, pushId: id }));
  });
}
