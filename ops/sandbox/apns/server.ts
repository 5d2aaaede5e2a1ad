/**
 * APNs gateway on loopback with TLS and HTTP/2 only. It is as strict as the original
 * (protocol/apns.md), and its misbehaviour can be configured. Used by tests, benchmarks and `npm
 * start`.
 */

import { generateKeyPairSync, randomInt, randomUUID } from 'node:crypto';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerStreamResponseOptions,
} from 'node:http2';
import { TLSSocket } from 'node:tls';
import { listedTopics } from '../kit/certificates.ts';
import { LoopbackGateway, type SandboxOptions } from '../kit/gateway.ts';
import type { Identity } from '../kit/listen.ts';
import { disrupt, type Misbehaviour } from '../kit/misbehaviour.ts';
import { BroadcastChannels, broadcastPrefix } from './channels.ts';
import { checkHeaders, checkPayload, checkTopic, deviceTokenOf, pathPrefix } from './rules.ts';
import { type ApnsKey, type Refusal, TokenVerifier, type ValidToken } from './tokens.ts';

const minTokenLifeS = 20 * 60;
const tooManyUpdates: Refusal = { status: 429, reason: 'TooManyProviderTokenUpdates' };

/** State of one connection. */
export interface SessionState {
  session: ServerHttp2Session;
  /**
   * Topics of the client certificate. Topics from a list have a leading `=`. Null if there is no
   * trusted certificate.
   */
  certificateTopics: string[] | null;
  /** Number of streams without a response. */
  open: number;
  limit: number;
  /**
   * Last limit that was sent to the client. `isLimitPending` is true until the client acknowledges
   * it.
   */
  sentLimit: number;
  isLimitPending: boolean;
  /** Last stream id of the GOAWAY that was sent. Later streams are not processed. */
  lastId: number;
  token: ValidToken | undefined;
}

export function createSessionState(session: ServerHttp2Session, limit: number): SessionState {
  return {
    session,
    certificateTopics: certificateTopics(session),
    open: 0,
    limit,
    sentLimit: limit,
    isLimitPending: false,
    lastId: Number.POSITIVE_INFINITY,
    token: undefined,
  };
}

/**
 * Changes the stream limit of the connection by SETTINGS, like APNs (protocol/apns.md#connections).
 * Only one change is in flight. A change before the client's acknowledgement is sent after it.
 */
export function setLimit(state: SessionState, limit: number): void {
  state.limit = limit;
  if (state.sentLimit === limit || state.isLimitPending || state.session.destroyed) return;
  state.sentLimit = limit;
  state.isLimitPending = true;
  state.session.settings({ maxConcurrentStreams: limit }, () => {
    state.isLimitPending = false;
    setLimit(state, state.limit);
  });
}

/**
 * Records the provider token of the connection. Refuses a token that was issued less than 20
 * minutes after the previous token (protocol/apns.md#provider-tokens). The client then renews too
 * often, or alternates between two tokens.
 */
export function recordToken(
  state: Pick<SessionState, 'token'>,
  token: ValidToken,
): Refusal | undefined {
  const { token: last } = state;
  if (last?.authorization === token.authorization) return undefined;
  if (last && token.issuedAtS - last.issuedAtS < minTokenLifeS) return tooManyUpdates;
  state.token = token;
  return undefined;
}

/**
 * Returns the topics of a trusted client certificate: the topics it lists, or else its bundle id,
 * which is the UID of the subject (protocol/apns.md#certificates).
 */
function certificateTopics(session: ServerHttp2Session): string[] | null {
  const { socket } = session;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return null;
  const peer = socket.getPeerCertificate();
  const listed = listedTopics(peer.raw);
  if (listed) return listed.map((topic) => `=${topic}`);
  const subject: Record<string, unknown> = { ...peer.subject };
  return typeof subject.UID === 'string' ? [subject.UID] : null;
}

/** One request with its whole body. */
export interface ReceivedRequest {
  state: SessionState;
  connection: number;
  stream: ServerHttp2Stream;
  headers: IncomingHttpHeaders;
  body: Buffer | null;
}

/** Any response except 200. */
export interface Answer extends Refusal {
  timestampMs?: number;
  retryAfter?: string;
  /** Body that replaces the JSON with the reason. */
  body?: unknown;
}

// APNs sends no `date` header. The types of Node.js lack this option.
const withoutDate: ServerStreamResponseOptions & { sendDate: boolean } = { sendDate: false };
const withoutBody = { ...withoutDate, endStream: true };

