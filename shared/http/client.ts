/**
 * Client of an HTTP gateway: keep-alive connections to one base URL, requests with a deadline, and every result
 * told as data (develop/architecture.md#http-clients). Only this folder imports undici. HTTP/1.1 on purpose: its
 * HTTP/2 does not obey the peer's stream limit (libraries.md).
 */
import { createRequire } from 'node:module';
import type { SecureContext } from 'node:tls';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import type { Clock } from '../clock.ts';
import { HttpExchange } from './exchange.ts';
import { addressAttemptMs, guardedLookup, requireAllowedAddress } from './outbound-addresses.ts';
import type { HttpResult } from './result.ts';
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

export const defaultHttpTiming: HttpTiming = { connectMs: 10_000, requestMs: 15_000, drainMs: 5_000 };

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
  /** Waits `drainMs` for requests in flight, then closes every connection. Later requests end `not_sent`, `closed`. */
  close(): Promise<void>;
}

/**
 * Closes idle connections before the peer does (Node's servers: 5 s), to avoid sending on a closing
 * one. The peer's own `Keep-Alive: timeout=600` does not lengthen this: a NAT drops idle
 * connections silently.
 */
export const keepAlive = { keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 };

/**
 * Loads undici with the first request: it takes 16 MB per thread, and most threads of most dispatchers use HTTP/2 only.
 */
export const loadUndici = (): typeof import('undici') => createRequire(import.meta.url)('undici');

export interface ConnectorOptions {
  /** TCP and TLS. */
  connectMs: number;
  secureContext?: SecureContext | undefined;
  isOwnAddress: boolean;
}

/**
 * Returns the maker of undici's connector: TLS 1.2 or newer, to allowed addresses only
 * (outbound-addresses.ts).
 */
export function connectorOf({ connectMs, secureContext, isOwnAddress }: ConnectorOptions) {
  return (): buildConnector.connector => {
    const connect = loadUndici().buildConnector({
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
  };
}

const portOf = ({ port, protocol }: Pick<buildConnector.Options, 'port' | 'protocol'>): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/** Creates a client; connects with the first request. Throws for an invalid URL or PEM: check them before. */
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

class UndiciHttpClient implements HttpClient {
  readonly #openPool: () => Pool;
  #pool: Pool | null = null;
  readonly #pathPrefix: string;
  readonly #timing: HttpTiming;
  readonly #clock: Clock;
  #closing: Promise<void> | null = null;

  constructor({
    baseUrl,
    ca,
    proxy,
    isOwnAddress = false,
    connections = 16,
    timing = defaultHttpTiming,
    clock,
  }: HttpClientOptions) {
    const url = new URL(baseUrl);
    this.#pathPrefix = url.pathname.replace(/\/$/, '');
    this.#timing = timing;
    this.#clock = clock;
    const secureContext = ca === undefined ? undefined : sharedSecureContext(ca);
    const connector = connectorOf({ connectMs: timing.connectMs, secureContext, isOwnAddress });
    const proxyUrl = proxy === undefined ? null : new URL(proxy);
    this.#openPool = () => {
      const { Pool } = loadUndici();
      const connect = connector();
      return new Pool(url.origin, {
        connections,
        pipelining: 1,
        allowH2: false,
        ...keepAlive,
        // The deadline below covers the whole exchange, without two more timers.
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: proxyUrl === null ? connect : throughProxy(proxyUrl, { timing, secureContext, connect }),
      });
    };
  }

  request(request: HttpRequest): Promise<HttpResult> {
    const { method, path, headers = {}, body = null, signal, timeoutMs = this.#timing.requestMs } = request;
    return new Promise((resolve) => {
      const exchange = new HttpExchange(resolve, this.#clock, timeoutMs, signal);
      if (this.#closing) exchange.fail('closed');
      else if (signal?.aborted) exchange.fail('aborted');
      else if (!path.startsWith('/') || /[^!-~]/.test(path)) exchange.fail('bad_request');
      else this.#dispatch({ method, path: `${this.#pathPrefix}${path}`, headers, body }, exchange);
    });
  }

  #dispatch(options: Dispatcher.DispatchOptions, exchange: HttpExchange): void {
    try {
      this.#pool ??= this.#openPool();
      this.#pool.dispatch(options, exchange);
    } catch {
      exchange.fail('bad_request');
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    const pool = this.#pool;
    if (pool === null) return;
    const late = setTimeout(() => void pool.destroy().catch(() => undefined), this.#timing.drainMs);
    await pool.close().catch(() => undefined);
    clearTimeout(late);
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
function throughProxy(proxy: URL, { timing, secureContext, connect }: TunnelDeps): buildConnector.connector {
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
