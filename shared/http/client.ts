/**
 * Client for an HTTP/1.1 server: keep-alive connections to one base URL, and requests with a
 * timeout. All results are returned as data (develop/architecture.md#http-clients). The response of
 * a gateway is read as text; a forwarded response is streamed. Only this folder imports undici.
 */
import { createRequire } from 'node:module';
import type { SecureContext } from 'node:tls';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import { type Clock, isDoneWithin } from '../clock.ts';
import { type Exchange, HttpExchange, StreamedExchange } from './exchange.ts';
import { addressAttemptMs, guardedLookup, requireAllowedAddress } from './outbound-addresses.ts';
import type { ForwardResult, HttpResult } from './result.ts';
import { sharedSecureContext } from './trust.ts';
import { openTunnel } from './tunnel.ts';

export interface HttpTiming {
  /** Timeout for TCP and TLS together. */
  connectMs: number;
  /** Timeout from the call to the complete response. */
  requestMs: number;
  /** Time that requests in flight may take after `close()`. */
  drainMs: number;
}

export const defaultHttpTiming: HttpTiming = {
  connectMs: 10_000,
  requestMs: 15_000,
  drainMs: 5_000,
};

export interface HttpClientOptions {
  /** Base URL. Its path is the beginning of the path of each request. */
  baseUrl: string;
  /** PEM of a certificate authority that is trusted in addition to the system's. */
  ca?: string | undefined;
  /** URL of an HTTP proxy for CONNECT tunnels, with user and password if it needs them. */
  proxy?: string | undefined;
  /**
   * True if the base URL comes from the environment of the process. It may then be private
   * (outbound-addresses.ts).
   */
  isTrustedUrl?: boolean;
  /**
   * Maximum number of connections, which is also the maximum number of concurrent requests. Further
   * requests wait. 16 by default.
   */
  connections?: number;
  timing?: HttpTiming;
  clock: Clock;
}

export interface HttpRequest {
  method: 'GET' | 'POST';
  /** Begins with `/` and includes the query. The caller escapes it. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Overrides `requestMs` of the client. */
  timeoutMs?: number;
  /**
   * Cancels a request that is not sent yet (`not_sent`, `aborted`). A request in flight completes.
   */
  signal?: AbortSignal | undefined;
}

/** A long-lived pool of connections to one server. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpResult>;
  /**
   * Waits up to `drainMs` for requests in flight, then closes all connections. The result of later
   * requests is `not_sent`, `closed`.
   */
  close(): Promise<void>;
}

/**
 * Idle connections are closed before the peer closes them (after 5 s for Node.js servers), so that
 * no request is sent on a closing connection. A `Keep-Alive: timeout=600` of the peer does not
 * extend this time, because a NAT may silently drop idle connections.
 */
const keepAlive = { keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 };

/**
 * Loads undici when the first request is sent. It needs 16 MB per thread, and most threads of most
 * dispatchers use only HTTP/2.
 */
const loadUndici = (): typeof import('undici') => createRequire(import.meta.url)('undici');

interface ConnectorOptions {
  /** Timeout for TCP and TLS together. */
  connectMs: number;
  secureContext?: SecureContext | undefined;
  isTrustedUrl: boolean;
}

/**
 * Returns a connector for undici. It uses TLS 1.2 or newer and only connects to allowed addresses
 * (outbound-addresses.ts).
 */
function connectorOf(
  { buildConnector: build }: typeof import('undici'),
  { connectMs, secureContext, isTrustedUrl }: ConnectorOptions,
): buildConnector.connector {
  const connect = build({
    timeout: connectMs,
    ...(secureContext === undefined ? {} : { secureContext }),
    minVersion: 'TLSv1.2',
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs(connectMs),
    ...(isTrustedUrl ? {} : { lookup: guardedLookup }),
  });
  return (target, callback) => {
    try {
      // The socket of a tunnel is connected to the proxy. The proxy's address was checked when the
      // tunnel was opened.
      if (!isTrustedUrl && !target.httpSocket) requireAllowedAddress(target.hostname);
    } catch (error) {
      return callback(error instanceof Error ? error : new Error('refused'), null);
    }
    connect(target, callback);
  };
}

