import { Router } from '../../connectors/routing.ts';
import { dueIn } from '../../shared/db/clock.ts';
import { chooseScanDatabase } from '../../shared/db/standby.ts';
import { findBatchesWithoutJob } from '../../shared/db/tables/pushes/batches.ts';
import { startPush } from '../../shared/db/tables/pushes/progress.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import type { JobContext } from '../../shared/queue/consuming/consumer.ts';
import { continuedPlan, freshPlan, type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { deliverBatch } from '../delivery/deliver.ts';
import { FairPriorities } from '../delivery/fair-priorities.ts';
import { holdFrozen } from '../delivery/hold.ts';
import { parkPlanning, unpark } from '../delivery/pause.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/closing.ts';
import { planSmall } from '../small/plan-small.ts';
import { waitForApproval } from './approval.ts';
import { LanguageRoutes } from './language-routes.ts';
import { openStart } from './local-start.ts';
import { endBeyondLimit } from './mass-limit.ts';
import { type Plan, Superseded, writePage } from './page-writer.ts';
import { firstBatchSize, noPages, type PlannedPage, readPages } from './pages.ts';
import { quietRoutesOf } from './quiet-routes.ts';

/** Time after which the planning of a large push lets others go first; a new job continues it. */
const turnMs = 500;

/**
 * Resolves the targets of one push into batches: by pages, with one transaction for each that also moves the planning
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
  deps.pushCache.add(push);
  const router = new Router(app, profiles, push);
  const translations = push.pushOrder.languages;
  const languages = translations && new LanguageRoutes(router, translations);
  return {
    push,
    app,
    router,
    languages,
    quiet: quietRoutesOf({ push, app, router, languages, nowMs: deps.clock.now() }),
    priorities: new FairPriorities(deps.queue, appId),
    job,
  };
}

/** Writes the batches within the app's share of scans; beyond it the job is postponed. */
async function scan(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<boolean | 'postponed'> {
  const { push, job } = plan;
  const scanned = await deps.scans.run(push.appId, () => writeInTurn(deps, plan, signal));
  if ('value' in scanned) return scanned.value;
  const kind = push.plannedThrough === 0 ? freshPlan : continuedPlan;
  await deps.db.transaction(async (tx) => {
    // Another consumer has taken over the job and postpones it.
    if (!(await deps.queue.complete(planJob, job, tx))) return;
    const startAfter = await dueIn(tx, scanned.retryAfterMs);
    await deps.queue.send(planJob, [job.data], { tx, ...kind, startAfter });
  });
  return 'postponed';
}

/** Runs one turn of planning and records its time; the push is not closed before its end. */
async function writeInTurn(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<boolean> {
  const { clock, closer, metrics } = deps;
  const { appId, id } = plan.push;
  const startedAtMs = clock.monotonicMs();
  closer.begin(id);
  try {
    return await writeBatches(deps, plan, signal);
  } finally {
    metrics.planningSeconds.observe((clock.monotonicMs() - startedAtMs) / 1000);
    if (closer.end(id)) await closePush(deps, appId, id);
  }
}

/**
 * Writes the batches, of a push at local time those of one start. Returns true when the push is small enough for this job to
 * deliver it.
 */
async function writeBatches(deps: DispatcherDeps, begun: Plan, signal: AbortSignal): Promise<boolean> {
  const { push, app } = begun;
  const database = await chooseScanDatabase(deps.db, deps.readDb);
  deps.metrics.scans.inc({ database: database.url === deps.db.url ? 'primary' : 'standby' });
  const start = await openStart(deps, database, begun);
  if (start === 'early') return false;
  const half = start ? undefined : deps.audienceSizes.halfOf(push);
  const plan = { ...begun, start, half };
  const reader = {
    database,
    app,
    push,
    clock: deps.clock,
    hasZones: begun.quiet !== undefined,
    firstSize: half,
  };
  const isFresh = push.plannedThrough === 0;
  if (isFresh && !start?.after && (await endBeyondLimit(deps, plan, () => readPages(reader)))) return false;
  if (isFresh && (await waitForApproval(deps, plan, () => readPages(reader)))) return false;
  return writePages(deps, plan, {
    pages: start?.isEmpty ? noPages() : readPages(reader, start?.zones),
    signal,
  });
}

async function writePages(
  deps: DispatcherDeps,
  plan: Plan,
  { pages, signal }: { pages: AsyncIterable<PlannedPage>; signal: AbortSignal },
): Promise<boolean> {
  let mark = plan.push.plannedThrough;
  let planned = plan.push.devices;
  const endsAtMs = deps.clock.monotonicMs() + turnMs;
  for await (const { page, isLast, endsRead } of pages) {
    if (signal.aborted) return false;
    const isSmall = !plan.start && isLast && mark === 0 && page.size <= firstBatchSize;
    // What a statement has found is written: the next turn would search for it again.
    const isContinued = !isLast && endsRead && deps.clock.monotonicMs() > endsAtMs;
    mark = await writePage(deps, plan, { page, planned, mark, isLast, isSmall, isContinued });
    planned += page.size;
    deps.metrics.plannedRecipients.inc(page.size);
    if (isLast && !plan.start) deps.audienceSizes.note(plan.push, planned);
    if (isLast || isContinued) return isSmall;
  }
  return false;
}

/** Delivers the open batches of a small push, then completes its job; also after a crash. */
async function deliverInline(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  { signal, permit }: JobContext,
): Promise<boolean> {
  const { appId, pushId, waitedUntilMs } = job.data;
  const open = await findBatchesWithoutJob(deps.db, appId, pushId);
  const done = await Promise.all(
    open.map((batchId) => deliverBatch(deps, { appId, pushId, batchId, waitedUntilMs }, { signal, permit })),
  );
  if (done.includes(false)) return false;
  if (open.length === 0) await closePush(deps, appId, pushId);
  await deps.queue.complete(planJob, job, deps.db);
  return true;
}
