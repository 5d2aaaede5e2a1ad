import type { ConnectorId } from '../../../domain/labels.ts';
import { movedCode, type Outcome, type OutcomeTotals } from '../../../domain/outcome.ts';
import type { Handle } from '../../pool.ts';

/** A batch as it is written: at most 1000 installations of one push, connector and profile. */
export interface NewBatch {
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  /** Badge numbers already counted for these recipients, when a retry takes them along. */
  badges: (number | null)[] | null;
  attempt: number;
  /** Tries that reached the gateway, and why the last one did not succeed; a first batch has neither. */
  tries?: number;
  lastReason?: string | null;
  /** Requests to these recipients that got no answer so far; `isRepeat`: the last one was such. */
  unanswered?: number;
  isRepeat?: boolean;
  /** Not to be sent before this; absent: at once. */
  notBefore?: Date;
  /** Whether a job of its own brings it to a dispatcher; the batches of a push to few have none. */
  hasJob: boolean;
  /** For recipients that end without being sent to: one byte each, and their totals. */
  settled?: { codes: Uint8Array; totals: OutcomeTotals };
}

/** A batch as a dispatcher takes it. */
export interface Batch {
  appId: string;
  id: number;
  pushId: number;
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  badges: (number | null)[] | null;
  /** One byte per recipient (shared/domain/outcome.ts); null before the first checkpoint. */
  settled: Uint8Array | null;
  /** Places of recipients that have gone into retry batches while the rest stayed open. */
  retried: number[];
  isSettled: boolean;
  attempt: number;
  /** Attempts that reached the gateway. */
  tries: number;
  /** Requests to these recipients that got no answer so far. */
  unanswered: number;
}

interface Row {
  app_id: string;
  id: number;
  push_id: number;
  connector: ConnectorId;
  profile: string;
  recipients: number[];
  badges: (number | null)[] | null;
  settled: Buffer | null;
  moved: number[] | null;
  is_settled: boolean;
  attempt: number;
  tries: number;
  unanswered: number;
}

const toBatch = (row: Row): Batch => ({
  appId: row.app_id,
  id: row.id,
  pushId: row.push_id,
  connector: row.connector,
  profile: row.profile,
  recipients: row.recipients,
  badges: row.badges,
  settled: row.moved
    ? withRetried({ ...row, settled: row.settled ?? new Uint8Array(row.recipients.length) })
    : row.settled,
  retried: row.moved ?? [],
  isSettled: row.is_settled,
  attempt: row.attempt,
  tries: row.tries,
  unanswered: row.unanswered,
});

/** A checkpoint by a process that did not know that they had moved may have written over them. */
export function withRetried({ settled, moved }: { settled: Uint8Array; moved: number[] | null }): Uint8Array {
  if (!moved) return settled;
  const codes = Uint8Array.from(settled);
  for (const index of moved) codes[index] = movedCode;
  return codes;
}

/** Why a recipient was not reached. Holds ids, never a token. */
export interface RecipientFailure {
  installation: number;
  outcome: Outcome;
  status: number;
  reason: string;
  /** The installation's `updated_at` in epoch ms when its token was told to be dead, else null. */
  deadAsOfMs: number | null;
}

/** Writes batches in one statement; gives their ids in the same order. */
export async function insertBatches(
  tx: Handle,
  appId: string,
  pushId: number,
  batches: NewBatch[],
): Promise<number[]> {
  const ids: number[] = [];
  for (const batch of batches) {
    const { rows } = await tx.query<{ id: number }>(
      `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, badges, attempt, settled, totals,
                               is_settled, has_job, tries, last_reason, not_before, unanswered, repeats, settled_at)
       VALUES ($1, $2, $3, $4, $5::bigint[], $6::int[], $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
               CASE WHEN $10 THEN now() END) RETURNING id`,
      [
        appId,
        pushId,
        batch.connector,
        batch.profile,
        batch.recipients,
        batch.badges,
        batch.attempt,
        batch.settled ? Buffer.from(batch.settled.codes) : null,
        batch.settled?.totals ?? null,
        batch.settled !== undefined,
        batch.hasJob,
        batch.tries ?? 0,
        batch.lastReason ?? null,
        batch.notBefore ?? null,
        batch.unanswered ?? 0,
        batch.isRepeat ? batch.recipients.length : 0,
      ],
    );
    ids.push(...rows.map((row) => row.id));
  }
  return ids;
}

export async function findBatch(db: Handle, appId: string, id: number): Promise<Batch | undefined> {
  const { rows } = await db.query<Row>('SELECT * FROM push_batch WHERE app_id = $1 AND id = $2', [appId, id]);
  return rows.map(toBatch)[0];
}

