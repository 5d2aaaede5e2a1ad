import { connectors } from '../../connectors/registry.ts';
import type { ClosingStack } from '../../shared/process/lifecycle.ts';
import { Consumer, type JobContext, WaitingJobs } from '../../shared/queue/consumer.ts';
import {
  continuedPlan,
  deliverJob,
  freshPlan,
  type PlanJob,
  planJob,
} from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { Waking } from '../../shared/queue/waking.ts';
import { deliverBatch, tracePush } from '../delivery/deliver.ts';
import type { DispatcherDeps } from '../deps.ts';
import {
  batchesPerThread,
  continuedPlansAtOnce,
  freshPlansAtOnce,
  waitingPerThread,
} from '../limits.ts';
import { planPush } from '../planning/planner.ts';

/**
 * Minimum time between two fetches of new pushes, in ms. Small pushes that are fetched together
 * share their statements.
 */
const planCooldownMs = 8;
/**
 * Cooldown if a fetch returns many jobs, as at 2,000 pushes a second. Larger groups take less CPU
 * time per push.
 */
const busyPlanCooldown = { jobs: 16, ms: 24 };

/**
 * Starts the consumers of planning and of each connector. When they close, batches stop after their
 * requests in flight.
 */
export async function startConsumers(
  deps: DispatcherDeps,
  { stack, listener, duePoll, threads }: Waking & { stack: ClosingStack; threads: number },
): Promise<void> {
  const { queue, log } = deps;
  const waitingJobs = new WaitingJobs(threads * waitingPerThread);
  const shared = { queue, log, listener, duePoll, waitingJobs };
  const plan = {
    ...shared,
    kind: planJob,
    handle: (job: Job<PlanJob>, context: JobContext) =>
      tracePush(deps, 'plan', job.data, () => planPush(deps, job, context)),
  };
  const consumers = [
    new Consumer({
      ...plan,
      capacity: freshPlansAtOnce,
      range: { minPriority: freshPlan.priority },
      cooldownMs: planCooldownMs,
      busyCooldown: busyPlanCooldown,
    }),
    new Consumer({
      ...plan,
      capacity: continuedPlansAtOnce,
      range: { maxPriority: continuedPlan.priority },
      wakeName: continuedPlan.wakeName,
    }),
    ...[...connectors.keys()].map((connector) => {
      const kind = deliverJob(connector);
      return new Consumer({
        ...shared,
        kind,
        capacity: threads * batchesPerThread,
        handle: (job, { signal, concurrencySlot }) =>
          deliverBatch(deps, job.data, { signal, concurrencySlot, job: { kind, job } }),
      });
    }),
  ];
  stack.add('consumers', () => {
    deps.pool.stopSending();
    return Promise.all(consumers.map((consumer) => consumer.stop(0)));
  });
  await Promise.all(consumers.map((consumer) => consumer.start()));
}
