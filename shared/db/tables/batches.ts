import type { BreakerKey } from '../../domain/breaker.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import { type OutcomeTotals, RecipientStates } from '../../domain/outcome.ts';
import type { Handle } from '../pool.ts';
import { membersOf, prepare } from '../prepared.ts';
import { listsOf, query } from '../query.ts';
import { AppStatement } from '../sharding.ts';
import {
  type FailedBatch,
  failuresText,
  insertFailuresSql,
  type RecipientFailure,
} from './push-failures.ts';

/** Batch to insert: at most 1000 installations of one push, connector and profile. */
export interface NewBatch {
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  /** Badge numbers already counted for these recipients; a retry batch keeps them. */
  badges: (number | null)[] | null;
  attempt: number;
  /**
   * Tries that reached the gateway, and the reason of the last failure; absent for a first batch.
   */
  tries?: number;
  lastReason?: string | null;
  /** Unanswered requests to these recipients so far; `isRepeat`: the last request was one. */
  unanswered?: number;
  isRepeat?: boolean;
  /** Earliest time to send; at once by default. */
  notBefore?: Date;
  /** Expiry, where it is not that of the push. */
  expiresAt?: Date | null;
  /** Translation that its recipients get; absent or null: `data` as it is. */
  language?: string | null;
  /**
   * Quiet hours of its recipients with their zone (`quietRule`), and the end that they wait for;
   * absent or null for none.
   */
  quiet?: string | null;
  quietUntil?: Date | null;
  /** Whether the batch has a job of its own; the batches of a small push have none. */
  hasJob: boolean;
  /** For recipients that end without being sent to: one byte each, and their totals. */
  settled?: { codes: Uint8Array; totals: OutcomeTotals };
}

/** Batch as a dispatcher fetches it. */
export interface Batch {
  appId: string;
  id: number;
  pushId: number;
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  badges: (number | null)[] | null;
  states: RecipientStates;
  /** Indexes of recipients that moved to retry batches while the others stayed open. */
  retried: number[];
  isSettled: boolean;
  attempt: number;
  /** Tries that reached the gateway. */
  tries: number;
  /** Unanswered requests to these recipients so far. */
  unanswered: number;
  /** Expiry, where it is not that of the push. */
  expiresAt: Date | null;
  /** Translation that its recipients get; null: `data` as it is. */
  language: string | null;
}

