import { Router } from '../../connectors/routing.ts';
import { dueIn } from '../../shared/db/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { chooseScanDatabase } from '../../shared/db/standby.ts';
import {
  findBatchesWithoutJob,
  insertBatches,
  insertFailures,
} from '../../shared/db/tables/pushes/batches.ts';
import { advancePlanning, startPush } from '../../shared/db/tables/pushes/progress.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { JobContext } from '../../shared/queue/consumer.ts';
import { deliverJob, type PlanJob, planJob, planPriorities } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { deliverBatch } from '../delivery/deliver.ts';
import { FairPriorities } from '../delivery/fair-priorities.ts';
import { holdFrozen } from '../delivery/hold.ts';
import { parkPlanning, unpark } from '../delivery/pause.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/closing.ts';
import { planSmall } from '../small/plan-small.ts';
import { waitForApproval } from './approval.ts';
import { type PageOfBatches, toBatches } from './batches.ts';
import { claimPage } from './claims.ts';
import { endBeyondLimit } from './mass-limit.ts';
import { firstBatchSize, readPages, type TargetPage } from './pages.ts';

/** Time after which the planning of a large push lets others go first; a new job continues it. */
const turnMs = 500;

/** Error of a page that is not kept: another dispatcher plans the push, or it was stopped. */
class Superseded extends Error {
  override name = 'Superseded';
}

interface Plan {
  push: Push;
  app: App;
  router: Router;
  priorities: FairPriorities;
  job: Job<PlanJob>;
}

/**
 * Resolves the targets of one push into batches: one cursor, and one transaction per page that also moves the planning
 * mark, so that after a crash the planning continues behind it (develop/architecture.md#life-of-a-push). The same job
 * delivers a small push. Returns true when the job is completed, false when it goes back.
 */
export async function planPush(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  context: JobContext,
): Promise<boolean> {
  if (await deps.freezes.holds(job.data.appId)) {
    const held = await holdFrozen(deps, planJob, job);
    if (held !== 'free') return held === 'held';
  }
  if (job.data.isRelease) {
    await unpark(deps, job);
    return true;
  }
  const isDelivered = await planSmall(deps, job, context);
  if (isDelivered !== undefined) return isDelivered;
  const plan = await begin(deps, job);
  if (!plan) return endPlanning(deps, job, context);
  try {
    const isInline = plan.push.isPlanned || (await scan(deps, plan, context.signal));
    if (isInline === 'postponed') return true;
    if (context.signal.aborted && !isInline) return false;
    return isInline ? deliverInline(deps, job, context) : true;
  } catch (error) {
    if (error instanceof Superseded) return endPlanning(deps, job, context);
    throw error;
  }
}

/**
 * Ends a job without anything to plan. Of a paused push the planning is parked; of one that is being sent, the job goes back
 * and ends if another one has taken over; of a finished one, batches without jobs are counted by the gates.
 */
async function endPlanning(deps: DispatcherDeps, job: Job<PlanJob>, context: JobContext): Promise<boolean> {
  if (await parkPlanning(deps, job)) return true;
  const push = await findPush(deps.db, job.data.appId, job.data.pushId);
  if (push?.state === 'queued' || push?.state === 'sending') return false;
  return deliverInline(deps, job, context);
}

/** Starts the push; undefined when it is paused, finished or cancelled, or its app was deleted. */
async function begin(deps: DispatcherDeps, job: Job<PlanJob>): Promise<Plan | undefined> {
  const { appId, pushId } = job.data;
  const [push, app, profiles] = await Promise.all([
    startPush(deps.db, appId, pushId),
    deps.appCache.app(appId),
    deps.appCache.profiles(appId),
  ]);
  if (!push || !app) return undefined;
  return {
    push,
    app,
    router: new Router(app, profiles, push),
    priorities: new FairPriorities(deps.queue, appId),
    job,
  };
}

