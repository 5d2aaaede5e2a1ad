import type { Usage } from '../../domain/apps/usage.ts';
import { storedFormsOfToken } from '../../domain/installations/identity.ts';
import type { RoutingKey } from '../../domain/installations/installation.ts';
import { type Outcome, outcomeOfCode, retriedCode } from '../../domain/outcome.ts';
import type { Push, PushState } from '../../domain/pushes/record.ts';
import type { Handle } from '../pool.ts';
import { membersOf, prepare } from '../prepared.ts';
import { type PageBefore, query } from '../query.ts';
import { isPendingInGroup } from './channel-messages.ts';
import type { BatchSnapshot } from './push-progress.ts';
import { listedPushColumns, type PushKey } from './pushes.ts';
import { localeExpression, traitColumns } from './routing-keys.ts';

/** Filters of the operator's list of pushes. */
export interface PushFilter {
  states?: readonly PushState[] | undefined;
  /** `from-service` of the record. */
  source?: string | undefined;
  /** The recurring push that created the pushes. */
  recurring?: number | undefined;
  /** Part of the content, ignoring case, or an id. */
  text?: string | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/**
 * Ids are in the order of acceptance, except within this tolerance: inserts may be slow, and clocks
 * may differ. So a filter by time reads ids up to 15 minutes outside of its range.
 */
const disorder = "interval '15 minutes'";

/**
 * Translates a range of times into a range of ids, which limits the scan of the primary key. With
 * the time alone, a list that ends days ago would read all newer pushes first. The index of
 * `created_at` provides the limits.
 */
const conditions = `app_id = $1 AND ($2::text[] IS NULL OR state = ANY($2))
  AND ($3::text IS NULL OR from_service = $3)
  AND ($4::text IS NULL OR object_id = $4 OR notification_id = $4
       OR position(lower($5) IN lower(request ->> 'data')) > 0)
  AND ($6::timestamptz IS NULL OR created_at >= $6 AND id > coalesce((
        SELECT id FROM notification WHERE created_at < $6 - ${disorder} ORDER BY created_at DESC
          LIMIT 1), 0))
  AND ($7::timestamptz IS NULL OR created_at < $7 AND id < coalesce((
        SELECT id FROM notification WHERE created_at >= $7 + ${disorder} ORDER BY created_at
          LIMIT 1), 9223372036854775807))
  AND ($8::bigint IS NULL OR recurring_id = $8)`;

/** Values of `conditions`; the content is stored as JSON text. */
const valuesOf = (
  appId: string,
  { states, source, text, from, to, recurring }: PushFilter,
): unknown[] => {
  const inJson = text === undefined ? null : JSON.stringify(text).slice(1, -1);
  return [appId, states, source, text, inJson, from, to, recurring];
};

/** Lists pushes of an app, newest first. Includes cancelled pushes. */
export const listPushPage = (db: Handle, appId: string, filter: PushFilter, page: PageBefore) =>
  query(db).rows<Push>(
    `SELECT ${listedPushColumns} FROM notification n WHERE ${conditions}
      AND ($9::bigint IS NULL OR id < $9)
      ORDER BY id DESC LIMIT $10`,
    [...valuesOf(appId, filter), page.before, page.limit],
  );

/** Counts the pushes that match, up to `limit`. */
export const countPushPage = (db: Handle, appId: string, filter: PushFilter, limit: number) =>
  query(db).number(
    `SELECT count(*) AS n FROM (SELECT 1 FROM notification WHERE ${conditions} LIMIT $9) AS found`,
    [...valuesOf(appId, filter), limit],
  );

/**
 * Lists pushes that meet a condition, newest first. `apps` null: of all apps. The condition is our
 * SQL.
 */
const listOpen =
  (condition: string) => (db: Handle, apps: readonly string[] | null, limit: number) =>
    query(db).rows<Push>(
      `SELECT ${listedPushColumns} FROM notification n
        WHERE ${condition} AND ($1::text[] IS NULL OR app_id = ANY($1)) ORDER BY id DESC LIMIT $2`,
      [apps, limit],
    );

/** Lists pushes that are not done (`listOpen`). */
export const listRunning = listOpen(`state IN ('queued', 'sending', 'paused')`);

/** Lists pushes that wait for an approval (`listOpen`). */
export const listWaitingForApproval = listOpen(
  `state = 'paused' AND EXISTS (SELECT FROM push_approval a WHERE a.app_id = n.app_id
                                   AND a.push_id = n.id AND a.above IS NOT NULL
                                     AND a.given_at IS NULL)`,
);

/** Counts the scheduled pushes of several apps. Null: of all apps. */
export const countScheduledOf = (db: Handle, apps: readonly string[] | null) =>
  query(db).number(
    'SELECT count(*) AS n FROM scheduled_push WHERE $1::text[] IS NULL OR app_id = ANY($1)',
    [apps],
  );

/** A push with its totals, and the profiles that it stopped using. */
export type RecentPush = Pick<
  Push,
  'appId' | 'id' | 'totals' | 'acked' | 'profileErrors' | 'createdAt'
>;

/** Returns the newest `limit` pushes that were accepted since a time, newest first. */
export const readRecentPushes = (
  db: Handle,
  apps: readonly string[] | null,
  { since, limit }: { since: Date; limit: number },
) =>
  query(db).rows<RecentPush>(
    `SELECT app_id AS "appId", id, totals, acked, halts AS "profileErrors",
            created_at AS "createdAt"
       FROM notification
      WHERE created_at >= $2 AND ($1::text[] IS NULL OR app_id = ANY($1)) AND state <> 'scheduled'
      ORDER BY created_at DESC LIMIT $3`,
    [apps, since, limit],
  );

/** Returns the usage of several apps on a day (UTC). Null: of all apps. */
export const readUsageOf = (db: Handle, apps: readonly string[] | null, day: string) =>
  query(db).one<Usage>(
    `SELECT coalesce(sum(calls), 0)::bigint AS calls,
            coalesce(max(peak_calls_per_minute), 0) AS "peakCallsPerMinute",
            coalesce(sum(recipients), 0)::bigint AS recipients
       FROM usage_day WHERE day = $2::date AND ($1::text[] IS NULL OR app_id = ANY($1))`,
    [apps, day],
  );

/**
 * Returns the setup state of an app: whether a first push is possible, and whether one was ever
 * sent.
 */
export const readSetup = (db: Handle, appId: string) =>
  query(db).one<{ hasProfile: boolean; hasDevice: boolean; hasPush: boolean }>(
    `SELECT EXISTS (SELECT FROM push_profile WHERE app_id = $1) AS "hasProfile",
            EXISTS (SELECT FROM installation WHERE app_id = $1) AS "hasDevice",
            EXISTS (SELECT FROM notification WHERE app_id = $1)
              OR EXISTS (SELECT FROM usage_day WHERE app_id = $1 AND recipients > 0) AS "hasPush"`,
    [appId],
  );

/** Adds recipients by a key of the push: a language or a variable. */
type Counts = Readonly<Record<string, { devices: number; fallback: number }>>;

const addStatement = (column: 'languages' | 'variables') =>
  prepare(
    `UPDATE notification n
        SET ${column} = (
          SELECT jsonb_object_agg(l.key, l.counts)
            FROM (SELECT a.key, jsonb_build_object('devices', sum((a.value ->> 'devices')::bigint),
                                                   'fallback', sum((a.value ->>
                                        'fallback')::bigint)) AS counts
                    FROM (SELECT * FROM jsonb_each(coalesce(n.${column}, '{}'))
                          UNION ALL SELECT * FROM jsonb_each($3::jsonb)) AS a
                   GROUP BY a.key) AS l)
      WHERE n.app_id = $1 AND n.id = $2`,
  );
const addStatements = {
  languages: addStatement('languages'),
  variables: addStatement('variables'),
};

/** Adds the recipients of a page, in the transaction that writes their batches. */
export async function addCounts(
  tx: Handle,
  { appId, id }: PushKey,
  column: keyof typeof addStatements,
  counts: Counts,
): Promise<void> {
  if (Object.keys(counts).length === 0) return;
  await tx.query(addStatements[column], [appId, id, JSON.stringify(counts)]);
}

/** Reads the planned recipients of pushes by language or variable, by push id. */
export async function readCounts(
  db: Handle,
  appId: string,
  { column, ids }: { column: keyof typeof addStatements; ids: readonly number[] },
): Promise<Map<number, Counts>> {
  const rows = await query(db).rows<{ id: number; counts: Counts }>(
    `SELECT id, ${column} AS counts FROM notification
      WHERE app_id = $1 AND id = ANY($2::bigint[]) AND ${column} IS NOT NULL`,
    [appId, ids],
  );
  return new Map(rows.map(({ id, counts }) => [id, counts]));
}

/** Adds to the number of recipients of a push that wait for the end of their quiet hours. */
export async function addQuietWaits(
  tx: Handle,
  { appId, id }: PushKey,
  recipients: number,
): Promise<void> {
  if (recipients === 0) return;
  await tx.query(
    'UPDATE notification SET quiet_waits = coalesce(quiet_waits, 0) + $3 WHERE app_id = $1 AND id = $2',
    [appId, id, recipients],
  );
}

/** A batch that waits, its state as it was read, and the end of its wait. */
interface QuietWait {
  appId: string;
  pushId: number;
  batchId: number;
  stored: Pick<BatchSnapshot, 'quietUntil' | 'open'>;
  until: Date;
}

/** Records that a batch waits for the end of quiet hours. Counts its recipients the first time. */
export async function recordQuietWait(
  tx: Handle,
  { appId, pushId, batchId, stored, until }: QuietWait,
): Promise<void> {
  const isNoted = await query(tx).hasRows(
    `UPDATE push_batch SET quiet_until = $3
      WHERE app_id = $1 AND id = $2 AND NOT is_settled AND quiet_until IS NOT DISTINCT FROM $4`,
    [appId, batchId, until, stored.quietUntil],
  );
  if (isNoted && stored.quietUntil === null)
    await addQuietWaits(tx, { appId, id: pushId }, stored.open);
}

/** A device in a push trace. */
export interface TracedDevice extends RoutingKey {
  id: number;
  object_id: string;
  valid: boolean;
  time_zone: string | null;
  locale: string | null;
  /** Host of the endpoint, and id of the VAPID key, of a Web Push subscription. Null without one. */
  push_service: string | null;
  push_key: string | null;
  created_at: Date;
  updated_at: Date;
}

/** Finds a device by its objectId, otherwise by its installationId or device token. */
export const findDevice = (db: Handle, appId: string, name: string) =>
  query(db).row<TracedDevice>(
    `SELECT id, object_id, valid, time_zone, ${localeExpression} AS locale, created_at, updated_at,
      CASE WHEN subscription_keys IS NOT NULL
        THEN substring(registration_id FROM '^https://([^/]+)') END AS push_service,
      nullif(split_part(subscription_keys, '.', 3), '') AS push_key, ${traitColumns}
       FROM installation WHERE app_id = $1 AND (object_id = $2 OR installation_id = $2
         OR device_token = ANY($3))
      ORDER BY object_id = $2 DESC, (installation_id = $2) IS TRUE DESC LIMIT 1`,
    [appId, name, storedFormsOfToken(name)],
  );

/**
 * Evaluates each condition on an installation. The conditions are SQL of the query compiler. NULL
 * counts as false. Returns undefined if the installation was deleted.
 */
export function testConditions(
  db: Handle,
  id: number,
  { conditions, values }: { conditions: string[]; values: unknown[] },
): Promise<boolean[] | undefined> {
  const tests = conditions.map((condition) => `(${condition}) IS TRUE`);
  return query(db).value(
    `SELECT ARRAY[${tests.join(', ')}]::boolean[] AS holds FROM installation
      WHERE app_id = $1 AND id = $${values.length + 1}`,
    [...values, id],
  );
}

/** A batch that contains a device, with the outcome of the device. */
export interface TracedBatch {
  id: number;
  connector: string;
  profile: string;
  /** Translation for its recipients. Null: `data` unchanged. */
  language: string | null;
  /**
   * Quiet hours of its recipients (`quietRule`), and the end of the quiet hours for which they
   * waited.
   */
  quiet: string | null;
  quietUntil: Date | null;
  attempt: number;
  /** Number of unanswered requests to its recipients before this batch. */
  unanswered: number;
  /** Reason of the failure before this batch. */
  lastReason: string | null;
  isSettled: boolean;
  settledAt: Date | null;
  /** Null while the recipient is open. */
  outcome: Outcome | null;
}

/**
 * Finds the newest batch of a push that contains an installation. A retry is a separate batch.
 * Reads all batches of the push, because their recipients have no index.
 */
export async function findBatchOfDevice(
  db: Handle,
  push: PushKey,
  installation: number,
): Promise<TracedBatch | undefined> {
  const row = await query(db).row<Omit<TracedBatch, 'outcome'> & { code: number | null }>(
    `SELECT ${membersOf('b', tracedColumns)},
      get_byte(settled, array_position(recipients, $3::bigint) - 1) AS code
       FROM push_batch b WHERE app_id = $1 AND push_id = $2 AND recipients @> ARRAY[$3::bigint]
      ORDER BY attempt DESC, id DESC LIMIT 1`,
    [push.appId, push.id, installation],
  );
  if (!row) return undefined;
  const { code, ...batch } = row;
  const isOpen = code === null || code === retriedCode;
  return { ...batch, outcome: isOpen ? null : (outcomeOfCode(code) ?? null) };
}

const tracedColumns = `id, connector, profile, language, quiet, quiet_until, attempt, unanswered, last_reason,
  is_settled, settled_at`;

export interface TracedFailure {
  installation: number;
  connector: string;
  outcome: Outcome;
  status: number;
  reason: string;
  createdAt: Date;
}

/**
 * Finds the failure of a device. Searches by its public id too, in case the device was deleted
 * because of the failure.
 */
export function findFailure(
  db: Handle,
  push: PushKey,
  device: { id: number } | { objectId: string },
): Promise<TracedFailure | undefined> {
  const [column, value] =
    'id' in device
      ? (['installation', device.id] as const)
      : (['object_id', device.objectId] as const);
  return query(db).row(
    `SELECT installation, connector, outcome, status, reason, created_at AS "createdAt"
       FROM push_failure WHERE app_id = $1 AND push_id = $2 AND ${column} = $3 LIMIT 1`,
    [push.appId, push.id, value],
  );
}

/** Returns whether a message of a push waits for a device on the device channel. */
export const hasPendingMessage = (db: Handle, push: PushKey, installation: number) =>
  query(db).hasRows(
    `SELECT FROM channel_inbox WHERE app_id = $1 AND installation = $2 AND push_id = $3
     UNION ALL
     SELECT FROM channel_group g WHERE g.app_id = $1 AND g.push_id = $3
       AND ${isPendingInGroup('$2::bigint')}`,
    [push.appId, installation, push.id],
  );
