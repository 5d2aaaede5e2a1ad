import type { Handle } from '../../shared/db/pool.ts';
import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import type { DeliverJob, JobKind, PlanJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Job of the queue that brought a batch. */
export interface BatchJob {
  kind: JobKind<DeliverJob>;
  job: Job<DeliverJob>;
}

/** The planning job that delivers the only batch of its push. */
export interface OnlyBatch {
  job: Job<PlanJob>;
  /** Whether the transaction of the result has ended the job. */
  isEnded: boolean;
  /** Whether it has closed the push, with the time of the first send. */
  isClosed: boolean;
  /** Time of the first send of the push, until it is saved. */
  firstSentAt: Date | null;
}

/**
 * A batch in work: its ids, its stored state, and its job; a batch of a push to few has none of its
 * own.
 */
export interface BatchInWork {
  ids: DeliverJob;
  stored: BatchSnapshot;
  job?: BatchJob | undefined;
  only?: OnlyBatch | undefined;
}

/** State of a batch that its planning has just written. */
export interface FreshBatch {
  stored: BatchSnapshot;
  /** Interrupts of its push (`SenderPool.interruptCount`), as read before the state. */
  interruptCount: number;
}

/**
 * Loads a batch; a fresh one needs no query. Returns undefined if the batch is settled or deleted,
 * and ends its job then.
 */
export async function loadBatch(
  deps: DispatcherDeps,
  ids: DeliverJob,
  { job, only, fresh }: Pick<BatchInWork, 'job' | 'only'> & { fresh?: FreshBatch | undefined },
): Promise<BatchInWork | undefined> {
  const stored = fresh?.stored ?? (await deps.queries.readSnapshot(ids));
  if (stored && !stored.isSettled) return { ids, stored, job, only };
  await endJob(deps, deps.db, { job });
  return undefined;
}

/** Ends the batch's own job, if it has one, as part of `tx`. */
export async function endJob(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  tx: Handle,
  { job }: Pick<BatchInWork, 'job'>,
): Promise<void> {
  if (job) await queue.end(job.kind, job.job, tx);
}
