import type { Router } from '../../connectors/routing.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { countFallbacksOf } from '../../shared/db/tables/installations/field-values.ts';
import { insertBatches } from '../../shared/db/tables/pushes/batches.ts';
import { advancePlanning } from '../../shared/db/tables/pushes/progress.ts';
import { addCounts } from '../../shared/db/tables/pushes/reports/languages.ts';
import { insertFailures } from '../../shared/db/tables/pushes/reports/recipient-failures.ts';
import { advanceLocalPlanning } from '../../shared/db/tables/pushes/starts/local-starts.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { deviceCapOf } from '../../shared/domain/pushes/push-class.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import {
  continuedPlan,
  type DeliverJob,
  deliverJob,
  type JobKind,
  type PlanJob,
  planJob,
} from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { queueBatches } from '../../shared/queue/queued-pushes.ts';
import type { FairPriorities } from '../delivery/fair-priorities.ts';
import type { DispatcherDeps } from '../deps.ts';
import { closePush } from '../recording/closing.ts';
import { type PageOfBatches, toBatches } from './batches.ts';
import { claimPage, withoutPlanned } from './claims.ts';
import { capDevices, cappedOf } from './device-cap.ts';
import type { LanguageRoutes } from './language-routes.ts';
import { batchesOfStart, countStart, type LocalStart, sendStart } from './local-start.ts';
import { firstBatchSize, type TargetPage } from './pages.ts';
import { addWaitsOf, countQuiet, holdQuiet } from './quiet-hours.ts';
import type { QuietRoutes } from './quiet-routes.ts';

/** Error of a page that is not kept: another dispatcher plans the push, or it was stopped. */
export class Superseded extends Error {
  override name = 'Superseded';
}

