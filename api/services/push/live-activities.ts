import { findInstallationsOfDevice } from '../../../shared/db/tables/installations.ts';
import {
  limitOfToken,
  maxTokensOfDevice,
  maxTypesOfApp,
  saveToken,
} from '../../../shared/db/tables/live-activities.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { Installation } from '../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { isAppleDeviceType } from '../../../shared/domain/labels.ts';
import {
  type ActivityTokenKind,
  updateTokenLifeMs,
} from '../../../shared/domain/pushes/live-activity.ts';
import {
  type ActivityRequest,
  type ChangeBody,
  changeRequest,
  requireActivityId,
  type StartBody,
  startRequest,
  type TokenBody,
} from '../../../shared/domain/pushes/live-activity-body.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { withoutCql } from '../../../shared/query/cql/select.ts';
import type { ApiDeps } from '../deps.ts';
import type { DryRunService } from './explain/dry-run.ts';
import type { AcceptedPush, PushSender, PushService } from './pushes.ts';

/** Result of a call that sends: the accepted push, or its dry run. */
export type ActivityResult = { accepted: AcceptedPush } | { dryRun: JsonObject };

/** Tokens of Live Activities, and pushes to them (protocol/live-activities.md). */
export class LiveActivityService {
  readonly #deps: ApiDeps;
  readonly #pushes: PushService;
  readonly #dryRun: DryRunService;

  constructor(deps: ApiDeps, services: { pushes: PushService; dryRun: DryRunService }) {
    this.#deps = deps;
    this.#pushes = services.pushes;
    this.#dryRun = services.dryRun;
  }

  /**
   * Stores the token that a device reports. Throws error 101 (status 404) if the installation does
   * not exist, error 1 if it is no Apple device, error 154 if it or the app has too many tokens. A
   * dry run makes the same checks and stores nothing.
   */
  async reportToken(app: App, body: TokenBody): Promise<JsonObject> {
    const { appId } = app;
    const kind: ActivityTokenKind = body.activityId ? 'update' : 'start';
    const name = body.activityId ?? body.attributesType ?? '';
    const nowMs = this.#deps.clock.now();
    const installation = await this.#installationOf(appId, body);
    const reported = { appId, kind, name, installation: installation.id };
    await this.#deps.db.transaction(async (tx) => {
      const limit = await limitOfToken(tx, reported);
      if (limit === undefined) throw refuse('objectNotFound');
      if (limit === 'device')
        throw refuse(
          'thresholdExceeded',
          detail('activityTokensOfDevice', { limit: maxTokensOfDevice }),
        );
      if (limit === 'app')
        throw refuse('thresholdExceeded', detail('activityTypesOfApp', { limit: maxTypesOfApp }));
      if (!body.dryRun) await saveToken(tx, { ...reported, token: body.token.toLowerCase() });
    });
    return {
      ...(body.dryRun ? { dryRun: true } : {}),
      kind,
      installation: installation.objectId,
      expiresAt: kind === 'update' ? new Date(nowMs + updateTokenLifeMs).toISOString() : null,
    };
  }

  /** Starts activities on the matching devices. Throws as POST /1.1/push. */
  start(sender: PushSender, body: StartBody): Promise<ActivityResult> {
    const { where, ...others } = body;
    const read = withoutCql({
      ...(where === undefined ? {} : { where }),
      ...(typeof body.cql === 'string' ? { cql: body.cql } : {}),
    });
    const request = startRequest(
      { ...others, where: read.where },
      { prodHeader: sender.prodHeader, nowMs: this.#deps.clock.now() },
    );
    return this.send(sender, request, body.dryRun === true);
  }

  /** Updates or ends an activity. Throws error 1 if its id is malformed. */
  change(sender: PushSender, activityId: string, body: ChangeBody): Promise<ActivityResult> {
    const target = { kind: 'activity', name: requireActivityId(activityId) } as const;
    const request = changeRequest(body, target, {
      prodHeader: sender.prodHeader,
      nowMs: this.#deps.clock.now(),
    });
    return this.send(sender, request, body.dryRun === true);
  }

  /** Sends a Live Activity push, or returns its dry run. */
  async send(
    sender: PushSender,
    request: ActivityRequest,
    isDryRun: boolean,
  ): Promise<ActivityResult> {
    if (!isDryRun) return { accepted: await this.#pushes.sendActivity(sender, request) };
    const previewed = await this.#pushes.previewActivity(sender.app, request);
    return { dryRun: await this.#dryRun.explainActivity(sender, previewed) };
  }

  async #installationOf(
    appId: string,
    { installationId, objectId }: TokenBody,
  ): Promise<Installation> {
    const [found] = await findInstallationsOfDevice(this.#deps.db, appId, {
      objectId: objectId ?? undefined,
      installationId: installationId ?? undefined,
      deviceToken: undefined,
      registrationId: undefined,
    });
    const [installation] = found ?? [];
    if (!installation) throw refuse('objectNotFound');
    if (!isAppleDeviceType(installation.deviceType))
      throw refuse('invalidParameter', detail('activityNotApple'));
    return installation;
  }
}
