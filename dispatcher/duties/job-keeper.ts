import type { Handle } from '../../shared/db/pool.ts';
import { continuedPlan, type DeliverJob, deliverJob, freshPlan, planJob } from '../../shared/queue/jobs.ts';
import {
  beginSearch,
  findJoblessBatches,
  findJoblessPushes,
  type JoblessBatch,
  type JoblessPush,
  listOpenPushes,
  lockJobless,
  type OpenPush,
} from '../../shared/queue/lost-jobs.ts';
import { FairPriorities } from '../delivery/fair-priorities.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Time without a job and without progress after which work gets a new job. Work of a dispatcher that still sends makes
 * progress, even if its job is lost.
 */
const missingForMs = 30_000;
const pushesAtOnce = 200;

type KeeperDeps = Pick<DispatcherDeps, 'db' | 'queue' | 'clock' | 'log'>;

/** Work without a job. */
interface Missing {
  key: string;
  pushId: number;
  /** Changes with progress. */
  mark: string;
}

/** Gives new jobs to open pushes and batches that have none: after a restore, or after a crash of the database. */
export class JobKeeper {
  /** Start of the next search: each one covers some of the open pushes, in turn. */
  #afterId = 0;
  readonly #seen = new Map<string, Missing & { sinceMs: number }>();

  /** Searches once, on one dispatcher at a time; returns the number of new jobs. */
  async run(deps: KeeperDeps): Promise<number> {
    const given = await deps.db.transaction(async (tx) => {
      if (!(await beginSearch(tx))) return 0;
      const afterId = this.#afterId;
      const pushes = await listOpenPushes(tx, { afterId, limit: pushesAtOnce });
      const throughId = pushes.length < pushesAtOnce ? Number.POSITIVE_INFINITY : (pushes.at(-1)?.id ?? 0);
      this.#afterId = Number.isFinite(throughId) ? throughId : 0;
      const plans = await findJoblessPushes(tx, pushes);
      const batches = await findJoblessBatches(tx, pushes);
      const found = [...plans.map(missingPlan), ...batches.map(missingBatch)];
      const due = this.#remember(found, { afterId, throughId, nowMs: deps.clock.monotonicMs() });
      const duePlans = plans.filter((push) => due.has(missingPlan(push).key));
      const dueBatches = batches.filter((batch) => due.has(missingBatch(batch).key));
      return (await givePlanJobs(deps, tx, duePlans)) + (await giveBatchJobs(deps, tx, dueBatches));
    });
    if (given > 0) deps.log.warn({ jobs: given }, 'pushes or batches without a job got one');
    return given;
  }

  /** Remembers the work without a job in the searched range; returns the keys of what has waited long enough. */
  #remember(
    found: Missing[],
    { afterId, throughId, nowMs }: { afterId: number; throughId: number; nowMs: number },
  ): Set<string> {
    const before = new Map(this.#seen);
    for (const { key, pushId } of before.values())
      if (pushId > afterId && pushId <= throughId) this.#seen.delete(key);
    const due = new Set<string>();
    for (const missing of found) {
      const last = before.get(missing.key);
      const sinceMs = last?.mark === missing.mark ? last.sinceMs : nowMs;
      if (nowMs - sinceMs >= missingForMs) due.add(missing.key);
      else this.#seen.set(missing.key, { ...missing, sinceMs });
    }
    return due;
  }
}

const missingPlan = ({ id, isRelease, mark }: JoblessPush): Missing => ({
  key: `${isRelease ? 'release' : 'plan'} ${id}`,
  pushId: id,
  mark,
});

const missingBatch = ({ id, pushId, mark }: JoblessBatch): Missing => ({
  key: `batch ${id}`,
  pushId,
  mark,
});

async function givePlanJobs({ queue }: KeeperDeps, tx: Handle, missing: JoblessPush[]): Promise<number> {
  const locked = await lockJobless(tx, 'notification', missing);
  const still = locked.length === 0 ? [] : await findJoblessPushes(tx, locked);
  const lost = new Set(locked.map((push) => missingPlan(push).key));
  const given = still.filter((push) => lost.has(missingPlan(push).key));
  for (const { appId, id: pushId, isRelease, isPlanned, plannedThrough } of given) {
    const isContinued = !isRelease && !isPlanned && plannedThrough > 0;
    const data = { appId, pushId, ...(isRelease ? { isRelease } : {}) };
    await queue.send(planJob, [data], { tx, ...(isContinued ? continuedPlan : freshPlan) });
  }
  return given.length;
}

async function giveBatchJobs(deps: KeeperDeps, tx: Handle, missing: JoblessBatch[]): Promise<number> {
  const locked = await lockJobless(tx, 'push_batch', missing);
  if (locked.length === 0) return 0;
  const ids = locked.map(({ id }) => id);
  const still = await findJoblessBatches(tx, pushesOf(locked), ids);
  for (const [appId, ofApp] of Map.groupBy(still, (batch) => batch.appId)) {
    const priorities = new FairPriorities(deps.queue, appId);
    for (const [connector, batches] of Map.groupBy(ofApp, (batch) => batch.connector)) {
      const kind = deliverJob(connector);
      const ready = batches.filter(({ notBefore }) => !notBefore);
      const priority = await priorities.next(tx, kind, ready.length);
      await deps.queue.send(kind, ready.map(jobOf), { tx, priority });
      for (const batch of batches)
        if (batch.notBefore) await deps.queue.send(kind, [jobOf(batch)], { tx, startAfter: batch.notBefore });
    }
  }
  return still.length;
}

const jobOf = ({ appId, pushId, id: batchId }: JoblessBatch): DeliverJob => ({ appId, pushId, batchId });

function pushesOf(batches: JoblessBatch[]): OpenPush[] {
  const pushes = new Map(batches.map(({ appId, pushId }) => [pushId, { appId, id: pushId }]));
  return [...pushes.values()];
}
