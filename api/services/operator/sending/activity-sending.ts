import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type {
  ChangeBody,
  ChannelBody,
  StartBody,
} from '../../../../shared/domain/pushes/live-activity-body.ts';
import type { ApiDeps } from '../../deps.ts';
import type { BroadcastChannelService, ChannelScope } from '../../push/broadcast-channels.ts';
import type { ActivityResult, LiveActivityService } from '../../push/live-activities.ts';
import type { PushSender } from '../../push/pushes.ts';
import { requireApp } from '../apps.ts';
import type { SendingService } from './sending.ts';

/** Call of an operator that sends to Live Activities. */
interface ActivityCall<B> {
  body: B;
  prodHeader: 'dev' | 'prod' | undefined;
}

/** Live Activities and broadcast channels for callers of the admin API. */
export class ActivitySendingService {
  readonly #deps: ApiDeps;
  readonly #sending: SendingService;
  readonly #activities: LiveActivityService;
  readonly #channels: BroadcastChannelService;

  constructor(
    deps: ApiDeps,
    services: {
      sending: SendingService;
      activities: LiveActivityService;
      channels: BroadcastChannelService;
    },
  ) {
    this.#deps = deps;
    this.#sending = services.sending;
    this.#activities = services.activities;
    this.#channels = services.channels;
  }

  /** Starts activities. Throws error 404 if the app does not exist, and as the call of an app. */
  async start(
    operator: Operator,
    appId: string,
    { body, prodHeader }: ActivityCall<StartBody>,
  ): Promise<ActivityResult> {
    return this.#activities.start(await this.#senderOf(operator, appId, prodHeader), body);
  }

  /** Updates or ends an activity. Throws as `start`. */
  async change(
    operator: Operator,
    appId: string,
    { activityId, body, prodHeader }: ActivityCall<ChangeBody> & { activityId: string },
  ): Promise<ActivityResult> {
    const sender = await this.#senderOf(operator, appId, prodHeader);
    return this.#activities.change(sender, activityId, body);
  }

  /** Sends a broadcast. Throws as `start`. */
  async broadcast(
    operator: Operator,
    appId: string,
    { channel, body, prodHeader }: ActivityCall<ChangeBody> & { channel: string },
  ): Promise<ActivityResult> {
    const sender = await this.#senderOf(operator, appId, prodHeader);
    return this.#channels.send(sender, channel, body);
  }

  async createChannel(appId: string, body: ChannelBody, scope: ChannelScope) {
    return this.#channels.create(await requireApp(this.#deps, appId), body, scope);
  }

  async listChannels(appId: string, scope: ChannelScope): Promise<JsonObject[]> {
    return this.#channels.list(await requireApp(this.#deps, appId), scope);
  }

  async getChannel(appId: string, channel: string, scope: ChannelScope): Promise<JsonObject> {
    return this.#channels.get(await requireApp(this.#deps, appId), channel, scope);
  }

  async deleteChannel(
    appId: string,
    channel: string,
    scope: ChannelScope & { isDryRun: boolean },
  ): Promise<JsonObject> {
    return this.#channels.delete(await requireApp(this.#deps, appId), channel, scope);
  }

  async #senderOf(
    operator: Operator,
    appId: string,
    prodHeader: 'dev' | 'prod' | undefined,
  ): Promise<PushSender> {
    const app = await requireApp(this.#deps, appId);
    return this.#sending.senderOf(operator, app, { prodHeader, undoSeconds: 0 });
  }
}
