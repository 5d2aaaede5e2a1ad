import { setImmediate as nextTurn } from 'node:timers/promises';
import { dayMs } from '../../../../shared/clock.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { databaseNow } from '../../../../shared/db/query.ts';
import {
  deleteRecurring,
  findRecurring,
  insertRecurring,
  listRecurring,
  lockRecurringNames,
  type RecurringPush,
  type RecurringTerms,
  saveStarts,
  updateRecurring,
} from '../../../../shared/db/tables/scheduled-pushes.ts';
import { displayNameOf } from '../../../../shared/domain/admin/names.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { pushBodyBytesBelow } from '../../../../shared/domain/pushes/push.ts';
import {
  checkRecurrence,
  localText,
  nextTime,
  type Recurrence,
  timesAfter,
} from '../../../../shared/domain/pushes/recurrence.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { mapInTicks } from '../../../../shared/event-loop.ts';
import type { ApiDeps } from '../../deps.ts';
import { parseDraft } from '../../push/explain/dry-run.ts';
import { requireControl } from '../../push/push-control.ts';
import { type PushSender, type PushService, requestIdOf } from '../../push/pushes.ts';
import { operatorViewer, visibleTo } from '../access/member-rights.ts';
import { noSuchApp, requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';
import { idOf, type Page, type PageRequest, toPage } from '../lists/page.ts';
import type { SendingService, SentPush } from './sending.ts';

/** Returns the members that a caller sets, for replies and the audit. */
const definitionOf = (one: RecurringPush): JsonObject => ({
  id: one.id,
  name: one.name,
  expression: one.expression,
  timeZone: one.timeZone,
  startsAt: one.startsAt?.toISOString() ?? null,
  endsAt: one.endsAt?.toISOString() ?? null,
  isEnabled: one.isEnabled,
  body: one.body,
});

/**
 * Returns a recurring push for a caller. Tokens in its body are shortened below the role operator.
 */
function toReply(operator: Operator, one: RecurringPush): JsonObject {
  const { body: _, ...definition } = definitionOf(one);
  return {
    ...definition,
    body: visibleTo(operator, one.body),
    nextAt: one.nextAt?.toISOString() ?? null,
    lastAt: one.lastAt?.toISOString() ?? null,
    lastPush: one.lastPush,
    starts: one.starts,
    missed: one.missed,
    heldBack: one.heldBack,
    createdBy: one.createdBy,
    createdAt: one.createdAt.toISOString(),
    changedBy: one.changedBy,
    changedAt: one.changedAt.toISOString(),
  };
}

/** Time that a preview covers. */
const previewMs = 50 * 366 * dayMs;

/** Maximum number of recurring pushes in an app. */
const maxOfApp = 100;

/** Members of a body that make sense only for one push, or for a list of current devices. */
const refusedMembers = ['push_time', 'push_time_local', 'expiration_time', 'req_id', 'device_ids'];

/** Members of a recurring push that a caller sends. */
interface RecurringRequest extends Recurrence {
  name: string;
  isEnabled: boolean;
  body: JsonObject;
}

/** Recurring push as a caller names it. */
interface RecurringId {
  appId: string;
  id: string | undefined;
}

type CheckedBody = Pick<RecurringTerms, 'body' | 'pushOrder' | 'notificationId' | 'lifeSeconds'>;

/**
 * Stores the definitions of recurring pushes (protocol/admin-api.md#recurring-pushes). A dispatcher
 * creates their pushes.
 */
export class RecurringPushService {
  readonly #deps: ApiDeps;
  readonly #pushes: PushService;
  readonly #sending: SendingService;

  constructor(deps: ApiDeps, pushes: PushService, sending: SendingService) {
    this.#deps = deps;
    this.#pushes = pushes;
    this.#sending = sending;
  }

  /** Lists recurring pushes, newest first. Throws error 404 if the app does not exist. */
  async list(operator: Operator, appId: string, page: PageRequest): Promise<Page<JsonObject>> {
    await requireApp(this.#deps, appId);
    const rows = await listRecurring(this.#deps.db, appId, { ...page, limit: page.limit + 1 });
    const { results, next } = toPage(rows, page.limit, ({ id }) => id);
    return { results: await mapInTicks(results, (one) => toReply(operator, one)), next };
  }

  /** Returns a recurring push. Throws error 101 (status 404) if it does not exist. */
  async get(operator: Operator, name: RecurringId): Promise<JsonObject> {
    return toReply(operator, await this.#find(name));
  }

  /**
   * Creates a recurring push. Throws error 404 if the app does not exist, error 1 if the name,
   * expression, time zone or times are invalid, error 154 if the app has 100 already, error 137 if
   * the name is taken, and as POST /1.1/push for the body.
   */
  async create(operator: Operator, appId: string, request: RecurringRequest): Promise<JsonObject> {
    const checked = { ...request, ...checkRecurrence(request), name: displayNameOf(request.name) };
    const settings = { ...checked, ...(await this.#checkBody(operator, appId, request.body)) };
    const created = await this.#deps.db.transaction(async (tx) => {
      await requireRoom(tx, appId, { name: settings.name, exceptId: null });
      const nextAt = await nextStart(tx, settings);
      const row = await insertRecurring(tx, appId, { ...settings, nextAt, by: operator });
      await recordChange(tx, { ...changeOf(row, 'create'), after: definitionOf(row) });
      return row;
    });
    return toReply(operator, created);
  }

  /**
   * Changes members. New times apply from now on. Throws as `create`, 404/101 if the recurring push
   * does not exist, 403 if a sender did not create it.
   */
  async change(
    operator: Operator,
    name: RecurringId,
    patch: Partial<RecurringRequest>,
  ): Promise<JsonObject> {
    const { appId, id } = await this.#find(name);
    const checked = patch.body && (await this.#checkBody(operator, appId, patch.body));
    const changed = await this.#deps.db.transaction(async (tx) => {
      const before = await this.#lock(tx, operator, { appId, id });
      const merged = { ...before, ...patch, ...checked };
      const settings = {
        ...merged,
        ...checkRecurrence(merged),
        name: patch.name === undefined ? before.name : displayNameOf(patch.name),
      };
      if (settings.name !== before.name)
        await requireRoom(tx, appId, { name: settings.name, exceptId: id });
      const nextAt = hasSameTimes(before, settings) ? before.nextAt : await nextStart(tx, settings);
      const row = await updateRecurring(tx, before, { ...settings, nextAt, by: operator });
      const change = { ...changeOf(before, 'change'), before: definitionOf(before) };
      await recordChange(tx, { ...change, after: definitionOf(row) });
      return row;
    });
    return toReply(operator, changed);
  }

  /**
   * Deletes a recurring push. Its pushes stay. Throws error 101 (status 404) if it does not exist,
   * error 403 if a sender did not create it.
   */
  async delete(operator: Operator, name: RecurringId): Promise<void> {
    const { appId, id } = await this.#find(name);
    await this.#deps.db.transaction(async (tx) => {
      const before = await this.#lock(tx, operator, { appId, id });
      await deleteRecurring(tx, appId, id);
      await recordChange(tx, { ...changeOf(before, 'delete'), before: definitionOf(before) });
    });
  }

  /**
   * Sends a push from a recurring push now, even if the recurring push is disabled. Its times do
   * not change. Throws as POST /1.1/push.
   */
  async start(
    operator: Operator,
    name: RecurringId,
    idempotencyKey: string | undefined,
  ): Promise<SentPush> {
    const recurring = await this.#find(name);
    requireControl(operator, recurring);
    const { appId, id, pushOrder, notificationId, lifeSeconds } = recurring;
    const app = await requireApp(this.#deps, appId);
    const sender = this.#sending.senderOf(operator, app, { prodHeader: undefined, undoSeconds: 0 });
    const timing = {
      notificationId,
      reqId: requestIdOf(idempotencyKey),
      expirationSeconds: lifeSeconds,
    };
    const sent = await this.#pushes.sendOrder(recordingStart(sender, recurring), {
      pushOrder: { ...pushOrder, recurring: { id, name: recurring.name } },
      timing: { ...timing, pushTime: null, expirationTime: null },
      warnings: [],
    });
    return this.#sending.withStatus(appId, sent);
  }

  /** Returns the next times of an expression within fifty years. Throws error 1 as `create`. */
  async preview(recurrence: Recurrence, count: number): Promise<JsonObject> {
    const checked = checkRecurrence(recurrence);
    const now = new Date(await databaseNow(this.#deps.db));
    const horizonMs = Math.max(now.getTime(), checked.startsAt?.getTime() ?? 0) + previewMs;
    const times: { at: string; local: string }[] = [];
    for (const at of timesAfter(checked, now).take(count)) {
      if (at.getTime() > horizonMs) break;
      times.push({ at: at.toISOString(), local: localText(at, checked.timeZone) });
      // The search for a time that is years away takes milliseconds.
      await nextTurn();
    }
    return { times };
  }

  async #find({ appId, id }: RecurringId): Promise<RecurringPush> {
    await requireApp(this.#deps, appId);
    const number = idOf(id);
    const found =
      number === undefined ? undefined : await findRecurring(this.#deps.db, appId, number);
    return found ?? noSuchPush();
  }

  async #lock(
    tx: Handle,
    operator: Operator,
    { appId, id }: Pick<RecurringPush, 'appId' | 'id'>,
  ): Promise<RecurringPush> {
    const locked = (await findRecurring(tx, appId, id, { isLocked: true })) ?? noSuchPush();
    requireControl(operator, locked);
    return locked;
  }

  /** Checks a body as if the push were sent now. */
  async #checkBody(operator: Operator, appId: string, body: JsonObject): Promise<CheckedBody> {
    const app = await requireApp(this.#deps, appId);
    const refused = refusedMembers.find(
      (member) => body[member] !== undefined && body[member] !== null,
    );
    if (refused !== undefined)
      throw refuse('invalidParameter', detail('recurringMember', { member: refused }));
    const bodyBytes = Buffer.byteLength(JSON.stringify(body));
    if (bodyBytes >= pushBodyBytesBelow)
      throw refuse('tooLarge', detail('bodyBelow', { limit: pushBodyBytesBelow }));
    const draft = { body, bodyBytes, prodHeader: undefined };
    const request = parseDraft(operatorViewer(operator, appId), draft, this.#deps.clock.now());
    const sender = this.#sending.senderOf(operator, app, { prodHeader: undefined, undoSeconds: 0 });
    await this.#pushes.check(sender, request);
    const { pushOrder, timing } = request;
    return {
      body,
      pushOrder,
      notificationId: timing.notificationId,
      lifeSeconds: timing.expirationSeconds,
    };
  }
}

/** Returns the sender, extended to record the start in the recurring push. */
function recordingStart(sender: PushSender, recurring: RecurringPush): PushSender {
  const { adminSettings } = sender;
  if (!adminSettings) return sender;
  const onStored: typeof adminSettings.onStored = async (tx, push) => {
    await saveStarts(tx, recurring, { made: { at: push.pushTime, objectId: push.objectId } });
    await adminSettings.onStored(tx, push);
  };
  return { ...sender, adminSettings: { ...adminSettings, onStored } };
}

const hasSameTimes = (one: RecurringTerms, other: RecurringTerms): boolean =>
  one.isEnabled === other.isEnabled &&
  one.expression === other.expression &&
  one.timeZone === other.timeZone &&
  one.startsAt?.getTime() === other.startsAt?.getTime() &&
  one.endsAt?.getTime() === other.endsAt?.getTime();

/**
 * Returns the next start of an enabled recurring push. Throws error 1 if there is no next start.
 */
async function nextStart(tx: Handle, settings: RecurringTerms): Promise<Date | null> {
  if (!settings.isEnabled) return null;
  const next = nextTime(settings, new Date(await databaseNow(tx)));
  if (!next && settings.endsAt) throw refuse('invalidParameter', detail('recurringEnded'));
  if (!next) throw refuse('invalidParameter', detail('cronHorizon'));
  return next;
}

/**
 * Throws error 404 if the app does not exist, error 154 if the limit is reached, error 137 if the
 * name is taken.
 */
async function requireRoom(
  tx: Handle,
  appId: string,
  entry: { name: string; exceptId: number | null },
): Promise<void> {
  const others = (await lockRecurringNames(tx, appId, entry)) ?? noSuchApp();
  if (others.count >= maxOfApp)
    throw refuse('thresholdExceeded', detail('recurringLimit', { n: maxOfApp }));
  if (others.isTaken) throw refuse('duplicate', detail('recurringName'));
}

function noSuchPush(): never {
  throw refuse('objectNotFound', detail('noRecurring'));
}

const changeOf = ({ appId, name }: RecurringPush, verb: string) => ({
  action: `recurring-push.${verb}`,
  appId,
  target: name,
});
