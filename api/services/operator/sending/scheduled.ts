import type { Handle } from '../../../../shared/db/pool.ts';
import { databaseNow } from '../../../../shared/db/query.ts';
import { notifyPushChanged } from '../../../../shared/db/tables/push-control.ts';
import {
  cancelScheduled,
  listScheduledPage,
  lockScheduled,
  moveScheduled,
} from '../../../../shared/db/tables/scheduled-pushes.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import {
  defaultExpiryMs,
  maxAheadMs,
  type PushTiming,
} from '../../../../shared/domain/pushes/push.ts';
import type { Push, ScheduledPush } from '../../../../shared/domain/pushes/record.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireControl } from '../../push/push-control.ts';
import { cancelledEvent, entryIdOf, expiryOf, noSuchEntry } from '../../push/pushes.ts';
import { requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';
import type { PushListService } from '../pushes/push-list.ts';

/** New time and expiry of a scheduled push. */
export interface ScheduleChange extends Pick<PushTiming, 'expirationTime' | 'expirationSeconds'> {
  pushTime: Date;
}

/**
 * Lists, moves and cancels scheduled pushes for callers of the admin API
 * (protocol/admin-api.md#scheduled-pushes).
 */
export class ScheduledPushService {
  readonly #deps: ApiDeps;
  readonly #pushes: PushListService;

  constructor(deps: ApiDeps, pushes: PushListService) {
    this.#deps = deps;
    this.#pushes = pushes;
  }

  /** Lists scheduled pushes, earliest first. Throws error 404 if the app does not exist. */
  async list(
    operator: Operator,
    appId: string,
    { limit, cursor }: { limit: number; cursor: string | undefined },
  ) {
    await requireApp(this.#deps, appId);
    const [ms, id] = (cursor ?? '').split('-').map(Number);
    const after = ms === undefined || id === undefined ? null : { pushTime: new Date(ms), id };
    const rows = await listScheduledPage(this.#deps.db, appId, { after, limit: limit + 1 });
    const entries = rows.slice(0, limit);
    const last = rows.length > limit ? entries.at(-1) : undefined;
    const next = last ? `${last.pushTime.getTime()}-${last.entryId}` : null;
    return { results: await this.#describe(operator, appId, entries), next };
  }

  /**
   * Changes the push time of a pending push. Its expiry stays, but the default of seven days moves
   * with the push. Throws error 1 if the id is malformed or the expiry is before the push time,
   * error 152 if the time is in the past or too far ahead, error 101 (status 404) if no pending
   * push has the id, error 403 if a sender did not send it.
   */
  async move(
    operator: Operator,
    appId: string,
    id: string,
    change: ScheduleChange,
  ): Promise<JsonObject> {
    await this.#requireAhead(change.pushTime);
    const moved = await this.#changeEntry(operator, appId, id, async (tx, push) => {
      if (push.pushOrder.local) throw refuse('invalidPushTime', detail('localPushMoved'));
      const times = { pushTime: change.pushTime, expiresAt: expiryAt(push, change) };
      await moveScheduled(tx, push, times);
      const [before, after] = [push, times].map(timesForAudit);
      await recordChange(tx, {
        action: 'push.reschedule',
        appId,
        target: push.objectId,
        before,
        after,
      });
      return { ...push, ...times };
    });
    const [described] = await this.#describe(operator, appId, [moved]);
    return described ?? noSuchEntry();
  }

  /** Cancels a pending push. Throws as `move`. */
  async cancel(operator: Operator, appId: string, id: string): Promise<void> {
    await this.#changeEntry(operator, appId, id, async (tx, { objectId, state, entryId }) => {
      const push = (await cancelScheduled(tx, appId, entryId)) ?? noSuchEntry();
      await this.#deps.webhooks.emit(tx, cancelledEvent(appId, { push, by: operator.name }));
      await recordChange(tx, { action: 'push.cancel', appId, target: objectId, before: { state } });
    });
  }

  /**
   * Changes a pending entry in a transaction that locks it. The scheduler either waits for the lock
   * or has already taken the entry.
   */
  #changeEntry<T>(
    operator: Operator,
    appId: string,
    id: string,
    change: (tx: Handle, entry: ScheduledPush) => Promise<T>,
  ): Promise<T> {
    const entryId = entryIdOf(id);
    return this.#deps.db.transaction(async (tx) => {
      const entry = (await lockScheduled(tx, appId, entryId)) ?? noSuchEntry();
      requireControl(operator, entry);
      const result = await change(tx, entry);
      await notifyPushChanged(tx, entry.id);
      return result;
    });
  }

  async #requireAhead(pushTime: Date): Promise<void> {
    const nowMs = await databaseNow(this.#deps.db);
    if (pushTime.getTime() < nowMs) throw refuse('invalidPushTime', detail('pushTimePast'));
    if (pushTime.getTime() - nowMs > maxAheadMs)
      throw refuse('invalidPushTime', detail('pushTimeFar'));
  }

  async #describe(
    operator: Operator,
    appId: string,
    entries: readonly ScheduledPush[],
  ): Promise<JsonObject[]> {
    const documents = await this.#pushes.describe(operator, appId, entries);
    return entries.map(({ entryId: id }, i) => ({ id, ...documents[i] }));
  }
}

const timesForAudit = ({
  pushTime,
  expiresAt,
}: Pick<Push, 'pushTime' | 'expiresAt'>): JsonObject => ({
  pushTime: pushTime.toISOString(),
  expiresAt: expiresAt.toISOString(),
});

/**
 * Returns the expiry of a push whose time changes. Throws error 1 if the expiry is before the push
 * time.
 */
function expiryAt(push: Push, { pushTime, ...expiration }: ScheduleChange): Date {
  const isRequested = expiration.expirationTime !== null || expiration.expirationSeconds !== null;
  const isDefault = push.expiresAt.getTime() - push.pushTime.getTime() === defaultExpiryMs;
  const expiresAt = isRequested || isDefault ? expiryOf(expiration, pushTime) : push.expiresAt;
  if (expiresAt > pushTime) return expiresAt;
  const text = detail('expiresBefore', { at: expiresAt.toISOString() });
  throw refuse('invalidParameter', text);
}
