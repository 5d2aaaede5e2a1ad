import type { ConnectorTotals, Notification, PushState } from '../../domain/notification.ts';
import type { PushOrder } from '../../domain/push.ts';
import type { Handle } from '../pool.ts';

interface Row {
  app_id: string;
  id: number;
  object_id: string;
  notification_id: string;
  state: PushState;
  error: string | null;
  request: PushOrder;
  from_service: string;
  push_time: Date;
  expires_at: Date;
  planned_through: number;
  is_planned: boolean;
  devices: number;
  totals: ConnectorTotals | null;
  acked: number;
  halts: Record<string, string>;
  created_at: Date;
  updated_at: Date;
  first_sent_at: Date | null;
}

function toNotification(row: Row): Notification {
  return {
    appId: row.app_id,
    id: row.id,
    objectId: row.object_id,
    notificationId: row.notification_id,
    state: row.state,
    error: row.error,
    order: row.request,
    fromService: row.from_service,
    pushTime: row.push_time,
    expiresAt: row.expires_at,
    plannedThrough: row.planned_through,
    isPlanned: row.is_planned,
    devices: row.devices,
    totals: row.totals,
    acked: row.acked,
    halts: row.halts,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    firstSentAt: row.first_sent_at,
  };
}

export interface NewNotification {
  appId: string;
  objectId: string;
  notificationId: string;
  state: 'scheduled' | 'queued';
  order: PushOrder;
  pushTime: Date;
  expiresAt: Date;
  createdAt: Date;
}

/** Gives the internal id. */
export async function insertNotification(tx: Handle, push: NewNotification): Promise<number> {
  const { rows } = await tx.query<{ id: number }>(
    `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time, expires_at,
                               created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) RETURNING id`,
    [
      push.appId,
      push.objectId,
      push.notificationId,
      push.state,
      push.order,
      push.order.prod,
      push.pushTime,
      push.expiresAt,
      push.createdAt,
    ],
  );
  const id = rows[0]?.id;
  if (id === undefined) throw new Error('the database gave back no row');
  return id;
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

export interface FirstReply {
  objectId: string;
  acceptedAt: Date;
}

/**
 * Claims a `req_id` for this push, or gives the first reply where the id was used since `notBefore`
 * (push.md, `req_id`: five minutes). A parallel claim waits here until the first one is decided.
 */
export async function claimRequestId(
  tx: Handle,
  claim: { appId: string; reqId: string; objectId: string; acceptedAt: Date; notBefore: Date },
): Promise<FirstReply | undefined> {
  const { rowCount } = await tx.query(
    `INSERT INTO request_ledger AS l (app_id, req_id, object_id, accepted_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (app_id, req_id) DO UPDATE SET object_id = excluded.object_id, accepted_at = excluded.accepted_at
      WHERE l.accepted_at < $5`,
    [claim.appId, claim.reqId, claim.objectId, claim.acceptedAt, claim.notBefore],
  );
  if (rowCount) return undefined;
  const { rows } = await tx.query<{ object_id: string; accepted_at: Date }>(
    'SELECT object_id, accepted_at FROM request_ledger WHERE app_id = $1 AND req_id = $2',
    [claim.appId, claim.reqId],
  );
  return rows.map((row) => ({ objectId: row.object_id, acceptedAt: row.accepted_at }))[0];
}

export async function findNotification(
  db: Handle,
  appId: string,
  id: number,
): Promise<Notification | undefined> {
  const { rows } = await db.query<Row>('SELECT * FROM notification WHERE app_id = $1 AND id = $2', [
    appId,
    id,
  ]);
  return rows.map(toNotification)[0];
}

/** By the record's objectId, or else the newest with this custom `notification_id` (compat.md 5.4). */
export async function findPublicNotification(
  db: Handle,
  appId: string,
  publicId: string,
): Promise<Notification | undefined> {
  const { rows } = await db.query<Row>(
    `SELECT * FROM notification WHERE app_id = $1 AND (object_id = $2 OR notification_id = $2)
      ORDER BY object_id = $2 DESC, id DESC LIMIT 1`,
    [appId, publicId],
  );
  return rows.map(toNotification)[0];
}

export interface NotificationPage {
  limit: number;
  skip: number;
  oldestFirst: boolean;
}

export async function listNotifications(
  db: Handle,
  appId: string,
  page: NotificationPage,
): Promise<Notification[]> {
  const { rows } = await db.query<Row>(
    `SELECT * FROM notification WHERE app_id = $1 AND state <> 'cancelled'
      ORDER BY id ${page.oldestFirst ? 'ASC' : 'DESC'} LIMIT $2 OFFSET $3`,
    [appId, page.limit, page.skip],
  );
  return rows.map(toNotification);
}

export async function countNotifications(db: Handle, appId: string): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*) AS n FROM notification WHERE app_id = $1 AND state <> 'cancelled'`,
    [appId],
  );
  return rows[0]?.n ?? 0;
}

/**
 * Moves a push that is not finished to `cancelled`: what has not left yet will not. False when it was
 * finished already (push.md "States and transitions").
 */
export async function cancelNotification(tx: Handle, appId: string, id: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification SET state = 'cancelled', updated_at = now(), finished_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending')`,
    [appId, id],
  );
  await tx.query('DELETE FROM scheduled_push WHERE app_id = $1 AND push_id = $2', [appId, id]);
  return (rowCount ?? 0) > 0;
}

