import type { Handle } from '../../shared/db/pool.ts';
import {
  type Batch,
  checkpointBatch,
  lockBatch,
  markRetried,
} from '../../shared/db/tables/pushes/batches.ts';
import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import { movedCode, openCode } from '../../shared/domain/outcome.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';
import { recordRetry } from './retried.ts';

/**
 * Keeps what is known of a batch that goes back unfinished, in one transaction: what is settled, and for those
 * that the gateway has put off a retry batch, so that neither a probe nor a pause shortens their wait. Gives the
 * retries that were written.
 */
export async function recordPartial(
  deps: DispatcherDeps,
  task: DeliverJob,
  { batch, result, isCounted }: { batch: BatchSnapshot; result: DeliverResult; isCounted: boolean },
): Promise<RetryGroup[]> {
  const { appId, batchId: id, pushId } = task;
  const address = { appId, id, pushId, connector: result.connector };
  if (result.retries.length === 0) {
    await checkpointBatch(deps.db, address, result.settled, result.failures);
    return [];
  }
  return deps.db.transaction(async (tx) => {
    const stored = await lockBatch(tx, appId, id);
    if (!stored) return [];
    const known = [...(stored.settled ?? [])].flatMap((code, index) => (code === openCode ? [] : [index]));
    const own = without(result, stored, new Set(known));
    await checkpointBatch(tx, address, own.settled, own.failures);
    await markRetried(
      tx,
      stored,
      own.retries.flatMap(({ indexes }) => indexes),
    );
    for (const retry of own.retries) await recordRetry(deps, tx, task, { batch, retry, isCounted });
    return own.retries;
  });
}

/**
 * A batch that could not be settled because some of its recipients have moved meanwhile, by another take of it:
 * the result without them, since they are counted in their retry batches. Undefined when it is settled.
 */
export async function withoutRetried(
  tx: Handle,
  task: DeliverJob,
  result: DeliverResult,
): Promise<DeliverResult | undefined> {
  const stored = await lockBatch(tx, task.appId, task.batchId);
  return stored && without(result, stored, new Set(stored.retried));
}

/** A result that says nothing of recipients at these places: what is stored of them stands. */
function without(result: DeliverResult, stored: Batch, places: Set<number>): DeliverResult {
  const installations = new Set([...places].map((index) => stored.recipients[index]));
  const keep = <T>(list: T[], indexes: number[]) => list.filter((_, i) => !places.has(indexes[i] ?? -1));
  return {
    ...result,
    settled: result.settled.map((code, index) =>
      places.has(index) ? (stored.settled?.[index] ?? movedCode) : code,
    ),
    movedCount: stored.retried.length,
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
