import type { Handle } from '../../../../shared/db/pool.ts';
import {
  type FailureFilter,
  listFailurePage,
  listRedrives,
  readSettledSpan,
  readTimeline,
  summarizeFailures,
} from '../../../../shared/db/tables/push-failures.ts';
import {
  countPushPage,
  listPushPage,
  type PushFilter,
} from '../../../../shared/db/tables/push-reports.ts';
import { listPushGroup } from '../../../../shared/db/tables/pushes.ts';
import { listGatewayMessages } from '../../../../shared/db/tables/receipts.ts';
import {
  findRecurring,
  findWaitingForApproval,
  readLocalProgress,
} from '../../../../shared/db/tables/scheduled-pushes.ts';
import { shortenTokens } from '../../../../shared/domain/admin/masking.ts';
import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { remedyOf } from '../../../../shared/domain/admin/remedies.ts';
import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import type { ApiDeps } from '../../deps.ts';
import { approvalReply } from '../../push/push-control.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import { requireApp } from '../apps.ts';
import { countOf, type PageRequest, toPage } from '../lists/page.ts';

/** Maximum number of device ids, and of pushes with the same notification id, in one record. */
const maxListedIds = 100;

/** Lists and shows push records for operators (protocol/admin-api.md#pushes). */
export class PushListService {
  readonly #deps: ApiDeps;
  readonly #records: PushRecordService;

  constructor(deps: ApiDeps, records: PushRecordService) {
    this.#deps = deps;
    this.#records = records;
  }

