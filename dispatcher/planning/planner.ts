import { Router } from '../../connectors/routing.ts';
import { dueIn } from '../../shared/db/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { chooseScanDatabase } from '../../shared/db/standby.ts';
import { findBatchesWithoutJob } from '../../shared/db/tables/pushes/batches.ts';
import { startPush } from '../../shared/db/tables/pushes/progress.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import { Params, targetCondition } from '../../shared/query/targets/targets.ts';
import type { JobContext } from '../../shared/queue/consuming/consumer.ts';
import { continuedPlan, freshPlan, type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { PlannedStart } from '../../shared/rules/rule.ts';
import { rulesOf } from '../../shared/rules/rules.ts';
import { deliverBatch } from '../delivery/deliver.ts';
import { FairPriorities } from '../delivery/fair-priorities.ts';
import { holdFrozen } from '../delivery/hold.ts';
import { parkPlanning, unpark } from '../delivery/pause.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/closing.ts';
import { planSmall } from '../small/plan-small.ts';
import { batchRoutes } from './batches.ts';
import { type Plan, Superseded, sendStart, writePage } from './page-writer.ts';
import { firstBatchSize, noPages, type PlannedPage, readPages } from './pages.ts';

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
  const rules = rulesOf({ app, push, router, nowMs: deps.clock.now() });
  const routes = batchRoutes(router, rules);
  return { push, app, router, rules, routes, priorities: new FairPriorities(deps.queue, appId), job };
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
 * Writes the batches; of a push with several starts, those of one start. Returns true when the push is small enough
 * for this job to deliver it.
 */
async function writeBatches(deps: DispatcherDeps, begun: Plan, signal: AbortSignal): Promise<boolean> {
  const { push, app, rules, job } = begun;
  const database = await chooseScanDatabase(deps.db, deps.readDb);
  deps.metrics.scans.inc({ database: database.url === deps.db.url ? 'primary' : 'standby' });
  const start = await openStart(deps, database, begun);
  if (start?.waitsUntil) {
    await postponeStart(deps, job, start.waitsUntil);
    return false;
  }
  const half = start ? undefined : deps.audienceSizes.halfOf(push);
  const plan = { ...begun, start, half };
  const hasZones = rules.some(({ readsZones }) => readsZones === true);
  const reader = { database, app, push, clock: deps.clock, hasZones, firstSize: half };
  if (push.plannedThrough === 0 && (await isStopped(deps, plan, () => readPages(reader)))) return false;
  const pages = start?.part === null ? noPages() : readPages(reader, start?.part);
  return writePages(deps, plan, { pages, signal });
}

/** Opens the start that is planned next; undefined for a push that has one start. */
async function openStart(
  { db, clock }: DispatcherDeps,
  scanDb: Database,
  { push, app, rules }: Plan,
): Promise<PlannedStart | undefined> {
  const rule = rules.find(({ start }) => start !== undefined);
  if (!rule) return undefined;
  const params = new Params();
  const text = targetCondition(app, push.pushOrder, { params, nowMs: clock.now() });
  return rule.start?.({ db, scanDb, push, targets: { text, values: params.values } });
}

/** Postpones the job of a start whose time has not come. */
async function postponeStart({ db, queue }: DispatcherDeps, job: Job<PlanJob>, at: Date): Promise<void> {
  await db.transaction(async (tx) => {
    if (await queue.complete(planJob, job, tx)) await sendStart(queue, tx, job.data, at);
  });
}

/** Asks the rules whether a fresh push is sent. Returns true, with the job completed, when it ended or waits. */
async function isStopped(
  deps: DispatcherDeps,
  { push, rules, start, job }: Plan,
  readAgain: () => AsyncIterable<PlannedPage>,
): Promise<boolean> {
  async function* pages() {
    for await (const { page } of readAgain()) yield page;
  }
  const scope = { db: deps.db, push, isFirstStart: !start?.isLater, pages };
  for (const rule of rules) {
    const stop = await rule.admit?.(scope);
    const hasStopped =
      stop &&
      (await deps.db.transaction(async (tx) => {
        if (!(await stop.write(tx))) return false;
        await deps.queue.complete(planJob, job, tx);
        return true;
      }));
    if (!hasStopped) continue;
    for (const [connector, failed] of stop.failed ?? [])
      deps.metrics.recipients.inc({ app: push.appId, connector, outcome: 'failed' }, failed);
    return true;
  }
  return false;
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
