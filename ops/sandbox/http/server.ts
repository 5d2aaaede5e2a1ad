/**
 * Server that all HTTP gateways share: TLS on loopback for HTTP/2 and HTTP/1.1, a ledger of requests, and configurable
 * misbehaviour. A vendor's folder supplies the rules.
 */
import { once } from 'node:events';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import type { Socket } from 'node:net';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { openCertificateAuthority } from '../kit/certificates.ts';
import { Misbehaviours } from '../kit/misbehaviour.ts';
import type {
  GatewayRules,
  GatewayState,
  SandboxCall,
  SandboxGateway,
  SandboxOptions,
  SandboxReply,
} from './gateway.ts';
import { CallLedger, type SeenCall } from './ledger.ts';
import { type Misbehaviour, matches, type Target } from './misbehaviour.ts';

export type { SandboxCall, SandboxGateway, SandboxOptions, SandboxReply } from './gateway.ts';
export type { SeenCall } from './ledger.ts';
export type { Misbehaviour } from './misbehaviour.ts';

/** Starts a gateway with these rules; resolves when it listens. */
export async function startGateway(
  options: SandboxOptions,
  createRules: (state: GatewayState) => GatewayRules,
): Promise<SandboxGateway> {
  const authority = options.authority ?? (await openCertificateAuthority());
  const { certificate, privateKey } = options.server ?? (await authority.issueServer());
  const server = createSecureServer({
    cert: certificate,
    key: privateKey,
    allowHTTP1: true,
    settings: { maxConcurrentStreams: options.maxStreams ?? 100 },
  });
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  return new LoopbackGateway(server, authority.certificate, { ...options, createRules });
}

class LoopbackGateway implements SandboxGateway {
  readonly url: string;
  readonly ca: string;
  readonly deadTokens = new Set<string>();
  connections = 0;
  readonly #server: Http2SecureServer;
  readonly #rules: GatewayRules;
  readonly #ledger: CallLedger;
  readonly #misbehaviours = new Misbehaviours<Misbehaviour, Target>(matches);
  readonly #sockets = new Set<Socket>();
  /** Number of each open connection, by the client's port, the only feature that a request has of its connection. */
  readonly #connectionNumbers = new Map<number, number>();

  constructor(
    server: Http2SecureServer,
    ca: string,
    options: SandboxOptions & { createRules: (state: GatewayState) => GatewayRules },
  ) {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const clock: Clock = options.clock ?? systemClock;
    this.url = `https://${options.host ?? '127.0.0.1'}:${port}`;
    this.ca = ca;
    this.#server = server;
    this.#ledger = new CallLedger(options.keptRequests);
    this.#rules = options.createRules({ deadTokens: this.deadTokens, nowMs: () => clock.now() });
    server.on('secureConnection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      this.#connectionNumbers.set(socket.remotePort ?? 0, this.connections);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    // The client reports failed handshakes and broken connections.
    server.on('tlsClientError', () => undefined);
    server.on('sessionError', () => undefined);
    server.on('clientError', (_, socket) => socket.destroy());
    server.on('request', (request, response) => this.#receive(request, response));
  }

  get total(): number {
    return this.#ledger.total;
  }

  get tokenCalls(): number {
    return this.#ledger.tokenCalls;
  }

  get accepted(): number {
    return this.#ledger.accepted;
  }

  get distinct(): number {
    return this.#ledger.distinct;
  }

  get requests(): SeenCall[] {
    return this.#ledger.requests;
  }

  get violations(): string[] {
    return this.#ledger.violations;
  }

  seen(token: string): number {
    return this.#ledger.seen(token);
  }

  delivered(token: string): number {
    return this.#ledger.delivered(token);
  }

  misbehave(what: Misbehaviour): void {
    this.#misbehaviours.add(what);
  }

  behave(): void {
    this.#misbehaviours.clear();
  }

  waitFor(total: number): Promise<void> {
    return this.#ledger.until(() => this.#ledger.total >= total);
  }

  waitForAccepted(devices: number): Promise<void> {
    return this.#ledger.until(() => this.#ledger.accepted >= devices);
  }

  forget(): void {
    this.#ledger.forget();
    this.#rules.forget?.();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #receive(request: Http2ServerRequest, response: Http2ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => this.#process(request, response, Buffer.concat(chunks)));
  }

  #process(request: Http2ServerRequest, response: Http2ServerResponse, body: Buffer): void {
    const url = new URL(request.url, this.url);
    const { method, headers } = request;
    const call: SandboxCall = { method, path: url.pathname, query: url.searchParams, headers, body };
    const { tokens, isTokenCall = false } = this.#rules.targetsOf(call);
    const misbehaviour = this.#misbehaviours.pick({ tokens, isTokenCall, path: url.pathname });
    const reply = misbehaviour?.kind === 'answer' ? replyFor(misbehaviour) : this.#rules.handle(call);
    if (reply.violation !== undefined) this.#ledger.violations.push(reply.violation);
    if (isTokenCall) this.#ledger.tokenCalls += 1;
    else {
      const connection = this.#connectionNumbers.get(request.socket.remotePort ?? 0) ?? 0;
      const seen = { method, path: request.url, headers, body, tokens, status: reply.status, connection };
      this.#ledger.add(seen, reply.accepted ?? []);
    }
    if (misbehaviour === undefined || misbehaviour.kind === 'answer') respond(response, reply);
    else disruptResponse({ request, response }, misbehaviour, reply);
  }
}

const replyFor = ({ status, body, retryAfter }: Extract<Misbehaviour, { kind: 'answer' }>): SandboxReply => ({
  status,
  body,
  headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
});

function respond(response: Http2ServerResponse, { status, body, headers }: SandboxReply): void {
  if (response.writableEnded || response.destroyed) return;
  const isText = typeof body === 'string';
  response.writeHead(status, {
    ...(body === undefined
      ? {}
      : { 'content-type': isText ? 'text/plain' : 'application/json; charset=UTF-8' }),
    ...headers,
  });
  response.end(body === undefined ? '' : isText ? body : JSON.stringify(body));
}

/** Delays the response, breaks it off, or sends none. */
function disruptResponse(
  { request, response }: { request: Http2ServerRequest; response: Http2ServerResponse },
  misbehaviour: Misbehaviour,
  reply: SandboxReply,
): void {
  if (misbehaviour.kind === 'slow') setTimeout(() => respond(response, reply), misbehaviour.delayMs);
  if (misbehaviour.kind === 'disconnect') (request.stream?.session?.socket ?? request.socket).destroy();
  if (misbehaviour.kind !== 'reset') return;
  if (request.stream) request.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else request.socket.destroy();
}
