import type { Handle } from '../../shared/db/pool.ts';
import { markJobCreated } from '../../shared/db/tables/batches.ts';
import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import type { DeliverJob, JobKind, PlanJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';

/** The queue job that brought a batch. */
export interface BatchJob {
  kind: JobKind<DeliverJob>;
  job: Job<DeliverJob>;
}

/** The planning job that delivers the only batch of its push. */
export interface OnlyBatch {
  job: Job<PlanJob>;
  /** True if the transaction that recorded the result has ended the job. */
  isEnded: boolean;
  /** True if that transaction has also closed the push and saved the time of the first send. */
  isClosed: boolean;
  /** Time of the first send; null if it is saved or not known yet. */
  firstSentAt: Date | null;
}

/**
 * A batch that is being delivered: its ids, its stored state and its job. A batch of a small push
 * has no job of its own.
 */
export interface BatchInWork {
  ids: DeliverJob;
  stored: BatchSnapshot;
  job?: BatchJob | undefined;
  only?: OnlyBatch | undefined;
}

/** Ends the job of a batch in `tx`. Does nothing if the batch has no job. */
export async function endJob(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  tx: Handle,
  { job }: Pick<BatchInWork, 'job'>,
): Promise<void> {
  if (job) await queue.end(job.kind, job.job, tx);
}

/**
 * Ends the delivery of a batch in `tx`, so that a new job can deliver it later. The batch of a small
 * push has no job: it is marked, so that no other process sends it before the new job. Returns
 * false if another process has taken over the batch.
 */
export function replaceDelivery(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  tx: Handle,
  { ids, job }: Pick<BatchInWork, 'ids' | 'job'>,
): Promise<boolean> {
  return job ? queue.end(job.kind, job.job, tx) : markJobCreated(tx, ids.appId, ids.batchId);
}
