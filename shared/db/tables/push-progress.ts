import type { ConnectorId } from '../../domain/labels.ts';
import { addTotals, RecipientStates, sumTotals } from '../../domain/outcome.ts';
import type { ConnectorTotals, OpenPush, PushState } from '../../domain/pushes/record.ts';
import type { Handle } from '../pool.ts';
import { membersOf, notIndexed, prepare } from '../prepared.ts';
import { listsOf, query, reasonTextSql } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import type { BatchKey, NewBatch } from './batches.ts';
import {
  openCountSql,
  rateColumns,
  type Slot,
  type SlotRow,
  sizeSql,
  slotColumns,
  toSlot,
} from './gateway-limits.ts';
import type { PushKey } from './pushes.ts';

/** Returns the condition that names the app of a table (`AppStatement`). */
type AndApp = (table: string) => string;

/** Subquery for `{connector: {outcome: n}}`: the sums over the settled batches of a push. */
const totalsOf = (
  app: string,
  push: string,
  andApp: AndApp,
): string => `SELECT coalesce(jsonb_object_agg(connector, counts), '{}')
            FROM (SELECT connector, jsonb_object_agg(outcome, n) AS counts
                    FROM (SELECT b.connector, t.key AS outcome, sum(t.value::bigint) AS n
                            FROM push_batch b, jsonb_each_text(b.totals) t
                           WHERE b.app_id = ${app} AND b.push_id = ${push}${andApp('b')}
                             AND b.totals IS NOT NULL
                           GROUP BY b.connector, t.key) by_outcome
                   GROUP BY connector) by_connector`;

/** Subquery for the number of repeats of all batches of a push. */
const repeatsOf = (app: string, push: string, andApp: AndApp): string =>
  `SELECT coalesce(sum(b.repeats), 0) FROM push_batch b WHERE b.app_id = ${app}
    AND b.push_id = ${push}${andApp('b')}`;

/** Subquery for one line of failure reasons, most frequent first. Null without failures. */
const summaryOfFailures = (
  andApp: AndApp,
): string => `SELECT string_agg(format('%s: %s (%s)', connector, reason, n), '; '
  ORDER BY n DESC, reason)
            FROM (SELECT f.connector, ${reasonTextSql('f.reason')} AS reason, count(*) AS n
              FROM push_failure f
                   WHERE f.app_id = n.app_id AND f.push_id = n.id${andApp('f')}
                     AND f.outcome <> 'sent'
                   GROUP BY f.connector, ${reasonTextSql('f.reason')} ORDER BY n DESC
                     LIMIT 5) reasons`;

const anyApp: AndApp = () => '';
const totalsOfBatches = totalsOf('$1', '$2', anyApp);
const repeatsOfBatches = repeatsOf('$1', '$2', anyApp);

const advanceStatement = prepare(
  `UPDATE notification
      SET state = 'sending', planned_through = $4, devices = devices + $5, is_planned = $6,
        updated_at = now()
    WHERE app_id = $1 AND id = $2 AND planned_through = $3 AND NOT is_planned
      AND state IN ('queued', 'sending')`,
);

/** A planning step: moves the cursor from `from` to `through`, and adds `devices` devices. */
interface PlanningStep {
  from: number;
  through: number;
  devices: number;
  isLast: boolean;
}

/**
 * Moves the planning cursor. The first step moves the push to `sending`. Returns false if another
 * planner has moved the cursor, or if the push was paused or cancelled. The caller must then roll
 * back.
 */
export function advancePlanning(
  tx: Handle,
  push: PushKey,
  { from, through, devices, isLast }: PlanningStep,
): Promise<boolean> {
  const values = [push.appId, push.id, from, through, devices, isLast];
  return query(tx).hasRows(advanceStatement, values);
}

/**
 * Fails a push that cannot be sent at all: saves its error text and the totals of all devices.
 * Returns false if devices of the push are planned, or if its state has changed.
 */
export const failPush = (
  tx: Handle,
  push: PushKey,
  end: { message: string; totals: ConnectorTotals; devices: number },
) =>
  query(tx).hasRows(
    `UPDATE notification
        SET state = 'failed', error = $3, totals = $4, devices = $5, is_planned = true,
            updated_at = now(), finished_at = now()
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending') AND NOT is_planned
        AND devices = 0`,
    [push.appId, push.id, end.message, end.totals, end.devices],
  );

const countOpenStatement = prepare(
  `SELECT count(*) AS n FROM notification WHERE state = 'sending' AND app_id = $1`,
);

/** Counts the pushes of an app in state `sending`. */
export const countOpenPushes = (db: Handle, appId: string) =>
  query(db).number(countOpenStatement, [appId]);

