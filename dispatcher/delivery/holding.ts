/**
 * Pause and freeze. Held work has no job: the consumer that takes its job deletes the job, and
 * marks the batch or the planning as held. Held work gets a new job when the push continues
 * (`continuePushes`). The api creates the job in the transaction that resumes or cancels the push.
 * The background jobs below create it if a freeze ends or a paused push expires.
 */
import type { Handle } from '../../shared/db/pool.ts';
import {
  deleteFreezes,
  hasEndedFreeze,
  listFreezes,
  lockEndedFreezes,
} from '../../shared/db/tables/apps.ts';
import {
  findHeldPushes,
  lockWaiting,
  markBatchHeld,
  markExpiredResumed,
  markPlanningHeld,
} from '../../shared/db/tables/push-control.ts';
import type { JobEnd } from '../../shared/queue/consumer.ts';
import { type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import { continuePushes } from '../../shared/queue/push-jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import { type BatchInWork, replaceDelivery } from '../recording/batch-in-work.ts';

/**
 * Result of holding a job. `done`: the work is held. `again`: another consumer has taken over the
 * job. `changed`: the push need not wait any more.
 */
type HoldEnd = JobEnd | 'changed';

/** Holds the planning of a push that is paused or frozen. */
export function holdPlanning(deps: DispatcherDeps, job: Job<PlanJob>): Promise<HoldEnd> {
  return hold(deps, async (tx) => {
    if (!(await lockWaiting(tx, job.data, 'NO KEY UPDATE'))) return 'changed';
    if (!(await deps.queue.end(planJob, job, tx))) return 'again';
    await markPlanningHeld(tx, job.data);
    return 'done';
  });
}

/**
 * Holds a batch of a push that is paused or frozen. It gets its own job when the push continues.
 */
export function holdBatch(deps: DispatcherDeps, batch: BatchInWork): Promise<HoldEnd> {
  return hold(deps, async (tx) => {
    if (!(await lockWaiting(tx, batch.ids, 'SHARE'))) return 'changed';
    if (!(await replaceDelivery(deps, tx, batch))) return 'again';
    await markBatchHeld(tx, batch.ids);
    return 'done';
  });
}

async function hold(
  { db, freezes }: Pick<DispatcherDeps, 'db' | 'freezes'>,
  work: (tx: Handle) => Promise<HoldEnd>,
): Promise<HoldEnd> {
  const end = await db.transaction(work);
  // The freeze may have ended although it is still cached.
  if (end === 'changed') freezes.refresh();
  return end;
}

type DutyDeps = Pick<DispatcherDeps, 'db' | 'queue' | 'clock'>;

/**
 * Continues up to `limit` held pushes whose freeze has ended, oldest first. Returns their number.
 * Deletes ended freezes that have no held pushes left. Does nothing if another dispatcher is doing
 * this. If no freeze has ended, it runs one small query.
 */
export async function endFreezes({ db, queue, clock }: DutyDeps, limit: number): Promise<number> {
  if (!(await hasEndedFreeze(db))) return 0;
  return db.transaction(async (tx) => {
    const ended = await lockEndedFreezes(tx);
    if (ended.length === 0) return 0;
    const frozen = (await listFreezes(tx)).map(({ appId }) => appId);
    // While the service is frozen, no push continues.
    const pushes = frozen.includes(null)
      ? []
      : await findHeldPushes(
          tx,
          frozen.filter((appId) => appId !== null),
          limit,
        );
    await continuePushes(tx, queue, pushes, clock.now());
    if (pushes.length === 0) await deleteFreezes(tx, ended);
    return pushes.length;
  });
}

/**
 * Resumes paused pushes that have expired, so that their recipients are counted as expired. Returns
 * their number.
 */
export function resumeExpiredPushes(
  { db, queue, clock }: DutyDeps,
  limit: number,
): Promise<number> {
  return db.transaction(async (tx) => {
    const expired = await markExpiredResumed(tx, new Date(clock.now()), limit);
    await continuePushes(tx, queue, expired, clock.now());
    return expired.length;
  });
}
