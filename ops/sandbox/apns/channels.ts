/**
 * Broadcast channels of the sandbox (protocol/apns.md#channels): their store, the management server
 * with a port of its own, and the checks of broadcasts.
 */
import { randomBytes } from 'node:crypto';
import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { broadcastType } from '../../../connectors/apns/push-types.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { type Identity, type Listening, type ListenOptions, listen } from '../kit/listen.ts';
import { Misbehaviours } from '../kit/misbehaviour.ts';
import { bodyProblem } from './rules.ts';
import type { Refusal } from './tokens.ts';

const refusal = (status: number, reason: string): Refusal => ({ status, reason });

/** Maximum channels of a bundle id. */
const maxChannels = 10_000;

/** Beginning of the path of a broadcast, before the bundle id. */
export const broadcastPrefix = '/4/broadcasts/apps/';

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Request to the management server. */
export interface ManagementCall {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  status: number;
  reason: string;
}

/** Finds the topics of a connection or a provider token. */
export type Authenticate = (
  session: ServerHttp2Session | undefined,
  headers: IncomingHttpHeaders,
) => { topics: readonly string[] } | Refusal;

/** Channels by bundle id, with their storage policy. */
export class BroadcastChannels {
  /** Bundle ids for which broadcasts are not enabled. */
  readonly disabled = new Set<string>();
  /** Calls of the management server, oldest first. */
  readonly calls: ManagementCall[] = [];
  /** Misbehaviours of the management server. */
  readonly misbehaviours = new Misbehaviours();
  /** Maximum channels of a bundle id. Tests lower it. */
  maxChannels = maxChannels;
  readonly #byApp = new Map<string, Map<string, 0 | 1>>();
  readonly #authenticate: Authenticate;
  readonly #sessions = new Set<ServerHttp2Session>();
  #listening: Listening | undefined;

  constructor(authenticate: Authenticate) {
    this.#authenticate = authenticate;
  }

  /** Starts the management server. */
  async open(options: ListenOptions): Promise<void> {
    this.#listening = await listen(options, (identity) => this.#createServer(identity));
  }

  /** Base URL of the management server. */
  get url(): string {
    return this.#listening?.url ?? '';
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await this.#listening?.close();
  }

  /** Returns the channels of a bundle id. */
  of(bundleId: string): Map<string, 0 | 1> {
    const existing = this.#byApp.get(bundleId) ?? new Map<string, 0 | 1>();
    this.#byApp.set(bundleId, existing);
    return existing;
  }

  /** Returns the refusal of a broadcast; undefined if it is accepted. */
  checkBroadcast(
    headers: IncomingHttpHeaders,
    topics: readonly string[],
    body: Buffer,
  ): Refusal | undefined {
    const bundleId = decodeURIComponent((headers[':path'] ?? '').slice(broadcastPrefix.length));
    return (
      this.#checkApp(bundleId, topics) ??
      checkBroadcastHeaders(headers) ??
      this.#checkChannel(headers, bundleId) ??
      checkBroadcastBody(body)
    );
  }

