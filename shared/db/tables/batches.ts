import type { BreakerKey } from '../../domain/breaker.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import { type OutcomeTotals, RecipientStates } from '../../domain/outcome.ts';
import type { Handle } from '../pool.ts';
import { membersOf, notIndexed, prepare } from '../prepared.ts';
import { query } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import {
  type FailedBatch,
  failuresText,
  insertFailuresSql,
  type RecipientFailure,
} from './push-failures.ts';

/** A batch to insert: installations of one push, connector and profile. */
export interface NewBatch {
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  /** Badge numbers that these recipients already have. A retry batch keeps them. */
  badges: (number | null)[] | null;
  attempt: number;
  /**
   * Number of tries that reached the gateway, and the reason of the last failure. Absent for a
   * first batch.
   */
  tries?: number;
  lastReason?: string | null;
  /**
   * Number of unanswered requests to these recipients. `isRepeat`: the last request was unanswered.
   */
  unanswered?: number;
  isRepeat?: boolean;
  /** Earliest time to send. Default: at once. */
  notBefore?: Date;
  /** Expiry of the batch. Absent or null: the expiry of the push. */
  expiresAt?: Date | null;
  /**
   * Language of the translation that the recipients get. Absent or null: the push's `data` without
   * a translation.
   */
  language?: string | null;
  /**
   * Quiet hours of its recipients with their time zone (`quietRule`), and the end of the quiet
   * hours for which the batch waits.
   */
  quiet?: string | null;
  quietUntil?: Date | null;
  /** True if the batch has its own job. The planning job of a small push delivers its batches. */
  hasJob: boolean;
  /** States and totals of recipients that end without being sent to. */
  settled?: { codes: Uint8Array; totals: OutcomeTotals };
}

/** A batch as a dispatcher loads it. */
export interface Batch {
  appId: string;
  id: number;
  pushId: number;
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  badges: (number | null)[] | null;
  states: RecipientStates;
  /** Indexes of recipients that moved to retry batches while others stayed open. */
  retried: number[];
  /**
   * Number of recipients sent to by the form of their token; null if the connector has only one
   * form.
   */
  sentBy: Record<string, number> | null;
  isSettled: boolean;
  attempt: number;
  /** Number of unanswered requests to these recipients. */
  unanswered: number;
  /** Expiry of the batch. Null: the expiry of the push. */
  expiresAt: Date | null;
  /**
   * Language of the translation that the recipients get. Null: the push's `data` without a
   * translation.
   */
  language: string | null;
}

/** Columns of a batch: `short` columns, and columns with one entry per recipient. */
export const batchColumns = {
  short:
    'app_id, id, push_id, connector, profile, is_settled, attempt, unanswered, expires_at, language',
  ofRecipients: 'recipients, badges, settled, moved, sent_by',
};

export type BatchRow = Omit<Batch, 'states' | 'retried'> & {
  settled: Buffer | null;
  moved: number[] | null;
};

export const toBatch = ({ settled, moved, ...batch }: BatchRow): Batch => ({
  ...batch,
  states: RecipientStates.ofRow({ settled, moved }, batch.recipients.length),
  retried: moved ?? [],
});

/** Members and types of the JSON list from which batches are inserted. */
const newBatchMembers = `"appId" text, "pushId" bigint, connector text, profile text, recipients text, size int,
  badges int[], attempt int, settled text, totals jsonb, "hasJob" boolean, tries int, "lastReason" text,
  "notBefore" timestamptz, unanswered int, repeats int, "expiresAt" timestamptz, language text, quiet text,
  "quietUntil" timestamptz, first bigint, last bigint`;

const insertStatement = prepare(
  `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, size, badges, attempt,
                           settled, totals, is_settled, has_job, tries, last_reason, not_before,
                           unanswered, repeats, expires_at, language, quiet, quiet_until,
                           first_recipient, last_recipient, settled_at)
   SELECT b."appId", b."pushId", b.connector, b.profile, b.recipients::bigint[], b.size, b.badges,
          b.attempt, decode(b.settled, 'hex'), b.totals, b.settled IS NOT NULL, b."hasJob",
          coalesce(b.tries, 0), b."lastReason", b."notBefore", coalesce(b.unanswered, 0), b.repeats,
          b."expiresAt", b.language, b.quiet, b."quietUntil", b.first, b.last,
          CASE WHEN b.settled IS NOT NULL THEN now() END
     FROM ROWS FROM (json_to_recordset($1) AS (${newBatchMembers})) WITH ORDINALITY AS b
    ORDER BY b.ordinality RETURNING push_id AS "pushId", id`,
);

