import type { PushOrder } from '../../domain/pushes/push.ts';
import type { OpenPush, Push, PushCreator } from '../../domain/pushes/record.ts';
import type { Database, Handle } from '../pool.ts';
import { membersOf, prepare } from '../prepared.ts';
import { listsOf, query } from '../query.ts';
import { type AppRow, AppStatement, forEachApp } from '../sharding.ts';
import type { RowCondition } from './selection.ts';

export interface NewPush {
  appId: string;
  objectId: string;
  notificationId: string;
  state: 'scheduled' | 'queued';
  pushOrder: PushOrder;
  pushTime: Date;
  expiresAt: Date;
  createdAt: Date;
  /** Caller of the admin API. Absent if the app itself sent the push. */
  sender?: PushCreator | undefined;
  /** Span of the call, as `traceparent`. Absent without tracing. */
  traceParent?: string | undefined;
}

/**
 * Inserts pushes from one parameter: their JSON list. An expiry may be in the year 0, which the text
 * of a time in PostgreSQL cannot name.
 */
const insertStatement =
  prepare(`INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
                             push_time, expires_at, created_at, updated_at, from_service,
                             created_by, created_token, trace_parent, redrive_of, recurring_id,
                             recall_of)
   SELECT "appId", "objectId", "notificationId", state, "pushOrder", "pushOrder" ->> 'prod',
          "pushTime", to_timestamp("expiresAt" / 1000), "createdAt", "createdAt",
          CASE WHEN sender IS NULL THEN 'push'
               WHEN "pushOrder" ? 'recurring' THEN 'recurring' ELSE 'console' END,
          sender ->> 'name', (sender ->> 'tokenId')::bigint, "traceParent",
          ("pushOrder" #>> '{redrive,pushId}')::bigint, ("pushOrder" #>> '{recurring,id}')::bigint,
          ("pushOrder" #>> '{recall,pushId}')::bigint
     FROM json_to_recordset($1::json) AS p (
       "appId" text, "objectId" text, "notificationId" text, state text, "pushOrder" jsonb,
       "pushTime" timestamptz, "expiresAt" float8, "createdAt" timestamptz, sender jsonb,
       "traceParent" text)
   RETURNING app_id AS "appId", id, object_id AS "objectId"`);

/** Inserts pushes, which may be of several apps. Returns their internal ids in the same order. */
export async function insertPushes(tx: Handle, pushes: readonly NewPush[]): Promise<number[]> {
  const rows = await query(tx).rows<PushKey & { objectId: string }>(insertStatement, [
    JSON.stringify(pushes.map((push) => ({ ...push, expiresAt: push.expiresAt.getTime() }))),
  ]);
  const ids = new Map(rows.map(({ appId, objectId, id }) => [`${appId} ${objectId}`, id]));
  return pushes.map(({ appId, objectId }) => {
    const id = ids.get(`${appId} ${objectId}`);
    if (id === undefined) throw new Error('the database returned no row of a push');
    return id;
  });
}

const openColumns = `${membersOf(
  'n',
  `app_id, id, object_id, notification_id, state, push_time, expires_at, planned_through, is_planned, devices,
   created_at, first_sent_at`,
)}, n.halts AS "profileErrors"`;

const resultColumns = `${membersOf(
  'n',
  `error, from_service, created_by, created_token, totals, acked, repeats, displaced, redriven, updated_at,
   finished_at`,
)}, coalesce(n.quiet_waits, 0) AS "quietWaits"`;

/** All columns of a `Push`. */
export const pushColumns = `${openColumns}, ${resultColumns}, n.request AS "pushOrder",
  coalesce(n.kept_tokens, '[]') AS "keptTokens"`;

const listedOrder = `jsonb_set(n.request, '{target,deviceIds}', '[]', false) AS "pushOrder"`;

/**
 * Columns of a `Push` in a list. Omits the device ids of the target, because a push may have
 * thousands.
 */
export const listedPushColumns = `${openColumns}, ${resultColumns}, ${listedOrder},
  '[]'::jsonb AS "keptTokens"`;

/** Columns of a `Push` for records, which contain no device ids. */
export const recordColumns = `${openColumns}, ${resultColumns}, ${listedOrder},
  coalesce(n.kept_tokens, '[]') AS "keptTokens"`;

