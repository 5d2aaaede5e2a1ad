import type { ConnectorId } from '../../domain/labels.ts';
import type { Handle } from '../pool.ts';
import { listsOf, query } from '../query.ts';
import { forEachApp } from '../sharding.ts';
import { lockFreeze } from './apps.ts';
import type { PushKey } from './pushes.ts';

/** NOTIFY channel of interrupted pushes. The payload is the internal id. */
export const pushTopic = 'carillon_push';

/** Makes all dispatchers interrupt the batches of a push when `tx` commits. */
export const notifyPushChanged = (tx: Handle, id: number) =>
  query(tx).run('SELECT pg_notify($1, $2)', [pushTopic, String(id)]);

/** Moves a queued or sending push to `paused`. Returns false for other states. */
export const markPushPaused = (tx: Handle, appId: string, id: number) =>
  query(tx).hasRows(
    `UPDATE notification SET state = 'paused', updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused')`,
    [appId, id],
  );

/** Moves a paused push back to `sending`. Returns false if it is finished or scheduled. */
export const markPushResumed = (tx: Handle, appId: string, id: number) =>
  query(tx).hasRows(
    `UPDATE notification SET state = CASE WHEN state = 'paused' THEN 'sending' ELSE state END,
      updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused')`,
    [appId, id],
  );

const expiredPauses = `
  SELECT app_id, id FROM notification WHERE state = 'paused' AND expires_at <= $1
   ORDER BY expires_at, app_id, id LIMIT $2`;

const resumeExpired = `
  WITH e AS MATERIALIZED (
    SELECT id FROM notification
     WHERE app_id = $1 AND id = ANY($2::bigint[]) AND state = 'paused' AND expires_at <= $3
     ORDER BY expires_at FOR UPDATE SKIP LOCKED)
  UPDATE notification n SET state = 'sending', updated_at = now() FROM e WHERE n.app_id = $1
    AND n.id = e.id
  RETURNING n.id`;

/** Resumes paused pushes that have expired, so that their recipients are counted. */
export async function markExpiredResumed(tx: Handle, now: Date, limit: number): Promise<PushKey[]> {
  return forEachApp(tx, { text: expiredPauses, values: [now, limit] }, async (appId, ids) => {
    const resumed = await query(tx).column<number>(resumeExpired, [appId, ids, now]);
    return resumed.map((id) => ({ appId, id }));
  });
}

/**
 * Returns whether an unfinished push must wait, because it is paused, or because its app or the
 * service is frozen. The answer stays true until `tx` ends.
 */
export async function lockWaiting(
  tx: Handle,
  { appId, pushId }: { appId: string; pushId: number },
  lock: 'SHARE' | 'NO KEY UPDATE',
): Promise<boolean> {
  const isPaused = await query(tx).value<boolean>(
    `SELECT state = 'paused' FROM notification
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending', 'paused') FOR ${lock}`,
    [appId, pushId],
  );
  return isPaused !== undefined && (isPaused || (await lockFreeze(tx, appId)));
}

/**
 * Marks a batch as held. It has no job until its push continues, although `has_job` is true. Its
 * time slot becomes void.
 */
export const markBatchHeld = (tx: Handle, { appId, batchId }: { appId: string; batchId: number }) =>
  query(tx).run(
    `UPDATE push_batch SET is_held = true, slot_at = NULL, slot_ms = NULL,
      slot_epoch = NULL
      WHERE app_id = $1 AND id = $2`,
    [appId, batchId],
  );

/** Marks the planning of a push as held. It has no job until the push continues. */
export const markPlanningHeld = (
  tx: Handle,
  { appId, pushId }: { appId: string; pushId: number },
) =>
  query(tx).run('UPDATE notification SET is_plan_held = true WHERE app_id = $1 AND id = $2', [
    appId,
    pushId,
  ]);

/** A batch that needs a job. */
export interface WaitingBatch {
  id: number;
  pushId: number;
  connector: ConnectorId;
}

/** Unmarks up to `limit` held batches of pushes of an app, and returns them. Each needs a job. */
export async function takeHeldBatches(
  tx: Handle,
  appId: string,
  pushIds: readonly number[],
  limit: number,
): Promise<WaitingBatch[]> {
  const rows = await query(tx).rows<WaitingBatch>(
    // A CTE, because a plan may run a subquery of IN several times, each with its own limit.
    `WITH held AS MATERIALIZED (
       SELECT id FROM push_batch WHERE app_id = $1 AND push_id = ANY ($2::bigint[])
         AND NOT is_settled AND is_held
        ORDER BY id LIMIT $3 FOR UPDATE)
     UPDATE push_batch b SET is_held = false FROM held
      WHERE b.app_id = $1 AND b.id = held.id RETURNING b.id, b.push_id AS "pushId", b.connector`,
    [appId, pushIds, limit],
  );
  return rows.sort((one, other) => one.id - other.id);
}

/** Unmarks the held planning of pushes of an app, and returns the pushes. Each needs a job. */
export async function takeHeldPlanning(
  tx: Handle,
  appId: string,
  pushIds: readonly number[],
): Promise<number[]> {
  const ids = await query(tx).column<number>(
    `UPDATE notification SET is_plan_held = false
      WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND is_plan_held RETURNING id`,
    [appId, pushIds],
  );
  return ids.sort((one, other) => one - other);
}

