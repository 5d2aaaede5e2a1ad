import { forEachItem } from '../../shared/db/outage.ts';
import type { Handle } from '../../shared/db/pool.ts';
import type { NewPush } from '../../shared/db/tables/pushes.ts';
import {
  countOpenStarts,
  listDueRecurring,
  lockDueRecurring,
  msToNextPush,
  type RecurringPush,
  saveStarts,
  takeDuePushes,
} from '../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { newPushObjectId } from '../../shared/domain/ids.ts';
import { defaultExpiryMs, expiryAfter } from '../../shared/domain/pushes/push.ts';
import { withPossiblePushId } from '../../shared/domain/pushes/push-events.ts';
import { dueTimes, maxOpenStarts } from '../../shared/domain/pushes/recurrence.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import { acceptedEvent, insertQueuedPushes } from '../../shared/queue/push-jobs.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Pause after a pass that fired pushes. Pushes that become due during the pause are fired together.
 */
const busyPauseMs = 100;
/**
 * Maximum pause. If an entry is moved to an earlier time, the scheduler must notice it in time
 * (protocol/delivery.md#promise-8).
 */
const maxPauseMs = 500;

/**
 * Fires the scheduled pushes whose time has come. The table is the only schedule, so no job can be
 * lost or remain: whoever deletes the entry decides whether the push is sent or cancelled. The
 * database's clock decides, because the clocks of dispatchers may differ. The next time is cached.
 * A pass begins with it.
 */
export class Scheduler {
  /** Pause after the last pass, in ms. */
  pauseMs = maxPauseMs;

  /**
   * Fires at most `limit` pushes. Returns their number. If nothing is due, it runs one small query.
   */
  async fireDue(deps: DispatcherDeps, limit: number): Promise<number> {
    this.pauseMs = maxPauseMs;
    const waitMs = await msToNextPush(deps.db);
    if (waitMs > 0) {
      this.pauseMs = Math.min(Math.ceil(waitMs), maxPauseMs);
      return 0;
    }
    this.pauseMs = busyPauseMs;
    return deps.db.transaction(async (tx) => {
      const due = await takeDuePushes(tx, limit);
      await deps.queue.send(planJob, due, { tx });
      return due.length;
    });
  }
}

/** A run that starts later than this counts as caught up. */
const lateAfterMs = 60_000;

/** What happened to due runs, for the metric. */
type Outcomes = Partial<Record<'started' | 'caught_up' | 'missed' | 'held_back', number>>;

/**
 * Creates the pushes of recurring pushes whose time has come. Returns the number of recurring
 * pushes that it handled. One transaction creates the push and sets the next time, so each run has
 * exactly one push, even if dispatchers crash (protocol/push.md#recurring-pushes). The database's
 * clock decides. If one recurring push fails, the others continue.
 */
export async function startRecurring(deps: DispatcherDeps, limit: number): Promise<number> {
  const due = await listDueRecurring(deps.db, limit);
  await forEachItem(due, async ({ appId, id }) => {
    const app = await deps.appCache.app(appId);
    if (!app) return;
    const outcomes = await deps.db.transaction((tx) => startOne(deps, tx, { app, id }));
    for (const [outcome, n] of Object.entries(outcomes))
      deps.metrics.recurringStarts.inc({ outcome }, n);
  });
  return due.length;
}

async function startOne(
  { queue, webhooks }: DispatcherDeps,
  tx: Handle,
  { app, id }: { app: App; id: number },
): Promise<Outcomes> {
  const { appId } = app;
  const recurring = await lockDueRecurring(tx, appId, id);
  if (!recurring) return {};
  const { now, nextAt: first, skipBefore } = recurring;
  const { start, missed, next } = dueTimes(recurring, {
    first,
    now,
    lifeMs: lifeMsOf(recurring),
    skipBefore,
  });
  const isHeldBack = start !== undefined && (await countOpenStarts(tx, appId, id)) >= maxOpenStarts;
  const push = start && !isHeldBack ? toPush(app, recurring, { at: start, now }) : undefined;
  if (push) {
    await insertQueuedPushes(tx, queue, [push]);
    await webhooks.emit(tx, acceptedEvent(push));
  }
  const heldBack = isHeldBack ? 1 : 0;
  const createdPush = push && { at: push.pushTime, objectId: push.objectId };
  await saveStarts(tx, recurring, { nextAt: next, made: createdPush, missed, heldBack });
  const isLate = push !== undefined && now.getTime() - push.pushTime.getTime() > lateAfterMs;
  return {
    missed,
    held_back: heldBack,
    ...(push ? { [isLate ? 'caught_up' : 'started']: 1 } : {}),
  };
}

const lifeMsOf = ({ lifeSeconds }: RecurringPush): number =>
  lifeSeconds === null ? defaultExpiryMs : lifeSeconds * 1000;

/** Returns the push of one run. It expires as if it had been sent at its scheduled time. */
function toPush(
  { appId, options }: App,
  recurring: RecurringPush,
  { at, now }: { at: Date; now: Date },
): NewPush {
  const { id, name, pushOrder, notificationId, changedBy, changedToken } = recurring;
  return {
    appId,
    objectId: newPushObjectId(),
    notificationId: notificationId ?? newPushObjectId(),
    state: 'queued',
    pushOrder: { ...withPossiblePushId(options, pushOrder), recurring: { id, name } },
    pushTime: at,
    expiresAt: expiryAfter(at, lifeMsOf(recurring)),
    createdAt: now,
    sender: { name: changedBy, tokenId: changedToken },
  };
}
