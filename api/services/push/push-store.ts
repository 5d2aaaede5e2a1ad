import { Batcher } from '../../../shared/batcher.ts';
import { runForApp } from '../../../shared/db/limits/client-pool.ts';
import { isConnectionFailure } from '../../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  claimRequestIds,
  insertPushes,
  type NewPush,
  type RequestClaim,
} from '../../../shared/db/tables/pushes.ts';
import {
  countScheduledLocked,
  insertScheduledPush,
} from '../../../shared/db/tables/scheduled-pushes.ts';
import { type App, planLimits } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { planJob } from '../../../shared/queue/jobs.ts';
import { acceptedEvent, insertQueuedPushes } from '../../../shared/queue/push-jobs.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Time in which a second push with the same `req_id` is a repeat
 * (protocol/push.md#repeated-requests).
 */
export const repeatWindowMs = 5 * 60_000;

/**
 * Limits of a batch of pushes that share a transaction, and of the pushes that wait for a batch.
 */
const batchLimits = { size: 100, maxWaiting: 1000, maxWaitMs: 5000 };
/**
 * Number of concurrent transactions. Pushes without request ids wait for no lock, so one
 * transaction at a time is enough. More pushes then share a transaction, and each push costs less.
 */
const plainConcurrency = 1;
const claimingConcurrency = 2;
/**
 * Key of a batch in the fair sharing of database connections, where other keys are app ids. A batch
 * contains pushes of several apps. The blank makes the key different from every app id.
 */
const batchKey = 'accepted pushes';
/**
 * Timeout of a row lock in a batch. After the timeout, the pushes of the batch are stored one by
 * one, so that a locked row delays only its own push.
 */
const lockTimeoutMs = 100;

/** Checked push of an app that is not stored yet. */
export interface UnstoredPush {
  app: App;
  reqId: string | null;
  push: NewPush;
  /** Completes the push in the transaction that stores it, before it is stored. */
  prepare?: ((tx: Handle, push: NewPush) => Promise<void>) | undefined;
  /** Writes the audit record of a push of the admin API, in the same transaction. */
  onStored?: ((tx: Handle) => Promise<void>) | undefined;
}

/** Push that a call returns: the stored push, or the earlier push with the same `req_id`. */
export interface StoredPush {
  objectId: string;
  createdAt: Date;
  /** False if the call is a repeat. A repeat stores nothing. */
  isFirst: boolean;
}

/**
 * Stores the record of a push, its request id and the job that plans it. Pushes that arrive
 * together share one transaction, because a commit costs more than a row.
 */
export class PushStore {
  readonly #deps: ApiDeps;
  readonly #plain: Batcher<UnstoredPush, StoredPush>;
  /** Pushes with request ids. They may wait for another push with the same request id. */
  readonly #claiming: Batcher<UnstoredPush, StoredPush>;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    const shared = {
      ...batchLimits,
      fairBy: ({ app }: UnstoredPush) => app.appId,
      runOne: (push: UnstoredPush) => runForApp(push.app.appId, () => this.#storeAlone(push)),
      isShared: isConnectionFailure,
    };
    this.#plain = new Batcher({
      ...shared,
      concurrency: plainConcurrency,
      run: (pushes) => runForApp(batchKey, () => this.#storeTogether(pushes)),
    });
    this.#claiming = new Batcher({
      ...shared,
      concurrency: claimingConcurrency,
      run: (pushes) => runForApp(batchKey, () => this.#storeTogether(pushes, { lockTimeoutMs })),
    });
  }

  /**
   * Resolves when the push is committed. Throws error 154 if the app has too many scheduled pushes.
   */
  store(push: UnstoredPush): Promise<StoredPush> {
    const { push: record } = push;
    // A scheduled push locks a row of its app. A push of the admin API writes an audit record. A
    // prepared push may lock a row.
    const isStoredAlone =
      record.state === 'scheduled' || push.onStored !== undefined || push.prepare !== undefined;
    if (isStoredAlone) return this.#storeAlone(push);
    return (push.reqId ? this.#claiming : this.#plain).run(push);
  }

  /**
   * Stores pushes in one transaction and wakes the planners after the commit. Transactions that
   * commit at the same time share one NOTIFY.
   */
  async #storeTogether(
    pushes: UnstoredPush[],
    options: { lockTimeoutMs?: number } = {},
  ): Promise<StoredPush[]> {
    const { admissionDb, queue } = this.#deps;
    const stored = await admissionDb.transaction(
      (tx, last) => this.#storeAll(tx, last, pushes),
      options,
    );
    if (pushes.some(({ push }) => push.state === 'queued'))
      queue.wake(planJob).catch(() => undefined);
    return stored;
  }

  async #storeAlone(push: UnstoredPush): Promise<StoredPush> {
    const [stored] = await this.#storeTogether([push]);
    if (!stored) throw new Error('the push was not stored');
    return stored;
  }

  async #storeAll(tx: Handle, last: Handle, pushes: UnstoredPush[]): Promise<StoredPush[]> {
    const claims = await claimIds(tx, pushes);
    const first = pushes.filter((push) => !repeatedBy(push, claims));
    for (const { prepare, push } of first) await prepare?.(tx, push);
    for (const push of first) if (push.push.state === 'scheduled') await insertScheduled(tx, push);
    for (const { onStored } of first) await onStored?.(tx);
    await this.#deps.webhooks.emit(tx, ...first.map(({ push }) => acceptedEvent(push)));
    const queued = first.filter(({ push }) => push.state === 'queued').map(({ push }) => push);
    if (queued.length > 0) await insertQueuedPushes(tx, this.#deps.queue, queued, last);
    return pushes.map((push) => {
      const claim = repeatedBy(push, claims);
      return claim
        ? { objectId: claim.objectId, createdAt: claim.acceptedAt, isFirst: false }
        : { objectId: push.push.objectId, createdAt: push.push.createdAt, isFirst: true };
    });
  }
}