/** Responds like APNs: 200 without a body, or JSON with the reason (protocol/apns.md#answers). */
export function respond(
  { state, stream, headers }: ReceivedRequest,
  answer: Answer | undefined,
): void {
  state.open -= 1;
  if (stream.destroyed || stream.closed) return;
  const isBroadcast = (headers[':path'] ?? '').startsWith(broadcastPrefix);
  const idName = isBroadcast ? 'apns-request-id' : 'apns-id';
  const id = headers[idName] ?? 'EABEAE54-14A8-11E5-B60B-1697F925EC7B';
  if (answer === undefined) {
    const unique = isBroadcast ? { 'apns-unique-id': randomUUID() } : {};
    stream.respond({ ':status': 200, [idName]: id, ...unique }, withoutBody);
    return;
  }
  const { status, reason, timestampMs, retryAfter } = answer;
  const { body = timestampMs === undefined ? { reason } : { reason, timestamp: timestampMs } } =
    answer;
  stream.respond(
    {
      ':status': status,
      [idName]: id,
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    },
    withoutDate,
  );
  stream.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Delays the response, breaks it off, or sends no response. */
export function disruptResponse(
  received: ReceivedRequest,
  misbehaviour: Misbehaviour,
  answer: Answer | undefined,
): void {
  const { state, stream } = received;
  if (misbehaviour.kind !== 'slow')
    stream.once('close', () => {
      state.open -= 1;
    });
  disrupt(misbehaviour, {
    send: () => respond(received, answer),
    reset: (code = constants.NGHTTP2_INTERNAL_ERROR) => stream.close(code),
    disconnect: () => state.session.socket.destroy(),
  });
}

/** Returns the debug data of a GOAWAY, which contains the reason (protocol/apns.md#answers). */
export function goawayData(reason: string | undefined): Buffer | undefined {
  return reason === undefined ? undefined : Buffer.from(JSON.stringify({ reason }));
}

export type { Misbehaviour } from '../kit/misbehaviour.ts';

export interface ApnsGatewayOptions extends SandboxOptions {
  /** Provider keys that the gateway accepts, such as the keys of `createApnsCredentials()`. */
  keys?: readonly ApnsKey[];
  /** Port of the management server of broadcast channels. A free port by default. */
  managementPort?: number;
  /**
   * If true, lowers the stream limit to 1 after a refused device token, until the next success
   * (protocol/apns.md#connections).
   */
  isStrictAfterRefusal?: boolean;
  /**
   * Receives each request, which is then not recorded. For tests with very many devices. Without
   * checks, a request contains only its device token.
   */
  onRequest?: (request: SeenRequest) => void;
}

/** One processed request. */
export interface SeenRequest {
  token: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  status: number;
  reason: string;
  /** Number of the request's connection, starting with 1. */
  connection: number;
  /** Time of processing (monotonic). */
  atMs: number;
}

const emptyBody = Buffer.alloc(0);
/** Recorded form of a request of which only the device token was read. */
const uncheckedRequest = {
  headers: {},
  body: emptyBody,
  status: 200,
  reason: '',
  connection: 0,
  atMs: 0,
};

/** Starts the gateway. Resolves when it listens. */
export const startApnsGateway = (options: ApnsGatewayOptions = {}): Promise<ApnsGateway> =>
  new ApnsGateway(options).open();

/** APNs. Refused streams, and streams above the last id of a GOAWAY, do not count as processed. */
export class ApnsGateway extends LoopbackGateway<SeenRequest> {
  /**
   * Device tokens with the time since when they are invalid (epoch milliseconds). The response is
   * 410 Unregistered.
   */
  readonly deadTokens = new Map<string, number>();
  /** Device tokens for which the response is 400 BadDeviceToken. */
  readonly badTokens = new Set<string>();
  /**
   * Device tokens with their only topic. The response for other topics is DeviceTokenNotForTopic.
   */
  readonly tokenTopics = new Map<string, string>();
  /**
   * Maximum number of open requests on one connection, before and after the connection was trusted.
   */
  readonly peakStreams = { untrusted: 0, trusted: 0 };
  /** Broadcast channels, with their management server. */
  readonly channels: BroadcastChannels;
  /** Protocol errors that ended connections. A client causes one if it exceeds the stream limit. */
  readonly protocolErrors: string[] = [];
  protected readonly successes = [{ path: '' }];
  protected readonly maxStreams: number;
  protected override readonly onPath: ((path: string) => void) | undefined;
  readonly #options: ApnsGatewayOptions;
  readonly #verifier: TokenVerifier;
  readonly #sessions = new Map<ServerHttp2Session, SessionState>();
  #lastGoodBody: Buffer = emptyBody;

  constructor(options: ApnsGatewayOptions) {
    super(options);
    const { keys = [], maxStreams = 1000, onRequest } = options;
    this.#options = options;
    this.#verifier = new TokenVerifier(keys);
    this.channels = new BroadcastChannels((session, headers) =>
      this.#managementTopics(session, headers),
    );
    this.maxStreams = maxStreams;
    this.onPath =
      onRequest &&
      ((path) => onRequest({ ...uncheckedRequest, token: path.slice(pathPrefix.length) }));
  }

  refusals(reason: string): number {
    return this.ledger.refusals(reason);
  }

  /** Sends GOAWAY on all connections. Requests in flight still get a response. */
  goaway(reason?: string): void {
    for (const session of this.#sessions.keys())
      session.goaway(constants.NGHTTP2_NO_ERROR, 0, goawayData(reason));
  }

  override async open(): Promise<this> {
    await super.open();
    const { host, managementPort, server } = this.#options;
    if (this.#options.checks !== 'none')
      await this.channels.open({
        authority: this.authority,
        ...(host === undefined ? {} : { host }),
        ...(server === undefined ? {} : { server }),
        ...(managementPort === undefined ? {} : { port: managementPort }),
      });
    return this;
  }

  override async close(): Promise<void> {
    await this.channels.close();
    for (const session of this.#sessions.keys()) session.destroy();
    await super.close();
  }

  protected createServer({ cert, key, ca }: Identity): Http2SecureServer {
    const server = createSecureServer({
      cert,
      key,
      ca,
      // Both kinds of authentication use the same port. Requests without either are refused.
      requestCert: true,
      rejectUnauthorized: false,
      allowHTTP1: false,
      // A client may use the old limit until it has received a lower limit. Its refused streams are
      // not a flood.
      maxSessionInvalidFrames: 1_000_000,
      maxSessionRejectedStreams: 1_000_000,
      settings: { maxConcurrentStreams: this.#options.keys === undefined ? this.maxStreams : 1 },
    });
    return server.on('session', (session) => this.#onSession(session));
  }

  #onSession(session: ServerHttp2Session): void {
    const state = createSessionState(session, 1);
    this.connections += 1;
    const connection = this.connections;
    this.#sessions.set(session, state);
    if (state.certificateTopics !== null) setLimit(state, this.maxStreams);
    session.on('stream', (stream, headers) => this.#onStream(state, connection, stream, headers));
    session.on('error', (error) => this.protocolErrors.push(error.message));
    session.on('close', () => this.#sessions.delete(session));
  }

  #onStream(
    state: SessionState,
    connection: number,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): void {
    state.open += 1;
    const peak = state.limit === 1 ? 'untrusted' : 'trusted';
    if (state.open > this.peakStreams[peak]) this.peakStreams[peak] = state.open;
    let body: Buffer | null = null;
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => {
      body = body === null ? chunk : Buffer.concat([body, chunk]);
    });
    stream.on('end', () => {
      if ((stream.id ?? 0) < state.lastId)
        this.#process({ state, connection, stream, headers, body });
    });
  }

  #process(received: ReceivedRequest): void {
    const { headers, state, connection } = received;
    const body = received.body ?? emptyBody;
    const isBroadcast = (headers[':path'] ?? '').startsWith(broadcastPrefix);
    const token = isBroadcast ? String(headers['apns-channel-id'] ?? '') : deviceTokenOf(headers);
    const name = typeof token === 'string' ? token : '';
    const misbehaviour = this.misbehaviours.pick({ tokens: [name], path: headers[':path'] ?? '' });
    if (misbehaviour?.kind === 'refuse') {
      state.open -= 1;
      received.stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    if (misbehaviour?.kind === 'goaway') {
      this.#sendGoaway(
        received,
        misbehaviour.code ?? constants.NGHTTP2_NO_ERROR,
        misbehaviour.reason,
      );
      return;
    }
    const answer =
      misbehaviour?.kind === 'answer'
        ? { ...misbehaviour, reason: misbehaviour.reason ?? '' }
        : typeof token === 'string'
          ? this.#check(received, token, body)
          : token;
    const status = answer?.status ?? 200;
    const reason = answer?.reason ?? '';
    const atMs = this.clock.monotonicMs();
    this.#record({ token: name, headers, body, status, reason, connection, atMs });
    this.#adjustLimit(state, status, reason);
    if (misbehaviour === undefined || misbehaviour.kind === 'answer') respond(received, answer);
    else disruptResponse(received, misbehaviour, answer);
  }

  #record(request: SeenRequest): void {
    const { token, status } = request;
    const { onRequest } = this.#options;
    const refusal = status === 200 ? {} : { reason: request.reason };
    onRequest?.(request);
    if (onRequest) this.ledger.count(status === 200 ? 1 : 0, refusal.reason);
    else
      this.ledger.add(request, {
        tokens: [token],
        accepted: status === 200 ? [token] : [],
        ...refusal,
      });
  }

  #check(received: ReceivedRequest, token: string, body: Buffer): Answer | undefined {
    const { headers, state } = received;
    const allowed = this.#topicsOf(state, headers);
    if ('reason' in allowed) return allowed;
    if ((headers[':path'] ?? '').startsWith(broadcastPrefix))
      return this.channels.checkBroadcast(headers, allowed.topics, body);
    const refusal =
      checkTopic(headers, allowed.topics) ??
      checkHeaders(headers) ??
      checkPayload(headers, body, this.#lastGoodBody) ??
      this.#checkDevice(token, headers);
    if (refusal === undefined) this.#lastGoodBody = body;
    return refusal;
  }

  #topicsOf(
    state: SessionState,
    headers: IncomingHttpHeaders,
  ): { topics: readonly string[] } | Refusal {
    if (state.certificateTopics !== null) return { topics: state.certificateTopics };
    const token = this.#verifier.check(headers.authorization, this.clock.now());
    if ('reason' in token) return token;
    return recordToken(state, token) ?? token.key;
  }

  /** Topics of a connection to the management server. */
  #managementTopics(
    session: ServerHttp2Session | undefined,
    headers: IncomingHttpHeaders,
  ): { topics: readonly string[] } | Refusal {
    const topics = session ? certificateTopics(session) : null;
    if (topics !== null) return { topics };
    const token = this.#verifier.check(headers.authorization, this.clock.now());
    return 'reason' in token ? token : token.key;
  }

  #checkDevice(token: string, headers: IncomingHttpHeaders): Answer | undefined {
    if (this.badTokens.size > 0 && this.badTokens.has(token))
      return { status: 400, reason: 'BadDeviceToken' };
    const topic = this.tokenTopics.size > 0 ? this.tokenTopics.get(token) : undefined;
    if (topic !== undefined && topic !== headers['apns-topic'])
      return { status: 400, reason: 'DeviceTokenNotForTopic' };
    const timestampMs = this.deadTokens.size > 0 ? this.deadTokens.get(token) : undefined;
    return timestampMs === undefined
      ? undefined
      : { status: 410, reason: 'Unregistered', timestampMs };
  }

  /**
   * Allows one stream until the first success, and many afterwards. After a refused device token,
   * allows one again.
   */
  #adjustLimit(state: SessionState, status: number, reason: string): void {
    if (status === 200) setLimit(state, this.maxStreams);
    else if (this.#options.isStrictAfterRefusal && reason === 'BadDeviceToken') setLimit(state, 1);
  }

  #sendGoaway({ state, stream }: ReceivedRequest, code: number, reason: string | undefined): void {
    const id = stream.id ?? 0;
    state.lastId = Math.min(state.lastId, id);
    if (!state.session.destroyed)
      state.session.goaway(code, Math.max(0, id - 2), goawayData(reason));
  }
}

/**
 * Provider key. `privateKey` (PKCS#8) is for a push profile, `publicKey` (SPKI) for the gateway.
 */
export interface ApnsCredentials {
  teamId: string;
  keyId: string;
  privateKey: string;
  publicKey: string;
  topics: string[];
}

/** Creates a team with a token key in Apple's format (protocol/apns.md#provider-tokens). */
export function createApnsCredentials(topics: string[] = ['com.example.app']): ApnsCredentials {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    teamId: tenCharacters(),
    keyId: tenCharacters(),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    topics,
  };
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

function tenCharacters(): string {
  return Array.from({ length: 10 }, () => alphabet.charAt(randomInt(alphabet.length))).join('');
}
