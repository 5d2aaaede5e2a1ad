import type { Handle } from '../../shared/db/pool.ts';
import { insertBatches } from '../../shared/db/tables/batches.ts';
import type { PointLookup } from '../../shared/db/tables/point-devices.ts';
import { insertFailures } from '../../shared/db/tables/push-failures.ts';
import { advancePlanning, newBatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { originalTarget, type PushOrder } from '../../shared/domain/pushes/push.ts';
import type { OpenPush } from '../../shared/domain/pushes/record.ts';
import {
  continuedPlan,
  deliverJob,
  freshPlan,
  type PlanJob,
  planJob,
} from '../../shared/queue/jobs.ts';
import type { FairPriorities } from '../../shared/queue/push-jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { PageOfBatches, PlannedStart, Rule, TargetPage } from '../../shared/rules/rule.ts';
import { changesPages } from '../../shared/rules/rules.ts';
import type { PlannedBatch } from '../delivery/deliver.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/recorder.ts';
import { wakeWhenDue } from '../recording/unsent.ts';
import { type batchRoutes, toBatches } from './batches.ts';

/**
 * Thrown if a page must be rolled back, because another dispatcher plans the push or because the
 * push was paused or cancelled.
 */
export class Superseded extends Error {
  override name = 'Superseded';
}

export interface Plan {
  push: OpenPush;
  app: App;
  /** Rules that apply to the push (`shared/rules`). Most pushes have none. */
  rules: readonly Rule[];
  routes: ReturnType<typeof batchRoutes>;
  priorities: FairPriorities;
  job: Job<PlanJob>;
  /** Interrupts of the push (`ThreadPool.interruptCount`) before its state was read. */
  interruptCount: number;
  /** Set if the target is a single device. */
  lookup?: PointLookup | undefined;
  /** The start that this job plans, if the push has several starts (local time). */
  start?: PlannedStart | undefined;
  /**
   * Half the expected number of targets. Set if the push is planned as two pages of this size
   * (`AudienceSizes`).
   */
  half?: number | undefined;
}

interface PageStep {
  page: TargetPage;
  /** Recipients of the push that were planned before this page. */
  planned: number;
  /** Planning cursor: the highest installation id that is planned, before and after this page. */
  from: number;
  through: number;
  isLast: boolean;
  /** True if this job also delivers the push. */
  isSmall: boolean;
  /**
   * True if planning stops after this page and a new job continues at the cursor, behind the jobs
   * of other pushes.
   */
  isContinued: boolean;
}

/**
 * A batch that the planning job of a small push delivers. Without `planned` its state must be read.
 */
export interface InlineBatch {
  id: number;
  planned?: PlannedBatch | undefined;
}

/**
 * Writes one page: batches, their jobs and the cursor, in one transaction. With the last page the
 * planning job ends, unless the job also delivers the push. Returns the batches that the job
 * delivers.
 */
export async function writePage(
  deps: DispatcherDeps,
  plan: Plan,
  step: PageStep,
): Promise<readonly InlineBatch[]> {
  const whole = await writeWhole(deps, plan, step);
  if (whole) return whole;
  const written = await deps.db.transaction((tx) => writeRuledPage(deps, tx, plan, step));
  await countPage(deps, plan, { ...step, ...written });
  return written.batchIds.map((id) => ({ id }));
}

/**
 * Writes the only page of a small push. Many small pushes share this statement. Returns the
 * batches. Returns undefined without a change if a rule changes pages, if a device has no route, if
 * the push is locked, or if the push must not be planned any more.
 */
async function writeWhole(
  { queries }: DispatcherDeps,
  plan: Plan,
  step: PageStep,
): Promise<InlineBatch[] | undefined> {
  if (!step.isSmall || plan.rules.some(changesPages)) return undefined;
  const { batches, unsent } = toBatches(step.page, contextOf(plan, step));
  if (unsent.length > 0) return undefined;
  const { push, interruptCount } = plan;
  const { appId, id } = push;
  const devices = step.page.size;
  const ids = await queries.planWhole({ appId, id, through: step.through, devices, batches });
  const plannedPush = { push: withoutCondition(push), interruptCount };
  const planned = batches.map((batch) => ({
    stored: newBatchSnapshot(push, batch),
    plannedPush,
  }));
  return ids?.map((batchId, i) => ({ id: batchId, planned: planned[i] }));
}

/**
 * Returns a planned push as the sending threads need it: without its condition and device ids,
 * which may be large. The channels remain, because the message contains them.
 */
function withoutCondition(push: OpenPush): OpenPush {
  const { redrive: _, ...order } = push.pushOrder;
  const target = originalTarget(push.pushOrder);
  const channels = target.kind === 'query' ? target.channels : null;
  const pushOrder: PushOrder = { ...order, target: { kind: 'query', where: {}, channels } };
  return { ...push, state: 'sending', pushOrder };
}

const contextOf = ({ push, routes, half }: Plan, { planned }: PageStep) => ({
  routes,
  flowControl: push.pushOrder.flowControl,
  planned,
  isHalved: half !== undefined,
});

/**
 * Applies the rules to a page and writes the result. Returns what was written, and the number of
 * targets that the rules left.
 */
async function writeRuledPage(
  deps: DispatcherDeps,
  tx: Handle,
  plan: Plan,
  step: PageStep,
): Promise<{ written: PageOfBatches; size: number; batchIds: number[] }> {
  const { push, rules, start } = plan;
  const { from, through, isLast } = step;
  let targets = step.page;
  for (const rule of rules) targets = (await rule.claim?.(tx, push, targets)) ?? targets;
  const advance = { from, through, devices: targets.size, isLast };
  const isOurs = await (start
    ? start.advance(tx, push, advance)
    : advancePlanning(tx, push, advance));
  if (!isOurs) throw new Superseded();
  for (const rule of rules) await rule.count?.(tx, push, targets);
  let page = toBatches(targets, contextOf(plan, step));
  for (const rule of rules) page = (await rule.batches?.(tx, push, page)) ?? page;
  for (const rule of rules) await rule.record?.(tx, push, page);
  const batchIds = await writeRows(deps, tx, plan, { page, isQueued: !step.isSmall });
  await endJob(deps, tx, plan, step);
  return { written: page, size: targets.size, batchIds };
}

/**
 * Updates the metrics for a page. Closes the push if it has nothing to send, and schedules its next
 * start.
 */
async function countPage(
  deps: DispatcherDeps,
  { push: { appId: app, id }, rules, start }: Plan,
  { written, size, isLast, isSmall }: PageStep & { written: PageOfBatches; size: number },
): Promise<void> {
  for (const { metric, labels, recipients } of rules.flatMap(
    (rule) => rule.tally?.(written, size) ?? [],
  )) {
    const counter: { inc(labels: Record<string, string>, by: number): void } = deps.metrics[metric];
    if (recipients > 0) counter.inc({ app, ...labels }, recipients);
  }
  for (const { batch, outcome } of written.unsent)
    deps.metrics.recipients.inc(
      { app, connector: batch.connector, outcome },
      batch.recipients.length,
    );
  if (isLast && start?.next) wakeWhenDue(deps, planJob, start.next.getTime() - deps.clock.now());
  if (isLast && !isSmall && written.batches.length === 0)
    await closePush(deps, { appId: app, pushId: id });
}

/**
 * Ends the planning job after the last page, unless the job delivers the push. If planning
 * continues later, a new job replaces this one.
 */
async function endJob(
  { queue }: DispatcherDeps,
  tx: Handle,
  { job, start }: Plan,
  step: PageStep,
): Promise<void> {
  if ((step.isLast && !step.isSmall) || step.isContinued) await queue.end(planJob, job, tx);
  if (step.isContinued) await queue.send(planJob, [job.data], { tx, ...continuedPlan });
  if (step.isLast && start?.next) await sendStart(queue, tx, job.data, start.next);
}

/** Writes the planning job of a later start of a push. */
export const sendStart = (
  queue: DispatcherDeps['queue'],
  tx: Handle,
  job: PlanJob,
  startAfter: Date,
): Promise<void> =>
  queue.send(planJob, [{ ...job, waitedUntilMs: startAfter.getTime() }], {
    tx,
    ...freshPlan,
    startAfter,
  });

const noBytes = new Uint8Array();

/**
 * Writes the batches of a page, and the jobs that send them. Returns the ids of the batches to
 * send.
 */
async function writeRows(
  deps: DispatcherDeps,
  tx: Handle,
  { push: { appId, id: pushId }, priorities, job: { data: job } }: Plan,
  { page, isQueued }: { page: PageOfBatches; isQueued: boolean },
): Promise<number[]> {
  const ended = page.unsent.map(({ batch }) => batch);
  const endedIds = await insertBatches(tx, appId, pushId, ended);
  await insertFailures(
    tx,
    page.unsent.map(({ batch: { connector, profile }, failures }) => ({
      batch: { appId, pushId, connector, profile, unanswered: 0 },
      failures,
    })),
  );
  await deps.webhooks.emitOutcomes(
    tx,
    endedIds.map((id, i) => ({ appId, id, bytes: ended[i]?.settled?.codes ?? noBytes })),
  );
  const batches = page.batches.map((batch) => ({ ...batch, hasJob: isQueued }));
  const ids = await insertBatches(tx, appId, pushId, batches);
  if (!isQueued) return ids;
  const jobBase = { appId, pushId, waitedUntilMs: job.waitedUntilMs };
  const groups = Map.groupBy(page.batches.keys(), (i) => {
    const { connector = 'channel', notBefore } = page.batches[i] ?? {};
    return `${connector} ${notBefore?.getTime() ?? ''}`;
  });
  for (const indexes of groups.values()) {
    const { connector = 'channel', notBefore: startAfter } = page.batches[indexes[0] ?? 0] ?? {};
    const jobs = indexes.map((i) => ({ ...jobBase, batchId: ids[i] ?? 0 }));
    const kind = deliverJob(connector);
    const priority = await priorities.next(tx, kind, jobs.length);
    await deps.queue.send(kind, jobs, { tx, priority, ...(startAfter ? { startAfter } : {}) });
  }
  return ids;
}
