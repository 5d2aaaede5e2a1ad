import type { Handle } from '../../shared/db/pool.ts';
import {
  type Batch,
  checkpointBatch,
  lockBatch,
  markRetried,
} from '../../shared/db/tables/pushes/batches.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';
import type { BatchInWork } from './batch-in-work.ts';
import { countRepeats } from './counts.ts';
import { recordThroughOutage } from './outage.ts';
import { recordRetries } from './retried.ts';
import type { SentBatch } from './sent-batch.ts';

/**
 * Records what is known of a batch that goes back unfinished, in one transaction: the outcomes, and a retry batch for
 * the recipients that the gateway put off, so that neither a probe nor a pause shortens their wait.
 */
export async function recordPartial(
  deps: DispatcherDeps,
  batch: BatchInWork,
  sent: SentBatch,
): Promise<void> {
  const retries = await recordThroughOutage(deps, () =>
    sent.result.retries.length === 0
      ? checkpoint(deps.db, batch, sent.result)
      : deps.db.transaction((tx) => moveRetried(deps, tx, batch, sent)),
  );
  countRepeats(deps, batch.stored.connector, retries);
}

async function checkpoint(db: Handle, { ids, stored }: BatchInWork, result: DeliverResult) {
  const { appId, pushId, batchId } = ids;
  const { unanswered } = stored;
  const { connector, profile } = result;
  const row = { appId, id: batchId, pushId, connector, profile, unanswered };
  await checkpointBatch(db, row, result.states, result.failures);
  return result.retries;
}

/** Checkpoints a batch and moves its recipients with a retry to retry batches, which it returns. */
async function moveRetried(
  deps: DispatcherDeps,
  tx: Handle,
  batch: BatchInWork,
  { result, isCounted }: SentBatch,
): Promise<RetryGroup[]> {
  const locked = await lockBatch(tx, batch.ids.appId, batch.ids.batchId);
  if (!locked) return [];
  const own = withoutPlaces(result, locked, new Set(locked.states.closedIndexes));
  await checkpoint(tx, batch, own);
  await markRetried(
    tx,
    locked,
    own.retries.flatMap(({ indexes }) => indexes),
  );
  await recordRetries(deps, tx, batch, { retries: own.retries, isCounted });
  return own.retries;
}

/**
 * Removes from a result the recipients that another take of the batch has moved to retry batches, which count them.
 * Undefined when the batch is settled.
 */
export async function withoutRetried(
  tx: Handle,
  { appId, batchId }: DeliverJob,
  result: DeliverResult,
): Promise<DeliverResult | undefined> {
  const locked = await lockBatch(tx, appId, batchId);
  return locked && withoutPlaces(result, locked, new Set(locked.retried));
}

/** Removes the recipients at these places from a result; their stored states stay. */
function withoutPlaces(result: DeliverResult, stored: Batch, places: Set<number>): DeliverResult {
  const installations = new Set([...places].map((index) => stored.recipients[index]));
  const keep = <T>(list: T[], indexes: number[]) => list.filter((_, i) => !places.has(indexes[i] ?? -1));
  return {
    ...result,
    states: result.states.withPlacesOf(stored.states, places),
    retriedCount: stored.retried.length,
    failures: result.failures.filter(({ installation }) => !installations.has(installation)),
    retries: result.retries
      .map((retry) => ({
        ...retry,
        indexes: keep(retry.indexes, retry.indexes),
        recipients: keep(retry.recipients, retry.indexes),
        why: keep(retry.why, retry.indexes),
        badges: retry.badges && keep(retry.badges, retry.indexes),
      }))
      .filter(({ indexes }) => indexes.length > 0),
  };
}
