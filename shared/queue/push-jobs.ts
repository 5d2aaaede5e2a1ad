/** Writes the jobs of pushes: of new pushes, of batches and of resumed pushes. */
import type { Handle } from '../db/pool.ts';
import { takeHeldBatches, takeHeldPlanning, type WaitingBatch } from '../db/tables/push-control.ts';
import { countOpenPushes } from '../db/tables/push-progress.ts';
import { insertPushes, type NewPush, type PushKey } from '../db/tables/pushes.ts';
import { type DeliverJob, deliverJob, type JobKind, planJob } from './jobs.ts';
import type { JobQueue } from './queue.ts';
import { highestPriority, startNow } from './queue-sql.ts';
import { wakeConsumers } from './waking.ts';

/**
 * Inserts pushes that are sent now, each with its planning job, in `tx`. The pushes may be of
 * several apps. `last` executes the last statement (`TransactionWork`). The caller then wakes the
 * planners after the commit.
 */
export async function insertQueuedPushes(
  tx: Handle,
  queue: JobQueue,
  pushes: readonly NewPush[],
  last?: Handle,
): Promise<void> {
  const ids = await insertPushes(tx, pushes);
  const jobs = pushes.map(({ appId }, i) => ({ appId, pushId: ids[i] ?? 0 }));
  await queue.send(planJob, jobs, last ? { tx: last, wakeName: null } : { tx });
}

/** Returns the event of an accepted push. */
export const acceptedEvent = ({ appId, objectId, pushTime, state, sender }: NewPush) => ({
  appId,
  type: 'push.accepted' as const,
  data: {
    push: objectId,
    pushTime: pushTime.toISOString(),
    isScheduled: state === 'scheduled',
    createdBy: sender?.name ?? null,
  },
});

/**
 * Lowest priority of a job, an int4. Priorities fall while a queue is never empty. Below this one,
 * the order is by time.
 */
const lowestPriority = -(2 ** 31);

/**
 * Start-time fair queueing of the batches of one push (develop/architecture.md#fairness). The first
 * batch gets the priority at the front of the queue. Each further batch has a priority that is
 * lower by the number of open pushes of its app. So apps share a gateway equally, the pushes of an
 * app share the app's part, and a small push never waits for the end of a large push.
 */
export class FairPriorities {
  readonly #appId: string;
  /** Priority of the last batch, by queue. */
  readonly #last = new Map<string, number>();

  constructor(appId: string) {
    this.#appId = appId;
  }

  /** Returns the priorities of the next `count` batches on a queue, by their index. */
  async next(
    tx: Handle,
    kind: JobKind<DeliverJob>,
    count: number,
  ): Promise<(index: number) => number> {
    const front = await highestPriority(tx, kind);
    const step = Math.max(1, await countOpenPushes(tx, this.#appId));
    const last = this.#last.get(kind.queue);
    // Start behind the push's own earlier batches. If the queue has moved past them, start at its
    // front.
    const first = last === undefined ? front : Math.min(front, last - step);
    const priorityOf = (index: number) => Math.max(lowestPriority, first - index * step);
    this.#last.set(kind.queue, priorityOf(count - 1));
    return priorityOf;
  }
}

/** Writes jobs for batches of an app in `tx`, in fair order. */
export async function sendBatches(
  tx: Handle,
  queue: JobQueue,
  appId: string,
  { batches, waitedUntilMs }: { batches: readonly WaitingBatch[]; waitedUntilMs?: number },
): Promise<void> {
  const priorities = new FairPriorities(appId);
  for (const [connector, ofConnector] of Map.groupBy(batches, (batch) => batch.connector)) {
    const kind = deliverJob(connector);
    const jobs = ofConnector.map(({ id, pushId }) => ({
      appId,
      pushId,
      batchId: id,
      waitedUntilMs,
    }));
    await queue.send(kind, jobs, { tx, priority: await priorities.next(tx, kind, jobs.length) });
  }
}

/** Maximum held batches for which one statement writes jobs. */
const maxBatchesAtOnce = 1000;

/**
 * Writes new jobs for the held work of pushes, in `tx`. Planning jobs come before batches. Called
 * when pushes were resumed or cancelled, or when a freeze has ended (`markPlanningHeld`,
 * `markBatchHeld`). If a push is still paused or frozen, the consumer holds its work again. Returns
 * the number of jobs.
 */
export async function continuePushes(
  tx: Handle,
  queue: JobQueue,
  pushes: readonly PushKey[],
  nowMs: number,
): Promise<number> {
  let jobs = 0;
  for (const [appId, ofApp] of Map.groupBy(pushes, (push) => push.appId)) {
    const ids = ofApp.map(({ id }) => id);
    const plans = await takeHeldPlanning(tx, appId, ids);
    const planJobs = plans.map((pushId) => ({ appId, pushId, waitedUntilMs: nowMs }));
    await queue.send(planJob, planJobs, { tx });
    jobs += plans.length;
    for (let isMore = true; isMore; ) {
      const batches = await takeHeldBatches(tx, appId, ids, maxBatchesAtOnce);
      await sendBatches(tx, queue, appId, { batches, waitedUntilMs: nowMs });
      jobs += batches.length;
      isMore = batches.length === maxBatchesAtOnce;
    }
  }
  return jobs;
}

/** Makes postponed batches of an app due now, and wakes their consumers when `tx` commits. */
export async function startBatchesNow(
  tx: Handle,
  appId: string,
  batchIds: readonly number[],
): Promise<void> {
  await wakeConsumers(tx, await startNow(tx, appId, batchIds));
}
