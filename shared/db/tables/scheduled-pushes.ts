import type { JsonObject } from '../../domain/json.ts';
import type { PushOrder } from '../../domain/pushes/push.ts';
import type { Push, PushCreator, ScheduledPush } from '../../domain/pushes/record.ts';
import type { Recurrence } from '../../domain/pushes/recurrence.ts';
import type { Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { type PageBefore, query } from '../query.ts';
import { forEachApp } from '../sharding.ts';
import { lockAppRow } from './apps.ts';
import { countScheduled } from './audience.ts';
import { type PushKey, pushColumns, recordColumns } from './pushes.ts';

/** Settings of a recurring push that the caller chooses. */
export interface RecurringTerms extends Recurrence {
  name: string;
  isEnabled: boolean;
  /** Body of the push, as the caller wrote it. */
  body: JsonObject;
  /** The checked request. Each run copies it. */
  pushOrder: PushOrder;
  notificationId: string | null;
  /** Lifetime of each push; null for the default. */
  lifeSeconds: number | null;
}

/** A recurring push, as stored in the table `recurring_push`. */
export interface RecurringPush extends RecurringTerms {
  appId: string;
  id: number;
  /** Time of the next run. Null while disabled, and after the last run. */
  nextAt: Date | null;
  /**
   * Runs up to this time are not caught up, because their pushes may have been sent before a
   * restore.
   */
  skipBefore: Date | null;
  /** Scheduled time and objectId of the last push. */
  lastAt: Date | null;
  lastPush: string | null;
  starts: number;
  missed: number;
  heldBack: number;
  createdBy: string;
  createdToken: number | null;
  createdAt: Date;
  changedBy: string;
  changedToken: number | null;
  changedAt: Date;
}

const recurringColumns = `app_id AS "appId", id, name, expression, time_zone AS "timeZone", starts_at AS "startsAt", ends_at AS "endsAt",
  is_enabled AS "isEnabled", body, request AS "pushOrder", notification_id AS "notificationId", life_seconds AS "lifeSeconds",
  next_at AS "nextAt", skip_before AS "skipBefore", last_at AS "lastAt", last_push AS "lastPush", starts, missed,
  held_back AS "heldBack", created_by AS "createdBy", created_token AS "createdToken", created_at AS "createdAt",
  changed_by AS "changedBy", changed_token AS "changedToken", changed_at AS "changedAt"`;

/** Lists recurring pushes of an app, newest first. */
export const listRecurring = (db: Handle, appId: string, { before, limit }: PageBefore) =>
  query(db).rows<RecurringPush>(
    `SELECT ${recurringColumns} FROM recurring_push WHERE app_id = $1
      AND ($2::bigint IS NULL OR id < $2)
      ORDER BY id DESC LIMIT $3`,
    [appId, before, limit],
  );

/**
 * Finds a recurring push. `isLocked` locks it until the transaction ends. Dispatchers skip a locked
 * recurring push.
 */
export const findRecurring = (db: Handle, appId: string, id: number, { isLocked = false } = {}) =>
  query(db).row<RecurringPush>(
    `SELECT ${recurringColumns} FROM recurring_push
      WHERE app_id = $1 AND id = $2${isLocked ? ' FOR UPDATE' : ''}`,
    [appId, id],
  );

/**
 * Locks the recurring pushes of an app until `tx` ends. Returns their number, and whether the name
 * is taken, both without `exceptId`. Returns undefined if the app does not exist.
 */
export async function lockRecurringNames(
  tx: Handle,
  appId: string,
  { name, exceptId }: { name: string; exceptId: number | null },
): Promise<{ count: number; isTaken: boolean } | undefined> {
  if (!(await lockAppRow(tx, appId))) return undefined;
  return query(tx).row(
    `SELECT count(*) AS count, coalesce(bool_or(name = $2), false) AS "isTaken"
       FROM recurring_push WHERE app_id = $1 AND id IS DISTINCT FROM $3`,
    [appId, name, exceptId],
  );
}

const valuesOf = (
  terms: RecurringTerms,
  nextAt: Date | null,
  { name, tokenId }: PushCreator,
): unknown[] => [
  ...[terms.name, terms.expression, terms.timeZone, terms.startsAt, terms.endsAt, terms.isEnabled],
  ...[
    JSON.stringify(terms.body),
    JSON.stringify(terms.pushOrder),
    terms.notificationId,
    terms.lifeSeconds,
  ],
  ...[nextAt, name, tokenId],
];

export const insertRecurring = (
  tx: Handle,
  appId: string,
  { nextAt, by, ...terms }: RecurringTerms & { nextAt: Date | null; by: PushCreator },
) =>
  query(tx).one<RecurringPush>(
    `INSERT INTO recurring_push (app_id, name, expression, time_zone, starts_at, ends_at,
                                 is_enabled, body, request, notification_id, life_seconds, next_at,
                                 created_by, created_token, changed_by, changed_token)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9::jsonb, $10, $11, $12, $13, $14, $13, $14)
       RETURNING ${recurringColumns}`,
    [appId, ...valuesOf(terms, nextAt, by)],
  );

/** Changes a locked recurring push. Its counts stay. Runs before the change are not caught up. */
export const updateRecurring = (
  tx: Handle,
  { appId, id }: Pick<RecurringPush, 'appId' | 'id'>,
  { nextAt, by, ...terms }: RecurringTerms & { nextAt: Date | null; by: PushCreator },
) =>
  query(tx).one<RecurringPush>(
    `UPDATE recurring_push SET name = $2, expression = $3, time_zone = $4, starts_at = $5,
            ends_at = $6, is_enabled = $7, body = $8::jsonb, request = $9::jsonb,
            notification_id = $10, life_seconds = $11, next_at = $12, changed_by = $13,
            changed_token = $14, changed_at = now()
      WHERE app_id = $1 AND id = $15 RETURNING ${recurringColumns}`,
    [appId, ...valuesOf(terms, nextAt, by), id],
  );

export const deleteRecurring = (tx: Handle, appId: string, id: number) =>
  query(tx).run('DELETE FROM recurring_push WHERE app_id = $1 AND id = $2', [appId, id]);

/** Lists recurring pushes that are due by the database's clock. Takes no lock. */
export const listDueRecurring = (db: Handle, limit: number) =>
  query(db).rows<PushKey>(
    `SELECT app_id AS "appId", id FROM recurring_push WHERE next_at <= now() ORDER BY next_at
      LIMIT $1`,
    [limit],
  );

/** Locks a recurring push, if it is due and not locked. `now` is the database's time. */
export const lockDueRecurring = (tx: Handle, appId: string, id: number) =>
  query(tx).row<RecurringPush & { nextAt: Date; now: Date }>(
    `SELECT ${recurringColumns}, now()::timestamptz(3) AS now FROM recurring_push
      WHERE app_id = $1 AND id = $2 AND next_at <= now() FOR UPDATE SKIP LOCKED`,
    [appId, id],
  );

/** Counts the unfinished pushes of a recurring push. */
export const countOpenStarts = (db: Handle, appId: string, id: number) =>
  query(db).number(
    `SELECT count(*) AS n FROM notification
      WHERE app_id = $1 AND recurring_id = $2
        AND state IN ('scheduled', 'queued', 'sending', 'paused')`,
    [appId, id],
  );

/** Counts of a pass over a recurring push, and its last push. */
interface SavedStarts {
  /** Time of the next run; undefined if it does not change. */
  nextAt?: Date | null;
  /** Scheduled time and objectId of the push that was created. */
  made?: { at: Date; objectId: string } | undefined;
  missed?: number;
  heldBack?: number;
}

/** Saves what a pass did with a locked recurring push. */
export const saveStarts = (
  tx: Handle,
  { appId, id }: Pick<RecurringPush, 'appId' | 'id'>,
  { nextAt, made, missed = 0, heldBack = 0 }: SavedStarts,
) =>
  query(tx).run(
    `UPDATE recurring_push SET next_at = CASE WHEN $3 THEN $4::timestamptz ELSE next_at END,
            last_at = coalesce($5, last_at), last_push = coalesce($6, last_push),
            starts = starts + $7, missed = missed + $8, held_back = held_back + $9
      WHERE app_id = $1 AND id = $2`,
    [
      appId,
      id,
      nextAt !== undefined,
      nextAt,
      made?.at,
      made?.objectId,
      made ? 1 : 0,
      missed,
      heldBack,
    ],
  );

/**
 * Counts the pending scheduled pushes of an app, and blocks new ones until `tx` ends. So the limit
 * is exact under concurrent calls (protocol/push.md#scheduled-pushes).
 */
export async function countScheduledLocked(tx: Handle, appId: string): Promise<number> {
  await lockAppRow(tx, appId);
  return countScheduled(tx, appId);
}

/**
 * Inserts the entry of a scheduled push. The call that cancels the push uses the entry's integer
 * id.
 */
export const insertScheduledPush = (tx: Handle, appId: string, pushId: number, pushTime: Date) =>
  query(tx).run('INSERT INTO scheduled_push (app_id, push_id, push_time) VALUES ($1, $2, $3)', [
    appId,
    pushId,
    pushTime,
  ]);

/** Lists the pending entries of an app by id. The app's limit bounds their number. */
export const listScheduled = (db: Handle, appId: string) =>
  query(db).rows<ScheduledPush>(`${entries} ORDER BY s.id`, [appId]);

const entries = `SELECT ${recordColumns}, s.id AS "entryId"
   FROM scheduled_push s JOIN notification n ON n.app_id = s.app_id AND n.id = s.push_id
  WHERE s.app_id = $1 AND n.state = 'scheduled'`;

/** Lists pending entries of an app, next one first, starting after `after`. */
export const listScheduledPage = (
  db: Handle,
  appId: string,
  { after, limit }: { after: { pushTime: Date; id: number } | null; limit: number },
) =>
  query(db).rows<ScheduledPush>(
    `${entries} AND ($2::timestamptz IS NULL OR (s.push_time, s.id) > ($2, $3::bigint))
      ORDER BY s.push_time, s.id LIMIT $4`,
    [appId, after?.pushTime, after?.id, limit],
  );

/** Finds a pending entry, and locks it until the transaction ends. */
export async function lockScheduled(
  tx: Handle,
  appId: string,
  entryId: number,
): Promise<ScheduledPush | undefined> {
  // The scheduler locks in the same order: the entry first.
  await tx.query('SELECT 1 FROM scheduled_push WHERE app_id = $1 AND id = $2 FOR UPDATE', [
    appId,
    entryId,
  ]);
  return query(tx).row(`${entries} AND s.id = $2`, [appId, entryId]);
}

/** Moves a locked entry to another time. */
export async function moveScheduled(
  tx: Handle,
  { appId, id, entryId }: ScheduledPush,
  { pushTime, expiresAt }: Pick<Push, 'pushTime' | 'expiresAt'>,
): Promise<void> {
  await tx.query('UPDATE scheduled_push SET push_time = $3 WHERE app_id = $1 AND id = $2', [
    appId,
    entryId,
    pushTime,
  ]);
  await tx.query(
    'UPDATE notification SET push_time = $3, expires_at = $4, updated_at = now() WHERE app_id = $1 AND id = $2',
    [appId, id, pushTime, expiresAt],
  );
}

/**
 * Cancels a pending entry. Returns the public id of its push; undefined if it does not exist. The
 * transaction that deletes the entry decides whether the push is cancelled or sent. A concurrent
 * scheduler waits for it.
 */
export const cancelScheduled = (tx: Handle, appId: string, entryId: number) =>
  query(tx).value<string>(
    `WITH entry AS (DELETE FROM scheduled_push WHERE app_id = $1 AND id = $2 RETURNING push_id)
     UPDATE notification n SET state = 'cancelled', updated_at = now(), finished_at = now()
       FROM entry WHERE n.app_id = $1 AND n.id = entry.push_id AND n.state = 'scheduled'
      RETURNING n.object_id`,
    [appId, entryId],
  );

const dueEntries =
  'SELECT app_id, id FROM scheduled_push WHERE push_time <= now() ORDER BY push_time, app_id, id LIMIT $1';

const takeEntries = `
  WITH due AS MATERIALIZED (
    SELECT id FROM scheduled_push WHERE app_id = $1 AND id = ANY($2::bigint[])
      AND push_time <= now()
     ORDER BY push_time FOR UPDATE SKIP LOCKED),
  entry AS (DELETE FROM scheduled_push s USING due WHERE s.app_id = $1 AND s.id = due.id
    RETURNING s.push_id)
  UPDATE notification n SET state = 'queued', updated_at = now()
    FROM entry WHERE n.app_id = $1 AND n.id = entry.push_id AND n.state = 'scheduled'
  RETURNING n.id`;

const toNext = prepare(
  'SELECT extract(epoch FROM min(push_time) - clock_timestamp())::float8 * 1000 AS ms FROM scheduled_push',
);

/**
 * Returns the time until the next entry is due by the database's clock. Infinity without an entry.
 */
export async function msToNextPush(db: Handle): Promise<number> {
  return (await query(db).value<number | null>(toNext)) ?? Number.POSITIVE_INFINITY;
}

/**
 * Deletes entries that are due by the database's clock. Returns their pushes, whose state is now
 * `queued`.
 */
export async function takeDuePushes(
  tx: Handle,
  limit: number,
): Promise<{ appId: string; pushId: number }[]> {
  return forEachApp(tx, { text: dueEntries, values: [limit] }, async (appId, ids) => {
    const taken = await query(tx).column<number>(takeEntries, [appId, ids]);
    return taken.map((pushId) => ({ appId, pushId }));
  });
}

/** Approval of a push to many devices. The push waits while `givenAt` is null. */
export interface Approval {
  /**
   * Number of devices above which the app requires an approval. Null if it was given before
   * planning.
   */
  above: number | null;
  /** The first of two operators who approve a push that an app sent with its own keys. */
  firstBy: string | null;
  firstAt: Date | null;
  givenBy: string | null;
  givenAt: Date | null;
}

const approvalColumns = `above, first_by AS "firstBy", first_at AS "firstAt", given_by AS "givenBy", given_at AS "givenAt"`;

/** Finds the approval of a push. Undefined if none was requested or given. */
export const findApproval = (db: Handle, { appId, id }: PushKey) =>
  query(db).row<Approval>(
    `SELECT ${approvalColumns} FROM push_approval WHERE app_id = $1 AND push_id = $2`,
    [appId, id],
  );

/**
 * Pauses a push when its planning begins, and holds its planning until it is approved. Returns
 * false without a change if the push was already approved or stopped.
 */
export const askForApproval = (tx: Handle, { appId, id }: PushKey, above: number) =>
  query(tx).hasRows(
    `WITH asked AS (
       INSERT INTO push_approval AS a (app_id, push_id, above) VALUES ($1, $2, $3)
       ON CONFLICT (app_id, push_id) DO UPDATE SET above = excluded.above WHERE a.given_at IS NULL
       RETURNING 1)
     UPDATE notification SET state = 'paused', is_plan_held = true, updated_at = now() FROM asked
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending') AND planned_through = 0
        AND NOT is_planned`,
    [appId, id, above],
  );

/** Locks an unfinished push, and returns its approval. Returns undefined if it is finished. */
export async function lockForApproval(
  tx: Handle,
  { appId, id }: PushKey,
): Promise<{ isPaused: boolean; approval: Approval | undefined } | undefined> {
  const push = await query(tx).row<{ isPaused: boolean }>(
    `SELECT state = 'paused' AS "isPaused" FROM notification WHERE app_id = $1 AND id = $2
        AND state IN ('scheduled', 'queued', 'sending', 'paused') FOR UPDATE`,
    [appId, id],
  );
  return push && { ...push, approval: await findApproval(tx, { appId, id }) };
}

/** Records the first of two operators who approve a locked push. */
export const saveFirstApproval = (tx: Handle, { appId, id }: PushKey, by: string) =>
  query(tx).run(
    `INSERT INTO push_approval AS a (app_id, push_id, first_by, first_at) VALUES ($1, $2, $3, now())
     ON CONFLICT (app_id, push_id) DO UPDATE SET first_by = excluded.first_by,
       first_at = excluded.first_at`,
    [appId, id, by],
  );

/**
 * Approves a locked push. If the push was waiting for the approval, resumes it and returns
 * `resumed`. If it is not planned yet, returns `noted`.
 */
export async function giveApproval(
  tx: Handle,
  { appId, id }: PushKey,
  { by, isPaused }: { by: string; isPaused: boolean },
): Promise<'resumed' | 'noted'> {
  const above = await query(tx).value<number | null>(
    `INSERT INTO push_approval AS a (app_id, push_id, given_by, given_at) VALUES ($1, $2, $3, now())
     ON CONFLICT (app_id, push_id) DO UPDATE SET given_by = excluded.given_by,
       given_at = excluded.given_at
     RETURNING above`,
    [appId, id, by],
  );
  if (above === null || !isPaused) return 'noted';
  await tx.query(
    `UPDATE notification SET state = 'sending', updated_at = now() WHERE app_id = $1 AND id = $2`,
    [appId, id],
  );
  return 'resumed';
}

/**
 * Lists apps with pushes that have waited for an approval since before a time, longest wait first.
 */
export const listWaitingApprovals = (db: Handle, limit: number) =>
  query(db).rows<{ appId: string; pushes: number; since: Date }>(
    `SELECT a.app_id AS "appId", count(*) AS pushes, min(a.asked_at) AS since
       FROM push_approval a JOIN notification n ON n.app_id = a.app_id AND n.id = a.push_id
      WHERE a.above IS NOT NULL AND a.given_at IS NULL AND n.state = 'paused' GROUP BY a.app_id
        ORDER BY since LIMIT $1`,
    [limit],
  );

/** Returns the given pushes of an app that wait for an approval. */
export async function findWaitingForApproval(
  db: Handle,
  appId: string,
  ids: readonly number[],
): Promise<Set<number>> {
  if (ids.length === 0) return new Set();
  const waiting = await query(db).column<number>(
    `SELECT push_id FROM push_approval
      WHERE app_id = $1 AND push_id = ANY($2::bigint[]) AND above IS NOT NULL AND given_at IS NULL`,
    [appId, ids],
  );
  return new Set(waiting);
}

/**
 * Starts of a push at local time: the current one, and the one before it, which is null before the
 * first.
 */
interface LocalProgress {
  after: Date | null;
  at: Date | null;
}

/** Reads the starts of a push at local time, and the database's time in epoch ms. */
export async function readLocalProgress(
  db: Handle,
  { appId, id }: PushKey,
): Promise<LocalProgress & { nowMs: number }> {
  const progress = await query(db).row<LocalProgress & { nowMs: number }>(
    `SELECT local_after AS after, local_at AS at,
      (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs"
       FROM notification WHERE app_id = $1 AND id = $2`,
    [appId, id],
  );
  if (!progress) throw new Error('the push was deleted');
  return progress;
}

interface LocalStep {
  from: number;
  through: number;
  devices: number;
  /** The current start in its stored form, and its time. */
  storedAt: Date | null;
  at: Date;
  /** True if the step completes the start. */
  isLast: boolean;
  /** The next start. Null with the last step of the last start. */
  next: Date | null;
}

const advanceStatement = prepare(
  `UPDATE notification
      SET state = 'sending', planned_through = CASE WHEN $7 THEN 0 ELSE $4 END,
          devices = devices + $5, is_planned = $7 AND $9::timestamptz IS NULL,
          local_after = CASE WHEN $7 THEN $8::timestamptz ELSE local_after END,
          local_at = CASE WHEN $7 THEN $9::timestamptz ELSE local_at END,
          push_time = CASE WHEN $7 AND devices + $5 = 0 THEN greatest(push_time,
          $9::timestamptz) ELSE push_time END, updated_at = now()
    WHERE app_id = $1 AND id = $2 AND planned_through = $3 AND NOT is_planned
      AND state IN ('queued', 'sending')
      AND local_at IS NOT DISTINCT FROM $6::timestamptz`,
);

/**
 * Moves the planning cursor of a push at local time, like `advancePlanning`. After the last page of
 * a start it moves to the next start. As long as no device was found, `push_time` moves too.
 */
export function advanceLocalPlanning(
  tx: Handle,
  { appId, id }: PushKey,
  { from, through, devices, storedAt, isLast, at, next }: LocalStep,
): Promise<boolean> {
  const values = [appId, id, from, through, devices, storedAt, isLast, at, next];
  return query(tx).hasRows(advanceStatement, values);
}

/** Returns the given installations that already have a batch, in the order of ids. */
export const findPlanned = (tx: Handle, { appId, id }: PushKey, installations: readonly number[]) =>
  query(tx).column<number>(
    `SELECT DISTINCT r.id FROM push_batch b CROSS JOIN LATERAL unnest(b.recipients) AS r (id)
      WHERE b.app_id = $1 AND b.push_id = $2 AND r.id = ANY($3::bigint[])
        AND b.recipients[1] <= $5 AND b.recipients[cardinality(b.recipients)] >= $4`,
    [appId, id, `{${installations.join(',')}}`, installations[0] ?? 0, installations.at(-1) ?? 0],
  );

/**
 * Lists the next `limit` pushes of an app that are scheduled before a time, and counts all of them.
 */
export async function listScheduledBefore(
  db: Handle,
  appId: string,
  { until, limit }: { until: Date; limit: number },
): Promise<{ pushes: Push[]; count: number }> {
  const rows = await query(db).rows<Push & { total: number }>(
    `SELECT ${pushColumns}, (count(*) OVER ())::bigint AS total
       FROM scheduled_push s JOIN notification n ON n.app_id = s.app_id AND n.id = s.push_id
      WHERE s.app_id = $1 AND n.state = 'scheduled' AND s.push_time < $2 ORDER BY s.push_time, s.id
        LIMIT $3`,
    [appId, until, limit],
  );
  return { pushes: rows.map(({ total: _, ...push }) => push), count: rows[0]?.total ?? 0 };
}
