import type { Handle } from '../../../shared/db/pool.ts';
import { findVoidSlots, listOpenBatches } from '../../../shared/db/tables/batches.ts';
import { listPeopleNames } from '../../../shared/db/tables/console.ts';
import { changePace } from '../../../shared/db/tables/gateway-limits.ts';
import {
  type DeletedDevices,
  type DeletedPage,
  deleteInvalidPage,
  deleteReported,
  saveKeptTokens,
} from '../../../shared/db/tables/invalid-tokens.ts';
import {
  markPushPaused,
  markPushResumed,
  notifyPushChanged,
} from '../../../shared/db/tables/push-control.ts';
import { markPushCancelled } from '../../../shared/db/tables/pushes.ts';
import {
  type Approval,
  findApproval,
  giveApproval,
  lockForApproval,
  saveFirstApproval,
} from '../../../shared/db/tables/scheduled-pushes.ts';
import { isSameName } from '../../../shared/domain/admin/names.ts';
import { hasRole, type Operator } from '../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { flowControlOf } from '../../../shared/domain/pushes/push.ts';
import { operatorStatus, type Push } from '../../../shared/domain/pushes/record.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { continuePushes, startBatchesNow } from '../../../shared/queue/push-jobs.ts';
import type { ApiDeps } from '../deps.ts';
import { type Change, recordChange } from '../operator/audit/audit.ts';
import type { PushRecordService } from './push-records.ts';
import { cancelledEvent } from './pushes.ts';

type ApprovedPush = Pick<Push, 'appId' | 'id' | 'createdBy' | 'createdToken'>;

/**
 * Throws error 403 if the approver is the person who sent the push. Compares the tokens, and the
 * people behind the names.
 */
async function requireOther(
  db: Handle,
  { name, tokenId }: Operator,
  { createdBy, createdToken }: ApprovedPush,
): Promise<void> {
  if (createdBy === null) return;
  if (createdToken === tokenId) throw refuse('forbidden', detail('secondPerson'));
  if (await isSamePerson(db, createdBy, name)) throw refuse('forbidden', detail('secondName'));
}

/**
 * True if two names are of one person: they are equal, or the provider of OpenID Connect knows a
 * person by both, one as the name and one as the mail address.
 */
async function isSamePerson(db: Handle, one: string, other: string): Promise<boolean> {
  if (isSameName(one, other)) return true;
  const people = await listPeopleNames(db);
  return people.some(({ name, mail }) =>
    [one, other].every((given) => isSameName(given, name) || isSameName(given, mail)),
  );
}

/**
 * Approves a push (protocol/admin-api.md#approvals). For a push sent with an app's own keys, the
 * sender is unknown, because everybody with the app has the app key. Such a push needs an owner, or
 * two operators with different names. Returns `first` for the first of two approvals, `resumed` if
 * the push continues now, `noted` if it is not planned yet, undefined if it is finished or already
 * approved. Throws error 403 if the first operator approves again.
 */
async function approve(
  tx: Handle,
  operator: Operator,
  push: ApprovedPush,
): Promise<'first' | 'resumed' | 'noted' | undefined> {
  const open = await lockForApproval(tx, push);
  if (!open || open.approval?.givenAt) return undefined;
  const { name: by, role } = operator;
  const firstBy = open.approval?.firstBy ?? null;
  const needsTwo = push.createdBy === null && !hasRole(role, 'owner');
  if (needsTwo && firstBy === null) {
    await saveFirstApproval(tx, push, by);
    return 'first';
  }
  if (needsTwo && firstBy !== null && (await isSamePerson(tx, firstBy, by)))
    throw refuse('forbidden', detail('secondApproval'));
  return giveApproval(tx, push, { by, isPaused: open.isPaused });
}

/** Returns whether a push waits for its approval. Its devices have been counted. */
const isWaiting = (approval: Approval | undefined): boolean =>
  approval !== undefined && approval.above !== null && approval.givenAt === null;

/** Returns the approval of a push in the form of replies, with the number of missing approvals. */
export async function approvalReply(db: Handle, push: Pick<Push, 'appId' | 'id' | 'createdBy'>) {
  const found = await findApproval(db, push);
  if (!found) return null;
  const { above, firstBy, firstAt, givenBy, givenAt } = found;
  const missing = givenAt ? 0 : push.createdBy === null && firstAt === null ? 2 : 1;
  return {
    above,
    firstBy,
    firstAt: firstAt?.toISOString() ?? null,
    givenBy,
    givenAt: givenAt?.toISOString() ?? null,
    missing,
  };
}

