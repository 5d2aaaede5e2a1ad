import { Router } from '../../../../connectors/routing.ts';
import { dayMs } from '../../../../shared/clock.ts';
import { readDeviceState } from '../../../../shared/db/tables/audience.ts';
import { selectInstallations } from '../../../../shared/db/tables/installations.ts';
import { findDevice, listPushPage } from '../../../../shared/db/tables/push-reports.ts';
import { countRows, type Selection } from '../../../../shared/db/tables/selection.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { shownRoute } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../../shared/domain/ids.ts';
import { namesOfToken } from '../../../../shared/domain/installations/identity.ts';
import { installationDocument } from '../../../../shared/domain/installations/installation.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { mapInTicks } from '../../../../shared/event-loop.ts';
import { parseWhere } from '../../../../shared/query/parse/where.ts';
import { installationClass } from '../../../../shared/query/schema.ts';
import { Params } from '../../../../shared/query/sql/params.ts';
import { compileWhere } from '../../../../shared/query/sql/where.ts';
import type { ApiDeps } from '../../deps.ts';
import type { PushTraceService } from '../../push/explain/push-trace.ts';
import { askerOf, type ConditionAsker, visibleTo } from '../access/conditions.ts';
import { requireApp } from '../apps.ts';
import type { ReadAudit } from '../audit/audit.ts';
import { cappedRows, countOfRows, type PageRequest, toPage } from '../lists/page.ts';

/** Returns a push without content or condition, for the route that a device has by itself. */
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
  return { objectId: newPushObjectId(), pushOrder, expiresAt: new Date(nowMs), createdAt: new Date(nowMs) };
}

/** Waiting messages that are counted. */
const maxInbox = 1000;
/** Matches that are counted. `all` counts as many as one deletion may have. */
export const mostCounted = (count: boolean | 'all' | undefined): number =>
  count === 'all' ? 100_000 : count ? 10_000 : 0;

interface DeviceListRequest extends PageRequest {
  /** An objectId, installationId, device token or registration id. */
  q?: string | undefined;
  /** Condition as JSON text. */
  where?: string | undefined;
  /** Most matches to count; 0 counts none. */
  mostCounted: number;
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
   * Lists devices, the newest first. Throws 404, 102 and 105 for the condition, 403 for one that
   * the role may not ask, 124.
   */
  async list(operator: Operator, appId: string, request: DeviceListRequest) {
    const app = await requireApp(this.#deps, appId);
    const most = request.mostCounted;
    const asker = askerOf(operator, appId);
    const { rows, count } = await this.#deps.queries.readPrepared({ app, isMaster: true }, () => {
      const selection = selectionOf(asker, request);
      const all = selectionOf(asker, { ...request, before: null });
      return async (tx) => ({
        rows: await selectInstallations(tx, selection),
        count:
          most > 0 ? await countRows(tx, 'installation', cappedRows('installation', all, most)) : undefined,
      });
    });
    await this.#reads.note({ action: 'installation.list', appId, target: appId, members: asker.personal });
    const { results, next } = toPage(rows, request.limit, ({ id }) => id);
    const documents = await mapInTicks(results, (row) =>
      visibleTo(operator, installationDocument(row, { hasAcl: true })),
    );
    return { results: documents, next, ...(count === undefined ? {} : countOfRows(count, most)) };
  }

  /** Returns a device with its route and state. Throws 404 when there is no such app or device. */
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
      installation: visibleTo(operator, installationDocument(row, { hasAcl: true })),
      route: shownRoute(error === undefined ? route : { ...route, problem: error }),
      isValid: row.valid,
      isFresh: row.updatedAt.getTime() >= freshSinceMs,
      online: onlineSince && node !== null ? { since: onlineSince, node } : null,
      inbox,
      badge: row.badge,
      invalidTokenNotice: notice,
    };
  }
}

function selectionOf(asker: ConditionAsker, request: DeviceListRequest): Selection {
  const { q, where, before, limit } = request;
  const params = new Params([asker.appId]);
  const parsed = parseWhere(where, installationClass, asker);
  const conditions = [`(${compileWhere(parsed, installationClass, params)})`];
  if (q !== undefined) conditions.push(idCondition(params, q));
  if (before !== null) conditions.push(`id < ${params.add(before)}`);
  const { values } = params;
  const condition = conditions.join(' AND ');
  return { condition, orderBy: 'id DESC', values, conditionValues: values.length, limit: limit + 1, skip: 0 };
}

function idCondition(params: Params, text: string): string {
  const value = params.add(text);
  const tokens = `${params.add(namesOfToken(text))}::text[]`;
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

/** Tells what became of the newest pushes at one device (protocol/admin-api.md#devices). */
export class DevicePushService {
  readonly #deps: ApiDeps;
  readonly #traces: PushTraceService;

  constructor(deps: ApiDeps, traces: PushTraceService) {
    this.#deps = deps;
    this.#traces = traces;
  }

  /** Explains the newest `limit` pushes, one after the other: each reads all batches of its push. Throws 404. */
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
