import { runForApp } from '../../../../shared/db/limits/client-pool.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  countRedrivable,
  hasFailure,
  listUndelivered,
  lockForRedrive,
  type RivalPush,
} from '../../../../shared/db/tables/push-failures.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import {
  flowControlOf,
  originalTarget,
  type PushOrder,
  type PushRequest,
  type Redrive,
  type RedriveSelection,
} from '../../../../shared/domain/pushes/push.ts';
import { allTotals, operatorStatus, type Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { type Detail, detail } from '../../../../shared/domain/texts/texts.ts';
import {
  failureConditions,
  noDevices,
  redrivable,
} from '../../../../shared/query/targets/redrive.ts';
import { Params } from '../../../../shared/query/targets/targets.ts';
import type { ApiDeps } from '../../deps.ts';
import { type DryRunInputs, measureAudience } from '../../push/explain/dry-run.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import { expiryOf, type PushSender, type PushService, requestIdOf } from '../../push/pushes.ts';
import { requireApp } from '../apps.ts';
import { type PageRequest, toPage } from '../lists/page.ts';
import type { SendingService, SentPush } from './sending.ts';

/** Selection of recipients for a redrive, and its settings. */
export interface RedriveRequest extends RedriveSelection {
  /**
   * Lifetime in seconds, or time of expiry. Without both, the redrive has the lifetime of the push.
   */
  expirationSeconds: number | null;
  expirationTime: Date | null;
  /** Recipients per second. If undefined, the rate of the push applies. */
  flowControl: number | null | undefined;
  /** `req_id` of the redrive. */
  idempotencyKey?: string | undefined;
}

interface PushName {
  appId: string;
  publicId: string;
}

/**
 * Sends a finished push again to the recipients that it did not reach
 * (protocol/admin-api.md#redrive).
 */
export class RedriveService {
  readonly #deps: ApiDeps;
  readonly #records: PushRecordService;
  readonly #pushes: PushService;
  readonly #sending: SendingService;

  constructor(
    deps: ApiDeps,
    services: { records: PushRecordService; pushes: PushService },
    sending: SendingService,
  ) {
    this.#deps = deps;
    this.#records = services.records;
    this.#pushes = services.pushes;
    this.#sending = sending;
  }

  /**
   * Sends the content of a push to the selected recipients. Planning claims recipients, so each
   * gets it at most once. Throws error 101 (status 404) if the push does not exist. Throws error
   * 409 if the push is open or cancelled, has no such recipients, or if another redrive of it is
   * not planned yet.
   */
  async redrive(operator: Operator, name: PushName, request: RedriveRequest): Promise<SentPush> {
    const { appId } = name;
    const app = await requireApp(this.#deps, appId);
    return runForApp(appId, async () => {
      // The first redrive may have claimed all recipients when its call is repeated.
      const sent = await this.#pushes.orFirst(app, request.idempotencyKey, async () => {
        const push = await this.find(name);
        const order = orderOf(push, request);
        if (!order.redrive || !(await this.#isPossible(appId, order.redrive)))
          throw refuse('conflict', detail('nothingFailed'));
        const sender = refusingRivals(
          this.#sending.senderOf(operator, app, senderOptions(push)),
          push,
        );
        return this.#pushes.sendOrder(sender, requestOf(push, order, request));
      });
      return this.#sending.withStatus(appId, sent);
    });
  }

  /**
   * Finds a push that can be sent again. Throws error 101 (status 404) if it does not exist, error
   * 409 if it is open, cancelled or a recall.
   */
  async find({ appId, publicId }: PushName): Promise<Push> {
    const push = await this.#records.find(appId, publicId);
    const { recall } = push.pushOrder;
    if (recall) throw refuse('conflict', detail('isRecall', { objectId: recall.objectId }));
    if (push.state === 'cancelled') throw refuse('conflict', detail('wasCancelled'));
    if (push.pushOrder.liveActivity) throw refuse('conflict', detail('activityNoRedrive'));
    if (push.totals === null)
      throw refuse('conflict', detail('stillOpen', { state: operatorStatus(push) }));
    return push;
  }

  #isPossible(appId: string, redrive: Redrive): Promise<boolean> {
    const params = new Params();
    const text = redrivable(appId, redrive, params);
    return hasFailure(this.#deps.db, { text, values: params.values });
  }
}

const senderOptions = ({ objectId }: Push) => ({
  prodHeader: undefined,
  undoSeconds: 0,
  resent: objectId,
});

/** Returns the sender, extended to refuse the redrive if another push prevents it. */
function refusingRivals(sender: PushSender, push: Push): PushSender {
  const { adminSettings } = sender;
  if (!adminSettings) return sender;
  const onStored: typeof adminSettings.onStored = async (tx, created) => {
    const rival = await lockForRedrive(tx, push, created.objectId);
    if (rival) throw refuse('conflict', rivalText(rival));
    await adminSettings.onStored(tx, created);
  };
  return { ...sender, adminSettings: { ...adminSettings, onStored } };
}

const rivalText = ({ objectId, isRedrive }: RivalPush): Detail =>
  isRedrive ? detail('redriveRuns', { objectId }) : detail('redriveDone', { objectId });

/** Returns the order of a redrive: its content, and the failures that it selects. */
function orderOf(push: Push, request: RedriveRequest): PushOrder {
  const { id: pushId, objectId } = push;
  // A redrive is not a start of a recurring push, and it is sent at once in all time zones.
  const { recurring: _, local: __, lastActiveDeviceOnly: ___, ...pushOrder } = push.pushOrder;
  const { outcomes, connector, reason, from, to, includeUnsure, flowControl } = request;
  const selection = {
    outcomes,
    connector,
    reason,
    from,
    to,
    ...(includeUnsure ? { includeUnsure } : {}),
  };
  const redrive = { pushId, objectId, ...selection, target: shortened(pushOrder) };
  const perSecond = flowControl === undefined ? pushOrder.flowControl : flowControlOf(flowControl);
  return { ...pushOrder, flowControl: perSecond, target: noDevices, redrive };
}

/** Returns the target of the first push. If the push listed devices, returns only their number. */
export function shortened(pushOrder: PushOrder): Redrive['target'] {
  const target = originalTarget(pushOrder);
  if (target.kind !== 'devices') return target;
  const listed = pushOrder.redrive?.target.listed ?? target.deviceIds.length;
  return { ...target, deviceIds: [], listed };
}

/**
 * Returns the redrive with its times. It is sent now and has the lifetime of the push, unless the
 * request sets another.
 */
function requestOf(
  { pushTime, expiresAt, pushOrder: { local } }: Push,
  pushOrder: PushOrder,
  { expirationSeconds, expirationTime, idempotencyKey }: RedriveRequest,
): PushRequest {
  const lifeSeconds =
    local?.lifeSeconds ?? Math.round((expiresAt.getTime() - pushTime.getTime()) / 1000);
  const usualSeconds = Math.max(1, lifeSeconds);
  const timing = {
    notificationId: null,
    reqId: requestIdOf(idempotencyKey),
    pushTime: null,
    expirationTime,
    expirationSeconds: expirationTime ? null : (expirationSeconds ?? usualSeconds),
  };
  return { pushOrder, timing, warnings: [] };
}

/** Time limit of the counts. After it, the caller gets 124. */
const countTimeoutMs = 30_000;

/** Maximum number of causes in a dry run. */
const maxCauses = 50;

/** Forecasts redrives, and lists the pushes that can have one (protocol/admin-api.md#redrive). */
export class RedriveForecastService {
  readonly #deps: ApiDeps;
  readonly #redrives: RedriveService;

  constructor(deps: ApiDeps, redrives: RedriveService) {
    this.#deps = deps;
    this.#redrives = redrives;
  }

  /**
   * Counts the recipients of a redrive and the recipients that it skips, with the limits that would
   * refuse, shorten or delay it. Sends nothing. Throws as `RedriveService.find`.
   */
  async explain(name: PushName, request: RedriveRequest): Promise<JsonObject> {
    const { appId } = name;
    const app = await requireApp(this.#deps, appId);
    const push = await this.#redrives.find(name);
    const profiles = await this.#deps.appCache.profiles(appId);
    const nowMs = this.#deps.clock.now();
    const { pushOrder, timing } = requestOf(push, orderOf(push, request), request);
    const createdAt = new Date(nowMs);
    const expiresAt = expiryOf(timing, createdAt);
    const source = { objectId: push.objectId, pushOrder, expiresAt, createdAt };
    const body: JsonObject =
      typeof request.flowControl === 'number' ? { flow_control: request.flowControl } : {};
    const draft = { body, bodyBytes: 0, prodHeader: undefined };
    const inputs = { ...draft, app, push: source, timing, profiles, missing: undefined, nowMs };
    const { redrive } = pushOrder;
    if (!redrive) throw new Error('the redrive has no failures');
    return this.#deps.queries.read(
      { app, isMaster: true },
      (tx) => forecastOf(tx, app, { push, redrive, inputs }),
      { timeoutMs: countTimeoutMs },
    );
  }

  /**
   * Lists finished pushes that did not reach all recipients, newest first. Throws error 404 if the
   * app does not exist.
   */
  async list(appId: string, request: Parameters<typeof listUndelivered>[2] & PageRequest) {
    const app = await requireApp(this.#deps, appId);
    const rows = await this.#deps.queries.readFresh({ app, isMaster: true }, (tx) =>
      listUndelivered(tx, appId, request, { ...request, limit: request.limit + 1 }),
    );
    const { results, next } = toPage(rows, request.limit, ({ id }) => id);
    return { results: results.map(({ id: _, ...push }) => push), next };
  }
}

async function forecastOf(
  tx: Handle,
  app: App,
  { push, redrive, inputs }: { push: Push; redrive: Redrive; inputs: DryRunInputs },
): Promise<JsonObject> {
  const { devices, ...audience } = await measureAudience(tx, inputs);
  const params = new Params();
  const { selected, redriven, unsure } = failureConditions(app.appId, redrive, params);
  const limits = { redriven, unsure, limit: maxCauses };
  const counts = await countRedrivable(tx, { text: selected, values: params.values }, limits);
  const possible = counts.n - counts.redriven - (redrive.includeUnsure ? 0 : counts.unsure);
  return {
    devices,
    ...audience,
    failures: {
      selected: counts.n,
      redriven: counts.redriven,
      unsure: counts.unsure,
      gone: Math.max(0, possible - devices),
      notKept: notKept(push, redrive, counts.n),
    },
    causes: counts.causes.map(({ redriven: _, unsure: _unsure, ...cause }) => ({
      ...cause,
      reason: reasonText(cause.reason),
      meaning: meaningOf(cause.reason),
    })),
  };
}

/**
 * Returns how many failures of the push are not kept. Returns 0 if the selection is narrower than
 * the totals, which then cannot be compared.
 */
function notKept(
  { totals }: Push,
  { outcomes, connector, reason, from, to }: Redrive,
  kept: number,
): number {
  if (reason !== null || from !== null || to !== null) return 0;
  const counted = Object.entries(totals ?? {}).filter(
    ([id]) => connector === null || id === connector,
  );
  const all = allTotals(Object.fromEntries(counted));
  const ended = outcomes.reduce((sum, outcome) => sum + (all[outcome] ?? 0), 0);
  return Math.max(0, ended - kept);
}
