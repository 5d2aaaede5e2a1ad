import {
  markExpiredResumed,
  markPlanningParked,
  takeParkedBatches,
  takeParkedPlanning,
} from '../../shared/db/tables/pushes/control.ts';
import { deliverJob, type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import { FairPriorities } from './fair-priorities.ts';

/** Parked batches that get their jobs in one transaction. */
const unparkedAtOnce = 1000;

/**
 * Parks the planning of a paused push: ends its job until the push is resumed. Returns false when it is not paused any
 * more.
 */
export function parkPlanning(deps: DispatcherDeps, job: Job<PlanJob>): Promise<boolean> {
  return deps.db.transaction(async (tx) => {
    if (!(await markPlanningParked(tx, job.data.appId, job.data.pushId))) return false;
    await deps.queue.complete(planJob, job, tx);
    return true;
  });
}

/**
 * Gives the parked planning and batches of a push their jobs again, planning first. Resuming or cancelling a push writes
 * the job that calls this, so that the batches get fair priorities.
 */
export async function unpark(deps: DispatcherDeps, job: Job<PlanJob>): Promise<void> {
  const { appId, pushId } = job.data;
  const push = { appId, id: pushId };
  const resumed = { appId, pushId, waitedUntilMs: deps.clock.now() };
  const priorities = new FairPriorities(deps.queue, appId);
  for (let isMore = true; isMore; ) {
    isMore = await deps.db.transaction(async (tx) => {
      if (await takeParkedPlanning(tx, push)) await deps.queue.send(planJob, [resumed], { tx });
      const parked = await takeParkedBatches(tx, push, unparkedAtOnce);
      for (const [connector, batches] of Map.groupBy(parked, (batch) => batch.connector)) {
        const kind = deliverJob(connector);
        const jobs = batches.map(({ id }) => ({ ...resumed, batchId: id }));
        const priority = await priorities.next(tx, kind, jobs.length);
        await deps.queue.send(kind, jobs, { tx, priority });
      }
      return parked.length === unparkedAtOnce;
    });
  }
  await deps.queue.complete(planJob, job, deps.db);
}

/** Resumes paused pushes that have expired, so that their recipients are counted; returns how many. */
export function resumeExpiredPushes(deps: DispatcherDeps, limit: number): Promise<number> {
  return deps.db.transaction(async (tx) => {
    const expired = await markExpiredResumed(tx, new Date(deps.clock.now()), limit);
    const jobs = expired.map(({ appId, id }) => ({ appId, pushId: id, isRelease: true }));
    await deps.queue.send(planJob, jobs, { tx });
    return expired.length;
  });
}
