/**
 * Client that forwards a caller's request to another HTTP server and streams the body of the response. Gateways use
 * `client.ts`, with small texts.
 */
import { pipeline, type Readable, Transform } from 'node:stream';
import type { Dispatcher, Pool } from 'undici';
import { connectorOf, keepAlive, loadUndici } from './client.ts';
import { failureCodeOf } from './connect-failure.ts';

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

export type ForwardFailure =
  /** The request was not sent. */
  | 'busy'
  | 'closed'
  | 'bad_request'
  | 'address_refused'
  | 'connect_failed'
  | 'connect_timeout'
  | 'request_too_large'
  /** The server may have processed it. */
  | 'reply_too_large'
  | 'timeout'
  | 'connection_lost';

/** Result of a request; failures are values too. A response body that is too long or stalls ends with an error. */
export type ForwardResult =
  | { kind: 'response'; status: number; headers: Readonly<Record<string, string>>; body: Readable }
  /** `cause`: the code of a connection failure (`failureCodeOf`). */
  | { kind: 'failed'; reason: ForwardFailure; cause?: string | undefined };

/** A long-lived pool of connections to one server, without redirects or retries. */
export interface ForwardClient {
  forward(request: ForwardRequest): Promise<ForwardResult>;
  /** Waits briefly for requests in flight, then closes every connection. */
  close(): Promise<void>;
}

const drainMs = 5_000;

/** Creates a client for the server and path of `baseUrl`; connects with the first request. */
export function createForwardClient(baseUrl: string, limits: Partial<ForwardLimits> = {}): ForwardClient {
  return new UndiciForwardClient(new URL(baseUrl), { ...defaultForwardLimits, ...limits });
}

class UndiciForwardClient implements ForwardClient {
  readonly #pool: Pool;
  readonly #prefix: string;
  readonly #limits: ForwardLimits;
  #inFlight = 0;
  #closing: Promise<void> | undefined;

  constructor(url: URL, limits: ForwardLimits) {
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#limits = limits;
    const { Pool } = loadUndici();
    this.#pool = new Pool(url.origin, {
      connections: limits.inFlight,
      pipelining: 1,
      allowH2: false,
      ...keepAlive,
      headersTimeout: 0,
      bodyTimeout: limits.idleMs,
      connect: connectorOf(limits)(),
    });
  }

  async forward(request: ForwardRequest): Promise<ForwardResult> {
    const refusal = this.#refusal(request);
    if (refusal) return { kind: 'failed', reason: refusal };
    this.#inFlight += 1;
    const attempt = new Attempt(this.#limits.waitMs);
    try {
      const reply = await this.#pool.request({
        method: request.method,
        path: `${this.#prefix}${request.path}`,
        headers: { ...request.headers },
        body: request.body,
        signal: attempt.signal,
      });
      return this.#answer(reply);
    } catch (error) {
      this.#inFlight -= 1;
      const reason = attempt.reasonOf(error);
      return {
        kind: 'failed',
        reason,
        ...(reason === 'connect_failed' ? { cause: failureCodeOf(error) } : {}),
      };
    } finally {
      attempt.end();
    }
  }

  #refusal({ path, body }: ForwardRequest): ForwardFailure | undefined {
    if (this.#closing) return 'closed';
    if (!path.startsWith('/') || /[^!-~]/.test(path)) return 'bad_request';
    if (typeof body === 'string' && Buffer.byteLength(body) > this.#limits.requestBytes)
      return 'request_too_large';
    return this.#inFlight >= this.#limits.inFlight ? 'busy' : undefined;
  }

  #answer(reply: Dispatcher.ResponseData): ForwardResult {
    const headers = flat(reply.headers);
    const done = () => {
      this.#inFlight -= 1;
    };
    if (Number(headers['content-length']) > this.#limits.replyBytes) {
      reply.body.once('error', () => undefined).destroy();
      done();
      return { kind: 'failed', reason: 'reply_too_large' };
    }
    const body = pipeline(reply.body, counted(this.#limits.replyBytes), done);
    return { kind: 'response', status: reply.statusCode, headers, body };
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    const late = setTimeout(() => void this.#pool.destroy().catch(() => undefined), drainMs);
    await this.#pool.close().catch(() => undefined);
    clearTimeout(late);
  }
}

class TooLong extends Error {
  override name = 'TooLong';
}

/** One request up to the head of its response, with its deadline. */
class Attempt {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(waitMs: number) {
    this.#timer = setTimeout(() => this.#controller.abort(), waitMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops the deadline: the head of the response has arrived, or none will. */
  end(): void {
    clearTimeout(this.#timer);
  }

  reasonOf(error: unknown): ForwardFailure {
    if (this.signal.aborted) return 'timeout';
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ADDRESS_REFUSED') return 'address_refused';
    if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect_timeout';
    if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') return 'closed';
    if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH')
      return 'bad_request';
    return isConnectFailure(error) ? 'connect_failed' : 'connection_lost';
  }
}

/** Returns whether the connection failed before anything was sent: no DNS entry, refused, or an untrusted certificate. */
function isConnectFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  // All addresses of the host failed.
  if (error instanceof AggregateError) return true;
  const isConnecting = 'syscall' in error && ['connect', 'getaddrinfo'].includes(String(error.syscall));
  return isConnecting || /CERT|SELF_SIGNED|ALTNAME|VERIFY|^ERR_SSL|^EPROTO/.test(code);
}

/** Passes chunks on with back-pressure, up to `limit` bytes; fails with `TooLong` beyond. */
function counted(limit: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _, callback) {
      bytes += chunk.length;
      if (bytes > limit) callback(new TooLong('too long'));
      else callback(null, chunk);
    },
  });
}

function flat(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value;
      return first === undefined ? [] : [[name.toLowerCase(), first]];
    }),
  );
}