/** Time at which the first batch of a push was sent. */
export interface FirstSendTime extends PushKey {
  at: Date;
}

const firstSendStatement = new AppStatement(
  4,
  (andApp) => `UPDATE notification n SET first_sent_at = k.at
     FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS k (app_id, id, at)
    WHERE n.app_id = k.app_id AND n.id = k.id AND n.first_sent_at IS NULL${andApp('n')}
      RETURNING n.id`,
  { isPrepared: true },
);

/**
 * Saves the times of the first sends of pushes. Returns true for each push that had no time before.
 */
export async function markFirstSends(
  db: Handle,
  times: readonly FirstSendTime[],
): Promise<boolean[]> {
  const marked = await firstSendStatement.rowsById(db, times, (part) =>
    listsOf(part, 'appId', 'id', 'at'),
  );
  return times.map(({ id }) => marked.has(id));
}

/**
 * Records that a profile cannot send this push. Later batches are counted as failed without being
 * sent. Returns the public id of the push; undefined if the same error was recorded before.
 */
export const recordProfileError = (tx: Handle, push: PushKey, profile: string, message: string) =>
  query(tx).value<string>(
    `UPDATE notification SET halts = halts || jsonb_build_object($3::text, $4::text),
      updated_at = now()
      WHERE app_id = $1 AND id = $2
        AND (NOT halts ? $3::text OR halts ->> $3::text <> $4::text) RETURNING object_id`,
    [push.appId, push.id, profile, message],
  );

const closeStatement = new AppStatement(
  4,
  (andApp) => `UPDATE notification n
      SET state = 'done', finished_at = now(), updated_at = now(),
          first_sent_at = coalesce(n.first_sent_at, k.first_sent_at),
          totals = (${totalsOf('n.app_id', 'n.id', andApp)}),
          repeats = (${repeatsOf('n.app_id', 'n.id', andApp)}),
          error = (${summaryOfFailures(andApp)})
     FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS k (app_id, id, first_sent_at)
    WHERE n.app_id = k.app_id AND n.id = k.id${andApp('n')}
      AND ${notIndexed("n.state IN ('sending', 'paused') AND n.is_planned")}
      AND NOT EXISTS (SELECT 1 FROM push_batch b
                       WHERE b.app_id = n.app_id AND b.push_id = n.id
                         AND NOT b.is_settled${andApp('b')})
    RETURNING n.id, n.object_id AS "objectId", n.devices, n.totals,
      greatest(n.created_at, n.push_time) AS "beganAt"`,
  { isPrepared: true },
);

/** A push to close. `firstSentAt` is set if the time of its first send is not saved yet. */
export interface ClosingPush extends PushKey {
  firstSentAt?: Date | null | undefined;
}

export interface ClosedPush {
  objectId: string;
  devices: number;
  /** When it began (`pushBeganAtMs`). */
  beganAt: Date;
  totals: ConnectorTotals;
}

/**
 * Closes pushes: each push whose planning is finished and whose batches are all settled becomes
 * `done` and gets its totals. The state is derived from the batches
 * (develop/architecture.md#batches), so calling this too early or twice does nothing. Returns
 * undefined for a push that was not closed.
 */
export async function closeSettled(
  db: Handle,
  pushes: readonly ClosingPush[],
): Promise<(ClosedPush | undefined)[]> {
  const closed = await closeStatement.rowsById<ClosedPush & { id: number }, ClosingPush>(
    db,
    pushes,
    (part) => listsOf(part, 'appId', 'id', 'firstSentAt'),
  );
  return pushes.map(({ id }) => closed.get(id));
}

/** Returns settled pushes that a crash left open between the last batch and the closing. */
export const findSettledPushes = (db: Handle, limit: number) =>
  query(db).rows<PushKey>(
    `SELECT n.app_id AS "appId", n.id FROM notification n
      WHERE n.state IN ('sending', 'paused') AND n.is_planned
        AND NOT EXISTS (SELECT 1 FROM push_batch b
                         WHERE b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled)
      ORDER BY n.id LIMIT $1`,
    [limit],
  );

/**
 * Returns the totals of an open push from its settled batches, and the number of its recipients
 * that are sent to again after an unanswered request.
 */
export const readTotals = (db: Handle, { appId, id }: PushKey) =>
  query(db).one<Pick<Progress, 'totals' | 'repeats'>>(
    `SELECT (${totalsOfBatches}) AS totals, (${repeatsOfBatches}) AS repeats`,
    [appId, id],
  );

/** Maximum in-flight batches that one call reads, 1 kB each. Dispatchers have some dozens. */
const bytesReadOf = 256;

