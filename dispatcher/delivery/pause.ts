import {
  markBatchParked,
  markExpiredResumed,
  markPlanningParked,
  takeParkedBatches,
  takeParkedPlanning,
} from '../../shared/db/tables/pushes/control.ts';
import { type DeliverJob, deliverJob, type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import { completeJob, type DeliverOptions } from '../recording/recorder.ts';
import { FairPriorities } from './fair-priorities.ts';

/** Held batches that get their jobs in one transaction. */
const unparkedAtOnce = 1000;

/**
 * Puts a batch of a paused push aside and ends its job: it costs nothing until the push is resumed. False
 * when the push goes on already.
 */
export function parkBatch(deps: DispatcherDeps, task: DeliverJob, options: DeliverOptions): Promise<boolean> {
  return deps.db.transaction(async (tx) => {
    if (!(await markBatchParked(tx, { appId: task.appId, pushId: task.pushId, id: task.batchId })))
      return false;
    await completeJob(deps, tx, options);
    return true;
  });
}

/** The same for the planning of a push. */
export function parkPlanning(deps: DispatcherDeps, job: Job<PlanJob>): Promise<boolean> {
  return deps.db.transaction(async (tx) => {
    if (!(await markPlanningParked(tx, job.data.appId, job.data.pushId))) return false;
    await deps.queue.complete(planJob, job, tx);
    return true;
  });
}

/**
 * Gives what was held of a push its jobs again, planning first. Whoever resumes or cancels asks for it by
 * a job of its own, so that the batches find their turns among those of the others.
 */
export async function unpark(deps: DispatcherDeps, job: Job<PlanJob>): Promise<void> {
  const { appId, pushId } = job.data;
  const push = { appId, id: pushId };
  const turns = new FairPriorities(deps.queue, appId);
  for (let isMore = true; isMore; ) {
    isMore = await deps.db.transaction(async (tx) => {
      if (await takeParkedPlanning(tx, push)) await deps.queue.send(planJob, [{ appId, pushId }], { tx });
      const held = await takeParkedBatches(tx, push, unparkedAtOnce);
      for (const [connector, batches] of Map.groupBy(held, (batch) => batch.connector)) {
        const kind = deliverJob(connector);
        const jobs = batches.map(({ id }) => ({ appId, pushId, batchId: id }));
        const priority = await turns.next(tx, kind, jobs.length);
        await deps.queue.send(kind, jobs, { tx, priority });
      }
      return held.length === unparkedAtOnce;
    });
  }
  await deps.queue.complete(planJob, job, deps.db);
}

/** Ends the pause of pushes that have expired meanwhile; gives how many. */
export function resumeExpiredPushes(deps: DispatcherDeps, limit: number): Promise<number> {
  return deps.db.transaction(async (tx) => {
    const expired = await markExpiredResumed(tx, new Date(deps.clock.now()), limit);
    const jobs = expired.map(({ appId, id }) => ({ appId, pushId: id, isRelease: true }));
    await deps.queue.send(planJob, jobs, { tx });
    return expired.length;
  });
}