/** Key of a push. */
export interface PushKey {
  appId: string;
  id: number;
}

const findStatement = new AppStatement(
  3,
  (andApp) => `SELECT ${openColumns}, n.request AS "pushOrder"
     FROM unnest($1::text[], $2::bigint[]) AS k (app_id, id)
     JOIN notification n USING (app_id, id) WHERE true${andApp('n')}`,
  { isPrepared: true },
);

/** Reads pushes to send. Returns undefined for a push that was deleted. */
export async function findPushes(
  db: Handle,
  keys: readonly PushKey[],
): Promise<(OpenPush | undefined)[]> {
  const found = await findStatement.rowsById<OpenPush, PushKey>(db, keys, (part) =>
    listsOf(part, 'appId', 'id'),
  );
  return keys.map(({ id }) => found.get(id));
}

export async function findPush(
  db: Handle,
  appId: string,
  id: number,
): Promise<OpenPush | undefined> {
  return (await findPushes(db, [{ appId, id }]))[0];
}

const findTraceStatement = prepare(
  'SELECT object_id AS "objectId", trace_parent AS "traceParent" FROM notification WHERE app_id = $1 AND id = $2',
);

/** Finds the `traceparent` of the call that sent a push, and the push's objectId. */
export const findTrace = (db: Handle, appId: string, id: number) =>
  query(db).row<{ objectId: string; traceParent: string | null }>(findTraceStatement, [appId, id]);

/**
 * Finds a push by its objectId. If no push has it, finds the newest push with this custom
 * `notification_id` (protocol/push-records.md#look-up-a-record).
 */
export const findPushByPublicId = (db: Handle, appId: string, publicId: string) =>
  query(db).row<Push>(
    `SELECT ${pushColumns} FROM notification n WHERE app_id = $1
      AND (object_id = $2 OR notification_id = $2)
      ORDER BY object_id = $2 DESC, state = 'cancelled', id DESC LIMIT 1`,
    [appId, publicId],
  );

/** Maximum pushes that share one custom `notification_id`. */
const maxGroup = 1000;

/** Lists the pushes that share a custom `notification_id`, newest first. Omits cancelled pushes. */
export const listPushGroup = (db: Handle, appId: string, notificationId: string) =>
  query(db).rows<Push>(
    `SELECT ${recordColumns} FROM notification n WHERE app_id = $1 AND notification_id = $2
      AND state <> 'cancelled'
      ORDER BY id DESC LIMIT ${maxGroup}`,
    [appId, notificationId],
  );

interface PushPage {
  limit: number;
  skip: number;
  oldestFirst: boolean;
  /** Filter of the records. Absent: all records. */
  filter?: RowCondition | undefined;
}

export function listPushes(db: Handle, appId: string, page: PushPage): Promise<Push[]> {
  const { condition, values } = page.filter ?? everyRecord(appId);
  return query(db).rows(
    `SELECT ${recordColumns} FROM notification n WHERE app_id = $1 AND state <> 'cancelled'
      AND ${condition}
      ORDER BY id ${page.oldestFirst ? 'ASC' : 'DESC'}
        LIMIT $${values.length + 1} OFFSET $${values.length + 2}`,
    [...values, page.limit, page.skip],
  );
}

const everyRecord = (appId: string): RowCondition => ({ condition: 'true', values: [appId] });

export function countPushes(db: Handle, appId: string, filter?: RowCondition): Promise<number> {
  const { condition, values } = filter ?? everyRecord(appId);
  return query(db).number(
    `SELECT count(*) AS n FROM notification WHERE app_id = $1 AND state <> 'cancelled'
      AND ${condition}`,
    values,
  );
}

/**
 * Moves an unfinished push to `cancelled`, so that nothing more is sent. Returns false if the push
 * was finished (protocol/push-records.md#state-changes).
 */
export async function markPushCancelled(tx: Handle, appId: string, id: number): Promise<boolean> {
  // The scheduler locks in the same order: the entry first.
  await tx.query('DELETE FROM scheduled_push WHERE app_id = $1 AND push_id = $2', [appId, id]);
  return query(tx).hasRows(
    `UPDATE notification SET state = 'cancelled', updated_at = now(), finished_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending', 'paused')`,
    [appId, id],
  );
}