/** Takes a push into work: `sending`. Undefined when it is finished, cancelled or gone. */
export async function beginNotification(
  tx: Handle,
  appId: string,
  id: number,
): Promise<Notification | undefined> {
  const { rows } = await tx.query<Row>(
    `UPDATE notification SET state = 'sending', updated_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending') RETURNING *`,
    [appId, id],
  );
  if (rows.length > 0)
    await tx.query('DELETE FROM scheduled_push WHERE app_id = $1 AND push_id = $2', [appId, id]);
  return rows.map(toNotification)[0];
}

/**
 * Moves the planning mark. Gives false when another planner moved it meanwhile, or when the push was
 * cancelled: then nothing of this step may be kept.
 */
export async function advancePlanning(
  tx: Handle,
  push: { appId: string; id: number },
  step: { from: number; through: number; devices: number; isLast: boolean },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE notification
        SET planned_through = $4, devices = devices + $5, is_planned = $6, updated_at = now()
      WHERE app_id = $1 AND id = $2 AND planned_through = $3 AND NOT is_planned AND state = 'sending'`,
    [push.appId, push.id, step.from, step.through, step.devices, step.isLast],
  );
  return (rowCount ?? 0) > 0;
}

/** Ends a push that cannot be sent at all, with a sentence on its record. */
export async function failNotification(
  tx: Handle,
  appId: string,
  id: number,
  sentence: string,
): Promise<void> {
  await tx.query(
    `UPDATE notification SET state = 'failed', error = $3, is_planned = true, updated_at = now(), finished_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending')`,
    [appId, id, sentence],
  );
}

/** Notes the first send; true for the one call that was first. */
export async function markFirstSend(db: Handle, appId: string, id: number, at: Date): Promise<boolean> {
  const { rowCount } = await db.query(
    'UPDATE notification SET first_sent_at = $3 WHERE app_id = $1 AND id = $2 AND first_sent_at IS NULL',
    [appId, id, at],
  );
  return (rowCount ?? 0) > 0;
}

/** Gives up a profile for this push: later batches of it are counted without being sent. */
export async function haltProfile(
  tx: Handle,
  push: { appId: string; id: number },
  profile: string,
  sentence: string,
): Promise<void> {
  await tx.query(
    `UPDATE notification SET halts = halts || jsonb_build_object($3::text, $4::text), updated_at = now()
      WHERE app_id = $1 AND id = $2`,
    [push.appId, push.id, profile, sentence],
  );
}

export interface ClosedNotification {
  createdAt: Date;
  pushTime: Date;
}

/**
 * Closes a push whose planning is done and whose batches are all settled: `done`, with its totals. Status
 * is derived from the batches (design.md 2), so calling this too early or twice does nothing.
 */