/** Recipients of an open push by connector: ended recipients and open recipients. */
export interface Progress {
  totals: ConnectorTotals;
  /** Recipients that are sent to again after an unanswered request. */
  repeats: number;
  open: Partial<Record<ConnectorId, number>>;
}

/**
 * Returns the progress of an open push from its settled batches and the checkpoints of its
 * in-flight batches. It is one statement, so a batch that settles at the same time is not counted
 * twice. If more than `bytesReadOf` batches are in flight, the other batches count once they are
 * settled.
 */
export async function readProgress(db: Handle, appId: string, id: number): Promise<Progress> {
  const rows = await query(db).rows<
    | { totals: ConnectorTotals; connector: null; size: number }
    | { totals: null; connector: ConnectorId; size: number; settled: null }
    | { totals: null; connector: ConnectorId; size: null; settled: Buffer; moved: number[] | null }
  >(
    `SELECT (${totalsOfBatches}) AS totals, NULL AS connector,
            (${repeatsOfBatches})::int AS size, NULL::bytea AS settled, NULL::int[] AS moved
      UNION ALL
     (SELECT NULL, b.connector, sum(b.size)::int, NULL, NULL FROM push_batch b
       WHERE b.app_id = $1 AND b.push_id = $2 AND NOT b.is_settled AND b.size IS NOT NULL
         GROUP BY b.connector)
      UNION ALL
     (SELECT NULL, b.connector, NULL, b.settled, b.moved FROM push_batch b
       WHERE b.app_id = $1 AND b.push_id = $2 AND NOT b.is_settled AND b.settled IS NOT NULL
       ORDER BY b.id LIMIT ${bytesReadOf})`,
    [appId, id],
  );
  const totals: ConnectorTotals = {};
  const open: Progress['open'] = {};
  let repeats = 0;
  for (const row of rows) {
    if (row.connector === null) {
      Object.assign(totals, row.totals);
      repeats = row.size;
    } else if (row.settled === null) open[row.connector] = row.size;
    else {
      const ended = RecipientStates.ofRow(row, row.settled.length).totals();
      totals[row.connector] = addTotals(totals[row.connector] ?? {}, ended);
      // Recipients that moved to a retry batch are counted there.
      const endedOrMoved = sumTotals(ended) + (row.moved?.length ?? 0);
      open[row.connector] = Math.max(0, (open[row.connector] ?? 0) - endedOrMoved);
    }
  }
  return { totals, open, repeats };
}

/** State of a batch and its push for the main thread. A worker thread loads the recipients. */
export interface BatchSnapshot {
  connector: ConnectorId;
  profile: string;
  isSettled: boolean;
  attempt: number;
  /** Number of tries that reached the gateway, and the reason of the last failure. */
  tries: number;
  lastReason: string | null;
  /** Number of unanswered requests to its recipients. */
  unanswered: number;
  /** Earliest time to send by the database's clock, and the time until then (0 or less: due). */
  notBefore: Date | null;
  waitMs: number | null;
  state: PushState;
  expiresAt: Date;
  /** Expiry of the batch, if it differs from the push's. `expiresAt` is the effective expiry. */
  ownExpiry: Date | null;
  /** Translation for its recipients. Null: `data` unchanged. */
  language: string | null;
  /**
   * Quiet hours of its recipients (`quietRule`), and the end of the quiet hours for which it waits.
   */
  quiet: string | null;
  quietUntil: Date | null;
  createdAt: Date;
  pushTime: Date;
  firstSentAt: Date | null;
  profileErrors: Record<string, string>;
  /** Number of recipients within the daily cap. Null before they are reserved. */
  granted: number | null;
  /** True if its push has flow control. `slot` is the time slot reserved by it. */
  isPaced: boolean;
  /** True if its recipients get different texts, usually one text per request. */
  isPersonal: boolean;
  /** True if its push recalls messages and sends none. */
  isRecall: boolean;
  slot: Slot | null;
  /** Slot reserved by the rate of its gateway. */
  rateSlot: Slot | null;
  /** Number of all recipients, and of open recipients. */
  size: number;
  open: number;
}

interface SnapshotRow extends Omit<BatchSnapshot, 'slot' | 'rateSlot'>, SlotRow {
  id: number;
  rateAt: Date | null;
  rateMs: number | null;
  rateInMs: number | null;
}

const columnsOfBatch = `id, connector, profile, is_settled, attempt, tries, last_reason, unanswered, not_before,
  language, quiet, quiet_until, granted`;