/** Writes the batches within the app's share of scans; beyond it the job is postponed. */
async function scan(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<boolean | 'postponed'> {
  const { push, job } = plan;
  const scanned = await deps.scans.run(push.appId, () => timed(deps, () => writeBatches(deps, plan, signal)));
  if ('value' in scanned) return scanned.value;
  const priority = push.plannedThrough === 0 ? planPriorities.fresh : planPriorities.continued;
  await deps.db.transaction(async (tx) => {
    // Another consumer has taken over the job and postpones it.
    if (!(await deps.queue.complete(planJob, job, tx))) return;
    const startAfter = await dueIn(tx, scanned.retryAfterMs);
    await deps.queue.send(planJob, [job.data], { tx, priority, startAfter });
  });
  return 'postponed';
}

/** Records the time of one turn of planning. */
async function timed<T>({ clock, metrics }: DispatcherDeps, work: () => Promise<T>): Promise<T> {
  const startedAtMs = clock.monotonicMs();
  return work().finally(() => metrics.planningSeconds.observe((clock.monotonicMs() - startedAtMs) / 1000));
}

/** Writes the batches. Returns true when the push is small enough for this job to deliver it. */
async function writeBatches(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<boolean> {
  const { push, app } = plan;
  const database = await chooseScanDatabase(deps.db, deps.readDb);
  deps.metrics.scans.inc({ database: database.url === deps.db.url ? 'primary' : 'standby' });
  const targets = () => readPages({ database, app, push, clock: deps.clock });
  let mark = push.plannedThrough;
  let planned = push.devices;
  if (mark === 0 && (await endBeyondLimit(deps, plan, targets))) return false;
  if (mark === 0 && (await waitForApproval(deps, plan, targets))) return false;
  const endsAtMs = deps.clock.monotonicMs() + turnMs;
  for await (const { page, isLast } of targets()) {
    if (signal.aborted) return false;
    const isSmall = isLast && mark === 0 && page.size <= firstBatchSize;
    const isContinued = !isLast && deps.clock.monotonicMs() > endsAtMs;
    mark = await writePage(deps, plan, { page, planned, mark, isLast, isSmall, isContinued });
    planned += page.size;
    deps.metrics.plannedRecipients.inc(page.size);
    if (isLast || isContinued) return isSmall;
  }
  return false;
}

interface PageStep {
  page: TargetPage;
  /** Recipients of the push that were planned before this page. */
  planned: number;
  mark: number;
  isLast: boolean;
  /** This job delivers the push. */
  isSmall: boolean;
  /** A new job continues behind the mark, after others. */
  isContinued: boolean;
}

/**
 * Writes one page in one transaction: batches, their jobs, the mark, and with the last page the end of the planning job,
 * unless that delivers the push. Returns the new mark.
 */
async function writePage(deps: DispatcherDeps, plan: Plan, step: PageStep): Promise<number> {
  const { push, router, job } = plan;
  const through = step.page.lastId || step.mark;
  const terms = { router, flowControl: push.pushOrder.flowControl, planned: step.planned };
  const { page, size } = await deps.db.transaction(async (tx) => {
    const targets = await claimPage(tx, push, step.page);
    const isOurs = await advancePlanning(tx, push, {
      from: step.mark,
      through,
      devices: targets.size,
      isLast: step.isLast,
    });
    if (!isOurs) throw new Superseded();
    const page = toBatches(targets, terms);
    if (step.mark === 0 && !step.isSmall) prepareSenders(deps, push, page);
    await writeRows(deps, tx, plan, { page, isQueued: !step.isSmall });
    if ((step.isLast && !step.isSmall) || step.isContinued) await deps.queue.complete(planJob, job, tx);
    if (step.isContinued)
      await deps.queue.send(planJob, [job.data], { tx, priority: planPriorities.continued });
    return { page, size: targets.size };
  });
  if (push.pushOrder.redrive) deps.metrics.redrivenRecipients.inc({ app: push.appId }, size);
  for (const { batch } of page.unroutable)
    deps.metrics.recipients.inc(
      { app: push.appId, connector: batch.connector, outcome: 'failed' },
      batch.recipients.length,
    );
  if (step.isLast && !step.isSmall && page.batches.length === 0) await closePush(deps, push.appId, push.id);
  return through;
}

/** Opens the senders of a fresh push while its first batches are written: a connection takes several round trips. */
function prepareSenders({ pool }: DispatcherDeps, push: Push, { batches }: PageOfBatches): void {
  const { appId, pushOrder } = push;
  const routes = new Map(batches.map((batch) => [`${batch.connector}/${batch.profile}`, batch]));
  for (const { connector, profile } of routes.values())
    pool.prepare({ appId, connector, profile, prod: pushOrder.prod });
}

async function writeRows(
  deps: DispatcherDeps,
  tx: Handle,
  { push: { appId, id: pushId }, priorities }: Plan,
  { page, isQueued }: { page: PageOfBatches; isQueued: boolean },
): Promise<void> {
  const unroutable = page.unroutable.map(({ batch }) => batch);
  await insertBatches(tx, appId, pushId, unroutable);
  for (const { batch, failures } of page.unroutable)
    await insertFailures(tx, { appId, pushId, connector: batch.connector, unanswered: 0 }, failures);
  const batches = page.batches.map((batch) => ({ ...batch, hasJob: isQueued }));
  const ids = await insertBatches(tx, appId, pushId, batches);
  if (!isQueued) return;
  const byConnector = Map.groupBy(page.batches.keys(), (i) => page.batches[i]?.connector ?? 'channel');
  for (const [connector, places] of byConnector) {
    const jobs = places.map((i) => ({ appId, pushId, batchId: ids[i] ?? 0 }));
    const kind = deliverJob(connector);
    const priority = await priorities.next(tx, kind, jobs.length);
    await deps.queue.send(kind, jobs, { tx, priority });
  }
}

/** Delivers the open batches of a small push, then completes its job; also after a crash. */
async function deliverInline(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  { signal, permit }: JobContext,
): Promise<boolean> {
  const { appId, pushId } = job.data;
  const open = await findBatchesWithoutJob(deps.db, appId, pushId);
  const done = await Promise.all(
    open.map((batchId) => deliverBatch(deps, { appId, pushId, batchId }, { signal, permit })),
  );
  if (done.includes(false)) return false;
  if (open.length === 0) await closePush(deps, appId, pushId);
  await deps.queue.complete(planJob, job, deps.db);
  return true;
}
