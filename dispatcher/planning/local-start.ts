import type { Database, Handle } from '../../shared/db/pool.ts';
import { countZones, readLocalProgress } from '../../shared/db/tables/pushes/starts/local-starts.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import {
  type LocalTime,
  lateMs,
  nextStartMs,
  startsOf,
  wallMsOf,
} from '../../shared/domain/pushes/local-time.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { Params, targetCondition } from '../../shared/query/targets/targets.ts';
import { isEmptySelection, type ZoneSelection } from '../../shared/query/targets/zones.ts';
import { freshPlan, type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import { wakeWhenDue } from '../recording/postponed.ts';
import { endUnsent, type PageContext, type PageOfBatches, toBatches } from './batches.ts';
import type { TargetPage } from './pages.ts';

/** Timeout of counting the zones of an audience. */
const countTimeoutMs = 600_000;
/** Clocks of processes may differ by so much: a device saved within it before the call counts as saved since. */
const clockShiftMs = 60_000;

const lateReason = 'its local time had passed when the push was called';

/**
 * One start of a push at local time: the devices of the zones whose time has come since the start before
 * (protocol/push.md#local-time).
 */
export interface LocalStart {
  /** The start before; null for the first one. */
  after: Date | null;
  /** `at` as the record has it; null for the first start. */
  storedAt: Date | null;
  at: Date;
  /** The next start; null when no zone of the audience is left. */
  next: Date | null;
  zones: ZoneSelection;
  isEmpty: boolean;
  /** These zones had their time too long before the call: their devices end `expired`. */
  isLate: boolean;
  /** When its recipients expire; null: with the push. */
  expiresAt: Date | null;
}

interface Begun {
  push: Push;
  app: App;
  job: Job<PlanJob>;
}

/**
 * Opens the start of a push that is planned next; undefined for a push without local time. `early`: its time has not come, and
 * the job was postponed. The start in work is stored with the push, so that after a crash it goes on with the same zones.
 */
export async function openStart(
  deps: DispatcherDeps,
  database: Database,
  { push, app, job }: Begun,
): Promise<LocalStart | 'early' | undefined> {
  const { local } = push.pushOrder;
  if (!local) return undefined;
  const { after, at: storedAt, nowMs } = await readLocalProgress(deps.db, push);
  // The zones whose time is too long past are those of a start of their own.
  const lateUntilMs = push.createdAt.getTime() - lateMs;
  const atMs = storedAt?.getTime() ?? lateUntilMs;
  if (atMs > nowMs) {
    await postpone(deps, job, new Date(atMs));
    return 'early';
  }
  const starts = await startsOfAudience(database, { push, app, local, nowMs: deps.clock.now() });
  const window = { afterMs: after?.getTime() ?? Number.NEGATIVE_INFINITY, atMs, lateUntilMs };
  const zones = selectZones(starts, window, new Date(push.createdAt.getTime() - clockShiftMs));
  const nextMs = nextStartMs(wallMsOf(local), { afterMs: atMs, nowMs, starts: [...starts.values()] });
  return {
    after,
    storedAt,
    at: new Date(atMs),
    next: nextMs === null ? null : new Date(nextMs),
    zones,
    isEmpty: isEmptySelection(zones),
    isLate: storedAt === null,
    expiresAt: local.lifeSeconds === null ? null : new Date(atMs + local.lifeSeconds * 1000),
  };
}

/** Returns when the time of a push comes in each zone of its audience; null: for devices without a known zone. */
async function startsOfAudience(
  database: Database,
  { push, app, local, nowMs }: Omit<Begun, 'job'> & { local: LocalTime; nowMs: number },
): Promise<Map<string | null, number>> {
  const params = new Params();
  const text = targetCondition(app, push.pushOrder, { params, nowMs });
  const groups = await database.transaction((tx) => countZones(tx, { text, values: params.values }), {
    isSnapshot: true,
    statementTimeoutMs: countTimeoutMs,
  });
  const names = groups.map(({ zone }) => zone);
  return startsOf(local, names, app.options.defaultTimeZone);
}

function selectZones(
  starts: ReadonlyMap<string | null, number>,
  { afterMs, atMs, lateUntilMs }: { afterMs: number; atMs: number; lateUntilMs: number },
  savedSince: Date,
): ZoneSelection {
  const between = (fromMs: number, throughMs: number) => {
    const found = [...starts].filter(([, ms]) => ms > fromMs && ms <= throughMs).map(([name]) => name);
    return { names: found.filter((name) => name !== null), hasNone: found.includes(null) };
  };
  const known = [...starts.keys()].filter((name) => name !== null);
  const earlier = between(Math.max(lateUntilMs, atMs - lateMs), afterMs);
  return { due: between(afterMs, atMs), earlier: { ...earlier, savedSince }, known };
}

/** Writes the batches of a page of a start; those of devices whose time was too long past are ended at once. */
export function batchesOfStart(
  targets: TargetPage,
  context: PageContext,
  { isLate, expiresAt }: LocalStart,
): PageOfBatches {
  const page = toBatches(targets, context);
  if (!isLate) return { ...page, batches: page.batches.map((batch) => ({ ...batch, expiresAt })) };
  const late = page.batches.map((batch) => endUnsent(batch, 'expired', lateReason));
  return { batches: [], unroutable: [...page.unroutable, ...late] };
}

/** Postpones the job of a start that has not come. */
async function postpone(deps: DispatcherDeps, job: Job<PlanJob>, at: Date): Promise<void> {
  await deps.db.transaction(async (tx) => {
    if (await deps.queue.complete(planJob, job, tx)) await sendStart(deps.queue, tx, job.data, at);
  });
}

/** Writes the job of a start. */
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

/** Counts the devices of a start, and with its last page wakes the planners at the next one. */
export function countStart(
  deps: DispatcherDeps,
  push: Push,
  { start, size, isLast }: { start: LocalStart; size: number; isLast: boolean },
): void {
  const timing = start.isLate ? 'late' : 'due';
  if (size > 0) deps.metrics.localRecipients.inc({ app: push.appId, timing }, size);
  if (isLast && start.next) wakeWhenDue(deps, planJob, start.next.getTime() - deps.clock.now());
}
