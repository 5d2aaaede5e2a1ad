import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';

/** Tells every dispatcher that a push was stopped; the payload is the push's internal id. */
export const pushTopic = 'carillon_push';

/** Has all dispatchers cut short what they are sending of a push, once `tx` commits. */
export async function notifyPushChanged(tx: Handle, id: number): Promise<void> {
  await tx.query('SELECT pg_notify($1, $2)', [pushTopic, String(id)]);
}

/** Moves a push that is being sent, or is about to be, to `paused`. False when it is neither. */
export async function markPushPaused(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET state = 'paused', updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused')`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Moves a paused push back to `sending`; false when it is finished or waits for its time. */
export async function markPushResumed(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET state = CASE state WHEN 'paused' THEN 'sending' ELSE state END, updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused')`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Paused pushes that are of no more use: they are taken up again, so that their recipients are counted. */
export async function markExpiredResumed(
  tx: Handle,
  now: Date,
  limit: number,
): Promise<{ appId: string; id: number }[]> {
  const { rows } = await tx.query<{ app_id: string; id: number }>(
    `WITH e AS MATERIALIZED (
       SELECT app_id, id FROM notification WHERE state = 'paused' AND expires_at <= $1
        ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE notification n SET state = 'sending', updated_at = now() FROM e
      WHERE n.app_id = e.app_id AND n.id = e.id RETURNING n.app_id, n.id`,
    [now, limit],
  );
  return rows.map((row) => ({ appId: row.app_id, id: row.id }));
}

/** True while the push is paused; it then stays so until `tx` ends. */
async function lockPaused(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `SELECT 1 FROM notification WHERE app_id = $1 AND id = $2 AND state = 'paused' FOR SHARE`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Notes that a batch waits for its push to be resumed, and reserves its slot anew then. False when the push is not paused (any more). */
export async function markBatchParked(
  tx: Handle,
  batch: { appId: string; pushId: number; id: number },
): Promise<boolean> {
  if (!(await lockPaused(tx, batch.appId, batch.pushId))) return false;
  await tx.query(
    `UPDATE push_batch SET is_held = true, has_job = true, slot_at = NULL, slot_ms = NULL, slot_epoch = NULL
      WHERE app_id = $1 AND id = $2`,
    [batch.appId, batch.id],
  );
  return true;
}

/** Notes that the planning of a push waits for it to be resumed. False when it is not paused (any more). */
export async function markPlanningParked(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET is_plan_held = true WHERE app_id = $1 AND id = $2 AND state = 'paused'`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Takes up to `limit` held batches: each needs a job now. */
export async function takeParkedBatches(
  tx: Handle,
  push: { appId: string; id: number },
  limit: number,
): Promise<{ id: number; connector: ConnectorId }[]> {
  const { rows } = await tx.query<{ id: number; connector: ConnectorId }>(
    // Not as IN (…): a plan may run that several times, and the limit would hold for each run.
    `WITH held AS MATERIALIZED (
       SELECT id FROM push_batch WHERE app_id = $1 AND push_id = $2 AND NOT is_settled AND is_held
        ORDER BY id LIMIT $3 FOR UPDATE)
     UPDATE push_batch b SET is_held = false FROM held
      WHERE b.app_id = $1 AND b.id = held.id RETURNING b.id, b.connector`,
    [push.appId, push.id, limit],
  );
  return rows;
}

/** True when the planning of the push was held: it needs a job now. */
export async function takeParkedPlanning(tx: Handle, push: { appId: string; id: number }): Promise<boolean> {
  const { rowCount } = await tx.query(
    'UPDATE notification SET is_plan_held = false WHERE app_id = $1 AND id = $2 AND is_plan_held',
    [push.appId, push.id],
  );
  return (rowCount ?? 0) > 0;
}
