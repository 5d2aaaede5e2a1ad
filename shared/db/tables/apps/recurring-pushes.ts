import type { JsonObject } from '../../../domain/json.ts';
import type { PushOrder } from '../../../domain/pushes/push.ts';
import type { PushCreator } from '../../../domain/pushes/record.ts';
import type { Recurrence } from '../../../domain/pushes/recurrence.ts';
import type { Handle } from '../../pool.ts';

/** What a caller decides of a recurring push. */
export interface RecurringTerms extends Recurrence {
  name: string;
  isEnabled: boolean;
  /** Body of the push, as the caller wrote it. */
  body: JsonObject;
  /** Checked order that each start copies. */
  pushOrder: PushOrder;
  notificationId: string | null;
  /** Lifetime of each push; null for the default. */
  lifeSeconds: number | null;
}

/** A recurring push, as stored in the table `recurring_push`. */
export interface RecurringPush extends RecurringTerms {
  appId: string;
  id: number;
  /** Next start; null while disabled, and after the last one. */
  nextAt: Date | null;
  /** Times up to this one are not caught up: their pushes may have been sent before a restore. */
  skipBefore: Date | null;
  /** Time that the last push was made for, and its objectId. */
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

const columns = `app_id AS "appId", id, name, expression, time_zone AS "timeZone", starts_at AS "startsAt", ends_at AS "endsAt",
  is_enabled AS "isEnabled", body, request AS "pushOrder", notification_id AS "notificationId", life_seconds AS "lifeSeconds",
  next_at AS "nextAt", skip_before AS "skipBefore", last_at AS "lastAt", last_push AS "lastPush", starts, missed,
  held_back AS "heldBack", created_by AS "createdBy", created_token AS "createdToken", created_at AS "createdAt",
  changed_by AS "changedBy", changed_token AS "changedToken", changed_at AS "changedAt"`;

/** Lists recurring pushes of an app, the newest first. */
export async function listRecurring(
  db: Handle,
  appId: string,
  { before, limit }: { before: number | null; limit: number },
): Promise<RecurringPush[]> {
  const { rows } = await db.query<RecurringPush>(
    `SELECT ${columns} FROM recurring_push WHERE app_id = $1 AND ($2::bigint IS NULL OR id < $2)
      ORDER BY id DESC LIMIT $3`,
    [appId, before, limit],
  );
  return rows;
}

export async function findRecurring(
  db: Handle,
  appId: string,
  id: number,
): Promise<RecurringPush | undefined> {
  const { rows } = await db.query<RecurringPush>(
    `SELECT ${columns} FROM recurring_push WHERE app_id = $1 AND id = $2`,
    [appId, id],
  );
  return rows[0];
}

/** Finds a recurring push and locks it until `tx` ends; a dispatcher passes it over in this time. */
export async function lockRecurring(
  tx: Handle,
  appId: string,
  id: number,
): Promise<RecurringPush | undefined> {
  const { rows } = await tx.query<RecurringPush>(
    `SELECT ${columns} FROM recurring_push WHERE app_id = $1 AND id = $2 FOR UPDATE`,
    [appId, id],
  );
  return rows[0];
}

/**
 * Locks the recurring pushes of an app against others until `tx` ends. Returns their number and whether the name is taken,
 * both without `exceptId`; undefined without such an app.
 */
export async function lockRecurringNames(
  tx: Handle,
  appId: string,
  { name, exceptId }: { name: string; exceptId: number | null },
): Promise<{ count: number; isTaken: boolean } | undefined> {
  const locked = await tx.query('SELECT 1 FROM app WHERE app_id = $1 FOR NO KEY UPDATE', [appId]);
  if ((locked.rowCount ?? 0) === 0) return undefined;
  const { rows } = await tx.query<{ count: number; isTaken: boolean }>(
    `SELECT count(*) AS count, coalesce(bool_or(name = $2), false) AS "isTaken"
       FROM recurring_push WHERE app_id = $1 AND id IS DISTINCT FROM $3`,
    [appId, name, exceptId],
  );
  return rows[0];
}

const valuesOf = (terms: RecurringTerms, nextAt: Date | null, { name, tokenId }: PushCreator): unknown[] => [
  terms.name,
  terms.expression,
  terms.timeZone,
  terms.startsAt,
  terms.endsAt,
  terms.isEnabled,
  JSON.stringify(terms.body),
  JSON.stringify(terms.pushOrder),
  terms.notificationId,
  terms.lifeSeconds,
  nextAt,
  name,
  tokenId,
];

export async function insertRecurring(
  tx: Handle,
  appId: string,
  { nextAt, by, ...terms }: RecurringTerms & { nextAt: Date | null; by: PushCreator },
): Promise<RecurringPush> {
  const { rows } = await tx.query<RecurringPush>(
    `INSERT INTO recurring_push (app_id, name, expression, time_zone, starts_at, ends_at, is_enabled, body, request,
                                 notification_id, life_seconds, next_at, created_by, created_token, changed_by, changed_token)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9::jsonb, $10, $11, $12, $13, $14, $13, $14) RETURNING ${columns}`,
    [appId, ...valuesOf(terms, nextAt, by)],
  );
  const [row] = rows;
  if (!row) throw new Error('the database returned no recurring push');
  return row;
}

/** Changes a locked recurring push; its counts stay. Times before the change are not caught up. */
export async function updateRecurring(
  tx: Handle,
  { appId, id }: Pick<RecurringPush, 'appId' | 'id'>,
  { nextAt, by, ...terms }: RecurringTerms & { nextAt: Date | null; by: PushCreator },
): Promise<RecurringPush> {
  const { rows } = await tx.query<RecurringPush>(
    `UPDATE recurring_push SET name = $2, expression = $3, time_zone = $4, starts_at = $5, ends_at = $6, is_enabled = $7,
            body = $8::jsonb, request = $9::jsonb, notification_id = $10, life_seconds = $11, next_at = $12, changed_by = $13,
            changed_token = $14, changed_at = now()
      WHERE app_id = $1 AND id = $15 RETURNING ${columns}`,
    [appId, ...valuesOf(terms, nextAt, by), id],
  );
  const [row] = rows;
  if (!row) throw new Error('the database returned no recurring push');
  return row;
}

export async function deleteRecurring(tx: Handle, appId: string, id: number): Promise<void> {
  await tx.query('DELETE FROM recurring_push WHERE app_id = $1 AND id = $2', [appId, id]);
}

/** Lists recurring pushes that are due by the database's clock, without a lock. */
export async function listDueRecurring(db: Handle, limit: number): Promise<{ appId: string; id: number }[]> {
  const { rows } = await db.query<{ appId: string; id: number }>(
    `SELECT app_id AS "appId", id FROM recurring_push WHERE next_at <= now() ORDER BY next_at LIMIT $1`,
    [limit],
  );
  return rows;
}

/** Locks a recurring push that is still due; undefined where another process has it or had it. `now`: the database's time. */
export async function lockDueRecurring(
  tx: Handle,
  appId: string,
  id: number,
): Promise<(RecurringPush & { nextAt: Date; now: Date }) | undefined> {
  const { rows } = await tx.query<RecurringPush & { nextAt: Date; now: Date }>(
    `SELECT ${columns}, now()::timestamptz(3) AS now FROM recurring_push
      WHERE app_id = $1 AND id = $2 AND next_at <= now() FOR UPDATE SKIP LOCKED`,
    [appId, id],
  );
  return rows[0];
}

/** Counts the pushes of a recurring push that have not ended. */
export async function countOpenStarts(db: Handle, appId: string, id: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*) AS n FROM notification
      WHERE app_id = $1 AND recurring_id = $2 AND state IN ('scheduled', 'queued', 'sending', 'paused')`,
    [appId, id],
  );
  return rows[0]?.n ?? 0;
}

/** Counts of a pass over a recurring push, and its last push. */
export interface StartsNoted {
  /** Next start by the times; undefined where it stays. */
  nextAt?: Date | null;
  /** Time and objectId of the push that was made. */
  made?: { at: Date; objectId: string } | undefined;
  missed?: number;
  heldBack?: number;
}

/** Notes what was made of a locked recurring push. */
export async function noteStarts(
  tx: Handle,
  { appId, id }: Pick<RecurringPush, 'appId' | 'id'>,
  { nextAt, made, missed = 0, heldBack = 0 }: StartsNoted,
): Promise<void> {
  await tx.query(
    `UPDATE recurring_push SET next_at = CASE WHEN $3 THEN $4::timestamptz ELSE next_at END,
            last_at = coalesce($5, last_at), last_push = coalesce($6, last_push), starts = starts + $7,
            missed = missed + $8, held_back = held_back + $9
      WHERE app_id = $1 AND id = $2`,
    [
      appId,
      id,
      nextAt !== undefined,
      nextAt ?? null,
      made?.at ?? null,
      made?.objectId ?? null,
      made ? 1 : 0,
      missed,
      heldBack,
    ],
  );
}