  #checkApp(bundleId: string, topics: readonly string[]): Refusal | undefined {
    if (/\.push-type\.|\.voip$/.test(bundleId)) return refusal(400, 'TopicDisallowed');
    if (!topics.includes(bundleId)) return refusal(403, 'TopicMismatch');
    return this.disabled.has(bundleId) ? refusal(400, 'FeatureNotEnabled') : undefined;
  }

  #checkChannel(headers: IncomingHttpHeaders, bundleId: string): Refusal | undefined {
    const channel = headers['apns-channel-id'];
    if (typeof channel !== 'string' || channel === '') return refusal(400, 'MissingChannelId');
    if (!/^[A-Za-z0-9+/]{1,256}={0,2}$/.test(channel)) return refusal(400, 'BadChannelId');
    const policy = this.of(bundleId).get(channel);
    if (policy === undefined) return refusal(400, 'ChannelNotRegistered');
    const expiration = headers['apns-expiration'];
    return policy === 0 && expiration !== undefined && expiration !== '0'
      ? refusal(400, 'BadExpirationDate')
      : undefined;
  }

  #createServer({ cert, key, ca }: Identity): Http2SecureServer {
    const server = createSecureServer({
      cert,
      key,
      ca,
      requestCert: true,
      rejectUnauthorized: false,
      allowHTTP1: false,
    });
    return server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('error', () => undefined);
      session.on('close', () => this.#sessions.delete(session));
      session.on('stream', (stream, headers) => this.#onStream(session, stream, headers));
    });
  }

  #onStream(
    session: ServerHttp2Session,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): void {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const path = headers[':path'] ?? '';
      const misbehaviour = this.misbehaviours.pick({ tokens: [], path });
      const answer =
        misbehaviour?.kind === 'answer'
          ? refusal(misbehaviour.status, misbehaviour.reason ?? '')
          : this.#answer(session, headers, body);
      const reason = 'reason' in answer ? answer.reason : '';
      const { status } = answer;
      this.calls.push({
        method: String(headers[':method']),
        path,
        headers,
        body,
        status,
        reason,
      });
      if (misbehaviour?.kind === 'hang') return;
      if (misbehaviour?.kind === 'disconnect') {
        session.destroy();
        return;
      }
      const sent = 'reason' in answer ? { reason } : answer.body;
      const channel = 'channel' in answer ? answer.channel : undefined;
      stream.respond({
        ':status': status,
        'apns-request-id': headers['apns-request-id'] ?? 'EABEAE54-14A8-11E5-B60B-1697F925EC7B',
        ...(channel === undefined ? {} : { 'apns-channel-id': channel }),
      });
      stream.end(sent === undefined ? undefined : JSON.stringify(sent));
    });
  }

  #answer(
    session: ServerHttp2Session,
    headers: IncomingHttpHeaders,
    body: string,
  ): Refusal | { status: number; body?: JsonObject; channel?: string } {
    const allowed = this.#authenticate(session, headers);
    if ('reason' in allowed) return allowed;
    const [, bundle = '', call] =
      /^\/1\/apps\/([^/]+)\/(channels|all-channels)$/.exec(headers[':path'] ?? '') ?? [];
    if (call === undefined) return refusal(404, 'BadPath');
    const requestId = headers['apns-request-id'];
    if (requestId !== undefined && !uuidForm.test(String(requestId)))
      return refusal(400, 'BadMessageId');
    const bundleId = decodeURIComponent(bundle);
    const refused = this.#checkApp(bundleId, allowed.topics);
    if (refused) return refused;
    const channels = this.of(bundleId);
    const method = headers[':method'];
    if (call === 'all-channels')
      return method === 'GET'
        ? { status: 200, body: { channels: [...channels.keys()] } }
        : refusal(405, 'MethodNotAllowed');
    if (method === 'POST') return this.#create(channels, body);
    if (method !== 'GET' && method !== 'DELETE') return refusal(405, 'MethodNotAllowed');
    const missing = this.#checkChannel({ ...headers, 'apns-expiration': '0' }, bundleId);
    if (missing) return missing;
    const channel = String(headers['apns-channel-id']);
    if (method === 'DELETE') {
      channels.delete(channel);
      return { status: 204 };
    }
    const policy = channels.get(channel) ?? 0;
    return {
      status: 200,
      body: { 'message-storage-policy': policy, 'push-type': 'LiveActivity' },
    };
  }

  #create(
    channels: Map<string, 0 | 1>,
    text: string,
  ): Refusal | { status: number; channel: string } {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return refusal(400, 'BadRequestPayload');
    }
    if (!isJsonObject(body)) return refusal(400, 'BadRequestPayload');
    const { 'message-storage-policy': policy, 'push-type': type, ...others } = body;
    if (Object.keys(others).length > 0 || (policy !== 0 && policy !== 1))
      return refusal(400, 'BadRequestParams');
    if (type === undefined) return refusal(400, 'MissingPushType');
    if (type !== 'LiveActivity') return refusal(400, 'InvalidPushType');
    if (channels.size >= this.maxChannels) return refusal(400, 'CannotCreateChannelConfig');
    const channel = randomBytes(16).toString('base64');
    channels.set(channel, policy);
    return { status: 201, channel };
  }
}

function checkBroadcastHeaders(headers: IncomingHttpHeaders): Refusal | undefined {
  if (headers[':method'] !== 'POST') return refusal(405, 'MethodNotAllowed');
  if (headers['apns-topic'] !== undefined) return refusal(400, 'TopicDisallowed');
  const type = headers['apns-push-type'];
  if (type === undefined) return refusal(400, 'MissingPushType');
  if (String(type).toLowerCase() !== 'liveactivity') return refusal(400, 'InvalidPushType');
  const priority = headers['apns-priority'];
  if (!broadcastType.priorities.some((one) => one === priority)) return refusal(400, 'BadPriority');
  const expiration = headers['apns-expiration'];
  if (!/^\d{1,15}$/.test(String(expiration))) return refusal(400, 'BadExpirationDate');
  const requestId = headers['apns-request-id'];
  return requestId !== undefined && !uuidForm.test(String(requestId))
    ? refusal(400, 'BadMessageId')
    : undefined;
}

function checkBroadcastBody(body: Buffer): Refusal | undefined {
  if (body.length === 0) return refusal(400, 'PayloadEmpty');
  if (body.length > broadcastType.maxBytes) return refusal(413, 'PayloadTooLarge');
  const problem = bodyProblem(body, 'liveactivity');
  const isStart = problem === undefined && /"event":"start"/.test(body.toString('utf8'));
  return problem !== undefined || isStart ? refusal(400, 'BadRequestPayload') : undefined;
}
