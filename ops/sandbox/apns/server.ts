/**
 * APNs gateway on loopback: TLS, HTTP/2 only, as strict as the original (protocol/apns.md), with configurable
 * misbehaviour. Tests, benchmarks and `npm start` use it.
 */
import { once } from 'node:events';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { type CertificateAuthority, openCertificateAuthority } from '../kit/certificates.ts';
import { Misbehaviours } from '../kit/misbehaviour.ts';
import { type Answer, disruptResponse, goawayData, type ReceivedRequest, respond } from './answers.ts';
import type { ApnsGateway, ApnsGatewayOptions } from './gateway.ts';
import { Ledger, type SeenRequest } from './ledger.ts';
import { type Misbehaviour, matches } from './misbehaviour.ts';
import { checkHeaders, checkPayload, checkTopic, deviceTokenOf } from './rules.ts';
import { createSessionState, recordToken, type SessionState, setLimit } from './session.ts';
import { type Refusal, TokenVerifier } from './tokens.ts';

export { type ApnsCredentials, createApnsCredentials } from './credentials.ts';
export type { ApnsGateway, ApnsGatewayOptions } from './gateway.ts';
export type { SeenRequest } from './ledger.ts';
export type { Misbehaviour } from './misbehaviour.ts';

/** Starts the gateway; resolves when it listens. */
export async function startApnsGateway(options: ApnsGatewayOptions = {}): Promise<ApnsGateway> {
  const authority = options.authority ?? (await openCertificateAuthority());
  const { certificate, privateKey } = options.server ?? (await authority.issueServer());
  const server = createSecureServer({
    cert: certificate,
    key: privateKey,
    ca: authority.certificate,
    // Both kinds of authentication use the same port; requests without either are refused.
    requestCert: true,
    rejectUnauthorized: false,
    allowHTTP1: false,
    // A client may use the previous limit until it has received a lower one; its refused streams are not a flood.
    maxSessionInvalidFrames: 1_000_000,
    maxSessionRejectedStreams: 1_000_000,
    settings: { maxConcurrentStreams: options.keys === undefined ? (options.maxStreams ?? 1000) : 1 },
  });
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  return new LoopbackApns(server, authority, options);
}

class LoopbackApns implements ApnsGateway {
  readonly url: string;
  readonly ca: string;
  readonly authority: CertificateAuthority;
  readonly deadTokens = new Map<string, number>();
  readonly badTokens = new Set<string>();
  readonly tokenTopics = new Map<string, string>();
  readonly peakStreams = { untrusted: 0, trusted: 0 };
  readonly protocolErrors: string[] = [];
  connections = 0;
  readonly #server: Http2SecureServer;
  readonly #verifier: TokenVerifier;
  readonly #ledger: Ledger;
  readonly #misbehaviours = new Misbehaviours<Misbehaviour, string>(matches);
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Map<ServerHttp2Session, SessionState>();
  readonly #clock: Clock;
  readonly #maxStreams: number;
  readonly #isStrictAfterRefusal: boolean;
  #lastGoodBody: Buffer = Buffer.alloc(0);

