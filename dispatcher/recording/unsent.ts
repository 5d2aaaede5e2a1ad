import type { Handle } from '../../shared/db/pool.ts';
import { dueIn } from '../../shared/db/query.ts';
import {
  type Batch,
  checkpointBatch,
  findBatch,
  lockBatch,
  markJobCreated,
  settleBatches,
} from '../../shared/db/tables/batches.ts';
import { insertFailures, type RecipientFailure } from '../../shared/db/tables/push-failures.ts';
import { recordQuietWait } from '../../shared/db/tables/push-reports.ts';
import type { Outcome, OutcomeTotals } from '../../shared/domain/outcome.ts';
import { type DeliverJob, deliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import { type BatchInWork, endJob } from './batch-in-work.ts';
import { countRecipients } from './recorder.ts';

/** Outcome of recipients that are not sent to, and why. */
export interface UnsentOutcome {
  outcome: Outcome;
  reason: string;
}

/**
 * Settles the open recipients of a batch without sending: it expired, was cancelled, or its profile
 * has an error.
 */
export async function recordUnsent(
  deps: DispatcherDeps,
  batch: BatchInWork,
  unsent: UnsentOutcome,
): Promise<void> {
  const { appId, batchId } = batch.ids;
  const totals = await deps.db.transaction(async (tx) => {
    const locked = await lockBatch(tx, appId, batchId);
    const settled = locked && (await settleOpen(tx, locked, unsent));
    await endJob(deps, tx, batch);
    return settled;
  });
  if (totals) countRecipients(deps, appId, batch.stored.connector, totals);
}

async function settleOpen(tx: Handle, batch: Batch, unsent: UnsentOutcome): Promise<OutcomeTotals> {
  const failures = endRecipients(batch, batch.states.openIndexes, unsent);
  const totals = batch.states.totals();
  await settleBatches(tx, [{ ...batch, totals, retriedCount: batch.retried.length }]);
  await insertFailures(tx, [{ batch, failures }]);
  return totals;
}

/**
 * Ends the recipients beyond the first `granted` ones as `capped`, before the others are sent. A
 * second call changes nothing.
 */
export async function recordCapped(
  { db }: Pick<DispatcherDeps, 'db'>,
  { appId, batchId }: DeliverJob,
  { granted, reason }: { granted: number; reason: string },
): Promise<void> {
  const batch = await findBatch(db, appId, batchId);
  if (!batch || batch.isSettled) return;
  const beyond = batch.states.openIndexes.filter((index) => index >= granted);
  if (beyond.length === 0) return;
  const failures = endRecipients(batch, beyond, { outcome: 'capped', reason });
  await checkpointBatch(db, batch, batch.states, failures);
}

/** Ends recipients in the batch's states; returns their failures. */
function endRecipients(
  { recipients, states }: Batch,
  indexes: number[],
  { outcome, reason }: UnsentOutcome,
): RecipientFailure[] {
  return indexes.map((index) => {
    states.settle(index, outcome);
    return {
      installation: recipients[index] ?? 0,
      outcome,
      status: 0,
      reason,
      invalidAsOfMs: null,
    };
  });
}

/** When a batch is taken again. */
export interface Postponement {
  afterMs: number;
  /** The same time by the database's clock, for a batch that has to start on time. */
  at?: Date | undefined;
  /** The end of the quiet hours that it waits for. */
  quietUntil?: Date | undefined;
}

/**
 * Puts a batch back with a new job for later; this costs no try. Does nothing when another consumer
 * has taken over its job.
 */
export async function recordPostponed(
  deps: DispatcherDeps,
  batch: BatchInWork,
  { afterMs, at, quietUntil }: Postponement,
): Promise<void> {
  const { ids, stored } = batch;
  const startAfter = at ?? (await dueIn(deps.db, afterMs));
  const kind = deliverJob(stored.connector);
  const data = { ...ids, waitedUntilMs: startAfter.getTime() };
  await deps.db.transaction(async (tx) => {
    if (batch.job && !(await deps.queue.end(kind, batch.job.job, tx))) return;
    await markJobCreated(tx, ids.appId, ids.batchId);
    if (quietUntil) await recordQuietWait(tx, { ...ids, stored, until: quietUntil });
    await deps.queue.send(kind, [data], { tx, startAfter });
  });
  if (at) wakeWhenDue(deps, kind, afterMs);
}

/** Longest timer; for a later time the consumer's own poll is exact enough. */
const longestTimerMs = 3_600_000;

/**
 * Wakes the consumers of a queue when a job is due: they poll only once a second. If this process
 * has ended by then, the job starts up to a second late; a batch reserves a new slot.
 */
export function wakeWhenDue(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  kind: { queue: string },
  afterMs: number,
): void {
  if (afterMs > longestTimerMs) return;
  const wake = () => queue.wake(kind).catch(() => undefined);
  setTimeout(wake, Math.max(0, afterMs) + 5).unref();
}
