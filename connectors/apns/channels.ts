/** Broadcast channels: requests to Apple's management servers (protocol/apns.md#channels). */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Clock } from '../../shared/clock.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { ChannelStorage } from '../../shared/domain/pushes/live-activity.ts';
import { failureCodeOf } from '../../shared/http/result.ts';
import type {
  ChannelFailure,
  ChannelManager,
  ChannelRequest,
  ChannelResult,
} from '../contract/broadcast-channels.ts';
import { connectTls, targetOf } from '../http2/connect.ts';
import { defaultTiming } from '../http2/transport.ts';
import { parseObject } from '../kit/values.ts';
import { type ApnsCredentials, topicsOf } from './credentials.ts';
import { ProviderTokens } from './provider-token.ts';
import { bundleIdIn, sendableTopic } from './push-types.ts';

/** Apple's management servers. */
const hosts = {
  prod: 'https://api-manage-broadcast.push.apple.com:2196',
  dev: 'https://api-manage-broadcast.sandbox.push.apple.com:2195',
};

/** `message-storage-policy` of a channel. */
const policies = { none: 0, last: 1 } as const satisfies Record<ChannelStorage, number>;

/** Maximum bytes of a reply. A list has at most 10,000 channels. */
const maxReplyBytes = 4 * 1024 * 1024;

/** Time limit of a request, with its connection. */
const timeoutMs = 15_000;

/** Provider tokens by credentials, so that APNs sees few different tokens. */
const tokensOf = new WeakMap<ApnsCredentials, ProviderTokens>();

interface ManagedRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  channel?: string;
  body?: Record<string, string | number>;
}

interface ManagedReply {
  status: number;
  body: string;
  channel: string | undefined;
}

/**
 * Returns the manager of the channels of a bundle id. Without `requested`, it is the only topic of
 * the profile. Returns null if the profile lists several topics, or not the requested one.
 */
export function openChannels(
  credentials: ApnsCredentials,
  { prod, topic: requested, clock }: { prod: 'dev' | 'prod'; topic: string | null; clock: Clock },
): ChannelManager | null {
  const listed = topicsOf(credentials);
  const name = requested ?? (listed.length === 1 ? listed[0] : undefined);
  const sendable = name === undefined ? undefined : sendableTopic(name, 'liveactivity', listed);
  return sendable === undefined
    ? null
    : new ApnsChannels(credentials, { prod, topic: bundleIdIn(sendable), clock });
}

class ApnsChannels implements ChannelManager {
  readonly topic: string;
  readonly #credentials: ApnsCredentials;
  readonly #baseUrl: string;
  readonly #clock: Clock;

  constructor(
    credentials: ApnsCredentials,
    { prod, topic, clock }: { prod: 'dev' | 'prod'; topic: string; clock: Clock },
  ) {
    this.topic = topic;
    this.#credentials = credentials;
    const { environment = prod, managementEndpoint = hosts[environment] } = credentials;
    this.#baseUrl = managementEndpoint.replace(/\/+$/, '');
    this.#clock = clock;
  }

  async create(storage: ChannelStorage): Promise<ChannelResult<string>> {
    const reply = await this.#send(this.#creation(storage));
    if ('ok' in reply) return reply;
    if (reply.status === 201 && reply.channel) return { ok: true, value: reply.channel };
    return failureOf(reply);
  }

  async read(channel: string): Promise<ChannelResult<ChannelStorage>> {
    const reply = await this.#send({ method: 'GET', path: this.#path('channels'), channel });
    if ('ok' in reply) return reply;
    const policy = parseObject(reply.body)?.['message-storage-policy'];
    if (reply.status !== 200 || (policy !== 0 && policy !== 1)) return failureOf(reply);
    return { ok: true, value: policy === 0 ? 'none' : 'last' };
  }

  async delete(channel: string): Promise<ChannelResult<null>> {
    const reply = await this.#send(this.#deletion(channel));
    if ('ok' in reply) return reply;
    return reply.status === 204 ? { ok: true, value: null } : failureOf(reply);
  }

  async list(): Promise<ChannelResult<string[]>> {
    const reply = await this.#send({ method: 'GET', path: this.#path('all-channels') });
    if ('ok' in reply) return reply;
    const channels = parseObject(reply.body)?.channels;
    if (reply.status !== 200 || !Array.isArray(channels)) return failureOf(reply);
    return { ok: true, value: channels.filter((one) => typeof one === 'string') };
  }

  describe(call: { create: ChannelStorage } | { delete: string }): ChannelRequest {
    const { method, path, body } =
      'create' in call ? this.#creation(call.create) : this.#deletion(call.delete);
    return { method, url: `${this.#baseUrl}${path}`, ...(body ? { body } : {}) };
  }