  /**
   * Lists records, newest first. Throws error 404 if the app does not exist, error 124 if the
   * search takes too long.
   */
  async list(
    operator: Operator,
    appId: string,
    request: PushFilter & PageRequest & { isCounted: boolean },
  ) {
    const { queries } = this.#deps;
    const app = await requireApp(this.#deps, appId);
    const { rows, count } = await queries.readFresh({ app, isMaster: true }, async (tx) => ({
      rows: await listPushPage(tx, appId, request, { ...request, limit: request.limit + 1 }),
      count: request.isCounted
        ? await countOf((limit) => countPushPage(tx, appId, request, limit))
        : {},
    }));
    const { results, next } = toPage(rows, request.limit, ({ id }) => id);
    return { results: await this.describe(operator, appId, results), next, ...count };
  }

  /** Describes pushes with the members that the list shows to operators. */
  async describe(
    operator: Operator,
    appId: string,
    pushes: readonly Push[],
  ): Promise<JsonObject[]> {
    const documents = await this.#records.describeForOperator(appId, pushes);
    const paused = pushes.filter(({ state }) => state === 'paused').map(({ id }) => id);
    const waiting = await findWaitingForApproval(this.#deps.db, appId, paused);
    return pushes.map((push, i) => ({
      ...visibleTo(operator, documents[i] ?? {}),
      appId,
      state: push.state,
      flowControl: push.pushOrder.flowControl,
      expiresAt: push.expiresAt.toISOString(),
      firstSentAt: push.firstSentAt?.toISOString() ?? null,
      finishedAt: push.finishedAt?.toISOString() ?? null,
      createdBy: push.createdBy,
      campaign: push.pushOrder.campaign ?? null,
      localTime: push.pushOrder.local?.time ?? null,
      waitsForApproval: waiting.has(push.id),
      redriveOf: push.pushOrder.redrive?.objectId ?? null,
      recallOf: push.pushOrder.recall?.objectId ?? null,
      redriven: push.redriven,
      recurring: toRecurringName(push.pushOrder),
    }));
  }

  /**
   * Returns when a push starts next, or null. An open push at local time starts next in the next
   * time zones. A push that a recurring push created has the next time of the recurring push.
   */
  async #nextStartOf({ appId, id, isPlanned, pushOrder, state }: Push): Promise<string | null> {
    const { db } = this.#deps;
    const { local, recurring } = pushOrder;
    const isOpen =
      !isPlanned && (state === 'scheduled' || state === 'queued' || state === 'sending');
    if (local && isOpen)
      return (await readLocalProgress(db, { appId, id })).at?.toISOString() ?? null;
    if (!recurring) return null;
    return (await findRecurring(db, appId, recurring.id))?.nextAt?.toISOString() ?? null;
  }

  /**
   * Returns one record with its request. Throws error 101 (status 404) if the record does not
   * exist.
   */
  async get(operator: Operator, appId: string, publicId: string): Promise<JsonObject> {
    const push = await this.#records.find(appId, publicId);
    const [document = {}] = await this.describe(operator, appId, [push]);
    const group = await listPushGroup(this.#deps.db, appId, push.notificationId);
    const ids = group.map(({ objectId }) => objectId);
    return {
      ...document,
      isPlanned: push.isPlanned,
      acked: push.acked,
      request: visibleTo(operator, requestOf(push.pushOrder)),
      halts: Object.fromEntries(
        Object.entries(push.profileErrors).map(([profile, error]) => [profile, reasonText(error)]),
      ),
      approval: await approvalReply(this.#deps.db, push),
      nextStart: await this.#nextStartOf(push),
      redrives: await listRedrives(this.#deps.db, push),
      groupOf: ids.length > 1 ? ids.slice(0, maxListedIds) : [],
    };
  }
}

const toRecurringName = ({ recurring }: PushOrder): JsonObject | null =>
  recurring ? { id: recurring.id, name: recurring.name } : null;

/**
 * Returns the checked request as JSON. If the request lists devices, returns only the first ids and
 * the number of ids.
 */
function requestOf({
  target: originalTarget,
  redrive,
  recurring: _,
  recall,
  ...order
}: PushOrder): JsonObject {
  const rest = recall ? { ...order, recall: { objectId: recall.objectId } } : order;
  if (redrive) {
    const { target, pushId: _, outcomes, ...selection } = redrive;
    return { ...rest, target, redrive: { ...selection, outcomes: [...outcomes] } };
  }
  const shortened =
    originalTarget.kind === 'devices'
      ? {
          ...originalTarget,
          deviceIds: originalTarget.deviceIds.slice(0, maxListedIds),
          listed: originalTarget.deviceIds.length,
        }
      : originalTarget;
  return { ...rest, target: shortened };
}

/** Shortens tokens for roles below operator. */
function visibleTo({ role }: Operator, document: JsonObject): JsonObject {
  if (hasRole(role, 'operator')) return document;
  const { where, target } = document;
  return {
    ...document,
    ...(isJsonObject(where) ? { where: shortenTokens(where) } : {}),
    ...(isJsonObject(target) ? { target: shortenTokens(target) } : {}),
  };
}

/** Maximum number of causes in a summary. */
const maxCauses = 200;
/** Maximum number of points in a timeline. A push that takes longer gets a longer step. */
const maxSteps = 600;
const secondMs = 1000;

/**
 * Failed recipients of a push, its timeline, and the message ids of gateways
 * (protocol/admin-api.md#failures).
 */
export class FailureService {
  readonly #deps: { db: Handle };
  readonly #records: PushRecordService;

  constructor(deps: { db: Handle }, records: PushRecordService) {
    this.#deps = deps;
    this.#records = records;
  }

  /**
   * Lists failures, ordered by installation. Throws error 101 (status 404) if the push does not
   * exist.
   */
  async list(
    appId: string,
    publicId: string,
    { before, limit, ...filter }: FailureFilter & PageRequest,
  ) {
    const push = await this.#records.find(appId, publicId);
    const page = { after: before, limit: limit + 1 };
    const rows = await listFailurePage(this.#deps.db, push, filter, page);
    const { results, next } = toPage(rows, limit, ({ installation }) => installation);
    return {
      results: results.map(({ installation: _, ...row }) => ({
        ...row,
        reason: reasonText(row.reason),
        meaning: meaningOf(row.reason),
      })),
      next,
    };
  }

  /**
   * Lists the message ids of gateways, oldest first. Throws error 101 (status 404) if the push does
   * not exist.
   */
  async messages(appId: string, publicId: string, { before, limit }: PageRequest) {
    const push = await this.#records.find(appId, publicId);
    const rows = await listGatewayMessages(this.#deps.db, push, {
      after: before,
      limit: limit + 1,
    });
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(({ id: _, ...row }) => row), next };
  }

  /**
   * Counts failures by cause, each with its remedy. Throws error 101 (status 404) if the push does
   * not exist.
   */
  async summarize(appId: string, publicId: string) {
    const push = await this.#records.find(appId, publicId);
    const groups = await summarizeFailures(this.#deps.db, push, maxCauses);
    return {
      results: groups.map((group) => ({
        ...group,
        reason: reasonText(group.reason),
        meaning: meaningOf(group.reason),
        remedy: remedyOf(group.outcome, group.reason),
      })),
    };
  }

  /**
   * Counts the settled recipients by connector and time step. Throws error 101 (status 404) if the
   * push does not exist.
   */
  async timeline(appId: string, publicId: string, stepSeconds: number) {
    const push = await this.#records.find(appId, publicId);
    const span = await readSettledSpan(this.#deps.db, push);
    const start = push.firstSentAt ?? push.createdAt;
    const from = span && span.first < start ? span.first : start;
    const lengthMs = span ? span.last.getTime() - from.getTime() : 0;
    const stepMs =
      Math.max(stepSeconds, Math.ceil((lengthMs + 1) / secondMs / maxSteps)) * secondMs;
    const slots = span ? await readTimeline(this.#deps.db, push, { from, stepMs }) : [];
    const count = span ? Math.floor(lengthMs / stepMs) + 1 : 0;
    const zeros = () => Array<number>(count).fill(0);
    const connectors: Record<string, { sent: number[]; other: number[] }> = {};
    for (const { connector, slot, sent, other } of slots) {
      // Settled after the span was read.
      if (slot >= count) continue;
      connectors[connector] ??= { sent: zeros(), other: zeros() };
      connectors[connector].sent[slot] = sent ?? 0;
      connectors[connector].other[slot] = other ?? 0;
    }
    return { from, stepMs, connectors };
  }
}
