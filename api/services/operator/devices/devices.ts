import { Router } from '../../../../connectors/routing.ts';
import { dayMs } from '../../../../shared/clock.ts';
import { readDeviceState } from '../../../../shared/db/tables/channel-sessions.ts';
import {
  deleteMatching,
  listMatching,
  selectInstallations,
} from '../../../../shared/db/tables/installations.ts';
import { findDevice, listPushPage } from '../../../../shared/db/tables/push-reports.ts';
import {
  countRows,
  type RowCondition,
  type Selection,
} from '../../../../shared/db/tables/selection.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { replyRoute } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../../shared/domain/ids.ts';
import { storedFormsOfToken } from '../../../../shared/domain/installations/identity.ts';
import { installationDocument } from '../../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { type Detail, detail } from '../../../../shared/domain/texts/texts.ts';
import { mapInTicks } from '../../../../shared/event-loop.ts';
import { compileRowCondition } from '../../../../shared/query/list/list.ts';
import { parseWhere } from '../../../../shared/query/parse/where.ts';
import { installationClass } from '../../../../shared/query/schema.ts';
import { Params } from '../../../../shared/query/sql/params.ts';
import { compileWhere } from '../../../../shared/query/sql/where.ts';
import type { ApiDeps } from '../../deps.ts';
import type { InstallationService } from '../../installations/installations.ts';
import type { PushTraceService } from '../../push/explain/push-trace.ts';
import { type ConditionViewer, operatorViewer, visibleTo } from '../access/member-rights.ts';
import { requireApp } from '../apps.ts';
import { type ReadAudit, recordChange } from '../audit/audit.ts';
import { cappedRows, countOfRows, type PageRequest, toPage } from '../lists/page.ts';

/** Returns a push without content or condition. It is used to find the route of a device. */
export function plainPush(
  nowMs: number,
  prod: 'prod' | 'dev' = 'prod',
): {
  objectId: string;
  pushOrder: PushOrder;
  expiresAt: Date;
  createdAt: Date;
} {
  const pushOrder: PushOrder = {
    data: {},
    target: { kind: 'query', where: {}, channels: null },
    prod,
    topic: null,
    teamId: null,
    flowControl: null,
    notificationChannel: null,
  };
  return {
    objectId: newPushObjectId(),
    pushOrder,
    expiresAt: new Date(nowMs),
    createdAt: new Date(nowMs),
  };
}

/** Maximum number of waiting messages that are counted. */
const maxInbox = 1000;
/**
 * Returns the maximum number of matches to count. With `all`, this is the maximum of one deletion.
 */
export const maxCountFor = (count: boolean | 'all' | undefined): number =>
  count === 'all' ? 100_000 : count ? 10_000 : 0;

interface DeviceListRequest extends PageRequest {
  /** An objectId, installationId, device token or registration id to search for. */
  q?: string | undefined;
  /** Condition as JSON text. */
  where?: string | undefined;
  /** Maximum number of matches to count. 0 counts none. */
  maxCount: number;
}