/** Columns of a snapshot: `b` is the batch, `n` its push. */
const snapshotColumns = `${membersOf('b', columnsOfBatch)},
          (extract(epoch FROM b.not_before - clock_timestamp()) * 1000)::float8 AS "waitMs",
          b.expires_at AS "ownExpiry", coalesce(b.expires_at, n.expires_at) AS "expiresAt",
          ${membersOf('n', 'state, created_at, push_time, first_sent_at')},
          n.halts AS "profileErrors", ${sizeSql('b')} AS size,
          ${openCountSql('b')} AS open, n.request ->> 'flowControl' IS NOT NULL AS "isPaced",
          n.request ? 'variables' AS "isPersonal",
          n.request @> '{"recall":{"hasReplacement":false}}' AS "isRecall", ${slotColumns}, ${rateColumns}`;

const snapshotStatement = new AppStatement(
  3,
  (andApp) => `SELECT ${snapshotColumns}
     FROM unnest($1::text[], $2::bigint[]) AS k (app_id, id)
     JOIN push_batch b ON b.app_id = k.app_id AND b.id = k.id
     JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
    WHERE true${andApp('b')}${andApp('n')}`,
  { isPrepared: true },
);

/** Reads the states of batches and their pushes. Returns undefined for a batch that was deleted. */
export async function readBatchSnapshots(
  db: Handle,
  keys: readonly BatchKey[],
): Promise<(BatchSnapshot | undefined)[]> {
  const found = await snapshotStatement.rowsById<SnapshotRow, BatchKey>(db, keys, (part) =>
    listsOf(part, 'appId', 'batchId'),
  );
  return keys.map(({ batchId }) => {
    const row = found.get(batchId);
    return row && toSnapshot(row);
  });
}

function toSnapshot(columns: SnapshotRow): BatchSnapshot {
  const { id: _, slotAt, slotInMs, slotMs, rateAt, rateInMs, rateMs, ...row } = columns;
  return {
    ...row,
    slot: toSlot({ slotAt, slotInMs, slotMs }),
    rateSlot: toSlot({ slotAt: rateAt, slotInMs: rateInMs, slotMs: rateMs }),
  };
}

/**
 * Returns the state of a first batch that was written a moment ago: nothing is reserved or sent.
 * It equals what `readBatchSnapshots` returns.
 */
export function newBatchSnapshot(push: OpenPush, batch: NewBatch): BatchSnapshot {
  const { flowControl, variables, recall } = push.pushOrder;
  return {
    connector: batch.connector,
    profile: batch.profile,
    isSettled: false,
    attempt: batch.attempt,
    tries: 0,
    lastReason: null,
    unanswered: 0,
    notBefore: null,
    waitMs: null,
    state: 'sending',
    expiresAt: push.expiresAt,
    ownExpiry: null,
    language: batch.language ?? null,
    quiet: batch.quiet ?? null,
    quietUntil: null,
    createdAt: push.createdAt,
    pushTime: push.pushTime,
    firstSentAt: push.firstSentAt,
    profileErrors: push.profileErrors,
    granted: null,
    isPaced: flowControl !== null,
    isPersonal: variables !== undefined,
    isRecall: recall?.hasReplacement === false,
    slot: null,
    rateSlot: null,
    size: batch.recipients.length,
    open: batch.recipients.length,
  };
}

/** A push whose targets one step plans completely. */
export interface WholePlan extends PushKey {
  through: number;
  devices: number;
}

/** Skips pushes that another transaction has locked, so that one push does not delay the others. */
const wholeStatement = new AppStatement(
  5,
  (andApp) => `WITH free AS MATERIALIZED (
     SELECT n.app_id, n.id FROM unnest($1::text[], $2::bigint[]) AS k (app_id, id)
       JOIN notification n USING (app_id, id)
      WHERE true${andApp('n')} ORDER BY n.app_id, n.id FOR UPDATE OF n SKIP LOCKED)
   UPDATE notification n
      SET state = 'sending', planned_through = k.through, devices = n.devices + k.devices,
          is_planned = true, updated_at = now()
     FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[])
          AS k (app_id, id, through, devices)
     JOIN free USING (app_id, id)
    WHERE n.app_id = k.app_id AND n.id = k.id${andApp('n')} AND n.planned_through = 0
      AND NOT n.is_planned AND n.state IN ('queued', 'sending')
   RETURNING n.id`,
  { isPrepared: true },
);

/**
 * Moves the planning cursors of many pushes to the end, like `advancePlanning`. Also returns false
 * for a push that another transaction has locked.
 */
export async function planWholePushes(
  tx: Handle,
  pushes: readonly WholePlan[],
): Promise<boolean[]> {
  const planned = await wholeStatement.rowsById(tx, pushes, (part) =>
    listsOf(part, 'appId', 'id', 'through', 'devices'),
  );
  return pushes.map(({ id }) => planned.has(id));
}