/** A `req_id` that a push uses. */
export interface RequestClaim {
  appId: string;
  reqId: string;
  objectId: string;
  acceptedAt: Date;
}

const claimColumns = membersOf('l', 'app_id, req_id, object_id, accepted_at');

const input = `unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
  AS c (app_id, req_id, object_id, accepted_at)`;

/**
 * Claims the `req_id` of each push. Returns the claims of other pushes that used the same id less
 * than `windowMs` ago (protocol/push.md#repeated-requests: five minutes). The ids in `claims` must
 * be different. A concurrent claim waits until the first transaction ends. Rows are locked in one
 * order, so that two transactions cannot deadlock. The window is part of the text, and the
 * functions are immutable, because a sharded database allows nothing else in this clause.
 */
export async function claimRequestIds(
  tx: Handle,
  claims: readonly RequestClaim[],
  windowMs: number,
): Promise<RequestClaim[]> {
  const values = listsOf(claims, 'appId', 'reqId', 'objectId', 'acceptedAt');
  const claimed = await query(tx).rows(
    `INSERT INTO request_ledger AS l (app_id, req_id, object_id, accepted_at)
     SELECT app_id, req_id, object_id, accepted_at FROM ${input} ORDER BY app_id, req_id
     ON CONFLICT (app_id, req_id) DO UPDATE SET object_id = excluded.object_id,
       accepted_at = excluded.accepted_at
      WHERE excluded.accepted_at - l.accepted_at > interval '${Math.round(windowMs)} ms'
     RETURNING 1`,
    values,
  );
  // Without RETURNING, a sharded database also counts rows that the condition left unchanged.
  if (claimed.length === claims.length) return [];
  return query(tx).rows(
    `SELECT ${claimColumns}
       FROM ${input} JOIN request_ledger l USING (app_id, req_id) WHERE l.object_id <> c.object_id`,
    values,
  );
}

/** Finds the push that used a `req_id` less than `windowMs` ago. */
export const findRequestId = (
  db: Handle,
  { appId, reqId }: Pick<RequestClaim, 'appId' | 'reqId'>,
  windowMs: number,
) =>
  query(db).row<RequestClaim>(
    `SELECT ${claimColumns} FROM request_ledger l
      WHERE app_id = $1 AND req_id = $2 AND accepted_at >= now() - $3 * interval '1 ms'`,
    [appId, reqId, windowMs],
  );

/** Deletes request ids whose window is over. Returns their number. */
export const deleteOldRequestIds = (db: Handle, before: Date) =>
  query(db).rowCount('DELETE FROM request_ledger WHERE accepted_at < $1', [before]);

/**
 * Rows of one table that one pass deletes. This takes about 0.1 s, even if a push has millions of
 * rows.
 */
const rowsOfPass = 10_000;

/** Tables with rows of a push, and the columns that identify a row within the push. */
const children = [
  { table: 'push_batch', key: 'id' },
  { table: 'push_failure', key: 'installation' },
  { table: 'failure_count', key: 'n' },
  { table: 'push_receipt', key: 'connector, block' },
  { table: 'push_receipt_total', key: 'connector, slot' },
];

const isOld = `created_at < $1 AND state IN ('done', 'failed', 'cancelled') AND finished_at < $1`;
const oldPushes = `SELECT app_id, id FROM notification WHERE ${isOld} ORDER BY created_at LIMIT $2`;
const lockOldPushes = `
  SELECT app_id, id FROM notification
   WHERE ${isOld} AND app_id = $2 AND id = ANY($3::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`;

const childStatements = children.map(
  ({ table, key }) => `
    WITH part AS MATERIALIZED (
      SELECT c.app_id, c.push_id, ${qualified('c', key)}
        FROM unnest($1::text[], $2::bigint[]) AS p (app_id, id)
        JOIN ${table} c ON c.app_id = p.app_id AND c.push_id = p.id LIMIT ${rowsOfPass})
    DELETE FROM ${table} c USING part
     WHERE c.app_id = part.app_id AND c.push_id = part.push_id
       AND (${qualified('c', key)}) = (${qualified('part', key)})`,
);