/** Finds and shows devices for operators (protocol/admin-api.md#devices). */
export class DeviceService {
  readonly #deps: ApiDeps;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
  }

  /**
   * Lists devices, newest first. Throws error 404 if the app does not exist, errors 102 and for the
   * condition, error 403 if the role may not use the condition, error 124 after a timeout.
   */
  async list(operator: Operator, appId: string, request: DeviceListRequest) {
    const app = await requireApp(this.#deps, appId);
    const max = request.maxCount;
    const viewer = operatorViewer(operator, appId);
    const { rows, count } = await this.#deps.queries.readPrepared({ app, isMaster: true }, () => {
      const selection = selectionOf(viewer, request);
      const all = selectionOf(viewer, { ...request, before: null });
      return async (tx) => ({
        rows: await selectInstallations(tx, selection),
        count:
          max > 0
            ? await countRows(tx, 'installation', cappedRows('installation', all, max))
            : undefined,
      });
    });
    await this.#reads.record({
      action: 'installation.list',
      appId,
      target: appId,
      members: viewer.personal,
    });
    const { results, next } = toPage(rows, request.limit, ({ id }) => id);
    const documents = await mapInTicks(results, (row) =>
      visibleTo(operator, installationDocument(row, { hasAcl: true, hasSubscription: false })),
    );
    return { results: documents, next, ...(count === undefined ? {} : countOfRows(count, max)) };
  }

  /**
   * Returns a device with its route and state. Throws error 404 if the app or device does not
   * exist.
   */
  async get(operator: Operator, appId: string, name: string) {
    const app = await requireApp(this.#deps, appId);
    const { db, clock, appCache } = this.#deps;
    // PostgreSQL refuses NUL, so no device has such an id.
    const found = name.includes('\0') ? undefined : await findDevice(db, appId, name);
    if (!found) throw refuse('notFound', detail('noInstallation'));
    const [row] = await selectInstallations(db, byId(appId, found.id));
    if (!row) throw refuse('notFound', detail('noInstallation'));
    const state = await readDeviceState(db, { appId, id: found.id }, maxInbox);
    const profiles = await appCache.profiles(appId);
    const { error, ...route } = new Router(app, profiles, plainPush(clock.now())).route(found);
    const freshSinceMs = clock.now() - app.options.installationValidityDays * dayMs;
    const { onlineSince, node, inbox, notice } = state;
    return {
      installation: visibleTo(
        operator,
        installationDocument(row, { hasAcl: true, hasSubscription: false }),
      ),
      route: replyRoute(error === undefined ? route : { ...route, problem: error }),
      isValid: row.valid,
      isFresh: row.updatedAt.getTime() >= freshSinceMs,
      online: onlineSince && node !== null ? { since: onlineSince, node } : null,
      inbox,
      badge: row.badge,
      invalidTokenNotice: notice,
    };
  }
}

function selectionOf(viewer: ConditionViewer, request: DeviceListRequest): Selection {
  const { q, where, before, limit } = request;
  const params = new Params([viewer.appId]);
  const parsed = parseWhere(where, installationClass, viewer);
  const conditions = [`(${compileWhere(parsed, installationClass, params)})`];
  if (q !== undefined) conditions.push(idCondition(params, q));
  if (before !== null) conditions.push(`id < ${params.add(before)}`);
  const { values } = params;
  const condition = conditions.join(' AND ');
  return {
    condition,
    orderBy: 'id DESC',
    values,
    conditionValues: values.length,
    limit: limit + 1,
    skip: 0,
  };
}

function idCondition(params: Params, text: string): string {
  const value = params.add(text);
  const tokens = `${params.add(storedFormsOfToken(text))}::text[]`;
  return `(object_id = ${value} OR installation_id = ${value} OR device_token = ANY(${tokens}) OR registration_id = ${value})`;
}

const byId = (appId: string, id: number): Selection => ({
  condition: 'id = $2',
  orderBy: 'id',
  values: [appId, id],
  conditionValues: 2,
  limit: 1,
  skip: 0,
});

/** Explains the newest pushes for one device (protocol/admin-api.md#devices). */
export class DevicePushService {
  readonly #deps: ApiDeps;
  readonly #traces: PushTraceService;

  constructor(deps: ApiDeps, traces: PushTraceService) {
    this.#deps = deps;
    this.#traces = traces;
  }

