import type { ConnectorTotals, Push, PushState } from '../../../../domain/pushes/record.ts';
import type { Handle } from '../../../pool.ts';
import { type PushRow, toPush } from '../pushes.ts';

/** Filters of the operator's list of pushes. */
export interface PushFilter {
  states?: readonly PushState[] | undefined;
  /** `from-service` of the record. */
  source?: string | undefined;
  /** Recurring push that they were made from. */
  recurring?: number | undefined;
  /** Part of the content in any case, or an id. */
  text?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/**
 * Time between the call of a push and its row, and by which clocks of processes differ, at most. Ids follow the times of
 * acceptance but for this.
 */
const disorder = "interval '15 minutes'";

/** Listed device ids are not read: a push may have thousands. */
const columns = `app_id, id, object_id, notification_id, state, error,
  jsonb_set(request, '{target,deviceIds}', '[]', false) AS request, from_service, created_by, created_token, push_time, expires_at,
  planned_through, is_planned, devices, totals, acked, repeats, displaced, halts, redriven, quiet_waits, created_at, updated_at,
  first_sent_at, finished_at`;

/**
 * A range of times is also one of ids, which bounds the scan of the primary key: with the time alone a list that ends days
 * ago would read all newer pushes first. The bounds come from the index of `created_at`.
 */
const conditions = `app_id = $1 AND ($2::text[] IS NULL OR state = ANY($2)) AND ($3::text IS NULL OR from_service = $3)
  AND ($4::text IS NULL OR object_id = $4 OR notification_id = $4
       OR position(lower($5) IN lower(request ->> 'data')) > 0)
  AND ($6::timestamptz IS NULL OR created_at >= $6 AND id > coalesce((
        SELECT id FROM notification WHERE created_at < $6 - ${disorder} ORDER BY created_at DESC LIMIT 1), 0))
  AND ($7::timestamptz IS NULL OR created_at < $7 AND id < coalesce((
        SELECT id FROM notification WHERE created_at >= $7 + ${disorder} ORDER BY created_at LIMIT 1), 9223372036854775807))
  AND ($8::bigint IS NULL OR recurring_id = $8)`;

const valuesOf = (appId: string, { states, source, text, from, to, recurring }: PushFilter): unknown[] => [
  appId,
  states ?? null,
  source ?? null,
  text ?? null,
  // The content is stored as JSON text.
  text === undefined ? null : JSON.stringify(text).slice(1, -1),
  from ?? null,
  to ?? null,
  recurring ?? null,
];

/** Lists pushes of an app, cancelled ones included, the newest first. */
export async function listPushPage(
  db: Handle,
  appId: string,
  filter: PushFilter,
  page: { before: number | null; limit: number },
): Promise<Push[]> {
  const { rows } = await db.query<PushRow>(
    `SELECT ${columns} FROM notification WHERE ${conditions} AND ($9::bigint IS NULL OR id < $9)
      ORDER BY id DESC LIMIT $10`,
    [...valuesOf(appId, filter), page.before, page.limit],
  );
  return rows.map(toPush);
}

/** Counts the pushes that match, up to `most`. */
export async function countPushPage(
  db: Handle,
  appId: string,
  filter: PushFilter,
  most: number,
): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*) AS n FROM (SELECT 1 FROM notification WHERE ${conditions} LIMIT $9) AS found`,
    [...valuesOf(appId, filter), most],
  );
  return rows[0]?.n ?? 0;
}

/** Lists pushes that are not done, the newest first; `apps` null for all apps. */
export async function listRunning(
  db: Handle,
  apps: readonly string[] | null,
  limit: number,
): Promise<Push[]> {
  const { rows } = await db.query<PushRow>(
    `SELECT ${columns} FROM notification
      WHERE state IN ('queued', 'sending', 'paused') AND ($1::text[] IS NULL OR app_id = ANY($1))
      ORDER BY id DESC LIMIT $2`,
    [apps, limit],
  );
  return rows.map(toPush);
}

/** Counts the scheduled pushes of several apps; null for all. */
export async function countScheduledOf(db: Handle, apps: readonly string[] | null): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    'SELECT count(*) AS n FROM scheduled_push WHERE $1::text[] IS NULL OR app_id = ANY($1)',
    [apps],
  );
  return rows[0]?.n ?? 0;
}

/** Lists pushes that wait for an approval, the newest first; `apps` null for all apps. */
export async function listWaitingForApproval(
  db: Handle,
  apps: readonly string[] | null,
  limit: number,
): Promise<Push[]> {
  const { rows } = await db.query<PushRow>(
    `SELECT ${columns} FROM notification
      WHERE state = 'paused' AND ($1::text[] IS NULL OR app_id = ANY($1))
        AND EXISTS (SELECT FROM push_approval a WHERE a.app_id = notification.app_id
                       AND a.push_id = notification.id AND a.above IS NOT NULL AND a.given_at IS NULL)
      ORDER BY id DESC LIMIT $2`,
    [apps, limit],
  );
  return rows.map(toPush);
}

/** Totals of a push; null while it is open and after a cancellation, when its batches have them. */
export interface RecentTotals {
  appId: string;
  id: number;
  totals: ConnectorTotals | null;
  /** Acknowledgements of the own channel. */
  acked: number;
}

/** Returns the totals of pushes that were accepted since a time, of the newest `limit` pushes. */
export async function readRecentTotals(
  db: Handle,
  apps: readonly string[] | null,
  { since, limit }: { since: Date; limit: number },
): Promise<RecentTotals[]> {
  const { rows } = await db.query<RecentTotals>(
    `SELECT app_id AS "appId", id, totals, acked FROM notification
      WHERE created_at >= $2 AND ($1::text[] IS NULL OR app_id = ANY($1)) AND state <> 'scheduled'
      ORDER BY created_at DESC LIMIT $3`,
    [apps, since, limit],
  );
  return rows;
}

/** Returns the usage of several apps on a day in UTC, null for all apps. */
export async function readUsageOf(
  db: Handle,
  apps: readonly string[] | null,
  day: string,
): Promise<{ calls: number; peakCallsPerMinute: number; recipients: number }> {
  const { rows } = await db.query<{ calls: number; peak: number; recipients: number }>(
    `SELECT coalesce(sum(calls), 0)::bigint AS calls, coalesce(max(peak_calls_per_minute), 0) AS peak,
            coalesce(sum(recipients), 0)::bigint AS recipients
       FROM usage_day WHERE day = $2::date AND ($1::text[] IS NULL OR app_id = ANY($1))`,
    [apps, day],
  );
  const [row] = rows;
  return { calls: row?.calls ?? 0, peakCallsPerMinute: row?.peak ?? 0, recipients: row?.recipients ?? 0 };
}

/** Tells what an app has: whether a first push is possible, and was ever sent. */
export async function readSetup(
  db: Handle,
  appId: string,
): Promise<{ hasProfile: boolean; hasDevice: boolean; hasPush: boolean }> {
  const { rows } = await db.query<{ hasProfile: boolean; hasDevice: boolean; hasPush: boolean }>(
    `SELECT EXISTS (SELECT FROM push_profile WHERE app_id = $1) AS "hasProfile",
            EXISTS (SELECT FROM installation WHERE app_id = $1) AS "hasDevice",
            EXISTS (SELECT FROM notification WHERE app_id = $1)
              OR EXISTS (SELECT FROM usage_day WHERE app_id = $1 AND recipients > 0) AS "hasPush"`,
    [appId],
  );
  return rows[0] ?? { hasProfile: false, hasDevice: false, hasPush: false };
}