/** Columns of a batch: those of a few bytes, and those with an entry for each recipient. */
export const batchColumns = {
  short:
    'app_id, id, push_id, connector, profile, is_settled, attempt, tries, unanswered, expires_at, language',
  ofRecipients: 'recipients, badges, settled, moved',
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

/** Columns of a batch that `insertBatches` reads from JSON, by name. */
const newBatchColumns = `app_id text, push_id bigint, connector text, profile text, recipients text, size int, badges int[], attempt int, settled text,
  totals jsonb, has_job boolean, tries int, last_reason text, not_before timestamptz, unanswered int, repeats int,
  expires_at timestamptz, language text, quiet text, quiet_until timestamptz`;

const insertStatement = prepare(
  `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, size, badges, attempt, settled, totals,
                           is_settled, has_job, tries, last_reason, not_before, unanswered, repeats, expires_at,
                           language, quiet, quiet_until, settled_at)
   SELECT b.app_id, b.push_id, b.connector, b.profile, b.recipients::bigint[], b.size, b.badges, b.attempt, decode(b.settled, 'hex'), b.totals,
          b.settled IS NOT NULL, b.has_job, b.tries, b.last_reason, b.not_before, b.unanswered, b.repeats,
          b.expires_at, b.language, b.quiet, b.quiet_until, CASE WHEN b.settled IS NOT NULL THEN now() END
     FROM ROWS FROM (json_to_recordset($1) AS (${newBatchColumns})) WITH ORDINALITY AS b
    ORDER BY b.ordinality RETURNING id`,
);

/**
 * Writes batches of pushes in one statement. Returns the ids of the batches, by push and in order.
 */
export async function insertBatchesOf(
  tx: Handle,
  pushes: readonly { appId: string; pushId: number; batches: readonly NewBatch[] }[],
): Promise<number[][]> {
  const all = pushes.flatMap(({ appId, pushId, batches }) =>
    batches.map((batch) => ({ app_id: appId, push_id: pushId, ...toColumns(batch) })),
  );
  if (all.length === 0) return pushes.map(() => []);
  const ids = await query(tx).column<number>(insertStatement, [JSON.stringify(all)]);
  return pushes.map(({ batches }) => ids.splice(0, batches.length));
}

/** Writes batches of one push; returns their ids in the same order. */
export async function insertBatches(
  tx: Handle,
  appId: string,
  pushId: number,
  batches: readonly NewBatch[],
): Promise<number[]> {
  return (await insertBatchesOf(tx, [{ appId, pushId, batches }]))[0] ?? [];
}

const toColumns = (batch: NewBatch) => ({
  connector: batch.connector,
  profile: batch.profile,
  // An array's text form: PostgreSQL reads it several times as fast as a JSON array.
  recipients: `{${batch.recipients.join(',')}}`,
  size: batch.recipients.length,
  badges: batch.badges,
  attempt: batch.attempt,
  settled: batch.settled && Buffer.from(batch.settled.codes).toString('hex'),
  totals: batch.settled?.totals,
  has_job: batch.hasJob,
  tries: batch.tries ?? 0,
  last_reason: batch.lastReason,
  not_before: batch.notBefore,
  unanswered: batch.unanswered ?? 0,
  repeats: batch.isRepeat ? batch.recipients.length : 0,
  expires_at: batch.expiresAt ?? undefined,
  language: batch.language ?? undefined,
  quiet: batch.quiet ?? undefined,
  quiet_until: batch.quietUntil ?? undefined,
});

const bytesOf = ({ bytes }: RecipientStates): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Key of a batch. */
export interface BatchKey {
  appId: string;
  batchId: number;
}

/** Returns keys as two parameters. */
export const batchKeyValues = (keys: readonly BatchKey[]): unknown[] =>
  listsOf(keys, 'appId', 'batchId');

/** SQL that reads a batch. */
const readText = `SELECT ${membersOf('b', `${batchColumns.short}, ${batchColumns.ofRecipients}`)}
  FROM push_batch b WHERE app_id = $1 AND id = $2`;

/** Reads a batch; undefined if it was deleted. */
export async function findBatch(db: Handle, appId: string, id: number): Promise<Batch | undefined> {
  const row = await query(db).row<BatchRow>(readText, [appId, id]);
  return row && toBatch(row);
}

/** Returns open batches without a job: a resumed small push sends them itself. */
export const findBatchesWithoutJob = (db: Handle, appId: string, pushId: number) =>
  query(db).column<number>(
    `SELECT id FROM push_batch
      WHERE app_id = $1 AND push_id = $2 AND NOT is_settled AND NOT has_job ORDER BY id`,
    [appId, pushId],
  );

/** Returns the open batches of a push. */
export const listOpenBatches = (db: Handle, appId: string, pushId: number) =>
  query(db).column<number>(
    'SELECT id FROM push_batch WHERE app_id = $1 AND push_id = $2 AND NOT is_settled ORDER BY id',
    [appId, pushId],
  );

/** Returns the open batches of a push whose slots are void since its rate was changed. */
export const findVoidSlots = (db: Handle, appId: string, pushId: number) =>
  query(db).column<number>(
    `SELECT b.id FROM push_batch b JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
      WHERE b.app_id = $1 AND b.push_id = $2 AND NOT b.is_settled
        AND b.slot_epoch <> n.pace_epoch AND b.slot_at >= n.pace_epoch_at`,
    [appId, pushId],
  );

/** Returns the open batches of a gateway that have no slot and no retry time ahead. */
export const findWaitingForGateway = (db: Handle, { appId, connector, profile }: BreakerKey) =>
  query(db).column<number>(
    `SELECT b.id FROM notification n JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id
      WHERE n.app_id = $1 AND n.state = 'sending' AND NOT b.is_settled AND b.connector = $2 AND b.profile = $3
        AND (b.not_before IS NULL OR b.not_before <= now()) AND (b.slot_at IS NULL OR b.slot_at <= now())`,
    [appId, connector, profile],
  );

/** Marks that the batch has a job from now on. */
export const markJobCreated = (tx: Handle, appId: string, id: number) =>
  query(tx).run('UPDATE push_batch SET has_job = true WHERE app_id = $1 AND id = $2', [appId, id]);

/**
 * Saves the settled recipients of a batch in flight, with reasons, so that a retaken batch skips
 * them (protocol/delivery.md#promise-3). Does nothing to a settled batch.
 */
export async function checkpointBatch(
  db: Handle,
  batch: FailedBatch & { id: number },
  states: RecipientStates,
  failures: RecipientFailure[],
): Promise<void> {
  const values = [batch.appId, batch.id, bytesOf(states), failuresText(batch, failures)];
  await db.query(checkpointStatement, values);
}

/** Result of a batch. */
export interface SettledBatch {
  appId: string;
  id: number;
  states: RecipientStates;
  totals: OutcomeTotals;
  /** Its recipients that have moved to retry batches, as far as the caller knows. */
  retriedCount: number;
  /** Recipients by the form of their token; absent or null where the connector has one form. */
  sentBy?: Record<string, number> | null;
}

const settleStatement = new AppStatement(
  2,
  (andApp) => `UPDATE push_batch b
      SET settled = decode(r.settled, 'hex'), totals = r.totals, sent_by = r.sent_by, is_settled = true, settled_at = now()
     FROM json_to_recordset($1) AS r (app_id text, id bigint, settled text, totals jsonb, sent_by jsonb, retried int)
    WHERE b.app_id = r.app_id AND b.id = r.id AND NOT b.is_settled AND coalesce(cardinality(b.moved), 0) = r.retried${andApp('b')}
    RETURNING b.id`,
  { isPrepared: true },
);

/**
 * Settles batches. Returns false for a batch that was settled before, or of which more recipients
 * have moved than `retriedCount`, the number that `states` includes: its result does not count.
 */
export async function settleBatches(
  tx: Handle,
  batches: readonly SettledBatch[],
): Promise<boolean[]> {
  const settled = await settleStatement.rowsById(tx, batches, (part) => [
    JSON.stringify(part.map(toResultColumns)),
  ]);
  return batches.map(({ id }) => settled.has(id));
}

const toResultColumns = ({ appId, id, states, totals, retriedCount, sentBy }: SettledBatch) => ({
  app_id: appId,
  id,
  settled: bytesOf(states).toString('hex'),
  totals,
  sent_by: sentBy ?? undefined,
  retried: retriedCount,
});

/** Locks a batch until `tx` ends and returns it; undefined if it is settled. */
export async function lockBatch(tx: Handle, appId: string, id: number): Promise<Batch | undefined> {
  const row = await query(tx).row<BatchRow>(`${readText} AND NOT is_settled FOR UPDATE`, [
    appId,
    id,
  ]);
  return row && toBatch(row);
}

/** Marks recipients of a locked batch as moved to retry batches. */
export const markRetried = (tx: Handle, batch: Batch, places: number[]) =>
  query(tx).run(
    `UPDATE push_batch SET moved = coalesce(moved, '{}') || $3::int[] WHERE app_id = $1 AND id = $2`,
    [batch.appId, batch.id, places],
  );

const checkpointStatement = prepare(
  `WITH mark AS (UPDATE push_batch SET settled = $3 WHERE app_id = $1 AND id = $2 AND NOT is_settled RETURNING 1)
   ${insertFailuresSql(4)} WHERE EXISTS (SELECT 1 FROM mark) ON CONFLICT DO NOTHING`,
);
