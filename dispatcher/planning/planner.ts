import { Router, type Target } from '../../connectors/routing.ts';
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
import { targetQuery } from '../../shared/query/targets/targets.ts';
import type { JobContext } from '../../shared/queue/consumer.ts';
import { deliverJob, type PlanJob, planJob, planPriorities } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { deliverBatch } from '../delivery/deliver.ts';
import { FairPriorities } from '../delivery/fair-priorities.ts';
import { parkPlanning, unpark } from '../delivery/pause.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/closing.ts';
import { batchSize, type PageOfBatches, toBatches } from './batches.ts';
import { endBeyondLimit } from './mass-limit.ts';

/**
 * Installations read between two moves of the mark, in one transaction. Up to three pages of each planning
 * are in memory: what is being written, the one after it, the one that is being read.
 */
const pageSize = 5000;

/** A push to many gives its place to others after this long, and goes on where it stopped. */
const sliceMs = 500;

/** A scan of everything an app has may take its time; it holds nothing but a snapshot. */
const scanTimeoutMs = 3_600_000;

/** Another dispatcher plans this push, or it was stopped: what this one has in hand is not kept. */
class Superseded extends Error {
  override name = 'Superseded';
}

interface Plan {
  push: Push;
  app: App;
  router: Router;
  turns: FairPriorities;
  job: Job<PlanJob>;
}

/**
 * Resolves the targets of one push into batches: one cursor, one transaction per page, the mark moved
 * with it, so that a crash goes on behind the mark (develop/architecture.md#life-of-a-push). A push to few is delivered by the same
 * job. True when the job is completed, false when it is to be put back.
 */
export async function planPush(deps: DispatcherDeps, job: Job<PlanJob>, shift: JobContext): Promise<boolean> {
  if (job.data.isRelease) {
    await unpark(deps, job);
    return true;
  }
  const plan = await begin(deps, job);
  if (!plan) return endPlanning(deps, job, shift);
  try {
    const isInline = plan.push.isPlanned || (await scan(deps, plan, shift.signal));
    if (isInline === 'postponed') return true;
    if (shift.signal.aborted && !isInline) return false;
    return isInline ? deliverInline(deps, job, shift) : true;
  } catch (error) {
    if (error instanceof Superseded) return endPlanning(deps, job, shift);
    throw error;
  }
}

/**
 * There is nothing to plan. Paused: the planning waits without a job. Being sent (again): this job goes back,
 * and ends there if another has taken its place. Finished: what no job brings is counted as the gates say.
 */
async function endPlanning(deps: DispatcherDeps, job: Job<PlanJob>, shift: JobContext): Promise<boolean> {
  if (await parkPlanning(deps, job)) return true;
  const push = await findPush(deps.db, job.data.appId, job.data.pushId);
  if (push?.state === 'queued' || push?.state === 'sending') return false;
  return deliverInline(deps, job, shift);
}

/** Takes the push into work; undefined when it is paused, finished, cancelled or of a deleted app. */
async function begin(deps: DispatcherDeps, job: Job<PlanJob>): Promise<Plan | undefined> {
  const { appId, pushId } = job.data;
  const push = await deps.db.transaction((tx) => startPush(tx, appId, pushId));
  const app = push && (await deps.appCache.app(appId));
  if (!push || !app) return undefined;
  const profiles = await deps.appCache.profiles(appId);
  return {
    push,
    app,
    router: new Router(app, profiles, push),
    turns: new FairPriorities(deps.queue, appId),
    job,
  };
}

