import type { Handle } from '../../../shared/db/pool.ts';
import { insertPush } from '../../../shared/db/tables/pushes/pushes.ts';
import { claimRequestId } from '../../../shared/db/tables/pushes/request-ids.ts';
import {
  countScheduledLocked,
  databaseNow,
  insertScheduledPush,
} from '../../../shared/db/tables/pushes/schedule.ts';
import { type App, planLimits } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import {
  defaultExpiryMs,
  type PushRequest,
  type PushTiming,
  parsePush,
  parsePushToDevices,
} from '../../../shared/domain/pushes/push.ts';
import { withoutCql } from '../../../shared/query/cql/cql.ts';
import { checkTargets } from '../../../shared/query/targets/targets.ts';
import { masterReader, type Reader } from '../../../shared/query/viewer.ts';
import { planJob } from '../../../shared/queue/jobs.ts';
import type { ApiDeps } from '../deps.ts';
import { checkContent } from './content-check.ts';
import { findMissingProfile } from './missing-profiles.ts';

/** Window in which a `req_id` is a repeat (protocol/push.md#repeated-requests). */
const repeatWindowMs = 5 * 60_000;

export interface AcceptedPush {
  objectId: string;
  createdAt: Date;
  /** Sentences about members of the body that were ignored. */
  warnings: string[];
}

export interface PushSender {
  app: App;
  isMaster: boolean;
  prodHeader: 'dev' | 'prod' | undefined;
}

/** Admission of pushes: what is answered with 200 is committed (protocol/delivery.md#promise-1). */
export class PushService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** POST /1.1/push. Refuses with the codes of `parsePush`, or 1 with a sentence. */
  async send(sender: PushSender, body: JsonObject): Promise<AcceptedPush> {
    const now = new Date(this.#deps.clock.now());
    // Where clocks disagree the earlier one says how far ahead push_time is: nothing is sent early.
    const isTimed = body.push_time !== undefined && body.push_time !== null;
    const earliestMs = isTimed
      ? Math.min(now.getTime(), await databaseNow(this.#deps.admissionDb))
      : now.getTime();
    return this.#admit(sender, parsePush(withoutCql(body), sender.prodHeader, earliestMs), now);
  }

  /** POST /1.1/push/devices. */
  sendToDevices(sender: PushSender, body: JsonObject): Promise<AcceptedPush> {
    const now = new Date(this.#deps.clock.now());
    return this.#admit(sender, parsePushToDevices(body, sender.prodHeader, now.getTime()), now);
  }

  async #admit(
    sender: PushSender,
    { pushOrder, timing, warnings }: PushRequest,
    now: Date,
  ): Promise<AcceptedPush> {
    const { app } = sender;
    const objectId = newPushObjectId();
    const pushTime = timing.pushTime ?? now;
    const expiresAt = expiryOf(timing, pushTime);
    checkTargets(pushOrder, readerOfPush(sender));
    await checkContent(this.#deps.db, app, { objectId, pushOrder, expiresAt, createdAt: now });
    const missing = await findMissingProfile(this.#deps, app, pushOrder);
    if (missing) throw refuse('invalidParameter', missing);
    const accepted = await this.#deps.admissionDb.transaction(async (tx) => {
      const { reqId } = timing;
      const first = reqId
        ? await claimRequestId(tx, {
            appId: app.appId,
            reqId,
            objectId,
            acceptedAt: now,
            notBefore: new Date(now.getTime() - repeatWindowMs),
          })
        : undefined;
      if (first) return { objectId: first.objectId, createdAt: first.acceptedAt, isFirst: false };
      const isScheduled = timing.pushTime !== null;
      if (isScheduled) await checkPending(tx, app);
      const pushId = await insertPush(tx, {
        appId: app.appId,
        objectId,
        notificationId: timing.notificationId ?? newPushObjectId(),
        state: isScheduled ? 'scheduled' : 'queued',
        pushOrder,
        pushTime,
        expiresAt,
        createdAt: now,
      });
      if (isScheduled) await insertScheduledPush(tx, app.appId, pushId, pushTime);
      else await this.#deps.queue.send(planJob, [{ appId: app.appId, pushId }], { tx });
      return { objectId, createdAt: now, isFirst: true };
    });
    if (accepted.isFirst) this.#deps.metrics.pushAccepted.inc({ app: app.appId });
    return { ...accepted, warnings };
  }
}

/** A push is resolved when its sender is gone: what a client may see of other rows could not be kept to then. */
const readerOfPush = ({ app, isMaster }: PushSender): Reader =>
  isMaster ? masterReader(app.appId) : { appId: app.appId, classes: new Set(), subjects: [] };

/** Refuses with 154 what would be more pending pushes than the plan allows (protocol/push.md#limits). */
async function checkPending(tx: Handle, { appId, plan }: App): Promise<void> {
  const { pending } = planLimits[plan];
  if ((await countScheduledLocked(tx, appId)) >= pending)
    throw refuse('thresholdExceeded', `At most ${pending} scheduled pushes may be pending on a ${plan} app.`);
}

/** Absolute, or counted from push_time or the call; seven days where none is given (protocol/push.md#expiry). */
export function expiryOf(timing: PushTiming, pushTime: Date): Date {
  if (timing.expirationTime) return timing.expirationTime;
  const lifeMs = timing.expirationSeconds === null ? defaultExpiryMs : timing.expirationSeconds * 1000;
  // Beyond what a date can hold an expiry means "never".
  return new Date(Math.min(pushTime.getTime() + lifeMs, Date.UTC(9999, 0, 1)));
}
