import { connectors } from '../../connectors/registry.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import type { ClosingStack } from '../../shared/process/lifecycle.ts';
import { Consumer, WaitingJobs } from '../../shared/queue/consumer.ts';
import {
  continuedPlan,
  type DeliverJob,
  deliverJob,
  freshPlan,
  type PlanJob,
  planJob,
} from '../../shared/queue/jobs.ts';
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

interface ConsumerDeps extends DispatcherDeps, Waking {
  waitingJobs: WaitingJobs;
}

/**
 * Starts the consumers of planning and of each connector. When they close, batches stop after their
 * requests in flight.
 */
export async function startConsumers(
  deps: DispatcherDeps,
  { stack, listener, duePoll, threads }: Waking & { stack: ClosingStack; threads: number },
): Promise<void> {
  const waitingJobs = new WaitingJobs(threads * waitingPerThread);
  const shared = { ...deps, listener, duePoll, waitingJobs };
  const capacity = threads * batchesPerThread;
  const consumers = [
    ...planConsumers(shared),
    ...[...connectors.keys()].map((connector) => deliverConsumer(shared, connector, capacity)),
  ];
  stack.add('consumers', () => {
    deps.pool.stopSending();
    return Promise.all(consumers.map((consumer) => consumer.stop(0)));
  });
  await Promise.all(consumers.map((consumer) => consumer.start()));
}

function planConsumers(deps: ConsumerDeps): Consumer<PlanJob>[] {
  const { queue, listener, duePoll, log, waitingJobs } = deps;
  const kinds = [
    {
      capacity: freshPlansAtOnce,
      range: { minPriority: freshPlan.priority },
      cooldownMs: planCooldownMs,
      busyCooldown: busyPlanCooldown,
    },
    {
      capacity: continuedPlansAtOnce,
      range: { maxPriority: continuedPlan.priority },
      wakeName: continuedPlan.wakeName,
    },
  ];
  return kinds.map(
    (kind) =>
      new Consumer({
        queue,
        listener,
        duePoll,
        log,
        waitingJobs,
        ...kind,
        kind: planJob,
        handle: (job, context) =>
          tracePush(deps, 'plan', job.data, () => planPush(deps, job, context)),
      }),
  );
}

function deliverConsumer(
  deps: ConsumerDeps,
  connector: ConnectorId,
  capacity: number,
): Consumer<DeliverJob> {
  const { queue, listener, duePoll, log, waitingJobs } = deps;
  const kind = deliverJob(connector);
  return new Consumer({
    queue,
    listener,
    duePoll,
    log,
    waitingJobs,
    kind,
    capacity,
    handle: (job, { signal, concurrencySlot }) =>
      deliverBatch(deps, job.data, { signal, concurrencySlot, job: { kind, job } }),
  });
}