  /**
   * Explains the newest `limit` pushes, one after another, because each explanation reads all
   * batches of its push. Throws error 404 if the app does not exist.
   */
  async list(appId: string, device: string, limit: number) {
    await requireApp(this.#deps, appId);
    const pushes = await listPushPage(this.#deps.db, appId, {}, { before: null, limit });
    const results = [];
    for (const { objectId, createdAt, state } of pushes) {
      const explanation = await this.#traces.explain(appId, objectId, device);
      const { isMatched, outcome, sentence, texts, at } = explanation;
      results.push({ objectId, createdAt, state, isMatched, outcome, at, sentence, texts });
    }
    return { results };
  }
}

/** Maximum number of installations in one deletion. Their ids are in memory. */
export const maxDeleted = 100_000;
/** Number of installations that one transaction deletes. */
const deletedAtOnce = 1000;

/** Changes and deletes installations for operators (protocol/admin-api.md#devices). */
export class DeviceEditService {
  readonly #deps: ApiDeps;
  readonly #installations: Pick<InstallationService, 'update' | 'delete'>;

  constructor(deps: ApiDeps, installations: Pick<InstallationService, 'update' | 'delete'>) {
    this.#deps = deps;
    this.#installations = installations;
  }

  /**
   * Changes members, as PUT with the master key does. Throws error 404 if the device does not
   * exist, and as `InstallationService.update`.
   */
  async update(appId: string, name: string, body: JsonObject): Promise<JsonObject> {
    const app = await requireApp(this.#deps, appId);
    const objectId = await this.#require(appId, name);
    const { document } = await this.#installations.update(
      { app, isMaster: true, session: undefined, remoteAddress: '' },
      objectId,
      {
        body,
        where: undefined,
      },
    );
    return document;
  }

  /** Deletes a device. Throws error 404 if the app or device does not exist. */
  async delete(appId: string, name: string): Promise<void> {
    const app = await requireApp(this.#deps, appId);
    const objectId = await this.#require(appId, name);
    await this.#installations.delete(
      { app, isMaster: true, session: undefined },
      objectId,
      undefined,
    );
  }

  /**
   * Deletes all installations that match a condition, if their number is `expected`, which the
   * caller has seen. Deletes in steps and keeps installations that no longer match at their step.
   * Returns the number of deleted installations. Throws error 404 if the app does not exist, error
   * 409 if the number differs, errors 102 and for the condition, error 124 after a timeout.
   */
  async deleteAll(
    operator: Operator,
    appId: string,
    { where, expected }: { where: JsonObject; expected: number },
  ): Promise<number> {
    const app = await requireApp(this.#deps, appId);
    const condition = compileRowCondition(
      where,
      installationClass,
      operatorViewer(operator, appId),
    );
    if (!condition) throw refuse('invalidQuery');
    const caller = { app, isMaster: true };
    const ids = await this.#deps.queries.readFresh(caller, (tx) =>
      listMatching(tx, condition, expected + 1),
    );
    if (ids.length !== expected) throw refuse('conflict', countText(ids.length, expected));
    ids.sort((a, b) => a - b);
    let deleted = 0;
    for (let from = 0; from < ids.length; from += deletedAtOnce)
      deleted += await this.#deleteSome(app, {
        condition,
        ids: ids.slice(from, from + deletedAtOnce),
        where,
      });
    return deleted;
  }

  /** Deletes one step in its own transaction and adds an audit record. */
  #deleteSome(
    app: App,
    { condition, ids, where }: { condition: RowCondition; ids: number[]; where: JsonObject },
  ): Promise<number> {
    return this.#deps.queries.change({ app, isMaster: true }, async (tx) => {
      const deleted = await deleteMatching(tx, condition, ids);
      const { appId } = app;
      const change = { action: 'installation.delete-all', appId, target: appId };
      if (deleted > 0) await recordChange(tx, { ...change, before: { where }, after: { deleted } });
      return deleted;
    });
  }

  /** Returns the object id of a device by any of its ids. */
  async #require(appId: string, name: string): Promise<string> {
    // PostgreSQL refuses NUL, so no device has such an id.
    const found = name.includes('\0') ? undefined : await findDevice(this.#deps.db, appId, name);
    if (!found) throw refuse('notFound', detail('noInstallation'));
    return found.object_id;
  }
}

const countText = (found: number, expected: number): Detail =>
  found > expected
    ? detail('moreMatch', { n: expected })
    : detail('othersMatch', { found, expected });