/**
 * Changes the state of a push within `tx`. Returns false if the push's state does not allow the
 * change. Returned members are added to the change in the audit.
 */
type StateChange = (
  tx: Handle,
  appId: string,
  id: number,
  record: Push,
) => Promise<boolean | JsonObject>;

/** Caller of the admin API. A sender controls only the pushes of its own token. */
type Controller = Pick<Operator, 'name' | 'role' | 'tokenId'>;

/** Push as identified by a caller. */
export interface PushName {
  /** Absent if the caller has the app's master key. */
  controller?: Controller;
  appId: string;
  publicId: string;
}

/** Push with the change of its state. The verb is a participle that texts contain. */
interface ControlledPush extends PushName {
  verb: 'cancelled' | 'paused' | 'resumed' | 'approved' | 'paced';
  flowControl?: number | null | undefined;
}

const actions = {
  cancelled: 'push.cancel',
  paused: 'push.pause',
  resumed: 'push.resume',
  approved: 'push.approve',
  paced: 'push.pace',
} as const;

/** Throws error 403 if the caller is a sender and another token sent the push. */
export function requireControl(
  { role, tokenId }: Controller,
  { createdToken }: Pick<Push, 'createdToken'>,
): void {
  if (hasRole(role, 'operator') || (tokenId !== null && tokenId === createdToken)) return;
  throw refuse('forbidden', detail('ownPushes'));
}

/** Returns the change for the audit. */
function toChange(
  { appId, verb, flowControl }: ControlledPush,
  { objectId, state, pushOrder }: Push,
): Change {
  const change = { action: actions[verb], appId, target: objectId };
  if (flowControl === undefined) return { ...change, before: { state } };
  const before = { state, flowControl: pushOrder.flowControl };
  return { ...change, before, after: { flowControl: flowControlOf(flowControl) } };
}

/** Cancels, pauses, resumes and paces pushes (protocol/admin-api.md#control-of-a-push). */
export class PushControlService {
  readonly #deps: ApiDeps;
  readonly #records: PushRecordService;

  constructor(deps: ApiDeps, records: PushRecordService) {
    this.#deps = deps;
    this.#records = records;
  }