  #creation(storage: ChannelStorage): ManagedRequest {
    const body = { 'message-storage-policy': policies[storage], 'push-type': 'LiveActivity' };
    return { method: 'POST', path: this.#path('channels'), body };
  }

  #deletion(channel: string): ManagedRequest {
    return { method: 'DELETE', path: this.#path('channels'), channel };
  }

  #path(name: string): string {
    return `/1/apps/${encodeURIComponent(this.topic)}/${name}`;
  }

  /** Sends a request. Repeats it once with a new provider token if APNs refuses the token. */
  async #send(request: ManagedRequest): Promise<ManagedReply | ChannelFailure> {
    const tokens = this.#tokens();
    const token = tokens?.current() ?? null;
    const reply = await this.#exchange(request, token?.authorization);
    const isRefused =
      !('ok' in reply) && reply.status === 403 && /ProviderToken/.test(reasonOf(reply));
    const next = isRefused && token ? (tokens?.replace(token) ?? null) : null;
    return next ? this.#exchange(request, next.authorization) : reply;
  }

  #tokens(): ProviderTokens | null {
    const credentials = this.#credentials;
    if (credentials.auth !== 'token') return null;
    const existing = tokensOf.get(credentials);
    if (existing) return existing;
    const tokens = new ProviderTokens(credentials, this.#clock);
    tokensOf.set(credentials, tokens);
    return tokens;
  }

  async #exchange(
    request: ManagedRequest,
    authorization: string | undefined,
  ): Promise<ManagedReply | ChannelFailure> {
    const signal = AbortSignal.timeout(timeoutMs);
    let session: ClientHttp2Session | undefined;
    let isSent = false;
    try {
      const { ca, proxy } = this.#credentials;
      const pair = this.#credentials.auth === 'certificate' ? this.#credentials : undefined;
      const target = targetOf({
        baseUrl: this.#baseUrl,
        ca,
        proxy,
        certificate: pair?.certificate,
        privateKey: pair?.privateKey,
        maxConnections: 1,
        timing: defaultTiming,
        clock: this.#clock,
      });
      const socket = await connectTls(target, signal);
      session = connect(this.#baseUrl, { createConnection: () => socket });
      // Without a listener, a late error of the session would be an uncaught error.
      session.on('error', () => undefined);
      isSent = true;
      return await exchange(session, this.#headers(request, authorization), request.body, signal);
    } catch (error) {
      const cause = failureCodeOf(error) ?? 'timeout';
      const kind = isSent ? 'unclear' : 'temporary';
      return { ok: false, status: 0, reason: signal.aborted ? 'timeout' : cause, kind };
    } finally {
      session?.destroy();
    }
  }

  #headers({ method, path, channel }: ManagedRequest, authorization: string | undefined) {
    const { pathname } = new URL(this.#baseUrl);
    return {
      ':method': method,
      ':path': `${pathname === '/' ? '' : pathname}${path}`,
      'apns-request-id': randomUUID(),
      ...(authorization === undefined ? {} : { authorization }),
      ...(channel === undefined ? {} : { 'apns-channel-id': channel }),
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    };
  }
}

/** Sends one request on a session and reads its reply. Rejects without a whole reply. */
async function exchange(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body: Record<string, string | number> | undefined,
  signal: AbortSignal,
): Promise<ManagedReply> {
  const stream = session.request(headers, { endStream: body === undefined, signal });
  if (body !== undefined) stream.end(JSON.stringify(body));
  const [replied]: Record<string, unknown>[] = await once(stream, 'response', { signal });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxReplyBytes) throw new Error('the reply is too large');
    chunks.push(chunk);
  }
  const channel = replied?.['apns-channel-id'];
  return {
    status: Number(replied?.[':status']),
    body: Buffer.concat(chunks).toString('utf8'),
    channel: typeof channel === 'string' ? channel : undefined,
  };
}

const reasonOf = ({ body }: ManagedReply): string => {
  const parsed: JsonObject = parseObject(body) ?? {};
  return typeof parsed.reason === 'string' ? parsed.reason.slice(0, 100) : '';
};

/** Reasons with a kind of their own. The others follow from the status. */
const kinds = new Map<string, ChannelFailure['kind']>([
  ['ChannelNotRegistered', 'gone'],
  ['CannotCreateChannelConfig', 'full'],
]);

/** Describes a reply that is no success (protocol/apns.md#broadcast-answers). */
function failureOf(reply: ManagedReply): ChannelFailure {
  const { status } = reply;
  const reason = reasonOf(reply) || `http_${status}`;
  const ofStatus =
    status === 429 ? 'busy' : status >= 500 ? 'temporary' : status < 400 ? 'unclear' : 'refused';
  return { ok: false, status, reason, kind: kinds.get(reason) ?? ofStatus };
}
