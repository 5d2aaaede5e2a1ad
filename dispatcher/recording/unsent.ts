import type { Handle } from '../../shared/db/pool.ts';
import {
  type Batch,
  checkpointBatch,
  findBatch,
  lockBatch,
  settleBatches,
} from '../../shared/db/tables/pushes/batches.ts';
import {
  insertFailures,
  type RecipientFailure,
} from '../../shared/db/tables/pushes/reports/recipient-failures.ts';
import type { Outcome, OutcomeTotals } from '../../shared/domain/outcome.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import { type BatchInWork, endJob } from './batch-in-work.ts';
import { countRecipients } from './counts.ts';

/** Outcome of recipients that are not sent to, and why. */
export interface UnsentOutcome {
  outcome: Outcome;
  reason: string;
}

/** Settles the open recipients of a batch without sending: it expired, was cancelled, or its profile has an error. */
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
 * Ends the recipients beyond the first `granted` ones as `capped`, before the others are sent. A second call changes
 * nothing.
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
    return { installation: recipients[index] ?? 0, outcome, status: 0, reason, invalidAsOfMs: null };
  });
}
