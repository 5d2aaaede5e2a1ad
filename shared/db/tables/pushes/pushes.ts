import type { KeptTokens } from '../../../domain/pushes/invalid-tokens.ts';
import type { PushOrder } from '../../../domain/pushes/push.ts';
import type { ConnectorTotals, Push, PushCreator, PushState } from '../../../domain/pushes/record.ts';
import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';
import { AppStatement } from '../../sharding.ts';
import type { RowCondition } from '../selection.ts';

/** Row of the table `notification`, which holds pushes. */
export interface PushRow {
  app_id: string;
  id: number;
  object_id: string;
  notification_id: string;
  state: PushState;
  error: string | null;
  request: PushOrder;
  from_service: string;
  /** Absent where a statement does not read it. */
  created_by?: string | null;
  created_token?: number | null;
  quiet_waits?: number | null;
  kept_tokens?: KeptTokens[] | null;
  push_time: Date;
  expires_at: Date;
  planned_through: number;
  is_planned: boolean;
  devices: number;
  totals: ConnectorTotals | null;
  acked: number;
  repeats: number;
  displaced: number;
  halts: Record<string, string>;
  redriven: number;
  created_at: Date;
  updated_at: Date;
  first_sent_at: Date | null;
  finished_at: Date | null;
}

export function toPush(row: PushRow): Push {
  return {
    appId: row.app_id,
    id: row.id,
    objectId: row.object_id,
    notificationId: row.notification_id,
    state: row.state,
    error: row.error,
    pushOrder: row.request,
    fromService: row.from_service,
    createdBy: row.created_by ?? null,
    createdToken: row.created_token ?? null,
    pushTime: row.push_time,
    expiresAt: row.expires_at,
    plannedThrough: row.planned_through,
    isPlanned: row.is_planned,
    devices: row.devices,
    totals: row.totals,
    acked: row.acked,
    repeats: row.repeats,
    displaced: row.displaced,
    profileErrors: row.halts,
    redriven: row.redriven,
    quietWaits: row.quiet_waits ?? 0,
    keptTokens: row.kept_tokens ?? [],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    firstSentAt: row.first_sent_at,
    finishedAt: row.finished_at,
  };
}

export interface NewPush {
  appId: string;
  objectId: string;
  notificationId: string;
  state: 'scheduled' | 'queued';
  pushOrder: PushOrder;
  pushTime: Date;
  expiresAt: Date;
  createdAt: Date;
  /** Caller of the admin API; absent for a push of the app itself. */
  sender?: PushCreator | undefined;
  /** Span of the call, as `traceparent`; absent without tracing. */
  traceParent?: string | undefined;
}

/** Inserts pushes from one parameter, a JSON list of `toRowText`. */
const insertStatement =
  prepare(`INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time, expires_at,
                             created_at, updated_at, from_service, created_by, created_token, trace_parent, redrive_of, recurring_id)
   SELECT app_id, object_id, notification_id, state, request, request ->> 'prod', to_timestamp(push_ms / 1000.0),
          to_timestamp(expires_ms / 1000.0), to_timestamp(created_ms / 1000.0), to_timestamp(created_ms / 1000.0),
          coalesce(from_service, 'push'), created_by, created_token, trace_parent,
          (request #>> '{redrive,pushId}')::bigint, (request #>> '{recurring,id}')::bigint
     FROM json_to_recordset($1::json) AS p (
       app_id text, object_id text, notification_id text, state text, request jsonb,
       push_ms float8, expires_ms float8, created_ms float8, from_service text, created_by text, created_token bigint,
       trace_parent text)
   RETURNING app_id, id, object_id`);

/** Inserts pushes of any apps. Returns their internal ids in the same order. */
export async function insertPushes(tx: Handle, pushes: readonly NewPush[]): Promise<number[]> {
  const { rows } = await tx.query<{ app_id: string; id: number; object_id: string }>(insertStatement, [
    `[${pushes.map(toRowText).join(',')}]`,
  ]);
  const ids = new Map(rows.map((row) => [`${row.app_id} ${row.object_id}`, row.id]));
  return pushes.map(({ appId, objectId }) => {
    const id = ids.get(`${appId} ${objectId}`);
    if (id === undefined) throw new Error('the database returned no row of a push');
    return id;
  });
}

const toRowText = (push: NewPush): string =>
  JSON.stringify({
    app_id: push.appId,
    object_id: push.objectId,
    notification_id: push.notificationId,
    state: push.state,
    request: push.pushOrder,
    push_ms: push.pushTime.getTime(),
    expires_ms: push.expiresAt.getTime(),
    created_ms: push.createdAt.getTime(),
    ...(push.traceParent === undefined ? {} : { trace_parent: push.traceParent }),
    ...(push.sender
      ? { from_service: sourceOf(push), created_by: push.sender.name, created_token: push.sender.tokenId }
      : {}),
  });

const sourceOf = ({ pushOrder }: NewPush): string => (pushOrder.recurring ? 'recurring' : 'console');