/**
 * Inserts batches of pushes in one statement. Returns the ids of the batches of each push, in
 * order. A sharded database returns the rows of one app after the rows of another.
 */
export async function insertBatchesOf(
  tx: Handle,
  pushes: readonly { appId: string; pushId: number; batches: readonly NewBatch[] }[],
): Promise<number[][]> {
  const all = pushes.flatMap(({ appId, pushId, batches }) =>
    batches.map((batch) => ({ appId, pushId, ...toRow(batch) })),
  );
  if (all.length === 0) return pushes.map(() => []);
  const rows = await query(tx).rows<{ pushId: number; id: number }>(insertStatement, [
    JSON.stringify(all),
  ]);
  const byPush = Map.groupBy(rows, ({ pushId }) => pushId);
  return pushes.map(({ pushId }) =>
    (byPush.get(pushId) ?? []).map(({ id }) => id).sort((one, other) => one - other),
  );
}

/** Inserts batches of one push. Returns their ids in the same order. */
export async function insertBatches(
  tx: Handle,
  appId: string,
  pushId: number,
  batches: readonly NewBatch[],
): Promise<number[]> {
  return (await insertBatchesOf(tx, [{ appId, pushId, batches }]))[0] ?? [];
}

const toRow = ({ recipients, settled, isRepeat, ...batch }: NewBatch) => ({
  ...batch,
  ...rangeOf(recipients),
  // The text format of an array. PostgreSQL parses it several times as fast as a JSON array.
  recipients: `{${recipients.join(',')}}`,
  size: recipients.length,
  repeats: isRepeat ? recipients.length : 0,
  settled: settled && Buffer.from(settled.codes).toString('hex'),
  totals: settled?.totals,
});

function rangeOf(recipients: readonly number[]) {
  let first = recipients[0];
  let last = first;
  for (const id of recipients) {
    if (first === undefined || id < first) first = id;
    if (last === undefined || id > last) last = id;
  }
  return { first, last };
}

const bytesOf = ({ bytes }: RecipientStates): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Key of a batch. */
export interface BatchKey {
  appId: string;
  batchId: number;
}

const readText = `SELECT ${membersOf('b', `${batchColumns.short}, ${batchColumns.ofRecipients}`)}
  FROM push_batch b WHERE app_id = $1 AND id = $2`;

/** Reads a batch. Returns undefined if it was deleted. */
export async function findBatch(db: Handle, appId: string, id: number): Promise<Batch | undefined> {
  const row = await query(db).row<BatchRow>(readText, [appId, id]);
  return row && toBatch(row);
}

/** Returns the open batches without a job. The planning job of a resumed small push sends them. */
export const findBatchesWithoutJob = (db: Handle, appId: string, pushId: number) =>
  query(db).column<number>(
    `SELECT id FROM push_batch
      WHERE app_id = $1 AND push_id = $2 AND NOT is_settled AND NOT has_job ORDER BY id`,
    [appId, pushId],
  );

/** Returns the open batches of a push, whatever they wait for. */
export const listOpenBatches = (db: Handle, appId: string, pushId: number) =>
  query(db).column<number>(
    'SELECT id FROM push_batch WHERE app_id = $1 AND push_id = $2 AND NOT is_settled ORDER BY id',
    [appId, pushId],
  );

/**
 * Returns the open batches of a push whose time slots are void because its rate was changed. They
 * reserve new slots when they are delivered.
 */
export const findVoidSlots = (db: Handle, appId: string, pushId: number) =>
  query(db).column<number>(
    `SELECT b.id FROM push_batch b JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
      WHERE b.app_id = $1 AND b.push_id = $2 AND NOT b.is_settled
        AND b.slot_epoch <> n.pace_epoch AND b.slot_at >= n.pace_epoch_at`,
    [appId, pushId],
  );

/**
 * Returns the open batches of a gateway that have neither a time slot nor a retry time in the
 * future.
 */
