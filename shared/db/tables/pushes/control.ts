import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';
import { forEachApp } from '../sweeps.ts';

/** NOTIFY topic of interrupted pushes; the payload is the internal id. */
export const pushTopic = 'carillon_push';

/** Tells all dispatchers, once `tx` commits, to interrupt the batches of a push. */
export async function notifyPushChanged(tx: Handle, id: number): Promise<void> {
  await tx.query('SELECT pg_notify($1, $2)', [pushTopic, String(id)]);
}

/** Moves a queued or sending push to `paused`. Returns false for other states. */
export async function markPushPaused(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET state = 'paused', updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused')`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Moves a paused push back to `sending`. Returns false if it is finished or scheduled. */
export async function markPushResumed(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET state = CASE WHEN state = 'paused' THEN 'sending' ELSE state END, updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused')`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

const expiredPauses = `
  SELECT app_id, id FROM notification WHERE state = 'paused' AND expires_at <= $1
   ORDER BY expires_at, app_id, id LIMIT $2`;

const resumeExpired = `
  WITH e AS MATERIALIZED (
    SELECT id FROM notification
     WHERE app_id = $1 AND id = ANY($2::bigint[]) AND state = 'paused' AND expires_at <= $3
     ORDER BY expires_at FOR UPDATE SKIP LOCKED)
  UPDATE notification n SET state = 'sending', updated_at = now() FROM e WHERE n.app_id = $1 AND n.id = e.id
  RETURNING n.id`;

/** Resumes paused pushes that have expired, so that their recipients are counted. */
export async function markExpiredResumed(
  tx: Handle,
  now: Date,
  limit: number,
): Promise<{ appId: string; id: number }[]> {
  return forEachApp(tx, { text: expiredPauses, values: [now, limit] }, async (appId, ids) => {
    const { rows } = await tx.query<{ id: number }>(resumeExpired, [appId, ids, now]);
    return rows.map(({ id }) => ({ appId, id }));
  });
}

/** Returns whether the push is paused, and keeps it so until `tx` ends. */
async function lockPaused(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `SELECT 1 FROM notification WHERE app_id = $1 AND id = $2 AND state = 'paused' FOR SHARE`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Parks a batch until its push is resumed, and voids its slot. Returns false if the push is not paused. */
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

/** Parks the planning of a push until it is resumed. Returns false if it is not paused. */
export async function markPlanningParked(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET is_plan_held = true WHERE app_id = $1 AND id = $2 AND state = 'paused'`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Unparks up to `limit` batches and returns them; each needs a job. */
export async function takeParkedBatches(
  tx: Handle,
  push: { appId: string; id: number },
  limit: number,
): Promise<{ id: number; connector: ConnectorId }[]> {
  const { rows } = await tx.query<{ id: number; connector: ConnectorId }>(
    // A CTE, not IN (…): a plan may run a subquery several times, each with the limit.
    `WITH held AS MATERIALIZED (
       SELECT id FROM push_batch WHERE app_id = $1 AND push_id = $2 AND NOT is_settled AND is_held
        ORDER BY id LIMIT $3 FOR UPDATE)
     UPDATE push_batch b SET is_held = false FROM held
      WHERE b.app_id = $1 AND b.id = held.id RETURNING b.id, b.connector`,
    [push.appId, push.id, limit],
  );
  return rows;
}

/** Unparks the planning of a push; returns whether it was parked and needs a job. */
export async function takeParkedPlanning(tx: Handle, push: { appId: string; id: number }): Promise<boolean> {
  const { rowCount } = await tx.query(
    'UPDATE notification SET is_plan_held = false WHERE app_id = $1 AND id = $2 AND is_plan_held',
    [push.appId, push.id],
  );
  return (rowCount ?? 0) > 0;
}