const portOf = ({ port, protocol }: Pick<buildConnector.Options, 'port' | 'protocol'>): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/**
 * Creates a client. It connects when the first request is sent. Throws if the URL or a PEM is
 * invalid, so these must be checked before.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  return new UndiciHttpClient(options);
}

/** Returns a POST request with a JSON body. `headers` are sent in addition to the content type. */
export function jsonPost(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpRequest {
  return {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json; charset=UTF-8', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

/** Returns a POST request with a form-encoded body. Undefined members are left out. */
export function formPost(
  path: string,
  members: Readonly<Record<string, string | number | undefined>>,
  headers: Readonly<Record<string, string>> = {},
): HttpRequest {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(members))
    if (value !== undefined) form.append(name, String(value));
  return {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8', ...headers },
    body: form.toString(),
  };
}

interface PoolOptions {
  baseUrl: string;
  connections: number;
  /**
   * Maximum time between two chunks of a response; 0 if another timeout covers the whole exchange.
   */
  idleMs: number;
  drainMs: number;
  connect: (undici: typeof import('undici')) => buildConnector.connector;
}

/**
 * Connections to one base URL, opened when the first request is sent. Follows no redirects and does
 * not retry.
 */
class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #url: URL;
  readonly #pathPrefix: string;
  #pool: Pool | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#url = new URL(options.baseUrl);
    this.#pathPrefix = this.#url.pathname.replace(/\/+$/, '');
  }

  get isClosed(): boolean {
    return this.#closing !== null;
  }

  /** Sends a request. The result goes to `exchange`. */
  dispatch({ path, ...options }: Dispatcher.DispatchOptions, exchange: Exchange): void {
    if (this.isClosed) exchange.fail('closed');
    else if (!path.startsWith('/') || /[^!-~]/.test(path)) exchange.fail('bad_request');
    else
      try {
        this.#pool ??= this.#open();
        this.#pool.dispatch({ ...options, path: `${this.#pathPrefix}${path}` }, exchange);
      } catch {
        exchange.fail('bad_request');
      }
  }

  #open(): Pool {
    const { connections, idleMs, connect } = this.#options;
    const undici = loadUndici();
    return new undici.Pool(this.#url.origin, {
      connections,
      pipelining: 1,
      allowH2: false,
      ...keepAlive,
      // Each exchange has its own timeout.
      headersTimeout: 0,
      bodyTimeout: idleMs,
      connect: connect(undici),
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    const pool = this.#pool;
    if (pool === null) return;
    const closed = pool.close().catch(() => undefined);
    // `close` of a pool that was destroyed may never settle.
    if (!(await isDoneWithin(closed, this.#options.drainMs)))
      void pool.destroy().catch(() => undefined);
  }
}

class UndiciHttpClient implements HttpClient {
  readonly #pool: ConnectionPool;
  readonly #timing: HttpTiming;
  readonly #clock: Clock;

  constructor({
    baseUrl,
    ca,
    proxy,
    isTrustedUrl = false,
    connections = 16,
    timing = defaultHttpTiming,
    clock,
  }: HttpClientOptions) {
    this.#timing = timing;
    this.#clock = clock;
    const secureContext = ca === undefined ? undefined : sharedSecureContext(ca);
    const proxyUrl = proxy === undefined ? null : new URL(proxy);
    this.#pool = new ConnectionPool({
      baseUrl,
      connections,
      idleMs: 0,
      drainMs: timing.drainMs,
      connect: (undici) => {
        const connect = connectorOf(undici, {
          connectMs: timing.connectMs,
          secureContext,
          isTrustedUrl,
        });
        return proxyUrl === null
          ? connect
          : throughProxy(proxyUrl, { timing, secureContext, connect });
      },
    });
  }

  request(request: HttpRequest): Promise<HttpResult> {
    const {
      method,
      path,
      headers = {},
      body = null,
      signal,
      timeoutMs = this.#timing.requestMs,
    } = request;
    return new Promise((resolve) => {
      const exchange = new HttpExchange(resolve, this.#clock, timeoutMs, signal);
      if (signal?.aborted && !this.#pool.isClosed) exchange.fail('aborted');
      else this.#pool.dispatch({ method, path, headers, body }, exchange);
    });
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

export interface ForwardLimits {
  connectMs: number;
  /** Timeout from the request to the head of the response. */
  waitMs: number;
  /** Timeout between two chunks of a response. */
  idleMs: number;
  requestBytes: number;
  replyBytes: number;
  /** Maximum number of concurrent requests. A further request fails at once. */
  inFlight: number;
  /**
   * True if the base URL comes from the environment of the process. It may then be private
   * (outbound-addresses.ts).
   */
  isTrustedUrl: boolean;
}

const defaultForwardLimits: ForwardLimits = {
  connectMs: 3_000,
  waitMs: 15_000,
  idleMs: 15_000,
  requestBytes: 20 * 1024 * 1024,
  replyBytes: 20 * 1024 * 1024,
  inFlight: 256,
  isTrustedUrl: false,
};

export interface ForwardRequest {
  method: 'GET' | 'POST';
  /** Begins with `/`. The caller escapes it. */
  path: string;
  /** Headers that the service has built. They are never copied from a request as a whole. */
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** Forwards requests of callers to one server and streams the bodies of its responses. */
export class ForwardClient {
  readonly #pool: ConnectionPool;
  readonly #limits: ForwardLimits;
  #inFlight = 0;

  /** Connects to the server and path of `baseUrl` when the first request is sent. */
  constructor(baseUrl: string, limits: Partial<ForwardLimits> = {}) {
    this.#limits = { ...defaultForwardLimits, ...limits };
    const { inFlight: connections, idleMs } = this.#limits;
    this.#pool = new ConnectionPool({
      baseUrl,
      connections,
      idleMs,
      drainMs: defaultHttpTiming.drainMs,
      connect: (undici) => connectorOf(undici, this.#limits),
    });
  }

  forward({ method, path, headers, body }: ForwardRequest): Promise<ForwardResult> {
    const { requestBytes, replyBytes, waitMs, inFlight } = this.#limits;
    const isTooLarge = body !== null && Buffer.byteLength(body) > requestBytes;
    if (!this.#pool.isClosed && (isTooLarge || this.#inFlight >= inFlight))
      return Promise.resolve({ kind: 'failed', reason: isTooLarge ? 'request_too_large' : 'busy' });
    this.#inFlight += 1;
    return new Promise((resolve) => {
      const onEnd = () => {
        this.#inFlight -= 1;
      };
      const exchange = new StreamedExchange({ resolve, onEnd, replyBytes, waitMs });
      this.#pool.dispatch({ method, path, headers, body }, exchange);
    });
  }

  /** Waits briefly for requests in flight, then closes all connections. */
  close(): Promise<void> {
    return this.#pool.close();
  }
}

interface TunnelDeps {
  timing: HttpTiming;
  /** Secure context for an https:// proxy. */
  secureContext: SecureContext | undefined;
  /** Starts TLS on a connected socket. */
  connect: buildConnector.connector;
}

/** Connects through a tunnel. For an https gateway, TLS runs inside the tunnel. */
function throughProxy(
  proxy: URL,
  { timing, secureContext, connect }: TunnelDeps,
): buildConnector.connector {
  return (target, callback) => {
    const isSecure = target.protocol === 'https:';
    const host = target.hostname.replace(/^\[|\]$/g, '');
    openTunnel(proxy, {
      host,
      port: portOf(target),
      signal: AbortSignal.timeout(timing.connectMs),
      secureContext,
    }).then(
      (httpSocket) => {
        if (isSecure) connect({ ...target, httpSocket }, callback);
        else callback(null, httpSocket);
      },
      (error: Error) => callback(error, null),
    );
  };
}
