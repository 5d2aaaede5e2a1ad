import type { Handle } from '../../../shared/db/pool.ts';
import { databaseNow } from '../../../shared/db/query.ts';
import {
  type ActivityClock,
  advanceClock,
  readClock,
} from '../../../shared/db/tables/live-activities.ts';
import { findRequestId, type NewPush } from '../../../shared/db/tables/pushes.ts';
import { cancelScheduled, listScheduled } from '../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { isRequestId } from '../../../shared/domain/pushes/body.ts';
import { timestampOf, withTimestamp } from '../../../shared/domain/pushes/live-activity.ts';
import type { ActivityRequest } from '../../../shared/domain/pushes/live-activity-body.ts';
import {
  defaultExpiryMs,
  expiryAfter,
  type PushOrder,
  type PushRequest,
  type PushTiming,
  parsePush,
  parsePushToDevices,
} from '../../../shared/domain/pushes/push.ts';
import { withPossiblePushId, withPushId } from '../../../shared/domain/pushes/push-events.ts';
import { type PushCreator, toScheduledEntry } from '../../../shared/domain/pushes/record.ts';
import { type Detail, detail } from '../../../shared/domain/texts/texts.ts';
import type { EventData } from '../../../shared/domain/webhooks/event-types.ts';
import { inSpan, traceParentOf } from '../../../shared/process/tracing.ts';
import { withoutCql } from '../../../shared/query/cql/select.ts';
import { checkTargets } from '../../../shared/query/targets/targets.ts';
import { masterViewer, type Viewer } from '../../../shared/query/viewer.ts';
import type { ApiDeps } from '../deps.ts';
import { checkContent } from './content-check.ts';
import { PushStore, repeatWindowMs } from './push-store.ts';
import { MissingProfiles } from './unserved-devices.ts';

/** Reply to an accepted push. */
export interface AcceptedPush {
  objectId: string;
  createdAt: Date;
  /** One warning for each member of the body that was ignored. */
  warnings: Detail[];
}

/** App that sends a push, with the key that it used. */
export interface PushSender {
  app: App;
  isMaster: boolean;
  prodHeader: 'dev' | 'prod' | undefined;
  /** Caller of the admin API. The condition of the push is checked with the caller's rights. */
  viewer?: Viewer;
  /** Present if the push comes from the admin API. */
  adminSettings?: AdminPushSettings;
}

/** Settings of a push that the admin API sends. */
export interface AdminPushSettings {
  creator: PushCreator;
  /**
   * Seconds in which the push can be undone. The push is scheduled this far ahead. 0 sends it at
   * once.
   */
  undoSeconds: number;
  /** Writes the audit record in the transaction that stores the push. */
  onStored(tx: Handle, push: NewPush): Promise<void>;
}

/** Push with its times as the record stores them. */
interface TimedPush {
  objectId: string;
  pushOrder: PushOrder;
  timing: PushTiming;
  pushTime: Date;
  expiresAt: Date;
  createdAt: Date;
}

