import type { ScheduledPush } from '../../../domain/pushes/schedule.ts';
import type { Handle } from '../../pool.ts';
import { type PushRow, toPush } from './pushes.ts';

/**
 * How many scheduled pushes of an app are pending. Until `tx` ends no other one is added, so the caller
 * may add one on what it read (protocol/push.md#scheduled-pushes: exact under parallel calls).
 */
export async function countScheduledLocked(tx: Handle, appId: string): Promise<number> {
  await tx.query('SELECT 1 FROM app WHERE app_id = $1 FOR NO KEY UPDATE', [appId]);
  const { rows } = await tx.query<{ n: number }>(
    'SELECT count(*) AS n FROM scheduled_push WHERE app_id = $1',
    [appId],
  );
  return rows[0]?.n ?? 0;
}

/** The pending entry of a scheduled push, which the cancelling call names by its integer id. */
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

/** Pending entries of an app in the order of their ids; the plan bounds how many there are. */
export async function listScheduled(db: Handle, appId: string): Promise<ScheduledPush[]> {
  const { rows } = await db.query<PushRow & { entry_id: number }>(
    `SELECT n.*, s.id AS entry_id
       FROM scheduled_push s JOIN notification n ON n.app_id = s.app_id AND n.id = s.push_id
      WHERE s.app_id = $1 AND n.state = 'scheduled' ORDER BY s.id`,
    [appId],
  );
  return rows.map((row) => ({ id: row.entry_id, push: toPush(row) }));
}

/**
 * Cancels a pending entry. False when there is none: whoever deletes the entry decides between cancelled
 * and sent, so a firing at the same time waits here or is waited for.
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

/** Takes entries whose time has come by the database's clock; gives their pushes, now `queued`. */
export async function takeDuePushes(tx: Handle, limit: number): Promise<{ appId: string; pushId: number }[]> {
  const { rows } = await tx.query<{ app_id: string; id: number }>(
    `WITH due AS MATERIALIZED (
       SELECT id FROM scheduled_push WHERE push_time <= now()
        ORDER BY push_time LIMIT $1 FOR UPDATE SKIP LOCKED),
     entry AS (DELETE FROM scheduled_push s USING due WHERE s.id = due.id RETURNING s.app_id, s.push_id)
     UPDATE notification n SET state = 'queued', updated_at = now()
       FROM entry WHERE n.app_id = entry.app_id AND n.id = entry.push_id AND n.state = 'scheduled'
     RETURNING n.app_id, n.id`,
    [limit],
  );
  return rows.map((row) => ({ appId: row.app_id, pushId: row.id }));
}