/** Writes the batches in the app's share of scans; without a place in it the job comes back later. */
async function scan(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<boolean | 'postponed'> {
  const { push, job } = plan;
  const scanned = await deps.scans.run(push.appId, () => writeBatches(deps, plan, signal));
  if ('value' in scanned) return scanned.value;
  const priority = push.plannedThrough === 0 ? planPriorities.fresh : planPriorities.continued;
  await deps.db.transaction(async (tx) => {
    // Another consumer took the job over: that one brings it back.
    if (!(await deps.queue.complete(planJob, job, tx))) return;
    const startAfter = await dueIn(tx, scanned.retryAfterMs);
    await deps.queue.send(planJob, [job.data], { tx, priority, startAfter });
  });
  return 'postponed';
}

/** Writes the batches; true when they are few enough to be delivered right here. */
async function writeBatches(deps: DispatcherDeps, plan: Plan, signal: AbortSignal): Promise<boolean> {
  const { push, app } = plan;
  const query = targetQuery(app, push.pushOrder, { afterId: push.plannedThrough, nowMs: deps.clock.now() });
  const reader = await chooseScanDatabase(deps.db, deps.readDb);
  const targets = () =>
    reader.scan<Target>(query.text, query.values, { rows: pageSize, timeoutMs: scanTimeoutMs });
  let mark = push.plannedThrough;
  if (mark === 0 && (await endBeyondLimit(deps, plan, targets))) return false;
  const endsAtMs = deps.clock.monotonicMs() + sliceMs;
  for await (const { page, isLast } of withLast(targets())) {
    if (signal.aborted) return false;
    const isSmall = isLast && mark === 0 && page.length <= batchSize;
    const isPaused = !isLast && deps.clock.monotonicMs() > endsAtMs;
    mark = await writePage(deps, plan, { page, mark, isLast, isSmall, isPaused });
    if (isLast || isPaused) return isSmall;
  }
  return false;
}

interface Step {
  page: Target[];
  mark: number;
  isLast: boolean;
  /** Few enough to be delivered by this very job. */
  isSmall: boolean;
  /** Others have their turn now; a new job goes on behind the mark. */
  isPaused: boolean;
}

/**
 * One transaction on the primary: batches, their jobs, the mark; with the last page also the end of the
 * planning job, unless it goes on to deliver. Gives the new mark.
 */
async function writePage(deps: DispatcherDeps, plan: Plan, step: Step): Promise<number> {
  const { push, router, job } = plan;
  const through = step.page.at(-1)?.id ?? step.mark;
  const page = toBatches(step.page, router);
  await deps.db.transaction(async (tx) => {
    const isOurs = await advancePlanning(tx, push, {
      from: step.mark,
      through,
      devices: step.page.length,
      isLast: step.isLast,
    });
    if (!isOurs) throw new Superseded();
    await writeRows(deps, tx, plan, { page, isQueued: !step.isSmall });
    if ((step.isLast && !step.isSmall) || step.isPaused) await deps.queue.complete(planJob, job, tx);
    if (step.isPaused) await deps.queue.send(planJob, [job.data], { tx, priority: planPriorities.continued });
  });
  for (const { batch } of page.unroutable)
    deps.metrics.recipients.inc(
      { app: push.appId, connector: batch.connector, outcome: 'failed' },
      batch.recipients.length,
    );
  if (step.isLast && !step.isSmall && page.batches.length === 0) await closePush(deps, push.appId, push.id);
  return through;
}

async function writeRows(
  deps: DispatcherDeps,
  tx: Handle,
  { push: { appId, id: pushId }, turns }: Plan,
  { page, isQueued }: { page: PageOfBatches; isQueued: boolean },
): Promise<void> {
  for (const { batch, failures } of page.unroutable) {
    await insertBatches(tx, appId, pushId, [batch]);
    await insertFailures(tx, { appId, pushId, connector: batch.connector }, failures);
  }
  const batches = page.batches.map((batch) => ({ ...batch, hasJob: isQueued }));
  const ids = await insertBatches(tx, appId, pushId, batches);
  if (!isQueued) return;
  const byConnector = Map.groupBy(page.batches.keys(), (i) => page.batches[i]?.connector ?? 'channel');
  for (const [connector, places] of byConnector) {
    const jobs = places.map((i) => ({ appId, pushId, batchId: ids[i] ?? 0 }));
    const kind = deliverJob(connector);
    const priority = await turns.next(tx, kind, jobs.length);
    await deps.queue.send(kind, jobs, { tx, priority });
  }
}

/** Delivers the batches of a push to few, then completes its one job; resumes after a crash the same way. */
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

/** Says of each page whether it is the last; an empty result is one empty last page. */
async function* withLast(
  pages: AsyncGenerator<Target[]>,
): AsyncGenerator<{ page: Target[]; isLast: boolean }> {
  let held: Target[] | undefined;
  for await (const page of pages) {
    if (held) yield { page: held, isLast: false };
    held = page;
  }
  yield { page: held ?? [], isLast: true };
}