/** Open batches that no job of their own brings: what a resumed push to few still has to do itself. */
export async function findBatchesWithoutJob(db: Handle, appId: string, pushId: number): Promise<number[]> {
  const { rows } = await db.query<{ id: number }>(
    `SELECT id FROM push_batch
      WHERE app_id = $1 AND push_id = $2 AND NOT is_settled AND NOT has_job ORDER BY id`,
    [appId, pushId],
  );
  return rows.map((row) => row.id);
}

/** Notes that a job brings this batch from now on. */
export async function markJobCreated(tx: Handle, appId: string, id: number): Promise<void> {
  await tx.query('UPDATE push_batch SET has_job = true WHERE app_id = $1 AND id = $2', [appId, id]);
}

/**
 * Notes what is settled while a batch is in flight, reasons included, so that a retaken batch skips it
 * (protocol/delivery.md#promise-3). Does nothing to a batch that is settled.
 */
export async function checkpointBatch(
  db: Handle,
  batch: { appId: string; id: number; pushId: number; connector: string },
  settled: Uint8Array,
  failures: RecipientFailure[],
): Promise<void> {
  await db.query(
    `WITH mark AS (UPDATE push_batch SET settled = $3 WHERE app_id = $1 AND id = $2 AND NOT is_settled RETURNING 1)
     ${insertFailuresSql(4)} WHERE EXISTS (SELECT 1 FROM mark) ON CONFLICT DO NOTHING`,
    [batch.appId, batch.id, Buffer.from(settled), ...failureValues(batch, failures)],
  );
}

/**
 * Settles a batch for good. False when it was settled already: then nothing of this attempt counts; or when
 * more of its recipients have moved than `movedCount`, those that `settled` knows of.
 */
export async function settleBatch(
  tx: Handle,
  batch: { appId: string; id: number; movedCount: number },
  settled: Uint8Array,
  totals: OutcomeTotals,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE push_batch SET settled = $3, totals = $4, is_settled = true, settled_at = now()
      WHERE app_id = $1 AND id = $2 AND NOT is_settled AND coalesce(cardinality(moved), 0) = $5`,
    [batch.appId, batch.id, Buffer.from(settled), totals, batch.movedCount],
  );
  return (rowCount ?? 0) > 0;
}

/** The batch, which nobody else changes until `tx` ends; undefined when it is settled. */
export async function lockBatch(tx: Handle, appId: string, id: number): Promise<Batch | undefined> {
  const { rows } = await tx.query<Row>(
    'SELECT * FROM push_batch WHERE app_id = $1 AND id = $2 AND NOT is_settled FOR UPDATE',
    [appId, id],
  );
  return rows.map(toBatch)[0];
}

/** Notes that recipients of a locked batch have gone into retry batches while the rest stays open. */
export async function markRetried(tx: Handle, batch: Batch, places: number[]): Promise<void> {
  await tx.query(
    `UPDATE push_batch SET moved = coalesce(moved, '{}') || $3::int[] WHERE app_id = $1 AND id = $2`,
    [batch.appId, batch.id, places],
  );
}

export async function insertFailures(
  tx: Handle,
  batch: { appId: string; pushId: number; connector: string },
  failures: RecipientFailure[],
): Promise<void> {
  if (failures.length === 0) return;
  await tx.query(`${insertFailuresSql(2)} ON CONFLICT DO NOTHING`, [
    batch.appId,
    ...failureValues(batch, failures),
  ]);
}

/** `INSERT INTO push_failure SELECT … FROM unnest(…)`; `$1` is the app, the arrays begin at `$first`. */
function insertFailuresSql(first: number): string {
  const p = (i: number) => `$${first + i}`;
  return `INSERT INTO push_failure (app_id, push_id, connector, installation, object_id, outcome, status,
                               reason, dead_as_of)
     SELECT $1, ${p(0)}::bigint, ${p(1)}::text, f.installation,
            (SELECT i.object_id FROM installation i WHERE i.app_id = $1 AND i.id = f.installation),
            f.outcome, f.status, f.reason, to_timestamp(f.dead_ms / 1000.0)
       FROM unnest(${p(2)}::bigint[], ${p(3)}::text[], ${p(4)}::int[], ${p(5)}::text[], ${p(6)}::float8[])
            AS f (installation, outcome, status, reason, dead_ms)`;
}

function failureValues(
  batch: { pushId: number; connector: string },
  failures: RecipientFailure[],
): unknown[] {
  return [
    batch.pushId,
    batch.connector,
    failures.map((failure) => failure.installation),
    failures.map((failure) => failure.outcome),
    failures.map((failure) => failure.status),
    failures.map((failure) => failure.reason),
    failures.map((failure) => failure.deadAsOfMs),
  ];
}