function qualified(table: string, key: string): string {
  return key
    .split(', ')
    .map((name) => `${table}.${name}`)
    .join(', ');
}

/**
 * Deletes finished pushes after their retention (protocol/push-records.md#retention: seven days),
 * with all their rows. A pass has a limit of rows, not of pushes. So a push with millions of
 * failures needs many passes, and the last pass deletes its record. Returns the number of pushes,
 * or `limit` if another pass has rows to delete.
 */
export function deleteOldPushes(db: Database, before: Date, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const old = { text: oldPushes, values: [before, limit] };
    const rows = await forEachApp(tx, old, (appId, ids) =>
      query(tx).rows<AppRow>(lockOldPushes, [before, appId, ids]),
    );
    if (rows.length === 0) return 0;
    const pushes = listsOf(rows, 'app_id', 'id');
    if (await deleteChildren(tx, pushes)) return limit;
    await tx.query(
      `DELETE FROM notification n USING unnest($1::text[], $2::bigint[]) AS p (app_id, id)
        WHERE n.app_id = p.app_id AND n.id = p.id`,
      pushes,
    );
    return rows.length;
  });
}

/** Deletes rows of the pushes. Returns whether more may be left. */
async function deleteChildren(tx: Handle, pushes: unknown[]): Promise<boolean> {
  let isMore = false;
  for (const statement of childStatements) {
    if ((await query(tx).rowCount(statement, pushes)) >= rowsOfPass) isMore = true;
  }
  return isMore;
}

/**
 * Saves how many recipients a finished push did not reach, for the limit of stored failures of its
 * app.
 */
export const saveFailureCount = (db: Handle, push: PushKey, n: number) =>
  query(db).run(
    'INSERT INTO failure_count (app_id, push_id, n) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [push.appId, push.id, n],
  );

/**
 * The oldest push with failures beyond the limit of its app. A push without failures is left out:
 * it would be found again in each pass.
 */
const surplusPush = `
  SELECT app_id AS "appId", push_id AS "pushId"
    FROM (SELECT app_id, push_id, n, sum(n) OVER (PARTITION BY app_id
      ORDER BY push_id DESC) - $1 AS beyond FROM failure_count) AS kept
   WHERE beyond > 0 AND n > 0 ORDER BY push_id LIMIT 1`;

/**
 * Reads the number again with the row locked. Returns no rows while another dispatcher deletes the
 * failures. Locks the failures in the order of a redrive (`claimFailures`).
 */
const surplusStatement = `
  WITH held AS MATERIALIZED (
    SELECT n FROM failure_count WHERE app_id = $1 AND push_id = $2 FOR UPDATE SKIP LOCKED),
  surplus AS MATERIALIZED (
    SELECT least(held.n, held.n + newer.n - $3, $4)::bigint AS n
      FROM held, (SELECT coalesce(sum(n), 0) AS n FROM failure_count WHERE app_id = $1
        AND push_id > $2) AS newer),
  part AS MATERIALIZED (
    SELECT installation FROM push_failure WHERE app_id = $1 AND push_id = $2
      ORDER BY installation LIMIT (SELECT greatest(n, 0) FROM surplus) FOR UPDATE),
  deleted AS (
    DELETE FROM push_failure f USING part
     WHERE f.app_id = $1 AND f.push_id = $2 AND f.installation = part.installation)
  UPDATE failure_count c SET n = c.n - s.n FROM surplus s WHERE c.app_id = $1 AND c.push_id = $2
    AND s.n > 0
  RETURNING s.n`;

/**
 * Deletes failures beyond the newest `keptPerApp` of an app, starting with its oldest push, at most
 * `rows` in one pass. Counts only pushes that `saveFailureCount` has saved. Returns the number of
 * failures.
 */
export async function deleteSurplusFailures(
  db: Handle,
  { keptPerApp, rows: limit = rowsOfPass }: { keptPerApp: number; rows?: number },
): Promise<number> {
  const push = await query(db).row<{ appId: string; pushId: number }>(surplusPush, [keptPerApp]);
  return push
    ? query(db).number(surplusStatement, [push.appId, push.pushId, keptPerApp, limit])
    : 0;
}