  /**
   * Cancels a push. Messages that gateways already have cannot be recalled. All other messages are
   * not sent (protocol/push-records.md#state-changes). Returns the record with its current counts.
   * Throws error 101 (status 404) if the push does not exist, error 409 if it is finished.
   */
  cancel(push: PushName): Promise<JsonObject> {
    return this.#changeState({ ...push, verb: 'cancelled' }, async (tx, app, id, record) => {
      const isChanged = await markPushCancelled(tx, app, id);
      // Batches that are paused or wait for a time are settled now.
      if (isChanged) {
        await startBatchesNow(tx, app, await listOpenBatches(tx, app, id));
        await this.#continue(tx, app, id);
        const data = { push: record.objectId, by: push.controller?.name ?? null };
        await this.#deps.webhooks.emit(tx, cancelledEvent(app, data));
      }
      return isChanged;
    });
  }

  /**
   * Pauses a push until it is resumed. It may expire in the meantime. Throws error 101 (status 404)
   * if the push does not exist, error 409 if it is not being sent.
   */
  pause(push: PushName): Promise<JsonObject> {
    return this.#changeState({ ...push, verb: 'paused' }, markPushPaused);
  }

  /**
   * Continues a paused push. `flowControl` sets a new rate, null removes the limit
   * (protocol/push.md#flow-control).
   */
  resume(push: PushName, flowControl: number | null | undefined): Promise<JsonObject> {
    return this.#changeState(
      { ...push, verb: 'resumed', flowControl },
      async (tx, app, id, record) => {
        const approval = await findApproval(tx, { appId: app, id });
        if (isWaiting(approval)) throw refuse('conflict', detail('needsApproval'));
        if (!(await markPushResumed(tx, app, id))) return false;
        const pace =
          flowControl === undefined ? record.pushOrder.flowControl : flowControlOf(flowControl);
        // Needed even if the rate is unchanged: time slots reserved before the pause are void.
        await changePace(tx, app, id, pace);
        await startBatchesNow(tx, app, await findVoidSlots(tx, app, id));
        await this.#continue(tx, app, id);
        return true;
      },
    );
  }

  /**
   * Approves a push to many devices. The push then continues unless it needs another approval
   * (protocol/admin-api.md#approvals). Throws error 101 (status 404) if the push does not exist,
   * error 403 if the caller sent it or gave the first approval, error 409 if it is finished or
   * already approved.
   */
  async approve({ controller, ...push }: PushName & { controller: Operator }): Promise<JsonObject> {
    const record = await this.#records.find(push.appId, push.publicId);
    await requireOther(this.#deps.db, controller, record);
    const document = await this.#changeRecord(
      { ...push, verb: 'approved' },
      record,
      async (tx, appId, id) => {
        const result = await approve(tx, controller, record);
        if (result === 'resumed') await this.#continue(tx, appId, id);
        return result === 'first' ? { missing: 1 } : result !== undefined;
      },
    );
    return { ...document, approval: await approvalReply(this.#deps.db, record) };
  }

  /**
   * Changes the rate of an unfinished push within a second. Null removes the limit
   * (protocol/push.md#flow-control). A paused push stays paused. Throws error 101 (status 404) if
   * the push does not exist, error 409 if it is finished.
   */
  pace(push: PushName, flowControl: number | null): Promise<JsonObject> {
    return this.#changeState({ ...push, verb: 'paced', flowControl }, async (tx, app, id) => {
      if (!(await changePace(tx, app, id, flowControlOf(flowControl)))) return false;
      await startBatchesNow(tx, app, await findVoidSlots(tx, app, id));
      return true;
    });
  }

  /**
   * Deletes the installations whose tokens a finished push found invalid, unless they were saved
   * since (protocol/delivery.md#promise-7). This includes installations that were kept because
   * there were many. Throws error 101 (status 404) if the push does not exist, error 409 if it is
   * open.
   */
  async deleteInvalid({ appId, publicId }: PushName): Promise<{ deleted: number }> {
    const record = await this.#records.find(appId, publicId);
    if (record.totals === null)
      throw refuse('conflict', detail('stillOpen', { state: operatorStatus(record) }));
    let deleted = 0;
    let after: number | null = 0;
    while (after !== null) {
      const page: DeletedPage = await this.#deleteInvalidPage(record, after);
      deleted += page.deleted;
      after = page.last;
    }
    return { deleted };
  }

  /**
   * Deletes one page in its own transaction and adds an audit record. The last page removes the
   * note about kept tokens from the push record.
   */
  #deleteInvalidPage(
    { appId, id: pushId, objectId, keptTokens }: Push,
    after: number,
  ): Promise<DeletedPage> {
    return this.#deps.db.transaction(async (tx) => {
      const selection = { appId, pushId, deletable: { called: true, proven: true } };
      const page = await deleteInvalidPage(tx, selection, after);
      const emit = (devices: DeletedDevices) =>
        this.#deps.webhooks.emitInvalid(tx, { appId, push: objectId, devices });
      await emit(page.devices);
      const isLast = page.last === null;
      if (isLast && keptTokens.length > 0) await saveKeptTokens(tx, selection, []);
      const reported = isLast ? await deleteReported(tx, selection) : undefined;
      if (reported) await emit(reported.devices);
      const deleted = page.deleted + (reported?.deleted ?? 0);
      await recordChange(tx, {
        action: 'push.delete-invalid',
        appId,
        target: objectId,
        after: { deleted },
      });
      return { ...page, deleted };
    });
  }

  async #changeState(push: ControlledPush, change: StateChange): Promise<JsonObject> {
    const record = await this.#records.find(push.appId, push.publicId);
    if (push.controller) requireControl(push.controller, record);
    return this.#changeRecord(push, record, change);
  }

  /** Changes a push that has been found. A newer push may have its custom id by now. */
  async #changeRecord(
    push: ControlledPush,
    record: Push,
    change: StateChange,
  ): Promise<JsonObject> {
    const isChanged = await this.#deps.db.transaction(async (tx) => {
      const result = await change(tx, push.appId, record.id, record);
      if (result === false) return false;
      await notifyPushChanged(tx, record.id);
      const audited = toChange(push, record);
      await recordChange(tx, result === true ? audited : { ...audited, after: result });
      return true;
    });
    if (!isChanged) {
      const { state } = await this.#records.find(push.appId, record.objectId);
      throw refuse('conflict', detail('wrongState', { state, verb: push.verb }));
    }
    return this.#records.getForOperator(push.appId, record.objectId);
  }

  /** Creates the jobs for the paused work of a push again. */
  async #continue(tx: Handle, appId: string, id: number): Promise<void> {
    await continuePushes(tx, this.#deps.queue, [{ appId, id }], this.#deps.clock.now());
  }
}
