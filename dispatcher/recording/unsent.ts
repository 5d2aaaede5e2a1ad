import type { Handle } from '../../shared/db/pool.ts';
import { dueIn } from '../../shared/db/query.ts';
import {
  type Batch,
  checkpointBatch,
  findBatch,
  lockBatch,
  settleBatches,
} from '../../shared/db/tables/batches.ts';
import { insertFailures, type RecipientFailure } from '../../shared/db/tables/push-failures.ts';
import { recordQuietWait } from '../../shared/db/tables/push-reports.ts';
import type { Outcome, OutcomeTotals } from '../../shared/domain/outcome.ts';
import { type DeliverJob, deliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import { type BatchInWork, endJob, replaceDelivery } from './batch-in-work.ts';
import { countRecipients } from './recorder.ts';

/** Outcome of recipients that are not sent to, and its reason. */
export interface UnsentOutcome {
  outcome: Outcome;
  reason: string;
}

/**
 * Settles the open recipients of a batch without sending, because the push expired or was
 * cancelled, or because the profile has an error.
 */
export async function recordUnsent(
  deps: DispatcherDeps,
  batch: BatchInWork,
  unsent: UnsentOutcome,
): Promise<void> {
  const { appId, batchId } = batch.ids;
  const totals = await deps.db.transaction(async (tx) => {
    const locked = await lockBatch(tx, appId, batchId);
    const settled = locked && (await settleOpen(deps, tx, locked, unsent));
    await endJob(deps, tx, batch);
    return settled;
  });
  if (totals) countRecipients(deps, appId, batch.stored.connector, totals);
}

async function settleOpen(
  { webhooks }: Pick<DispatcherDeps, 'webhooks'>,
  tx: Handle,
  batch: Batch,
  unsent: UnsentOutcome,
): Promise<OutcomeTotals> {
  const failures = endRecipients(batch, batch.states.openIndexes, unsent);
  const totals = batch.states.totals();
  await settleBatches(tx, [{ ...batch, totals, retriedCount: batch.retried.length }]);
  await insertFailures(tx, [{ batch, failures }]);
  await webhooks.emitOutcomes(tx, [
    { appId: batch.appId, id: batch.id, bytes: batch.states.bytes },
  ]);
  return totals;
}

/**
 * Ends the recipients after the first `granted` ones as `capped`, before the other recipients are
 * sent to. A second call changes nothing.
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
  await checkpointBatch(db, batch, { ...batch, failures });
}

/** Ends recipients in the states of a batch. Returns their failures. */
function endRecipients(
  { recipients, states }: Batch,
  indexes: number[],
  { outcome, reason }: UnsentOutcome,
): RecipientFailure[] {
  return indexes.map((index) => {
    states.settle(index, outcome);
    return { installation: recipients[index] ?? 0, outcome, status: 0, reason };
  });
}

/** When a postponed batch is delivered again. */
export interface Postponement {
  afterMs: number;
  /** The same time by the database's clock. Set if the batch must start on time. */
  at?: Date | undefined;
  /** The end of the quiet hours that the batch waits for. */
  quietUntil?: Date | undefined;
}

/**
 * Postpones a batch: replaces its job by a later one. This does not count as a try. Does nothing if
 * another process has taken over the batch.
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
    if (!(await replaceDelivery(deps, tx, batch))) return;
    if (quietUntil) await recordQuietWait(tx, { ...ids, stored, until: quietUntil });
    await deps.queue.send(kind, [data], { tx, startAfter });
  });
  if (at) wakeWhenDue(deps, kind, afterMs);
}

/** Maximum duration of a timer. For later times the poll of the consumers is precise enough. */
const maxTimerMs = 3_600_000;

/**
 * Wakes the consumers of a queue when a job is due, because they poll only once a second. If this
 * process ends before that, the job starts up to a second late, and a paced batch reserves a new
 * time slot.
 */
export function wakeWhenDue(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  kind: { queue: string },
  afterMs: number,
): void {
  if (afterMs > maxTimerMs) return;
  const wake = () => queue.wake(kind).catch(() => undefined);
  setTimeout(wake, Math.max(0, afterMs) + 5).unref();
}