export interface Plan {
  push: Push;
  app: App;
  router: Router;
  priorities: FairPriorities;
  job: Job<PlanJob>;
  /** Present for a push with translations. */
  languages?: LanguageRoutes | undefined;
  /** Present for a push with quiet hours. */
  quiet?: QuietRoutes | undefined;
  /** Present for a push at local time. */
  start?: LocalStart | undefined;
  /** Targets of each of two pages; present where the push probably has twice as many. */
  half?: number | undefined;
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
export async function writePage(deps: DispatcherDeps, plan: Plan, step: PageStep): Promise<number> {
  const { push, start, languages } = plan;
  deps.closer.expectBatches(push.id);
  const through = step.page.lastId || step.mark;
  const terms = routingOf(plan, step);
  const routedPage = hasBatchesOnly(deps, plan, step) ? toBatches(step.page, terms) : undefined;
  const kind = routedPage && oneQueueOf(routedPage);
  if (routedPage && kind) {
    await writePlainPage(deps, plan, { ...step, kind, batches: routedPage.batches });
    return through;
  }
  const { page, size } = await deps.db.transaction(async (tx) => {
    const targets = start
      ? await withoutPlanned(tx, push, { page: step.page, start })
      : await claimPage(tx, push, step.page);
    const advance = { from: step.mark, through, devices: targets.size, isLast: step.isLast };
    const isOurs = start
      ? await advanceLocalPlanning(tx, push, { ...advance, ...start })
      : await advancePlanning(tx, push, advance);
    if (!isOurs) throw new Superseded();
    if (languages) await addCounts(tx, push, 'languages', languages.countOf(targets));
    await countVariables(tx, push, targets);
    const routed = routedPage ?? (start ? batchesOfStart(targets, terms, start) : toBatches(targets, terms));
    const page = await capDevices(tx, plan, plan.quiet ? holdQuiet(deps, push, routed) : routed);
    // After the limit per device: who is beyond it waits for nothing.
    if (plan.quiet) await addWaitsOf(tx, push, page);
    if (!step.isSmall) prepareSenders(deps, push, { ...page, mark: step.mark });
    await writeRows(deps, tx, plan, { page, isQueued: !step.isSmall });
    await endJob(deps, tx, plan, step);
    return { page, size: targets.size };
  });
  if (push.pushOrder.redrive) deps.metrics.redrivenRecipients.inc({ app: push.appId }, size);
  const capped = cappedOf(page);
  if (capped > 0) deps.metrics.deviceCapped.inc({ app: push.appId }, capped);
  if (plan.quiet) countQuiet(deps, push, page);
  if (start) countStart(deps, push, { start, size, isLast: step.isLast });
  for (const { batch, outcome } of page.unroutable)
    deps.metrics.recipients.inc(
      { app: push.appId, connector: batch.connector, outcome },
      batch.recipients.length,
    );
  if (step.isLast && !step.isSmall && page.batches.length === 0) await closePush(deps, push.appId, push.id);
  return through;
}

const routingOf = ({ push, router, languages, quiet, half }: Plan, { planned }: PageStep) => ({
  router: quiet ?? languages ?? router,
  flowControl: push.pushOrder.flowControl,
  planned,
  isHalved: half !== undefined,
});

/** Batches of one queue, and the kind of their jobs. */
interface PlainPage {
  batches: PageOfBatches['batches'];
  kind: JobKind<DeliverJob>;
}

/** Returns whether nothing but batches and jobs is written with a page; false in a spread database. */
function hasBatchesOnly({ queue }: DispatcherDeps, plan: Plan, step: PageStep): boolean {
  const { push, app, languages, quiet, start } = plan;
  const { redrive, variables } = push.pushOrder;
  if (queue.isSpread || step.isSmall || step.isContinued) return false;
  if (start || languages || quiet || redrive || variables) return false;
  return deviceCapOf(push.pushOrder, app.options) === null;
}

/** Returns the kind of the jobs of a page that one connector sends; undefined for any other page. */
function oneQueueOf({ batches, unroutable }: PageOfBatches): JobKind<DeliverJob> | undefined {
  const [first] = batches;
  if (!first || unroutable.length > 0) return undefined;
  if (batches.some(({ connector }) => connector !== first.connector)) return undefined;
  return deliverJob(first.connector);
}

/** Writes a page by one statement instead of a transaction of seven. */
async function writePlainPage(
  deps: DispatcherDeps,
  { push, priorities, job }: Plan,
  { page, mark, isLast, batches, kind }: PageStep & PlainPage,
): Promise<void> {
  prepareSenders(deps, push, { batches, mark });
  const last = await queueBatches(deps.db, deps.queue, {
    ...{ appId: push.appId, pushId: push.id, kind, job },
    batches: batches.map((batch) => ({ ...batch, hasJob: true })),
    step: { from: mark, through: page.lastId, devices: page.size, isLast },
    lastPriority: priorities.lastOf(kind),
  });
  if (last === undefined) throw new Superseded();
  priorities.note(kind, last);
}

/** Counts the recipients of a page by what the variables of the push stand for. */
async function countVariables(tx: Handle, push: Push, { idsByTraits }: TargetPage): Promise<void> {
  const { variables } = push.pushOrder;
  if (!variables) return;
  const ids = [...idsByTraits.values()].flat();
  await addCounts(tx, push, 'variables', await countFallbacksOf(tx, { appId: push.appId, ids }, variables));
}

/** Ends the planning job with the last page, unless it delivers the push, or where a new job continues. */
async function endJob(
  { queue }: DispatcherDeps,
  tx: Handle,
  { job, start }: Plan,
  step: PageStep,
): Promise<void> {
  if ((step.isLast && !step.isSmall) || step.isContinued) await queue.complete(planJob, job, tx);
  if (step.isContinued) await queue.send(planJob, [job.data], { tx, ...continuedPlan });
  if (step.isLast && start?.next) await sendStart(queue, tx, job.data, start.next);
}

/**
 * Opens senders while batches are written: a connection takes several round trips. Those of the threads for large batches with the
 * second page, so that they take no processor time from the first batch of a push; with the first page where that batch is large.
 */
function prepareSenders(
  { pool }: DispatcherDeps,
  { appId, pushOrder }: Push,
  { batches, mark }: Pick<PageOfBatches, 'batches'> & { mark: number },
): void {
  const routes = new Map(batches.map((batch) => [`${batch.connector}/${batch.profile}`, batch]));
  for (const { connector, profile, recipients } of routes.values()) {
    const lane = mark === 0 && recipients.length <= firstBatchSize ? 'express' : 'bulk';
    pool.prepare({ appId, connector, profile, prod: pushOrder.prod }, lane);
  }
}

async function writeRows(
  deps: DispatcherDeps,
  tx: Handle,
  { push: { appId, id: pushId }, priorities, job: { data: job } }: Plan,
  { page, isQueued }: { page: PageOfBatches; isQueued: boolean },
): Promise<void> {
  const unroutable = page.unroutable.map(({ batch }) => batch);
  await insertBatches(tx, appId, pushId, unroutable);
  for (const { batch, failures } of page.unroutable)
    await insertFailures(
      tx,
      { appId, pushId, connector: batch.connector, profile: batch.profile, unanswered: 0 },
      failures,
    );
  const batches = page.batches.map((batch) => ({ ...batch, hasJob: isQueued }));
  const ids = await insertBatches(tx, appId, pushId, batches);
  if (!isQueued) return;
  const waits = { appId, pushId, waitedUntilMs: job.waitedUntilMs };
  const groups = Map.groupBy(page.batches.keys(), (i) => {
    const { connector = 'channel', notBefore } = page.batches[i] ?? {};
    return `${connector} ${notBefore?.getTime() ?? ''}`;
  });
  for (const places of groups.values()) {
    const { connector = 'channel', notBefore: startAfter } = page.batches[places[0] ?? 0] ?? {};
    const jobs = places.map((i) => ({ ...waits, batchId: ids[i] ?? 0 }));
    const kind = deliverJob(connector);
    const priority = await priorities.next(tx, kind, jobs.length);
    await deps.queue.send(kind, jobs, { tx, priority, ...(startAfter ? { startAfter } : {}) });
  }
}
