import { connectors } from '../../connectors/registry.ts';
import { type Route, Router } from '../../connectors/routing.ts';
import { knowsSpread } from '../../shared/db/schema/by-app.ts';
import { parseTraits } from '../../shared/db/tables/installations/traits.ts';
import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import type { StartedPush } from '../../shared/db/tables/pushes/small.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { type PointDevice, pointTarget } from '../../shared/query/targets/point.ts';
import { activeSince } from '../../shared/query/targets/targets.ts';
import type { JobContext, JobEnd } from '../../shared/queue/consumer.ts';
import { type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import { rulesOf } from '../../shared/rules/rules.ts';
import { deliverBatch } from '../delivery/deliver.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { LoadedBatch } from '../sending/task.ts';
import { endSmall } from './end-small.ts';

/** A push whose target names one installation, and that installation with its route. */
interface SmallPush {
  push: Push;
  app: App;
  /** Undefined: none matches. */
  found: { device: PointDevice; route: Route } | undefined;
  /** Interrupts of the push before it was read. */
  interruptCount: number;
}

/**
 * Plans and delivers a push whose target names one installation (`pointTarget`); its statements are shared with other such
 * pushes that wait at the same time. Returns `other` for a push that needs the steps of `planPush`:
 * any other target, no route, limits of its profiles, a state in which it is not planned from its beginning, or a spread
 * database, where a statement has rows of one app only.
 */
export async function planSmall(
  deps: DispatcherDeps,
  job: Job<PlanJob>,
  { signal, permit }: JobContext,
): Promise<JobEnd | 'other'> {
  if (job.data.hasNoWhere || (await knowsSpread(deps.db))) return 'other';
  const small = await resolve(deps, job.data, () => permit.release(deps.small.jobs));
  if (!small || signal.aborted) return 'other';
  const { appId, pushId, waitedUntilMs } = job.data;
  const { found, push } = small;
  const recipient = found ? { ...found.route, id: found.device.id } : null;
  const started = await deps.small.start({ appId, pushId, recipient, cap: await capNow(deps, small) });
  if (!started) return 'other';
  const end = (sent: Parameters<typeof endSmall>[1]['sent'], firstSentAt: Date | null) =>
    endSmall(deps, { job, push, batchId: started.batchId, sent, firstSentAt });
  if (!found || started.batchId === null) {
    await end(undefined, null);
    return 'done';
  }
  const ids = { appId, pushId, batchId: started.batchId, waitedUntilMs };
  let isEnded = false;
  const prepared = {
    stored: snapshotOf(push, found.route, started),
    loaded: loadedBatch(small, found, started.batchId),
    end: async (...args: Parameters<typeof end>) => {
      isEnded = await end(...args);
      return isEnded;
    },
  };
  if ((await deliverBatch(deps, ids, { signal, permit, prepared })) === 'again') return 'again';
  if (!isEnded) await deps.queue.end(planJob, job, deps.db);
  return 'done';
}

/** Reads the push and its installation; `onPoint` is called as soon as the target is known to name one installation. */
async function resolve(
  deps: DispatcherDeps,
  { appId, pushId, ...rest }: PlanJob,
  onPoint: () => void,
): Promise<SmallPush | undefined> {
  const interruptCount = deps.pool.interruptCount(pushId);
  const [push, app, profiles] = await Promise.all([
    deps.small.read({ appId, pushId, ...rest }),
    deps.appCache.app(appId),
    deps.appCache.profiles(appId),
  ]);
  if (!push || !app || !isFresh(push)) return undefined;
  const target = pointTarget(appId, push.pushOrder);
  if (!target) return undefined;
  const router = new Router(app, profiles, push);
  const rules = rulesOf({ app, push, router, nowMs: deps.clock.now() });
  if (rules.some(({ aboveDevices = 0 }) => aboveDevices < 1)) return undefined;
  onPoint();
  const device = await deps.small.find({ ...target, appId, activeSince: activeSince(app, deps.clock.now()) });
  if (!device) return { push, app, found: undefined, interruptCount };
  const route = router.routeOf(device.traits, parseTraits);
  return route.error === undefined ? { push, app, found: { device, route }, interruptCount } : undefined;
}

const isFresh = ({ state, isPlanned, plannedThrough }: Push): boolean =>
  (state === 'queued' || state === 'sending') && !isPlanned && plannedThrough === 0;

/** Returns the daily cap to charge when the push is planned; null where another gate may delay the batch or end it before. */
async function capNow(deps: DispatcherDeps, { push, app, found }: SmallPush): Promise<number | null> {
  if (!found || push.pushOrder.flowControl !== null || push.expiresAt.getTime() <= deps.clock.now())
    return null;
  const { connector, profile } = found.route;
  const { rate, testLimit } = connectors.get(connector) ?? {};
  const isPassable = await deps.breakers.isPassable({ connector, appId: app.appId, profile });
  return isPassable && !rate && !testLimit ? app.options.dailyRecipientCap : null;
}

/** Returns what `readBatchSnapshot` would read of the batch just written. */
function snapshotOf(push: Push, { connector, profile }: Route, { granted }: StartedPush): BatchSnapshot {
  return {
    connector,
    profile,
    isSettled: false,
    attempt: 0,
    tries: 0,
    lastReason: null,
    unanswered: 0,
    notBefore: null,
    state: 'sending',
    expiresAt: push.expiresAt,
    ownExpiry: null,
    language: null,
    quiet: null,
    quietUntil: null,
    createdAt: push.createdAt,
    pushTime: push.pushTime,
    firstSentAt: push.firstSentAt,
    profileErrors: push.profileErrors,
    grant: granted === null ? null : { granted, size: 1 },
    isPaced: push.pushOrder.flowControl !== null,
    isPersonal: false,
    slot: null,
    rateSlot: null,
    size: 1,
    open: 1,
  };
}

function loadedBatch(
  { push, interruptCount }: SmallPush,
  { device, route: { connector, profile } }: { device: PointDevice; route: Route },
  id: number,
): LoadedBatch {
  const { deviceType, vendor, topic, teamId, savedAt } = device;
  const token = device[connectors.get(connector)?.tokenField ?? 'deviceToken'] ?? '';
  const group = { deviceType, vendor, topic, teamId, ids: [device.id], tokens: [token], savedAt };
  const batch = {
    ...{ appId: push.appId, id, pushId: push.id, connector, profile },
    ...{ recipients: [device.id], badges: null, retried: [] },
    ...{ isSettled: false, attempt: 0, tries: 0, unanswered: 0, expiresAt: null, language: null },
  };
  return { push: { ...push, state: 'sending' }, batch, groups: [group], interruptCount };
}