  constructor(server: Http2SecureServer, authority: CertificateAuthority, options: ApnsGatewayOptions) {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    this.url = `https://${options.host ?? '127.0.0.1'}:${port}`;
    this.ca = authority.certificate;
    this.authority = authority;
    this.#server = server;
    this.#verifier = new TokenVerifier(options.keys ?? []);
    this.#ledger = new Ledger(options.onRequest, options.keptRequests);
    this.#clock = options.clock ?? systemClock;
    this.#maxStreams = options.maxStreams ?? 1000;
    this.#isStrictAfterRefusal = options.isStrictAfterRefusal ?? false;
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('session', (session) => this.#onSession(session));
    // The client reports a failed handshake.
    server.on('tlsClientError', () => undefined);
  }

  get total(): number {
    return this.#ledger.total;
  }

  get accepted(): number {
    return this.#ledger.accepted;
  }

  get distinct(): number {
    return this.#ledger.distinct;
  }

  get requests(): SeenRequest[] {
    return this.#ledger.requests;
  }

  seen(token: string): number {
    return this.#ledger.seen(token);
  }

  refusals(reason: string): number {
    return this.#ledger.byReason.get(reason) ?? 0;
  }

  misbehave(what: Misbehaviour): void {
    this.#misbehaviours.add(what);
  }

  behave(): void {
    this.#misbehaviours.clear();
  }

  goaway(reason?: string): void {
    for (const session of this.#sessions.keys())
      session.goaway(constants.NGHTTP2_NO_ERROR, 0, goawayData(reason));
  }

  waitFor(total: number): Promise<void> {
    return this.#ledger.waitFor(total);
  }

  forget(): void {
    this.#ledger.forget();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const session of this.#sessions.keys()) session.destroy();
    // A killed peer can leave a socket without a session.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #onSession(session: ServerHttp2Session): void {
    const state = createSessionState(session, 1);
    this.connections += 1;
    const connection = this.connections;
    this.#sessions.set(session, state);
    if (state.certificateTopics !== null) setLimit(state, this.#maxStreams);
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
      if ((stream.id ?? 0) < state.lastId) this.#process({ state, connection, stream, headers, body });
    });
  }

  #process(received: ReceivedRequest): void {
    const { headers, state, connection } = received;
    const body = received.body ?? Buffer.alloc(0);
    const token = deviceTokenOf(headers);
    const name = typeof token === 'string' ? token : '';
    const misbehaviour = this.#misbehaviours.pick(name);
    if (misbehaviour?.kind === 'refuse') {
      state.open -= 1;
      received.stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    if (misbehaviour?.kind === 'goaway') {
      this.#sendGoaway(received, misbehaviour.code ?? constants.NGHTTP2_NO_ERROR, misbehaviour.reason);
      return;
    }
    const answer =
      misbehaviour?.kind === 'answer'
        ? misbehaviour
        : typeof token === 'string'
          ? this.#check(received, token, body)
          : token;
    const status = answer?.status ?? 200;
    const atMs = this.#clock.monotonicMs();
    const reason = answer?.reason ?? '';
    this.#ledger.add({ token: name, headers, body, status, reason, connection, atMs });
    this.#adjustLimit(state, status, answer?.reason);
    if (misbehaviour === undefined || misbehaviour.kind === 'answer') respond(received, answer);
    else disruptResponse(received, misbehaviour, answer);
  }

  #check(received: ReceivedRequest, token: string, body: Buffer): Answer | undefined {
    const { headers, state } = received;
    const allowed = this.#topicsOf(state, headers);
    if ('reason' in allowed) return allowed;
    const refusal =
      checkTopic(headers, allowed.topics) ??
      checkHeaders(headers) ??
      checkPayload(headers, body, this.#lastGoodBody) ??
      this.#checkDevice(token, headers);
    if (refusal === undefined) this.#lastGoodBody = body;
    return refusal;
  }

  #topicsOf(state: SessionState, headers: IncomingHttpHeaders): { topics: readonly string[] } | Refusal {
    if (state.certificateTopics !== null) return { topics: state.certificateTopics };
    const token = this.#verifier.check(headers.authorization, this.#clock.now());
    if ('reason' in token) return token;
    return recordToken(state, token) ?? token.key;
  }

  #checkDevice(token: string, headers: IncomingHttpHeaders): Answer | undefined {
    if (this.badTokens.size > 0 && this.badTokens.has(token))
      return { status: 400, reason: 'BadDeviceToken' };
    const topic = this.tokenTopics.size > 0 ? this.tokenTopics.get(token) : undefined;
    if (topic !== undefined && topic !== headers['apns-topic'])
      return { status: 400, reason: 'DeviceTokenNotForTopic' };
    const timestampMs = this.deadTokens.size > 0 ? this.deadTokens.get(token) : undefined;
    return timestampMs === undefined ? undefined : { status: 410, reason: 'Unregistered', timestampMs };
  }

  /** Allows one stream until the first success, then many; one again after a refused device token. */
  #adjustLimit(state: SessionState, status: number, reason: string | undefined): void {
    if (status === 200) setLimit(state, this.#maxStreams);
    else if (this.#isStrictAfterRefusal && reason === 'BadDeviceToken') setLimit(state, 1);
  }

  #sendGoaway({ state, stream }: ReceivedRequest, code: number, reason: string | undefined): void {
    const id = stream.id ?? 0;
    state.lastId = Math.min(state.lastId, id);
    if (!state.session.destroyed) state.session.goaway(code, Math.max(0, id - 2), goawayData(reason));
  }
}
