import {
  type RecallMessages,
  recallActionOf,
  recallMessages,
} from '../../../../connectors/contract/recall.ts';
import { connectors } from '../../../../connectors/registry.ts';
import { Router } from '../../../../connectors/routing.ts';
import { sleep } from '../../../../shared/clock.ts';
import { runForApp } from '../../../../shared/db/limits/client-pool.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { isFrozen } from '../../../../shared/db/tables/apps.ts';
import { listOpenBatches } from '../../../../shared/db/tables/batches.ts';
import { readTotals } from '../../../../shared/db/tables/push-progress.ts';
import {
  countRecalled,
  countSentDevices,
  countWaitingMessages,
  lockForRecall,
} from '../../../../shared/db/tables/recalls.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import {
  type PushOrder,
  type PushRequest,
  parsePush,
  pushBodyBytesBelow,
} from '../../../../shared/domain/pushes/push.ts';
import { operatorStatus, type Push } from '../../../../shared/domain/pushes/record.ts';
import { filledWithDefaults } from '../../../../shared/domain/pushes/variables.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { noDevices } from '../../../../shared/query/targets/redrive.ts';
import { targetsOf } from '../../../../shared/query/targets/targets.ts';
import type { ApiDeps } from '../../deps.ts';
import { type PushName, requireControl } from '../../push/push-control.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import { expiryOf, type PushSender, type PushService } from '../../push/pushes.ts';
import { type RecallTotals, replyRecall } from '../../push/recall-records.ts';
import { requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';
import { shortened } from './redrive.ts';
import type { SendingService } from './sending.ts';

/** A recall of a push. `replacement` is the `data` of the message that replaces its message. */
export interface RecallRequest {
  isDryRun: boolean;
  replacement: JsonObject | null;
}

/** Time limit of the counts. After it, the caller gets 124. */
const countTimeoutMs = 30_000;
/**
 * Time that a call waits for the end of the recall, or of a push that was just cancelled. A longer
 * recall continues after the reply.
 */
const waitMs = 5000;
const pollMs = 50;
/** Shortest lifetime of a recall, so that it survives an outage of a gateway. */
const minLifeSeconds = 3600;

/**
 * Recalls finished pushes (protocol/admin-api.md#recall). A recall is a push to the devices that the
 * first push was sent to. So it has batches, retries, rates and a record like any push.
 */
export class RecallService {
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
   * Recalls a push, and returns what was done by connector. If the recall takes longer than
   * `waitMs`, returns what it will do. A dry run returns what a recall would do. Throws error 101
   * (status 404) if the push does not exist, error 403 if the caller may not control it, error 409
   * if the push is open, if it is a recall or a Live Activity push, or if another recall of it is not
   * finished.
   */
  async recall(
    operator: Operator,
    { appId, publicId }: Pick<PushName, 'appId' | 'publicId'>,
    request: RecallRequest,
  ): Promise<{ connectors: JsonObject }> {
    const app = await requireApp(this.#deps, appId);
    requireControl(operator, await this.#records.find(appId, publicId));
    const push = await this.#findEnded(appId, publicId);
    return runForApp(appId, async () => {
      const order = this.#requestOf(push, request.replacement);
      const sender = this.#senderOf(operator, app, push);
      if (request.isDryRun) {
        await this.#pushes.check(sender, order);
        return { connectors: await this.#forecast(app, push, order) };
      }
      if (await isFrozen(this.#deps.db, appId)) throw refuse('conflict', detail('recallFrozen'));
      const forecast = await this.#forecast(app, push, order);
      const { objectId } = await this.#pushes.sendOrder(sender, order);
      return { connectors: (await this.#result(push, objectId)) ?? forecast };
    });
  }

  /** Finds a push whose recipients all have an outcome. Waits for a cancelled push to end. */
  async #findEnded(appId: string, publicId: string): Promise<Push> {
    const { clock, db } = this.#deps;
    const endsAtMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const push = await this.#records.find(appId, publicId);
      const { recall } = push.pushOrder;
      if (recall) throw refuse('conflict', detail('isRecall', { objectId: recall.objectId }));
      if (push.pushOrder.liveActivity) throw refuse('conflict', detail('activityNoRecall'));
      if (push.totals !== null) return push;
      if (push.state !== 'cancelled')
        throw refuse('conflict', detail('recallOpen', { state: operatorStatus(push) }));
      // A cancelled push stores no totals. Its requests in flight end within seconds.
      const open = await listOpenBatches(db, appId, push.id);
      if (open.length === 0) return { ...push, ...(await readTotals(db, push)) };
      if (clock.monotonicMs() > endsAtMs) throw refuse('conflict', detail('recallEnding'));
      await sleep(pollMs);
    }
  }

  /** Returns the recall as a push, with the lifetime of the first push. */
  #requestOf(push: Push, replacement: JsonObject | null): PushRequest {
    const { pushTime, expiresAt, pushOrder } = push;
    const lifeSeconds = Math.round((expiresAt.getTime() - pushTime.getTime()) / 1000);
    const data = replacement
      ? checkedData(replacement, pushOrder.prod, this.#deps.clock.now())
      : {};
    return {
      pushOrder: orderOf(push, data, replacement !== null),
      timing: {
        notificationId: null,
        reqId: null,
        pushTime: null,
        expirationTime: null,
        expirationSeconds: Math.max(minLifeSeconds, pushOrder.local?.lifeSeconds ?? lifeSeconds),
      },
      warnings: [],
    };
  }

  /** Returns the sender of a recall, which refuses a second recall at the same time. */
  #senderOf(operator: Operator, app: App, push: Push): PushSender {
    const sender = this.#sending.senderOf(operator, app, { prodHeader: undefined, undoSeconds: 0 });
    const { adminSettings } = sender;
    if (!adminSettings) return sender;
    return {
      ...sender,
      adminSettings: {
        ...adminSettings,
        async onStored(tx, { appId, objectId, pushOrder }) {
          const other = await lockForRecall(tx, push, objectId);
          if (other) throw refuse('conflict', detail('recallRuns', { objectId: other }));
          const isReplacement = pushOrder.recall?.hasReplacement === true;
          await recordChange(tx, {
            action: 'push.recall',
            appId,
            target: push.objectId,
            after: { recall: objectId, isReplacement },
          });
        },
      },
    };
  }

  /** Counts by connector what a recall does. */
  async #forecast(app: App, push: Push, { pushOrder, timing }: PushRequest): Promise<JsonObject> {
    const { appCache, clock, queries } = this.#deps;
    const createdAt = new Date(clock.now());
    const source = {
      objectId: push.objectId,
      pushOrder,
      createdAt,
      expiresAt: expiryOf(timing, createdAt),
    };
    const messages = recallMessages(source);
    if (!messages) throw new Error('the push recalls nothing');
    const router = new Router(app, await appCache.profiles(app.appId), source);
    const counts = await queries.read(
      { app, isMaster: true },
      (tx) => countByConnector(tx, { app, push, pushOrder, router, messages }),
      { timeoutMs: countTimeoutMs },
    );
    return replyRecall(push.totals ?? {}, counts);
  }

  /** Returns what a recall did. Returns undefined if it has not ended after `waitMs`. */
  async #result(push: Push, objectId: string): Promise<JsonObject | undefined> {
    const { clock, db } = this.#deps;
    const { appId } = push;
    const endsAtMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const recall = await this.#records.find(appId, objectId);
      if (recall.totals !== null) {
        const counts = await countRecalled(db, appId, [recall.id]);
        return replyRecall(push.totals ?? {}, counts.get(recall.id) ?? []);
      }
      if (recall.state === 'paused' || clock.monotonicMs() > endsAtMs) return undefined;
      await sleep(pollMs);
    }
  }
}

/** Checks the `data` of a replacement like the `data` of a push. */
function checkedData(data: JsonObject, prod: 'dev' | 'prod', nowMs: number): JsonObject {
  if (Buffer.byteLength(JSON.stringify({ data })) >= pushBodyBytesBelow)
    throw refuse('tooLarge', detail('bodyBelow', { limit: pushBodyBytesBelow }));
  return parsePush({ data }, prod, nowMs).pushOrder.data;
}

/** Returns the order of a recall. It keeps what routes the devices of the first push. */
function orderOf(push: Push, data: JsonObject, hasReplacement: boolean): PushOrder {
  const { id: pushId, objectId, createdAt, expiresAt } = push;
  const {
    target: _,
    redrive: _redrive,
    recall: _recall,
    recurring: _recurring,
    local: _local,
    lastActiveDeviceOnly: _active,
    languages: _languages,
    variables: _variables,
    ...order
  } = filledWithDefaults(push.pushOrder);
  return {
    ...order,
    data,
    target: noDevices,
    recall: {
      pushId,
      objectId,
      order,
      target: shortened(push.pushOrder),
      createdAtMs: createdAt.getTime(),
      expiresAtMs: expiresAt.getTime(),
      hasReplacement,
    },
  };
}

interface Counted {
  app: App;
  push: Push;
  pushOrder: PushOrder;
  router: Router;
  messages: RecallMessages;
}

async function countByConnector(
  tx: Handle,
  { app, push, pushOrder, router, messages }: Counted,
): Promise<({ connector: ConnectorId } & RecallTotals)[]> {
  const groups = await countSentDevices(tx, push, targetsOf(app, pushOrder, 0));
  const counts = new Map<ConnectorId, RecallTotals>();
  for (const { connector: id, profile, devices, ...routingKey } of groups) {
    const route = router.route(routingKey);
    const connector = connectors.get(id);
    const isSame = route.error === undefined && route.connector === id && route.profile === profile;
    if (!connector || !isSame || id === 'channel') continue;
    const { kind } = recallActionOf(connector, messages, routingKey.device_type);
    const count = counts.get(id) ?? { recalled: 0, replaced: 0 };
    counts.set(id, count);
    if (kind === 'recall') count.recalled += devices;
    if (kind === 'replace') count.replaced += devices;
  }
  if (push.totals?.channel)
    counts.set('channel', { recalled: await countWaitingMessages(tx, push), replaced: 0 });
  return [...counts].map(([connector, count]) => ({ connector, ...count }));
}
