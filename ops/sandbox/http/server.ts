import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import type { Socket } from 'node:net';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { LoopbackGateway, type SandboxOptions } from '../kit/gateway.ts';
import type { Identity } from '../kit/listen.ts';
import { disrupt, type Misbehaviour } from '../kit/misbehaviour.ts';
import type { Success } from '../kit/unchecked.ts';

/**
 * Server that all HTTP gateways share: TLS on loopback for HTTP/2 and HTTP/1.1, a record of
 * requests, and configurable misbehaviour. A vendor's folder provides the rules.
 */

export type { SandboxOptions } from '../kit/gateway.ts';
export type { Misbehaviour } from '../kit/misbehaviour.ts';

/** Starts a gateway with these rules. Resolves when it listens. */
export const startGateway = (
  options: SandboxOptions,
  createRules: (state: GatewayState) => GatewayRules,
): Promise<SandboxGateway> => new SandboxGateway(options, createRules).open();

/** Gateway of a vendor, for HTTP/2 and HTTP/1.1. */
export class SandboxGateway extends LoopbackGateway<SeenCall> {
  /** Devices that the gateway reports as invalid in its own way. */
  readonly deadTokens = new Set<string>();
  protected readonly maxStreams: number;
  readonly #rules: GatewayRules;
  /**
   * Numbers of the open connections by client port. The port is the only property of the connection
   * that a request has.
   */
  readonly #connectionNumbers = new Map<number, number>();

  constructor(options: SandboxOptions, createRules: (state: GatewayState) => GatewayRules) {
    super(options);
    this.maxStreams = options.maxStreams ?? 100;
    this.#rules = createRules({ deadTokens: this.deadTokens, nowMs: () => this.clock.now() });
  }

  override misbehave(what: Exclude<Misbehaviour, { kind: 'refuse' | 'goaway' }>): void {
    super.misbehave(what);
  }

  override forget(): void {
    super.forget();
    this.#rules.forget?.();
  }

  protected get successes() {
    return this.#rules.successes ?? [];
  }

  protected createServer({ cert, key }: Identity): Http2SecureServer {
    const settings = { maxConcurrentStreams: this.maxStreams };
    const server = createSecureServer({ cert, key, allowHTTP1: true, settings });
    server.on('secureConnection', (socket: Socket) => {
      this.connections += 1;
      this.#connectionNumbers.set(socket.remotePort ?? 0, this.connections);
    });
    // The client reports broken connections itself.
    server.on('sessionError', () => undefined);
    server.on('clientError', (_, socket) => socket.destroy());
    return server.on('request', (request, response) => this.#receive(request, response));
  }

  #receive(request: Http2ServerRequest, response: Http2ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      // Over HTTP/2, a request whose connection broke ends too, with a part of its body.
      if (request.stream?.destroyed !== true)
        this.#process(request, response, Buffer.concat(chunks));
    });
  }

  #process(request: Http2ServerRequest, response: Http2ServerResponse, body: Buffer): void {
    const url = new URL(request.url, this.url);
    const { method, headers } = request;
    const call: SandboxCall = {
      method,
      path: url.pathname,
      query: url.searchParams,
      headers,
      body,
    };
    const { tokens, isTokenCall = false } = this.#rules.targetsOf(call);
    const misbehaviour = this.misbehaviours.pick({ tokens, isTokenCall, path: url.pathname });
    const reply =
      misbehaviour?.kind === 'answer' ? replyFor(misbehaviour) : this.#rules.handle(call);
    if (reply.violation !== undefined) this.ledger.violations.push(reply.violation);
    if (isTokenCall) this.ledger.tokenCalls += 1;
    else {
      const connection = this.#connectionNumbers.get(request.socket.remotePort ?? 0) ?? 0;
      const seen = {
        method,
        path: request.url,
        headers,
        body,
        tokens,
        status: reply.status,
        connection,
      };
      this.ledger.add(seen, { tokens, accepted: reply.accepted ?? [] });
    }
    if (misbehaviour === undefined || misbehaviour.kind === 'answer') respond(response, reply);
    else
      disrupt(misbehaviour, {
        send: () => respond(response, reply),
        reset: () => reset(request),
        disconnect: () => (request.stream?.session?.socket ?? request.socket).destroy(),
      });
  }
}