export const findWaitingForGateway = (db: Handle, { appId, connector, profile }: BreakerKey) =>
  query(db).column<number>(
    `SELECT b.id FROM notification n JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id
      WHERE n.app_id = $1 AND n.state = 'sending' AND NOT b.is_settled AND b.connector = $2
        AND b.profile = $3
        AND (b.not_before IS NULL OR b.not_before <= now())
          AND (b.slot_at IS NULL OR b.slot_at <= now())`,
    [appId, connector, profile],
  );

/** Records that the batch now has a job. Returns false if it has one, or if it is settled. */
export const markJobCreated = (tx: Handle, appId: string, id: number) =>
  query(tx).hasRows(
    `UPDATE push_batch SET has_job = true
      WHERE app_id = $1 AND id = $2 AND NOT has_job AND NOT is_settled`,
    [appId, id],
  );

/**
 * Saves the settled recipients of a batch in flight, and the reasons of failures. If the batch is
 * delivered again, it skips these recipients (protocol/delivery.md#promise-3). Does nothing to a
 * settled batch.
 */
export async function checkpointBatch(
  db: Handle,
  batch: FailedBatch & { id: number },
  { states, sentBy, failures }: Pick<Batch, 'states' | 'sentBy'> & { failures: RecipientFailure[] },
): Promise<void> {
  const { appId, id } = batch;
  const values = [appId, id, bytesOf(states), failuresText(batch, failures), sentBy];
  await db.query(checkpointStatement, values);
}

/** Result of a batch. */
export interface SettledBatch {
  appId: string;
  id: number;
  states: RecipientStates;
  totals: OutcomeTotals;
  /** Number of recipients that had already moved to retry batches when this result was computed. */
  retriedCount: number;
  sentBy?: Batch['sentBy'];
}

const settleStatement = new AppStatement(
  2,
  (andApp) => `UPDATE push_batch b
      SET settled = decode(r.settled, 'hex'), totals = r.totals, sent_by = r."sentBy",
        is_settled = true, settled_at = now()
     FROM json_to_recordset($1) AS r ("appId" text, id bigint, settled text, totals jsonb,
       "sentBy" jsonb, "retriedCount" int)
    WHERE b.app_id = r."appId" AND b.id = r.id AND ${notIndexed('NOT b.is_settled')}
      AND coalesce(cardinality(b.moved), 0) = r."retriedCount"${andApp('b')}
    RETURNING b.id`,
  { isPrepared: true },
);

/**
 * Settles batches. Returns false for a batch that was already settled, or whose number of moved
 * recipients differs from `retriedCount`. The result of such a batch does not count.
 */
export async function settleBatches(
  tx: Handle,
  batches: readonly SettledBatch[],
): Promise<boolean[]> {
  const rows = batches.map(({ appId, id, states, totals, retriedCount, sentBy }) => {
    const settled = bytesOf(states).toString('hex');
    return { appId, id, settled, totals, retriedCount, sentBy: sentBy ?? undefined };
  });
  const settled = await settleStatement.rowsById(tx, rows, (part) => [JSON.stringify(part)]);
  return batches.map(({ id }) => settled.has(id));
}

/** Locks a batch until `tx` ends, and returns it. Returns undefined if it is settled. */
export async function lockBatch(tx: Handle, appId: string, id: number): Promise<Batch | undefined> {
  const row = await query(tx).row<BatchRow>(`${readText} AND NOT is_settled FOR UPDATE`, [
    appId,
    id,
  ]);
  return row && toBatch(row);
}

/** Marks recipients of a locked batch as moved to retry batches. */
export const markRetried = (tx: Handle, batch: Batch, indexes: number[]) =>
  query(tx).run(
    `UPDATE push_batch SET moved = coalesce(moved, '{}') || $3::int[] WHERE app_id = $1
      AND id = $2`,
    [batch.appId, batch.id, indexes],
  );

const checkpointStatement = prepare(
  `WITH saved AS (UPDATE push_batch SET settled = $3, sent_by = $5 WHERE app_id = $1 AND id = $2
    AND NOT is_settled RETURNING 1)
   ${insertFailuresSql(4, ' AND i.app_id = $1')} WHERE EXISTS (SELECT 1 FROM saved) ON CONFLICT DO NOTHING`,
);