/** Columns of a `PushRow`. */
export const pushColumns = `app_id, id, object_id, notification_id, state, error, request, from_service, push_time, expires_at,
          planned_through, is_planned, devices, totals, acked, repeats, displaced, halts, redriven, created_at,
          updated_at, first_sent_at, finished_at`;

/** Key of a push. */
export interface PushKey {
  appId: string;
  id: number;
}

const findStatement = new AppStatement(
  3,
  (andApp) => `SELECT ${pushColumns} FROM unnest($1::text[], $2::bigint[]) AS k (app_id, id)
     JOIN notification n USING (app_id, id) WHERE true${andApp('n')}`,
  { isPrepared: true },
);

/** Reads pushes; undefined for a push that was deleted. */
export async function findPushes(db: Handle, keys: readonly PushKey[]): Promise<(Push | undefined)[]> {
  const done = await findStatement.run<PushRow, PushKey>(db, keys, keyValues);
  const found = new Map(done.flatMap((part) => part.found).map((row) => [row.id, toPush(row)]));
  return keys.map(({ id }) => found.get(id));
}

/** Returns keys as two parameters. */
export const keyValues = (keys: readonly PushKey[]): unknown[] => [
  keys.map(({ appId }) => appId),
  keys.map(({ id }) => id),
];

export async function findPush(db: Handle, appId: string, id: number): Promise<Push | undefined> {
  return (await findPushes(db, [{ appId, id }]))[0];
}

const findTraceStatement = prepare(
  'SELECT object_id, trace_parent FROM notification WHERE app_id = $1 AND id = $2',
);

/** Finds the `traceparent` of the call that sent a push, and the push's objectId. */
export async function findTrace(
  db: Handle,
  appId: string,
  id: number,
): Promise<{ objectId: string; traceParent: string | null } | undefined> {
  const { rows } = await db.query<{ object_id: string; trace_parent: string | null }>(findTraceStatement, [
    appId,
    id,
  ]);
  return rows.map((row) => ({ objectId: row.object_id, traceParent: row.trace_parent }))[0];
}

/**
 * Finds a push by its objectId, else the newest with this custom `notification_id`
 * (protocol/push-records.md#look-up-a-record).
 */
export async function findPushByPublicId(
  db: Handle,
  appId: string,
  publicId: string,
): Promise<Push | undefined> {
  const { rows } = await db.query<PushRow>(
    `SELECT * FROM notification WHERE app_id = $1 AND (object_id = $2 OR notification_id = $2)
      ORDER BY object_id = $2 DESC, state = 'cancelled', id DESC LIMIT 1`,
    [appId, publicId],
  );
  return rows.map(toPush)[0];
}

/** Limit of pushes that share one custom `notification_id`; enough for any campaign. */
const maxGroup = 1000;

/** Lists the pushes that share a custom `notification_id`, newest first, without cancelled ones. */
export async function listPushGroup(db: Handle, appId: string, notificationId: string): Promise<Push[]> {
  const { rows } = await db.query<PushRow>(
    `SELECT * FROM notification WHERE app_id = $1 AND notification_id = $2 AND state <> 'cancelled'
      ORDER BY id DESC LIMIT ${maxGroup}`,
    [appId, notificationId],
  );
  return rows.map(toPush);
}

export interface PushPage {
  limit: number;
  skip: number;
  oldestFirst: boolean;
  /** Which records; all when absent. */
  filter?: RowCondition | undefined;
}

export async function listPushes(db: Handle, appId: string, page: PushPage): Promise<Push[]> {
  const { condition, values } = page.filter ?? everyRecord(appId);
  const { rows } = await db.query<PushRow>(
    `SELECT * FROM notification WHERE app_id = $1 AND state <> 'cancelled' AND ${condition}
      ORDER BY id ${page.oldestFirst ? 'ASC' : 'DESC'} LIMIT $${values.length + 1} OFFSET $${values.length + 2}`,
    [...values, page.limit, page.skip],
  );
  return rows.map(toPush);
}

const everyRecord = (appId: string): RowCondition => ({ condition: 'true', values: [appId] });

export async function countPushes(db: Handle, appId: string, filter?: RowCondition): Promise<number> {
  const { condition, values } = filter ?? everyRecord(appId);
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*) AS n FROM notification WHERE app_id = $1 AND state <> 'cancelled' AND ${condition}`,
    values,
  );
  return rows[0]?.n ?? 0;
}

/**
 * Moves an unfinished push to `cancelled`, which stops all further sends. Returns false if it was finished
 * (protocol/push-records.md#state-changes).
 */
export async function markPushCancelled(tx: Handle, appId: string, id: number): Promise<boolean> {
  // Lock order of the scheduler: the entry first.
  await tx.query('DELETE FROM scheduled_push WHERE app_id = $1 AND push_id = $2', [appId, id]);
  const { rowCount } = await tx.query(
    `UPDATE notification SET state = 'cancelled', updated_at = now(), finished_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('scheduled', 'queued', 'sending', 'paused')`,
    [appId, id],
  );
  return (rowCount ?? 0) > 0;
}
