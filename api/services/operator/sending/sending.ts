import { runForApp } from '../../../../shared/db/limits/client-pool.ts';
import {
  type Freeze,
  insertFreeze,
  listFreezes,
  releaseFreeze,
} from '../../../../shared/db/tables/apps.ts';
import { sampleChannels, sampleFields } from '../../../../shared/db/tables/field-values.ts';
import { findRequestId } from '../../../../shared/db/tables/pushes.ts';
import { isHiddenMember } from '../../../../shared/domain/admin/masking.ts';
import { hasRole, mayUseApp, type Operator } from '../../../../shared/domain/admin/operator.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { pushBodyBytesBelow } from '../../../../shared/domain/pushes/push.ts';
import { operatorStatus } from '../../../../shared/domain/pushes/record.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { installationClass } from '../../../../shared/query/schema.ts';
import type { ApiDeps } from '../../deps.ts';
import type { DryRunService, MovedAudience } from '../../push/explain/dry-run.ts';
import type { PushDraft } from '../../push/explain/limits.ts';
import type { PushRecordService } from '../../push/push-records.ts';
import { repeatWindowMs } from '../../push/push-store.ts';
import type {
  AcceptedPush,
  AdminPushSettings,
  PushSender,
  PushService,
} from '../../push/pushes.ts';
import { operatorViewer } from '../access/member-rights.ts';
import { requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';

/** Push of the admin API. */
interface SendRequest extends PushDraft {
  /** `req_id` of the push. */
  idempotencyKey: string | undefined;
  /** `digest` of the dry run. If undefined, the audience is not compared. */
  explained: string | undefined;
  undoSeconds: number;
}

export interface SentPush extends AcceptedPush {
  status: string;
}

/** Sends pushes for callers of the admin API (protocol/admin-api.md#sending). */
export class SendingService {
  readonly #deps: ApiDeps;
  readonly #pushes: PushService;
  readonly #records: PushRecordService;
  readonly #dryRun: DryRunService;

  constructor(
    deps: ApiDeps,
    services: { pushes: PushService; records: PushRecordService; dryRun: DryRunService },
  ) {
    this.#deps = deps;
    this.#pushes = services.pushes;
    this.#records = services.records;
    this.#dryRun = services.dryRun;
  }

  /**
   * Sends a push. If the audience differs from the dry run, sends nothing and returns the numbers.
   * A repeated request returns the first push, even if the audience has changed. Throws error 404
   * if the app does not exist, and as POST /1.1/push.
   */
  async send(
    operator: Operator,
    appId: string,
    request: SendRequest,
  ): Promise<SentPush | MovedAudience> {
    const app = await requireApp(this.#deps, appId);
    const body = withRequestId(request);
    const isListed = 'device_ids' in body;
    if (!isListed && request.bodyBytes >= pushBodyBytesBelow)
      throw refuse('tooLarge', detail('bodyBelow', { limit: pushBodyBytesBelow }));
    return runForApp(appId, async () => {
      const repeated = await this.#findRepeated(appId, body.req_id);
      if (repeated) return repeated;
      const { explained } = request;
      const moved =
        explained === undefined
          ? undefined
          : await this.#dryRun.compare(app, {
              viewer: operatorViewer(operator, appId),
              draft: request,
              digest: explained,
            });
      if (moved) return moved;
      const sender = this.senderOf(operator, app, {
        prodHeader: request.prodHeader,
        undoSeconds: request.undoSeconds,
      });
      const sent = isListed
        ? await this.#pushes.sendToDevices(sender, body)
        : await this.#pushes.send(sender, body);
      return this.withStatus(appId, sent);
    });
  }

  /** Returns the sender of a push. The push and its audit record are written together. */
  senderOf(
    operator: Operator,
    app: App,
    more: Pick<PushSender, 'prodHeader'> &
      Pick<AdminPushSettings, 'undoSeconds'> & { resent?: string },
  ): PushSender {
    const { prodHeader, undoSeconds, resent } = more;
    const { name, tokenId } = operator;
    const adminSettings: AdminPushSettings = {
      creator: { name, tokenId },
      undoSeconds,
      onStored: (tx, { appId, objectId, state, pushTime, notificationId }) => {
        const details = { state, pushTime: pushTime.toISOString(), notificationId };
        const after = resent === undefined ? details : { ...details, resendOf: resent };
        return recordChange(tx, { action: 'push.send', appId, target: objectId, after });
      },
    };
    return {
      app,
      isMaster: true,
      prodHeader,
      viewer: operatorViewer(operator, app.appId),
      adminSettings,
    };
  }

  /** Adds the status of an accepted push. */
  async withStatus(appId: string, sent: AcceptedPush): Promise<SentPush> {
    return { ...sent, status: operatorStatus(await this.#records.find(appId, sent.objectId)) };
  }

  async #findRepeated(appId: string, reqId: unknown): Promise<SentPush | undefined> {
    if (typeof reqId !== 'string') return undefined;
    const claim = await findRequestId(this.#deps.admissionDb, { appId, reqId }, repeatWindowMs);
    if (!claim) return undefined;
    const { objectId, acceptedAt: createdAt } = claim;
    return this.withStatus(appId, { objectId, createdAt, warnings: [] });
  }
}

/**
 * Returns the body with the `Idempotency-Key` as its `req_id`. Throws error 1 if both are present
 * and differ.
 */
function withRequestId({ body, idempotencyKey }: SendRequest): SendRequest['body'] {
  if (idempotencyKey === undefined) return body;
  const own = body.req_id;
  if (own !== undefined && own !== null && own !== idempotencyKey)
    throw refuse('invalidParameter', detail('keysOfRequest'));
  return { ...body, req_id: idempotencyKey };
}

/**
 * Freezes an app or the whole service. Its pushes are accepted but not sent
 * (protocol/admin-api.md#freezes).
 */
export class FreezeService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists the freeze of the service and the freezes of the operator's apps. */
  async list(operator: Operator): Promise<Freeze[]> {
    const all = await listFreezes(this.#deps.db);
    return all.filter(({ appId }) => appId === null || mayUseApp(operator, appId));
  }

  /**
   * Freezes an app, or the service if `appId` is null. A second freeze changes the reason. Throws
   * error 404 if the app does not exist.
   */
  async freeze(operator: Operator, appId: string | null, reason: string): Promise<Freeze> {
    return this.#deps.db.transaction(async (tx) => {
      const freeze = await insertFreeze(tx, { appId, reason, by: operator.name });
      if (!freeze) throw refuse('notFound', detail('noApp'));
      await recordChange(tx, { ...changeOf('push.freeze', appId), after: { reason } });
      const data = freezeData(appId, { reason, by: operator.name });
      await this.#deps.webhooks.emit(tx, { appId, type: 'freeze.started', data });
      return freeze;
    });
  }

  /**
   * Ends a freeze and returns it. The frozen pushes continue. Throws error 404 if there is no such
   * freeze.
   */
  async release(operator: Operator, appId: string | null): Promise<Freeze> {
    return this.#deps.db.transaction(async (tx) => {
      const freeze = await releaseFreeze(tx, appId);
      if (!freeze)
        throw refuse('notFound', detail(appId === null ? 'serviceNotFrozen' : 'appNotFrozen'));
      await recordChange(tx, {
        ...changeOf('push.release', appId),
        before: { reason: freeze.reason },
      });
      const data = freezeData(appId, { reason: freeze.reason, by: operator.name });
      await this.#deps.webhooks.emit(tx, { appId, type: 'freeze.ended', data });
      return freeze;
    });
  }
}