/** Finds pushes with held work that are neither paused nor of `frozen` apps, oldest first. */
export const findHeldPushes = (db: Handle, frozen: readonly string[], limit: number) =>
  query(db).rows<PushKey>(
    `SELECT n.app_id AS "appId", n.id FROM notification n
      WHERE n.state IN ('queued', 'sending') AND n.app_id <> ALL ($1)
        AND (n.is_plan_held OR EXISTS (SELECT FROM push_batch b
                                        WHERE b.app_id = n.app_id AND b.push_id = n.id
                                        AND NOT b.is_settled AND b.is_held))
      ORDER BY n.id LIMIT $2`,
    [frozen, limit],
  );

/**
 * Work of a push that is not paused: a batch, or planning including the batches without their own
 * job.
 */
export interface OpenWork {
  appId: string;
  pushId: number;
  /** Null for the planning of the push. */
  batchId: number | null;
  connector: ConnectorId | null;
  /** Start of a retry. */
  notBefore: Date | null;
  /** True if the work was held and must continue now. All other work needs a job. */
  isHeld: boolean;
  /** True if planning has begun. */
  isContinued: boolean;
  /** A value that changes with any progress. */
  progress: string;
}

/** States of a push in which open recipients are sent to or counted. */
const working = `'queued', 'sending', 'cancelled'`;
const maxBatches = 20_000;

/** Lists the pushes with open work, oldest first. Paused and scheduled pushes need no job. */
export function listOpenPushes(
  tx: Handle,
  { afterId, limit }: { afterId: number; limit: number },
): Promise<PushKey[]> {
  const ofState = (state: string) =>
    `(SELECT app_id, id FROM notification WHERE state = ${state} AND id > $1 ORDER BY id LIMIT $2)`;
  return query(tx).rows(
    `SELECT app_id AS "appId", id FROM (${ofState("'queued'")} UNION ALL ${ofState("'sending'")}
      UNION ALL ${ofState("'cancelled' AND devices > 0")}) AS open ORDER BY id LIMIT $2`,
    [afterId, limit],
  );
}

/**
 * Reads the open work of pushes. Planning needs a job until it has finished. In a small push it
 * needs a job as long as batches without their own job are open.
 */
export async function readOpenWork(tx: Handle, pushes: readonly PushKey[]): Promise<OpenWork[]> {
  if (pushes.length === 0) return [];
  const keys = listsOf(pushes, 'appId', 'id');
  const plans = await query(tx).rows<OpenWork>(
    `WITH open AS MATERIALIZED (
       SELECT n.app_id, n.id, n.state, n.is_planned, n.is_plan_held, n.planned_through,
              bool_or(n.devices <= 1000 AND NOT b.has_job) AS is_inline,
              string_agg(md5(coalesce(b.settled, '')), '' ORDER BY b.id)
              FILTER (WHERE n.devices <= 1000) AS digest
         FROM unnest($1::text[], $2::bigint[]) AS o (app_id, id)
           JOIN notification n USING (app_id, id)
         LEFT JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled
        WHERE n.state IN (${working})
        GROUP BY n.app_id, n.id)
     SELECT app_id AS "appId", id AS "pushId", NULL AS "batchId", NULL AS connector,
            NULL AS "notBefore", is_plan_held AS "isHeld", NOT is_planned
              AND planned_through > 0 AS "isContinued",
            planned_through || ' ' || coalesce(digest, '') AS progress
       FROM open WHERE is_plan_held OR (NOT is_planned AND state <> 'cancelled') OR is_inline
         ORDER BY id`,
    keys,
  );
  const batches = await query(tx).rows<OpenWork>(
    `SELECT b.app_id AS "appId", b.push_id AS "pushId", b.id AS "batchId", b.connector,
            b.not_before AS "notBefore", b.is_held AS "isHeld", false AS "isContinued",
            md5(coalesce(b.settled, '')) AS progress
       FROM unnest($1::text[], $2::bigint[]) AS o (app_id, id)
         JOIN notification n USING (app_id, id)
       JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id
      WHERE n.state IN (${working}) AND NOT b.is_settled AND b.has_job
      ORDER BY b.id LIMIT ${maxBatches}`,
    keys,
  );
  return [...plans, ...batches];
}

/**
 * Locks the rows of work until `tx` ends, and returns the work. A transaction that settles, holds
 * or postpones work changes its row first. Work whose row is locked by another transaction is
 * omitted, because it progresses.
 */
export async function lockOpenWork(tx: Handle, work: readonly OpenWork[]): Promise<OpenWork[]> {
  const locked: OpenWork[] = [];
  for (const table of ['notification', 'push_batch'] as const) {
    const ofTable = work.filter(({ batchId }) => (batchId === null) === (table === 'notification'));
    // One statement for each app, because a sharded database cannot lock rows of several apps.
    for (const [appId, ofApp] of Map.groupBy(ofTable, (item) => item.appId)) {
      const found = await query(tx).column<number>(
        `SELECT id FROM ${table} WHERE app_id = $1 AND id = ANY ($2::bigint[]) ORDER BY id
          FOR UPDATE SKIP LOCKED`,
        [appId, ofApp.map(({ pushId, batchId }) => batchId ?? pushId)],
      );
      const ids = new Set(found);
      locked.push(...ofApp.filter(({ pushId, batchId }) => ids.has(batchId ?? pushId)));
    }
  }
  return locked;
}
