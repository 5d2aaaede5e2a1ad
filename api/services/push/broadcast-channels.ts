import type {
  ChannelFailure,
  ChannelManager,
  ChannelResult,
} from '../../../connectors/contract/broadcast-channels.ts';
import { toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { candidatesOf } from '../../../connectors/routing.ts';
import {
  type ActivityChannel,
  deleteChannel,
  findChannel,
  listChannels,
  maxChannels,
  saveChannel,
} from '../../../shared/db/tables/live-activities.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { LiveActivity } from '../../../shared/domain/pushes/live-activity.ts';
import {
  type ChangeBody,
  type ChannelBody,
  changeRequest,
} from '../../../shared/domain/pushes/live-activity-body.ts';
import { type Detail, detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';
import { recordChange } from '../operator/audit/audit.ts';
import type { ActivityResult, LiveActivityService } from './live-activities.ts';
import type { PushSender } from './pushes.ts';

/** Environment and bundle id of a call for channels. */
export interface ChannelScope {
  prod: 'dev' | 'prod';
  topic: string | null;
  teamId: string | null;
}

/**
 * Broadcast channels of APNs (protocol/live-activities.md#channels). APNs owns them. A table keeps
 * what APNs does not list: their storage and bundle id.
 */
export class BroadcastChannelService {
  readonly #deps: ApiDeps;
  readonly #activities: LiveActivityService;

  constructor(deps: ApiDeps, services: { activities: LiveActivityService }) {
    this.#deps = deps;
    this.#activities = services.activities;
  }

  /**
   * Creates a channel. The call is not repeated, because each creation makes another channel.
   * Throws an error if no profile serves the environment, or if APNs refuses.
   */
  async create(
    app: App,
    body: ChannelBody,
    scope: ChannelScope,
  ): Promise<{ channel: string } | { dryRun: JsonObject }> {
    const { storage } = body;
    const manager = await this.#managerOf(app, scope);
    if (body.dryRun) return { dryRun: dryRunOf(manager, scope, { create: storage }) };
    const channel = successOf(await manager.create(storage), 'create');
    const { topic } = manager;
    await this.#deps.db.transaction(async (tx) => {
      await saveChannel(tx, app.appId, { channel, prod: scope.prod, topic, storage });
      await recordChange(tx, {
        action: 'broadcast-channel.create',
        appId: app.appId,
        target: channel,
        after: { prod: scope.prod, topic, storage },
      });
    });
    return { channel };
  }

  /** Lists the channels that APNs has, with what is known about them. */
  async list(app: App, scope: ChannelScope): Promise<JsonObject[]> {
    const manager = await this.#managerOf(app, scope);
    const ids = successOf(await manager.list(), 'read').slice(0, maxChannels);
    const stored = await listChannels(this.#deps.db, app.appId, scope.prod);
    const byId = new Map(stored.map((channel) => [channel.channel, channel]));
    return ids.map((channel) => {
      const { storage = null, createdAt } = byId.get(channel) ?? {};
      return { channel, storage, createdAt: createdAt?.toISOString() ?? null };
    });
  }

  /**
   * Reads a channel from APNs, and stores what the list of APNs does not contain. Throws error 101
   * (status 404) if the channel does not exist.
   */
  async get(app: App, name: string, scope: ChannelScope): Promise<JsonObject> {
    const { channel, topic, prod, known } = await this.#named(app, name, scope);
    const manager = await this.#managerOf(app, { ...scope, topic });
    const storage = successOf(await manager.read(channel), 'read');
    const read = { channel, prod, topic: manager.topic, storage };
    await saveChannel(this.#deps.db, app.appId, read);
    return {
      ...read,
      createdAt: known?.createdAt.toISOString() ?? null,
    };
  }

  /** Deletes a channel for good. Throws as `get`. */
  async delete(
    app: App,
    name: string,
    { isDryRun, ...scope }: ChannelScope & { isDryRun: boolean },
  ): Promise<JsonObject> {
    const { channel, topic } = await this.#named(app, name, scope);
    const manager = await this.#managerOf(app, { ...scope, topic });
    if (isDryRun) return dryRunOf(manager, scope, { delete: channel });
    successOf(await manager.delete(channel), 'delete');
    await this.#deps.db.transaction(async (tx) => {
      await deleteChannel(tx, app.appId, scope.prod, channel);
      await recordChange(tx, {
        action: 'broadcast-channel.delete',
        appId: app.appId,
        target: channel,
        before: { prod: scope.prod, topic: manager.topic },
      });
    });
    return {};
  }

  /**
   * Sends one broadcast to a channel. Reads the channel from APNs if its storage is not known,
   * because the storage decides the expiration. Throws as `get` and POST /1.1/push.
   */
  async send(sender: PushSender, name: string, body: ChangeBody): Promise<ActivityResult> {
    const { app } = sender;
    const scope: ChannelScope = {
      prod: body.prod ?? sender.prodHeader ?? 'prod',
      topic: body.topic ?? null,
      teamId: body.pgw_team_id ?? body.apns_team_id ?? null,
    };
    const { channel, topic, prod, known } = await this.#named(app, name, scope);
    if (known?.goneAt) throw refuse('objectNotFound', detail('channelGone'));
    const manager = await this.#managerOf(app, { ...scope, topic });
    const storage = known?.storage ?? successOf(await manager.read(channel), 'read');
    if (!known && body.dryRun !== true)
      await saveChannel(this.#deps.db, app.appId, { channel, prod, topic: manager.topic, storage });
    const request = changeRequest(
      { ...body, prod, topic: manager.topic },
      { kind: 'channel', name: channel, storage },
      { prodHeader: sender.prodHeader, nowMs: this.#deps.clock.now() },
    );
    return this.#activities.send(sender, request, body.dryRun === true);
  }

  /** Returns the channel that a path names, in the spelling of APNs. */
  async #named(
    app: App,
    name: string,
    { prod, topic }: ChannelScope,
  ): Promise<{
    channel: string;
    topic: string | null;
    prod: 'dev' | 'prod';
    known: ActivityChannel | undefined;
  }> {
    if (!/^[!-~]{1,512}$/.test(name)) throw refuse('objectNotFound', detail('channelGone'));
    const known = await findChannel(this.#deps.db, app.appId, prod, name);
    return {
      // The ids of APNs are base64. A path may have them in the alphabet of URLs.
      channel: known?.channel ?? name.replaceAll('-', '+').replaceAll('_', '/'),
      topic: topic ?? known?.topic ?? null,
      prod,
      known,
    };
  }

  /** Opens the management server with the profile that serves the environment and bundle id. */
  async #managerOf(app: App, { prod, topic, teamId }: ChannelScope): Promise<ChannelManager> {
    const apns = connectors.get('apns');
    const profiles = await this.#deps.appCache.profiles(app.appId);
    const candidates = candidatesOf(profiles).get('apns') ?? [];
    const now = new Date(this.#deps.clock.now());
    const message = toPushMessage({
      objectId: newPushObjectId(),
      pushOrder: probeOrder(prod, topic, teamId),
      expiresAt: now,
      createdAt: now,
    });
    const choice = apns?.choose?.(
      candidates,
      { deviceProfile: '', topic: null, teamId: null },
      message,
    );
    if (!choice?.ok)
      throw refuse('invalidParameter', detail('apnsCertificate', { why: choice?.error ?? null }));
    const chosen = candidates.find(({ name }) => name === choice.profile);
    const manager =
      chosen && apns?.channels?.(chosen.credentials, { prod, topic, clock: this.#deps.clock });
    if (!manager)
      throw refuse('invalidParameter', detail('channelTopic', { profile: choice.profile }));
    return manager;
  }
}

/** An order with the members that choose a profile. */
const probeOrder = (prod: 'dev' | 'prod', topic: string | null, teamId: string | null) => {
  const liveActivity: LiveActivity = {
    event: 'update',
    target: { kind: 'channel', name: '', storage: 'none' },
  };
  return {
    data: { 'apns-push-type': 'liveactivity', aps: {} },
    target: { kind: 'query' as const, where: {}, channels: null },
    prod,
    topic,
    teamId,
    flowControl: null,
    notificationChannel: null,
    liveActivity,
  };
};

const dryRunOf = (
  manager: ChannelManager,
  { prod }: ChannelScope,
  call: Parameters<ChannelManager['describe']>[0],
): JsonObject => {
  const { method, url, body } = manager.describe(call);
  return {
    dryRun: true,
    prod,
    topic: manager.topic,
    request: { method, url, ...(body ? { body } : {}) },
  };
};

/** Returns the value of a result. Throws the refusal of a failure. */
function successOf<T>(result: ChannelResult<T>, call: 'create' | 'read' | 'delete'): T {
  if (result.ok) return result.value;
  throw refusalOf(result, call);
}

function refusalOf(failure: ChannelFailure, call: 'create' | 'read' | 'delete'): Refusal {
  const { kind, reason: why, status } = failure;
  switch (kind) {
    case 'gone':
      return refuse('objectNotFound', detail('channelGone'));
    case 'full':
      return refuse('thresholdExceeded', detail('channelFull'));
    case 'busy':
      return later('tooManyRequests', detail('channelBusy'));
    case 'refused':
      return refuse('invalidParameter', detail('channelRefused', { status, why }));
    case 'temporary':
      return later('unavailable', detail('channelFailed', { why }));
    case 'unclear':
      return call === 'create'
        ? later('unavailable', detail('channelUnclear', { why }))
        : later('unavailable', detail('channelFailed', { why }));
  }
}

const retrySeconds = 30;

const later = (name: 'tooManyRequests' | 'unavailable', text: Detail): Refusal =>
  new Refusal(name, { text, retryAfterSeconds: retrySeconds });