/** Returns `data` of the events of a freeze. */
const freezeData = (appId: string | null, { reason, by }: { reason: string; by: string }) => ({
  scope: appId === null ? ('service' as const) : ('app' as const),
  reason,
  by,
});

const changeOf = (action: string, appId: string | null) => ({
  action,
  target: appId ?? 'service',
  ...(appId === null ? {} : { appId }),
});

/** Time limit of a sample. */
const timeoutMs = 2000;

/** Built-in members that an index serves. All custom members share one index. */
const indexed = new Set(['deviceType', 'vendor', 'channels']);

/**
 * Suggests members and values for a condition, from the newest devices of an app
 * (protocol/admin-api.md#suggestions).
 */
export class SuggestionService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Suggests members of devices. Throws error 404 if the app does not exist, error 124 if the
   * sample takes too long.
   */
  async fields({ role }: Operator, appId: string, prefix: string) {
    const app = await requireApp(this.#deps, appId);
    const found = await this.#deps.queries.read(
      { app, isMaster: true },
      (tx) => sampleFields(tx, appId, prefix),
      { timeoutMs },
    );
    return found.map((field) => ({
      ...field,
      values: hasRole(role, 'operator') || !isHiddenMember(field.name) ? field.values : [],
      isIndexed: indexed.has(field.name) || !installationClass.columns.has(field.name),
    }));
  }

  /** Suggests channels. Throws as `fields`. */
  async channels(appId: string, prefix: string) {
    const app = await requireApp(this.#deps, appId);
    return this.#deps.queries.read(
      { app, isMaster: true },
      (tx) => sampleChannels(tx, appId, prefix),
      {
        timeoutMs,
      },
    );
  }
}
