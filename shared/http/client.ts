/**
 * Client of an HTTP/1.1 server: keep-alive connections to one base URL, requests with a deadline,
 * and every result told as data (develop/architecture.md#http-clients). A gateway's response is a
 * text, a forwarded one is streamed. Only this folder imports undici.
 */
import { createRequire } from 'node:module';
import type { SecureContext } from 'node:tls';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import type { Clock } from '../clock.ts';
import { type Exchange, HttpExchange, StreamedExchange } from './exchange.ts';
import { addressAttemptMs, guardedLookup, requireAllowedAddress } from './outbound-addresses.ts';
import type { ForwardResult, HttpResult } from './result.ts';
import { sharedSecureContext } from './trust.ts';
import { openTunnel } from './tunnel.ts';

export interface HttpTiming {
  /** TCP and TLS. */
  connectMs: number;
  /** From the call to the complete response. */
  requestMs: number;
  /** Time for requests in flight at `close()`. */
  drainMs: number;
}

export const defaultHttpTiming: HttpTiming = {
  connectMs: 10_000,
  requestMs: 15_000,
  drainMs: 5_000,
};

export interface HttpClientOptions {
  /** Base URL; its path is a prefix of every request's path. */
  baseUrl: string;
  /** PEM of a certificate authority trusted beside the system's. */
  ca?: string | undefined;
  /** URL of an HTTP proxy for CONNECT tunnels, with user and password if it needs them. */
  proxy?: string | undefined;
  /**
   * The base URL comes from the environment of the process: it may be private
   * (outbound-addresses.ts).
   */
  isOwnAddress?: boolean;
  /** Limit of connections, and so of concurrent requests; further ones wait. Default 16. */
  connections?: number;
  timing?: HttpTiming;
  clock: Clock;
}

export interface HttpRequest {
  method: 'GET' | 'POST';
  /** Begins with `/` and includes the query; the caller escapes it. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Overrides the client's `requestMs`. */
  timeoutMs?: number;
  /** Cancels a request that was not sent yet (`not_sent`, `aborted`); one in flight completes. */
  signal?: AbortSignal | undefined;
}

/** A long-lived pool of connections to one gateway. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpResult>;
  /**
   * Waits `drainMs` for requests in flight, then closes every connection. Later requests end
   * `not_sent`, `closed`.
   */
  close(): Promise<void>;
}

/**
 * Closes idle connections before the peer does (Node's servers: 5 s), to avoid sending on a closing
 * one. The peer's own `Keep-Alive: timeout=600` does not lengthen this: a NAT drops idle
 * connections silently.
 */
const keepAlive = { keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 };

/**
 * Loads undici with the first request: it takes 16 MB per thread, and most threads of most
 * dispatchers use HTTP/2 only.
 */
const loadUndici = (): typeof import('undici') => createRequire(import.meta.url)('undici');

interface ConnectorOptions {
  /** TCP and TLS. */
  connectMs: number;
  secureContext?: SecureContext | undefined;
  isOwnAddress: boolean;
}

/**
 * Returns a connector of undici: TLS 1.2 or newer, to allowed addresses only
 * (outbound-addresses.ts).
 */
function connectorOf(
  { buildConnector: build }: typeof import('undici'),
  { connectMs, secureContext, isOwnAddress }: ConnectorOptions,
): buildConnector.connector {
  const connect = build({
    timeout: connectMs,
    ...(secureContext === undefined ? {} : { secureContext }),
    minVersion: 'TLSv1.2',
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs(connectMs),
    ...(isOwnAddress ? {} : { lookup: guardedLookup }),
  });
  return (target, callback) => {
    try {
      // A socket of a tunnel leads to the proxy, whose address is checked when the tunnel is
      // opened.
      if (!isOwnAddress && !target.httpSocket) requireAllowedAddress(target.hostname);
    } catch (error) {
      return callback(error instanceof Error ? error : new Error('refused'), null);
    }
    connect(target, callback);
  };
}

const portOf = ({ port, protocol }: Pick<buildConnector.Options, 'port' | 'protocol'>): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/**
 * Creates a client; connects with the first request. Throws for an invalid URL or PEM: check them
 * before.
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  return new UndiciHttpClient(options);
}

/** Returns a POST request with a JSON body; `headers` are added to the content type. */
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

/** Returns a POST request with a form-encoded body, without undefined members. */
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
  /** Time between two chunks of a response; 0 where the deadline covers the whole exchange. */
  idleMs: number;
  drainMs: number;
  connect: (undici: typeof import('undici')) => buildConnector.connector;
}

/** Connections to one base URL, opened with the first request. No redirects, no retries. */
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

  /** Sends a request; the exchange gets its result. */
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
      // Each exchange has a deadline.
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
    const late = setTimeout(
      () => void pool.destroy().catch(() => undefined),
      this.#options.drainMs,
    );
    await pool.close().catch(() => undefined);
    clearTimeout(late);
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
    isOwnAddress = false,
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
          isOwnAddress,
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
  /** From the request to the head of the response. */
  waitMs: number;
  /** Between two chunks of a response. */
  idleMs: number;
  requestBytes: number;
  replyBytes: number;
  /** Concurrent requests; a further one fails at once. */
  inFlight: number;
  /**
   * The base URL comes from the environment of the process: it may be private
   * (outbound-addresses.ts).
   */
  isOwnAddress: boolean;
}

const defaultForwardLimits: ForwardLimits = {
  connectMs: 3_000,
  waitMs: 15_000,
  idleMs: 15_000,
  requestBytes: 20 * 1024 * 1024,
  replyBytes: 20 * 1024 * 1024,
  inFlight: 256,
  isOwnAddress: false,
};

export interface ForwardRequest {
  method: 'GET' | 'POST';
  /** Begins with `/`; the caller escapes it. */
  path: string;
  /** Built by the service, never copied from a request as a whole. */
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** Forwards a caller's requests to one server, and streams the bodies of its responses. */
export class ForwardClient {
  readonly #pool: ConnectionPool;
  readonly #limits: ForwardLimits;
  #inFlight = 0;

  /** Connects to the server and path of `baseUrl` with the first request. */
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

  /** Waits briefly for requests in flight, then closes every connection. */
  close(): Promise<void> {
    return this.#pool.close();
  }
}

interface TunnelDeps {
  timing: HttpTiming;
  /** Trust for an https:// proxy. */
  secureContext: SecureContext | undefined;
  /** Starts TLS on a connected socket. */
  connect: buildConnector.connector;
}

/** Connects through a tunnel, with TLS inside it for an https gateway. */
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