/** Accepts pushes: a push answered with 200 is committed (protocol/delivery.md#promise-1). */
export class PushService {
  readonly #deps: ApiDeps;
  readonly #store: PushStore;
  readonly #missingProfiles: MissingProfiles;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#store = new PushStore(deps);
    this.#missingProfiles = new MissingProfiles(deps);
  }

  /** Handles POST /1.1/push. Throws as `parsePush`, or error 1 with a message. */
  async send(sender: PushSender, body: JsonObject): Promise<AcceptedPush> {
    return this.orFirst(sender.app, body.req_id, async () => {
      const now = new Date(this.#deps.clock.now());
      const earliestMs = await this.#earliestMs(now, body);
      const request = parsePush(withoutCql(body), sender.prodHeader, earliestMs);
      return this.#acceptNew(sender, request, now);
    });
  }

  /** Handles POST /1.1/push/devices. */
  sendToDevices(sender: PushSender, body: JsonObject): Promise<AcceptedPush> {
    return this.orFirst(sender.app, body.req_id, async () => {
      const now = new Date(this.#deps.clock.now());
      const request = parsePushToDevices(body, sender.prodHeader, now.getTime());
      return this.#acceptNew(sender, request, now);
    });
  }

  /**
   * Runs `accept`, which accepts a push. If it is refused and an earlier call used the same
   * `req_id`, returns the push of that call (protocol/push.md#repeated-requests): a repeat may be
   * refused because of the first call, or because its times are over.
   */
  async orFirst(
    { appId }: App,
    reqId: unknown,
    accept: () => Promise<AcceptedPush>,
  ): Promise<AcceptedPush> {
    try {
      return await accept();
    } catch (error) {
      if (!(error instanceof Refusal) || !isRequestId(reqId)) throw error;
      const { admissionDb } = this.#deps;
      const claim = await findRequestId(admissionDb, { appId, reqId }, repeatWindowMs);
      if (!claim) throw error;
      return { objectId: claim.objectId, createdAt: claim.acceptedAt, warnings: [] };
    }
  }

  /**
   * Returns the time with which `push_time` is compared. It is the earlier of two clocks, this
   * process's and the database's, so that no push is sent early.
   */
  async #earliestMs(now: Date, { push_time: pushTime }: JsonObject): Promise<number> {
    const isScheduled = pushTime !== undefined && pushTime !== null;
    return isScheduled
      ? Math.min(now.getTime(), await databaseNow(this.#deps.admissionDb))
      : now.getTime();
  }

  /**
   * Sends a Live Activity push. The clock of its activity or channel moves in the transaction that
   * stores the push, so that the states of an activity have the order of their pushes. Throws error
   * 1 if the timestamp of the caller is not newer than the last one.
   */
  async sendActivity(
    sender: PushSender,
    { request, timestamp }: ActivityRequest,
  ): Promise<AcceptedPush> {
    const nowMs = this.#deps.clock.now();
    const name = clockOf(sender.app, request.pushOrder);
    const prepare = name && ((tx: Handle, push: NewPush) => setTimestamp(tx, push, name));
    const setTimestamp = async (tx: Handle, push: NewPush, clock: ActivityClock) => {
      const nowS = Math.floor(nowMs / 1000);
      const at = await advanceClock(tx, clock, { given: timestamp, nowS });
      if (at === undefined) throw await staleTimestamp(tx, clock);
      push.pushOrder = { ...push.pushOrder, data: withTimestamp(push.pushOrder.data, at) };
    };
    return this.orFirst(sender.app, request.timing.reqId, () =>
      this.#accept(sender, request, new Date(nowMs), prepare),
    );
  }

  /**
   * Returns a Live Activity push with the timestamp that it would get now. Changes nothing. Throws
   * as `sendActivity`.
   */
  async previewActivity(app: App, { request, timestamp }: ActivityRequest): Promise<PushRequest> {
    const clock = clockOf(app, request.pushOrder);
    if (!clock) return request;
    const last = await readClock(this.#deps.db, clock);
    if (timestamp !== null && timestamp <= last) throw await staleTimestamp(this.#deps.db, clock);
    const at = timestamp ?? Math.max(timestampOf(request.pushOrder.data), last + 1);
    const data = withTimestamp(request.pushOrder.data, at);
    return { ...request, pushOrder: { ...request.pushOrder, data } };
  }

  /**
   * Sends a push whose order another service has built from a stored one. It keeps a member with the
   * name of the push id, because the caller cannot remove it. Throws error 1 with a message.
   */
  sendOrder(sender: PushSender, request: PushRequest): Promise<AcceptedPush> {
    const pushOrder = withPossiblePushId(sender.app.options, request.pushOrder);
    return this.orFirst(sender.app, request.timing.reqId, () =>
      this.#accept(sender, { ...request, pushOrder }, new Date(this.#deps.clock.now())),
    );
  }

  /**
   * Checks a request as if the push were sent now. Stores nothing. Throws if the content or a
   * profile is refused.
   */
  async check(sender: PushSender, { pushOrder: requested, timing }: PushRequest): Promise<void> {
    const pushOrder = withPushId(sender.app.options, requested);
    const now = new Date(this.#deps.clock.now());
    const times = { pushTime: now, expiresAt: expiryOf(timing, now), createdAt: now };
    await this.#check(sender, { objectId: newPushObjectId(), pushOrder, timing, ...times });
  }

  /**
   * Moves the push time ahead by the undo seconds. Uses the database's clock, because the scheduler
   * compares with it. Otherwise a clock difference could shorten the time to undo.
   */
  async #delayed(timing: PushTiming, undoSeconds: number): Promise<PushTiming> {
    if (undoSeconds === 0 || timing.pushTime !== null) return timing;
    const nowMs = await databaseNow(this.#deps.admissionDb);
    return { ...timing, pushTime: new Date(nowMs + undoSeconds * 1000) };
  }

  /** Accepts a push of a caller, who learns of a member with the name of the push id. */
  #acceptNew(sender: PushSender, request: PushRequest, now: Date): Promise<AcceptedPush> {
    const pushOrder = withPushId(sender.app.options, request.pushOrder);
    return this.#accept(sender, { ...request, pushOrder }, now);
  }

  /** Checks a push, then stores its record and the job that plans it in one transaction. */
  async #accept(
    sender: PushSender,
    { pushOrder, timing: requestedTiming, warnings }: PushRequest,
    now: Date,
    prepare?: (tx: Handle, push: NewPush) => Promise<void>,
  ): Promise<AcceptedPush> {
    const { adminSettings } = sender;
    const timing = adminSettings
      ? await this.#delayed(requestedTiming, adminSettings.undoSeconds)
      : requestedTiming;
    const pushTime = timing.pushTime ?? now;
    const expiresAt = expiryOf(timing, pushTime);
    const push = {
      objectId: newPushObjectId(),
      pushOrder,
      timing,
      pushTime,
      expiresAt,
      createdAt: now,
    };
    await this.#check(sender, push);
    const attributes = { 'carillon.app': sender.app.appId, 'carillon.push': push.objectId };
    const stored = await inSpan('push', { kind: 'producer', attributes }, (span) => {
      const created = {
        ...toNewPush(sender.app, push, adminSettings?.creator),
        traceParent: traceParentOf(span),
      };
      return this.#store.store({
        app: sender.app,
        reqId: timing.reqId,
        push: created,
        prepare,
        onStored: adminSettings && ((tx) => adminSettings.onStored(tx, created)),
      });
    });
    if (stored.isFirst) this.#deps.metrics.pushAccepted.inc({ app: sender.app.appId });
    return {
      objectId: stored.objectId,
      createdAt: stored.createdAt,
      warnings,
    };
  }

  async #check(sender: PushSender, push: TimedPush): Promise<void> {
    checkTargets(push.pushOrder, sender.viewer ?? viewerOf(sender.app, sender.isMaster));
    const profiles = await this.#deps.appCache.profiles(sender.app.appId);
    await checkContent(this.#deps.db, { app: sender.app, profiles }, push);
    const missing = await this.#missingProfiles.find(sender.app, push.pushOrder);
    if (missing) throw refuse('invalidParameter', missing);
  }
}

/** Returns the clock of the activity or channel of a push. A start has none. */
function clockOf({ appId }: App, { liveActivity }: PushOrder): ActivityClock | undefined {
  const { kind, name } = liveActivity?.target ?? {};
  return name === undefined || kind === undefined || kind === 'type'
    ? undefined
    : { appId, kind, name };
}

const staleTimestamp = async (db: Handle, clock: ActivityClock): Promise<Refusal> =>
  refuse(
    'invalidParameter',
    detail('activityTimestamp', {
      at: new Date((await readClock(db, clock)) * 1000).toISOString(),
    }),
  );

const toNewPush = (
  { appId }: App,
  { objectId, pushOrder, timing, pushTime, expiresAt, createdAt }: TimedPush,
  sender: PushCreator | undefined,
): NewPush => ({
  appId,
  objectId,
  notificationId: timing.notificationId ?? newPushObjectId(),
  state: timing.pushTime === null ? 'queued' : 'scheduled',
  pushOrder,
  pushTime,
  expiresAt,
  createdAt,
  sender,
});

/**
 * Returns the rights with which the condition is checked. An app key gets no rights, because the
 * push is planned later, when the caller's rights cannot be applied.
 */
export const viewerOf = ({ appId }: App, isMaster: boolean): Viewer =>
  isMaster ? masterViewer(appId) : { appId, classes: new Set(), subjects: [] };

/**
 * Returns when a push expires. The request may contain a time. Otherwise a lifetime, seven days by
 * default, counts from the last local start, or from the push time if there are no local starts
 * (protocol/push.md#expiry).
 */
export function expiryOf(
  timing: Pick<PushTiming, 'expirationTime' | 'expirationSeconds' | 'lastStart'>,
  pushTime: Date,
): Date {
  if (timing.expirationTime) return timing.expirationTime;
  const lifeMs =
    timing.expirationSeconds === null ? defaultExpiryMs : timing.expirationSeconds * 1000;
  return expiryAfter(timing.lastStart ?? pushTime, lifeMs);
}

/** Returns an `Idempotency-Key` as a `req_id`. Throws error 1 if it has another form. */
export function requestIdOf(key: string | undefined): string | null {
  if (key === undefined || isRequestId(key)) return key ?? null;
  throw refuse('invalidParameter', detail('keyOfRequest'));
}

/** Largest id of a scheduled push. The column is a 32-bit integer. */
const maxEntryId = 2 ** 31 - 1;

/** Lists and cancels scheduled pushes (protocol/push.md#scheduled-push-entry). */
export class ScheduleService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  async list(app: App): Promise<JsonObject[]> {
    return (await listScheduled(this.#deps.db, app.appId)).map(toScheduledEntry);
  }

  /**
   * Cancels a scheduled push by its integer id. Throws error 1 if the id is malformed, error 101
   * (status 404) if no pending push has this id.
   */
  async cancel(app: App, entryId: string): Promise<void> {
    const id = entryIdOf(entryId);
    await this.#deps.db.transaction(async (tx) => {
      const push = (await cancelScheduled(tx, app.appId, id)) ?? noSuchEntry();
      await this.#deps.webhooks.emit(tx, cancelledEvent(app.appId, { push, by: null }));
    });
  }
}

/** Parses the id of a scheduled push. Throws error 1 if the text is malformed. */
export function entryIdOf(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > maxEntryId)
    throw refuse('invalidParameter', detail('scheduledId'));
  return Number(text);
}

/** Returns the event of a cancelled push. `by`: the operator, if it is known. */
export const cancelledEvent = (appId: string, data: EventData<'push.cancelled'>) => ({
  appId,
  type: 'push.cancelled' as const,
  data,
});

export function noSuchEntry(): never {
  throw refuse('objectNotFound', detail('notScheduled'));
}
