import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';
import { lockFreeze } from '../apps/freezes.ts';
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

/**
 * Returns whether an unfinished push has to wait: it is paused, or its app or the service is frozen.
 * That stays so until `tx` ends.
 */
export async function lockWaiting(
  tx: Handle,
  { appId, pushId }: { appId: string; pushId: number },
  lock: 'SHARE' | 'NO KEY UPDATE',
): Promise<boolean> {
  const { rows } = await tx.query<{ isPaused: boolean }>(
    `SELECT state = 'paused' AS "isPaused" FROM notification
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused') FOR ${lock}`,
    [appId, pushId],
  );
  const [push] = rows;
  return push !== undefined && (push.isPaused || (await lockFreeze(tx, appId)));
}

/** Marks a batch as held: it has no job until its push continues. Voids its slot. */
export async function markBatchHeld(
  tx: Handle,
  { appId, batchId }: { appId: string; batchId: number },
): Promise<void> {
  await tx.query(
    `UPDATE push_batch SET is_held = true, has_job = true, slot_at = NULL, slot_ms = NULL, slot_epoch = NULL
      WHERE app_id = $1 AND id = $2`,
    [appId, batchId],
  );
}

/** Marks the planning of a push as held: it has no job until the push continues. */
export async function markPlanningHeld(
  tx: Handle,
  { appId, pushId }: { appId: string; pushId: number },
): Promise<void> {
  await tx.query('UPDATE notification SET is_plan_held = true WHERE app_id = $1 AND id = $2', [
    appId,
    pushId,
  ]);
}

/** Takes up to `limit` held batches of pushes of an app; each needs a job. */
export async function takeHeldBatches(
  tx: Handle,
  appId: string,
  pushIds: readonly number[],
  limit: number,
): Promise<{ id: number; pushId: number; connector: ConnectorId }[]> {
  const { rows } = await tx.query<{ id: number; pushId: number; connector: ConnectorId }>(
    // A CTE, not IN (…): a plan may run a subquery several times, each with the limit.
    `WITH held AS MATERIALIZED (
       SELECT id FROM push_batch WHERE app_id = $1 AND push_id = ANY ($2::bigint[]) AND NOT is_settled AND is_held
        ORDER BY id LIMIT $3 FOR UPDATE)
     UPDATE push_batch b SET is_held = false FROM held
      WHERE b.app_id = $1 AND b.id = held.id RETURNING b.id, b.push_id AS "pushId", b.connector`,
    [appId, pushIds, limit],
  );
  return rows.sort((one, other) => one.id - other.id);
}

/** Takes the held planning of pushes of an app; returns the pushes, each of which needs a job. */
export async function takeHeldPlanning(
  tx: Handle,
  appId: string,
  pushIds: readonly number[],
): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>(
    `UPDATE notification SET is_plan_held = false
      WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND is_plan_held RETURNING id`,
    [appId, pushIds],
  );
  return rows.map(({ id }) => id).sort((one, other) => one - other);
}

/** Finds up to `limit` pushes with held work that are not paused, except those of `frozen` apps, the oldest first. */
export async function findHeldPushes(
  db: Handle,
  frozen: readonly string[],
  limit: number,
): Promise<{ appId: string; id: number }[]> {
  const { rows } = await db.query<{ appId: string; id: number }>(
    `SELECT n.app_id AS "appId", n.id FROM notification n
      WHERE n.state IN ('queued', 'sending') AND n.app_id <> ALL ($1)
        AND (n.is_plan_held OR EXISTS (SELECT FROM push_batch b
                                        WHERE b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled AND b.is_held))
      ORDER BY n.id LIMIT $2`,
    [frozen, limit],
  );
  return rows;
}
