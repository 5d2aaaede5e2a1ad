import { Router } from '../../connectors/routing.ts';
import { isInvalidValue } from '../../shared/db/limits/database-errors.ts';
import type { Database } from '../../shared/db/pool.ts';
import { dueIn } from '../../shared/db/query.ts';
import { chooseScanDatabase } from '../../shared/db/standby.ts';
import { findBatchesWithoutJob } from '../../shared/db/tables/batches.ts';
import { findPush } from '../../shared/db/tables/pushes.ts';
import { channelRoutingKey } from '../../shared/db/tables/routing-keys.ts';
import { channelRecipient } from '../../shared/domain/pushes/live-activity.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { activeSince, pointTarget, targetsOf } from '../../shared/query/targets/targets.ts';
import type { JobContext, JobEnd } from '../../shared/queue/consumer.ts';
import { continuedPlan, freshPlan, type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import { FairPriorities } from '../../shared/queue/push-jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { failedPush } from '../../shared/rules/admission.ts';
import type { PlannedStart, Rule, Stop } from '../../shared/rules/rule.ts';
import { rulesOf } from '../../shared/rules/rules.ts';
import { deliverBatch } from '../delivery/deliver.ts';
import { holdPlanning } from '../delivery/holding.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/recorder.ts';
import { batchRoutes } from './batches.ts';
import { type InlineBatch, type Plan, Superseded, sendStart, writePage } from './page-writer.ts';
import { firstBatchSize, type PlannedPage, readPages, singlePage } from './pages.ts';

/** Time after which the planning of a large push yields to other pushes. A new job continues it. */
const yieldAfterMs = 500;

/**
 * Plans one push: resolves its targets into batches, page by page. Each page is one transaction
 * that also moves the planning cursor, so that planning continues at the cursor after a crash
 * (develop/architecture.md#life-of-a-push). The planning job of a small push also delivers it.
 */
export async function planPush(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  context: JobContext,
): Promise<JobEnd> {
  if (await deps.freezes.isFrozen(job.data.appId)) {
    const end = await holdPlanning(deps, job);
    if (end !== 'changed') return end;
  }
  const plan = await begin(deps, job);
  if (!plan) return endPlanning(deps, job, context);
  try {
    const end = plan.push.isPlanned ? {} : await scan(deps, plan, context.signal);
    return typeof end === 'string' ? end : deliverInline(deps, job, { ...context, ...end });
  } catch (error) {
    if (error instanceof Superseded) return endPlanning(deps, job, context);
    // PostgreSQL fails at the condition: each further try would fail too.
    const end = { message: reason('conditionFailed'), totals: {}, devices: 0 };
    if (isInvalidValue(error) && (await stopPlanning(deps, plan, failedPush(plan.push, end))))
      return 'done';
    throw error;
  }
}

/**
 * Ends a job that has nothing to plan. A paused push is held. If the push is still being sent, the
 * job returns to the queue until another job has taken over. If the push has finished, the gates
 * count its remaining batches.
 */
async function endPlanning(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  context: JobContext,
): Promise<JobEnd> {
  const end = await holdPlanning(deps, job);
  if (end !== 'changed') return end;
  const push = await findPush(deps.db, job.data.appId, job.data.pushId);
  if (push?.state === 'queued' || push?.state === 'sending') return 'again';
  return deliverInline(deps, job, context);
}

/**
 * Reads the push of a planning job. Returns undefined if the push is paused, finished or cancelled,
 * or if its app was deleted.
 */
async function begin(deps: DispatcherDeps, job: Job<PlanJob>): Promise<Plan | undefined> {
  const { appId, pushId } = job.data;
  // Read before the state of the push, so that a later pause or cancellation changes the count.
  const interruptCount = deps.pool.interruptCount(pushId);
  const [push, app, profiles] = await Promise.all([
    deps.queries.findPush({ appId, id: pushId }),
    deps.appCache.app(appId),
    deps.appCache.profiles(appId),
  ]);
  if (!push || !app || !(push.state === 'queued' || push.state === 'sending')) return undefined;
  const router = new Router(app, profiles, push);
  const { clock } = deps;
  // Rules read the time again for each page, because a scan may outlast quiet hours.
  const ruled = {
    app,
    push,
    router,
    get nowMs() {
      return clock.now();
    },
  };
  const all = rulesOf(ruled);
  const target = all.some(appliesToOne) ? undefined : pointTarget(appId, push.pushOrder);
  const rules = target ? [] : all;
  return {
    push,
    app,
    rules,
    job,
    interruptCount,
    routes: batchRoutes(router, rules),
    priorities: new FairPriorities(appId),
    lookup: target && { ...target, appId, activeSince: activeSince(app, clock.now()) },
  };
}

/** Returns whether a rule also changes a push to one device. */
const appliesToOne = ({ aboveDevices = 0 }: Rule): boolean => aboveDevices < 1;

/**
 * Batches that the planning job of a small push delivers. Without `inline` it reads them from the
 * database.
 */
interface Inline {
  inline?: readonly InlineBatch[];
}

type ScanEnd = JobEnd | Inline;

/**
 * Plans until the push is planned or `yieldAfterMs` is over, within the app's share of scans. If the
 * share is used up, the job is postponed. A push to one device needs no scan.
 */
async function scan(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<ScanEnd> {
  const { push, job } = plan;
  const write = () => {
    const startedAtMs = deps.clock.monotonicMs();
    const observe = () =>
      deps.metrics.planningSeconds.observe((deps.clock.monotonicMs() - startedAtMs) / 1000);
    return writeBatches(deps, plan, signal).finally(observe);
  };
  if (plan.lookup) return write();
  const scanned = await deps.scans.run(push.appId, write);
  if ('value' in scanned) return scanned.value;
  const kind = push.plannedThrough === 0 ? freshPlan : continuedPlan;
  await deps.db.transaction(async (tx) => {
    if (!(await deps.queue.end(planJob, job, tx))) return;
    const startAfter = await dueIn(tx, scanned.retryAfterMs);
    await deps.queue.send(planJob, [job.data], { tx, ...kind, startAfter });
  });
  return 'done';
}

/** Writes the batches of a push, or of one start of a push with several starts. */
async function writeBatches(
  deps: DispatcherDeps,
  begun: Plan,
  signal: AbortSignal,
): Promise<ScanEnd> {
  const { push, app, rules, job, lookup } = begun;
  if (lookup) {
    const device = await deps.queries.findDevice(lookup);
    return writePages(deps, begun, { pages: singlePage(device ? [device] : []), signal });
  }
  if (push.pushOrder.liveActivity?.target.kind === 'channel')
    return writePages(deps, begun, { pages: singlePage([channelTarget]), signal });
  const database = await chooseScanDatabase(deps.db, deps.readDb);
  deps.metrics.scans.inc({ database: database.url === deps.db.url ? 'primary' : 'standby' });
  const start = await openStart(deps, database, begun);
  if (start?.waitsUntil) {
    const { waitsUntil } = start;
    await deps.db.transaction(async (tx) => {
      if (await deps.queue.end(planJob, job, tx))
        await sendStart(deps.queue, tx, job.data, waitsUntil);
    });
    return 'done';
  }
  const half = start ? undefined : deps.audienceSizes.halfOf(push);
  const plan = { ...begun, start, half };
  const hasZones = rules.some(({ readsZones }) => readsZones === true);
  const reader = { database, app, push, clock: deps.clock, hasZones, firstSize: half };
  if (push.plannedThrough === 0 && (await isStopped(deps, plan, () => readPages(reader))))
    return 'done';
  const pages = start?.part === null ? singlePage([]) : readPages(reader, start?.part);
  return writePages(deps, plan, { pages, signal });
}

/** The only recipient of a broadcast. APNs itself knows the devices. */
const channelTarget = { id: channelRecipient, routingKey: channelRoutingKey };

/** Opens the next start to plan. Returns undefined if the push has only one start. */
async function openStart(
  { db, clock }: DispatcherDeps,
  scanDb: Database,
  { push, app, rules }: Plan,
): Promise<PlannedStart | undefined> {
  const rule = rules.find(({ start }) => start !== undefined);
  if (!rule) return undefined;
  const targets = targetsOf(app, push.pushOrder, clock.now());
  return rule.start?.({ db, scanDb, push, targets });
}

/**
 * Asks the rules whether a new push may be sent. Returns true if a rule ended the push or makes it
 * wait. The planning job is ended then.
 */
async function isStopped(
  deps: DispatcherDeps,
  plan: Plan,
  readAgain: () => AsyncIterable<PlannedPage>,
): Promise<boolean> {
  async function* pages() {
    for await (const { page } of readAgain()) yield page;
  }
  const scope = { db: deps.db, push: plan.push, isFirstStart: !plan.start?.isLater, pages };
  for (const rule of plan.rules) {
    const stop = await rule.admit?.(scope);
    if (stop && (await stopPlanning(deps, plan, stop))) return true;
  }
  return false;
}

/** Ends the planning job of a push that is not sent now. Returns false if nothing was changed. */
async function stopPlanning(
  deps: DispatcherDeps,
  { push, job }: Plan,
  stop: Stop,
): Promise<boolean> {
  const hasStopped = await deps.db.transaction(async (tx) => {
    if (!(await stop.write(tx))) return false;
    await deps.webhooks.emit(tx, { appId: push.appId, ...stop.event });
    await deps.queue.end(planJob, job, tx);
    return true;
  });
  if (hasStopped)
    for (const [connector, failed] of stop.failed ?? [])
      deps.metrics.recipients.inc({ app: push.appId, connector, outcome: 'failed' }, failed);
  return hasStopped;
}

async function writePages(
  deps: DispatcherDeps,
  plan: Plan,
  { pages, signal }: { pages: AsyncIterable<PlannedPage>; signal: AbortSignal },
): Promise<ScanEnd> {
  let cursor = plan.push.plannedThrough;
  let planned = plan.push.devices;
  const endsAtMs = deps.clock.monotonicMs() + yieldAfterMs;
  for await (const { page, isLast, endsRead } of pages) {
    if (signal.aborted) return 'again';
    const isSmall = !plan.start && isLast && cursor === 0 && page.size <= firstBatchSize;
    // All rows of a statement are written before planning yields, so that no scan is repeated.
    const isContinued = !isLast && endsRead && deps.clock.monotonicMs() > endsAtMs;
    const from = cursor;
    cursor = page.lastId || from;
    const step = { page, planned, from, through: cursor, isLast, isSmall, isContinued };
    const inline = await writePage(deps, plan, step);
    planned += page.size;
    deps.metrics.plannedRecipients.inc(page.size);
    if (isLast && !plan.start) deps.audienceSizes.record(plan.push, planned);
    if (isLast || isContinued) return isSmall ? { inline } : 'done';
  }
  return 'done';
}

/**
 * Delivers the open batches of a small push, then ends its planning job. A retaken job continues
 * with the batches that are still open.
 */
async function deliverInline(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  { signal, concurrencySlot, inline }: JobContext & Inline,
): Promise<JobEnd> {
  const { appId, pushId, waitedUntilMs } = job.data;
  const open: readonly InlineBatch[] =
    inline ?? (await findBatchesWithoutJob(deps.db, appId, pushId)).map((id) => ({ id }));
  const only =
    open.length === 1 ? { job, isEnded: false, isClosed: false, firstSentAt: null } : undefined;
  const deliver = ({ id: batchId, planned }: InlineBatch) =>
    deliverBatch(
      deps,
      { appId, pushId, batchId, waitedUntilMs },
      { signal, concurrencySlot, only, planned },
    );
  // If one batch fails, the job must not return to the queue while others are being sent.
  const ends = await Promise.allSettled(open.map(deliver));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  if (ends.some((end) => end.status === 'fulfilled' && end.value === 'again')) return 'again';
  if (!only?.isEnded) await closePush(deps, job.data, job);
  return 'done';
}