export async function closeIfSettled(
  db: Handle,
  appId: string,
  id: number,
): Promise<ClosedNotification | undefined> {
  const { rows } = await db.query<{ created_at: Date; push_time: Date }>(
    `UPDATE notification n
        SET state = 'done', finished_at = now(), updated_at = now(),
            totals = (${totalsOfBatches('n.app_id', 'n.id')}),
            error = (${summaryOfFailures('n.app_id', 'n.id')})
      WHERE n.app_id = $1 AND n.id = $2 AND n.state = 'sending' AND n.is_planned
        AND NOT EXISTS (SELECT 1 FROM push_batch b
                         WHERE b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled)
      RETURNING n.created_at, n.push_time`,
    [appId, id],
  );
  return rows.map((row) => ({ createdAt: row.created_at, pushTime: row.push_time }))[0];
}

/** Pushes that ought to be closed: what a crash between the last batch and the closing leaves behind. */
export async function findSettledPushes(db: Handle, limit: number): Promise<{ appId: string; id: number }[]> {
  const { rows } = await db.query<{ app_id: string; id: number }>(
    `SELECT n.app_id, n.id FROM notification n
      WHERE n.state = 'sending' AND n.is_planned
        AND NOT EXISTS (SELECT 1 FROM push_batch b
                         WHERE b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled)
      ORDER BY n.id LIMIT $1`,
    [limit],
  );
  return rows.map((row) => ({ appId: row.app_id, id: row.id }));
}

/** Totals of a push while it is open, from its settled batches. */
export async function readTotals(db: Handle, appId: string, id: number): Promise<ConnectorTotals> {
  const { rows } = await db.query<{ totals: ConnectorTotals | null }>(
    `SELECT (${totalsOfBatches('$1', '$2')}) AS totals`,
    [appId, id],
  );
  return rows[0]?.totals ?? {};
}

/** Deletes finished records older than the retention (compat.md 5.3: seven days); gives how many. */
export async function deleteOldNotifications(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS (
       SELECT app_id, id FROM notification
        WHERE created_at < $1 AND state IN ('done', 'failed', 'cancelled') AND finished_at < $1
        ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
     batches AS (DELETE FROM push_batch b USING old WHERE b.app_id = old.app_id AND b.push_id = old.id),
     failures AS (DELETE FROM push_failure f USING old WHERE f.app_id = old.app_id AND f.push_id = old.id)
     DELETE FROM notification n USING old WHERE n.app_id = old.app_id AND n.id = old.id`,
    [before, limit],
  );
  return rowCount ?? 0;
}

export async function deleteOldRequestIds(db: Handle, before: Date): Promise<number> {
  const { rowCount } = await db.query('DELETE FROM request_ledger WHERE accepted_at < $1', [before]);
  return rowCount ?? 0;
}

/** Subquery: `{connector: {outcome: n}}` summed over the settled batches of a push. */
function totalsOfBatches(appId: string, pushId: string): string {
  return `SELECT coalesce(jsonb_object_agg(connector, counts), '{}')
            FROM (SELECT connector, jsonb_object_agg(outcome, n) AS counts
                    FROM (SELECT b.connector, t.key AS outcome, sum(t.value::bigint) AS n
                            FROM push_batch b, jsonb_each_text(b.totals) t
                           WHERE b.app_id = ${appId} AND b.push_id = ${pushId} AND b.totals IS NOT NULL
                           GROUP BY b.connector, t.key) by_outcome
                   GROUP BY connector) by_connector`;
}

/** Subquery: one line on what went wrong, the most frequent reasons first; null when nothing did. */
function summaryOfFailures(appId: string, pushId: string): string {
  return `SELECT string_agg(format('%s: %s (%s)', connector, reason, n), '; ' ORDER BY n DESC, reason)
            FROM (SELECT f.connector, f.reason, count(*) AS n FROM push_failure f
                   WHERE f.app_id = ${appId} AND f.push_id = ${pushId}
                   GROUP BY f.connector, f.reason ORDER BY n DESC LIMIT 5) reasons`;
}