const replyFor = ({
  status,
  body,
  retryAfter,
}: Extract<Misbehaviour, { kind: 'answer' }>): SandboxReply => ({
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

function reset({ socket, stream }: Http2ServerRequest): void {
  if (stream) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else socket.destroy();
}

/** Parses the body of a call as a form. */
export const formIn = ({ body }: { body: Buffer }): URLSearchParams =>
  new URLSearchParams(body.toString('utf8'));

/** Parses the body of a call as a JSON object. Returns undefined for other bodies. */
export function objectIn({ body }: { body: Buffer }): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Issues access tokens that expire, and checks them. */
export class TokenIssuer {
  /** Lifetime of the tokens that are issued from now on. */
  lifetimeMs: number;
  readonly #tokens = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number, lifetimeMs = 3_600_000) {
    this.#nowMs = nowMs;
    this.lifetimeMs = lifetimeMs;
  }

  /** Issues a token. `expiresIn` is its lifetime in seconds. Older tokens stay valid. */
  issue(): { value: string; expiresIn: number } {
    const value = randomBytes(24).toString('base64url');
    this.#tokens.set(value, this.#nowMs() + this.lifetimeMs);
    return { value, expiresIn: Math.floor(this.lifetimeMs / 1000) };
  }

  check(value: string | undefined): 'valid' | 'expired' | 'unknown' {
    const endsAtMs = value === undefined ? undefined : this.#tokens.get(value);
    if (endsAtMs === undefined) return 'unknown';
    return endsAtMs > this.#nowMs() ? 'valid' : 'expired';
  }

  /** Expires all tokens issued so far. */
  expireAll(): void {
    for (const value of this.#tokens.keys()) this.#tokens.set(value, 0);
  }
}

/** Reply of the token call of a gateway without checks. */
export const anyToken = { access_token: 'x'.repeat(160), expires_in: 3600, token_type: 'Bearer' };

/** Returns the token of an `Authorization: Bearer` header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer ([!-~]+)$/.exec(authorization ?? '')?.[1];

/** One request with its whole body, for the rules of a gateway. */
export interface SandboxCall {
  method: string;
  /** Path without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Response of a gateway. `body` is sent as JSON; a string is sent unchanged. */
export interface SandboxReply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Devices whose message was accepted. */
  accepted?: readonly string[];
  /** Description of a request that a client must never send. It is recorded in `violations`. */
  violation?: string;
}

/** Rules of one gateway. They are pure, except for the gateway's own state. */
export interface GatewayRules {
  /**
   * Returns the devices in a request without checking them, and whether the request is a token
   * call.
   */
  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean };
  /** Returns the response that the original gateway would send. */
  handle(call: SandboxCall): SandboxReply;
  /** Replies of a gateway without checks. */
  readonly successes?: readonly Success[];
  /** Clears the recorded requests. Settings stay. */
  forget?(): void;
}

/** State of the gateway that the rules can read. */
export interface GatewayState {
  deadTokens: ReadonlySet<string>;
  nowMs(): number;
}

/** One processed request. */
interface SeenCall {
  method: string;
  /** Path with its query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Devices in the request. */
  tokens: readonly string[];
  status: number;
  /** Number of the request's connection, starting with 1. */
  connection: number;
}

/** Request that delivers a receipt to the server. */
export interface ReceiptPost {
  headers: Record<string, string>;
  body: string;
}

/** Message with a URL for receipts. */
export interface ReceiptRequest {
  id: string;
  tokens: ReadonlySet<string>;
  callback: string;
  /** Callback parameter. Each receipt contains it. */
  param: string;
}

/** The last messages that have a URL for receipts. */
export class ReceiptLog<Message extends ReceiptRequest = ReceiptRequest> {
  readonly #capacity: number;
  #messages: Message[] = [];

  /** `capacity` is the maximum number of messages. */
  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  add(message: Message): void {
    this.#messages.push(message);
    if (this.#messages.length > this.#capacity) this.#messages.shift();
  }

  clear(): void {
    this.#messages = [];
  }

  /**
   * Posts a receipt for each message to one of these devices, unless `receiptOf` returns null.
   * Returns the HTTP statuses.
   */
  send(
    tokens: readonly string[],
    receiptOf: (message: Message, targets: string[]) => ReceiptPost | null,
  ): Promise<number[]> {
    return Promise.all(
      this.#messages.flatMap((message) => {
        const targets = tokens.filter((token) => message.tokens.has(token));
        const receipt = targets.length === 0 ? null : receiptOf(message, targets);
        return receipt === null ? [] : [post(message.callback, receipt)];
      }),
    );
  }
}

/** Posts a receipt to the URL of the message, like a gateway. Returns the HTTP status. */
async function post(url: string, { headers, body }: ReceiptPost): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}
