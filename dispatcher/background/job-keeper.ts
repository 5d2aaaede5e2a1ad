import type { Handle } from '../../shared/db/pool.ts';
import { query } from '../../shared/db/query.ts';
import { listFreezes } from '../../shared/db/tables/apps.ts';
import {
  listOpenPushes,
  lockOpenWork,
  type OpenWork,
  readOpenWork,
} from '../../shared/db/tables/push-control.ts';
import type { PushKey } from '../../shared/db/tables/pushes.ts';
import { continuedPlan, deliverJob, freshPlan, planJob } from '../../shared/queue/jobs.ts';
import { continuePushes, sendBatches } from '../../shared/queue/push-jobs.ts';
import { findJobless } from '../../shared/queue/queue-sql.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Time without a job and without progress after which work gets a new job. Work that a dispatcher
 * is sending makes progress, even if its job is lost.
 */
const missingForMs = 30_000;
const pushesAtOnce = 200;
/**
 * If there are more jobs, nothing is searched: the dispatchers are busy, and the search would cost
 * too much.
 */
const maxJobs = 50_000;

type KeeperDeps = Pick<DispatcherDeps, 'db' | 'queue' | 'clock' | 'log'>;

/** Push ids that one search covers. */
interface Range {
  afterId: number;
  throughId: number;
}

/**
 * Gives new jobs to open pushes and batches that have none. This happens after a restore, after a
 * crash of the database, and if held work should have continued but did not.
 */
export class JobKeeper {
  /** Push id at which the next search starts. Each search covers a part of the open pushes. */
  #afterId = 0;
  readonly #seen = new Map<string, { pushId: number; progress: string; sinceMs: number }>();

  /** Searches once. Only one dispatcher searches at a time. Returns the number of new jobs. */
  async run(deps: KeeperDeps): Promise<number> {
    if ((await deps.queue.countJobs()) > maxJobs) return 0;
    const given = await deps.db.transaction(async (tx) => {
      if (!(await lockSearch(tx))) return 0;
      const afterId = this.#afterId;
      const pushes = await listOpenPushes(tx, { afterId, limit: pushesAtOnce });
      const throughId =
        pushes.length < pushesAtOnce ? Number.POSITIVE_INFINITY : (pushes.at(-1)?.id ?? 0);
      this.#afterId = Number.isFinite(throughId) ? throughId : 0;
      const found = await findMissing(tx, await readOpenWork(tx, pushes));
      const due = this.#remember(found, { afterId, throughId }, deps.clock.monotonicMs());
      return due.length === 0 ? 0 : giveJobs(deps, tx, due);
    });
    if (given > 0) deps.log.warn({ jobs: given }, 'pushes or batches without a job got one');
    return given;
  }

  /**
   * Records the work without a job in the searched range. Returns the work that has waited long
   * enough.
   */
  #remember(found: OpenWork[], { afterId, throughId }: Range, nowMs: number): OpenWork[] {
    const before = new Map(this.#seen);
    for (const [key, { pushId }] of before)
      if (pushId > afterId && pushId <= throughId) this.#seen.delete(key);
    return found.filter((work) => {
      const { pushId, progress } = work;
      const last = before.get(keyOf(work));
      const sinceMs = last?.progress === progress ? last.sinceMs : nowMs;
      const isDue = nowMs - sinceMs >= missingForMs;
      if (!isDue) this.#seen.set(keyOf(work), { pushId, progress, sinceMs });
      return isDue;
    });
  }
}

const keyOf = ({ pushId, batchId, isHeld }: OpenWork): string =>
  `${isHeld ? 'held' : 'lost'} ${pushId} ${batchId ?? ''}`;

/** Locks the search until `tx` ends. Returns false while another process searches. */
const lockSearch = (tx: Handle): Promise<boolean> =>
  query(tx).boolean(`SELECT pg_try_advisory_xact_lock(hashtext('carillon lost jobs'))`);

const queueOf = ({ connector }: OpenWork) =>
  connector === null ? planJob.queue : deliverJob(connector).queue;

/** Returns the work that needs a job and has none. Work of a frozen app stays held. */
async function findMissing(tx: Handle, work: OpenWork[]): Promise<OpenWork[]> {
  const held = work.filter(({ isHeld }) => isHeld);
  const lost = await findJobless(
    tx,
    work.filter(({ isHeld }) => !isHeld).map((item) => ({ ...item, queue: queueOf(item) })),
  );
  if (held.length === 0) return lost;
  const frozen = new Set((await listFreezes(tx)).map(({ appId }) => appId));
  return [...lost, ...held.filter(({ appId }) => !frozen.has(null) && !frozen.has(appId))];
}

/**
 * Gives jobs to work that still has none. Locks the rows first, so that no other process does the
 * same.
 */
async function giveJobs(
  { queue, clock }: KeeperDeps,
  tx: Handle,
  due: OpenWork[],
): Promise<number> {
  const locked = await lockOpenWork(tx, due);
  // In this order, because the planning job of a small push ends after its batches have settled.
  const missing = new Set((await findMissing(tx, locked)).map(keyOf));
  const open = (await readOpenWork(tx, pushesOf(locked))).filter((work) =>
    missing.has(keyOf(work)),
  );
  const [held, lost] = [open.filter(({ isHeld }) => isHeld), open.filter(({ isHeld }) => !isHeld)];
  for (const { appId, pushId, batchId, isContinued } of lost)
    if (batchId === null)
      await queue.send(planJob, [{ appId, pushId }], {
        tx,
        ...(isContinued ? continuedPlan : freshPlan),
      });
  const batches = lost.flatMap(({ batchId, connector, ...rest }) =>
    batchId === null || connector === null ? [] : [{ ...rest, id: batchId, connector }],
  );
  for (const [appId, ofApp] of Map.groupBy(batches, (batch) => batch.appId))
    await sendBatches(tx, queue, appId, { batches: ofApp.filter(({ notBefore }) => !notBefore) });
  for (const { appId, pushId, id: batchId, connector, notBefore } of batches)
    if (notBefore)
      await queue.send(deliverJob(connector), [{ appId, pushId, batchId }], {
        tx,
        startAfter: notBefore,
      });
  return lost.length + (await continuePushes(tx, queue, pushesOf(held), clock.now()));
}

function pushesOf(work: OpenWork[]): PushKey[] {
  const pushes = new Map(work.map(({ appId, pushId }) => [pushId, { appId, id: pushId }]));
  return [...pushes.values()];
}