/** Inserts a push that waits for its push time, and its entry in the schedule. */
async function insertScheduled(tx: Handle, { app, push }: UnstoredPush): Promise<void> {
  await checkPending(tx, app);
  const [pushId] = await insertPushes(tx, [push]);
  if (pushId !== undefined) await insertScheduledPush(tx, app.appId, pushId, push.pushTime);
}

const claimKey = (appId: string, reqId: string): string => `${appId} ${reqId}`;

/** Claims by app and `req_id`. */
type Claims = ReadonlyMap<string, RequestClaim>;

/**
 * Claims the request ids of the pushes. Returns the valid claim of each request id: the claim of
 * the push itself, of an earlier push, or of the first push of the batch with this id.
 */
async function claimIds(tx: Handle, pushes: UnstoredPush[]): Promise<Claims> {
  const claims = new Map<string, RequestClaim>();
  for (const { reqId, push } of pushes) {
    if (!reqId) continue;
    const { appId, objectId, createdAt } = push;
    const key = claimKey(appId, reqId);
    if (!claims.has(key)) claims.set(key, { appId, reqId, objectId, acceptedAt: createdAt });
  }
  if (claims.size === 0) return claims;
  for (const claim of await claimRequestIds(tx, [...claims.values()], repeatWindowMs))
    claims.set(claimKey(claim.appId, claim.reqId), claim);
  return claims;
}

/** Returns the claim of another push with the same `req_id`, if there is such a claim. */
function repeatedBy({ reqId, push }: UnstoredPush, claims: Claims): RequestClaim | undefined {
  const claim = reqId ? claims.get(claimKey(push.appId, reqId)) : undefined;
  return claim && claim.objectId !== push.objectId ? claim : undefined;
}

/**
 * Throws error 154 if the app has as many scheduled pushes as its plan allows
 * (protocol/push.md#limits).
 */
async function checkPending(tx: Handle, { appId, plan }: App): Promise<void> {
  const { pending } = planLimits[plan];
  if ((await countScheduledLocked(tx, appId)) >= pending)
    throw refuse('thresholdExceeded', detail('scheduledLimit', { n: pending, plan }));
}
