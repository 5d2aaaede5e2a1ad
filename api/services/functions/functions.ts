import { checkFunctionName, isInternalName } from '../../../shared/domain/apps/functions.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { ForwardRequest } from '../../../shared/http/client.ts';
import { type ForwardResult, PeerError, peerErrorOf } from '../../../shared/http/result.ts';
import type { BatchReply } from '../batch/reply.ts';
import {
  agentHeaders,
  type FunctionCaller,
  type FunctionHost,
  type FunctionHosts,
  HostAnswers,
} from './hosts.ts';

/** Arguments of a function as the caller sent them. */
export interface SentArguments {
  /** Any JSON value. */
  text: string;
  userAgent: string;
  clientAgent: string;
  via: string;
}

/** Call of a function. */
export interface FunctionCall {
  /**
   * `call` is the object-typed encoding (protocol/functions.md#object-encoding); this service reads
   * neither of them.
   */
  encoding: 'functions' | 'call';
  name: string;
  sent: SentArguments;
}

/** Response of the host: a whole JSON text, with the status of the host. */
export interface FunctionReply {
  status: number;
  headers: Record<string, string>;
  body: BatchReply;
}

/**
 * Forwards calls of cloud functions to the server that runs them
 * (protocol/functions.md#function-calls).
 */
export class FunctionService {
  readonly #hosts: FunctionHosts;
  readonly #answers = new HostAnswers();

  constructor(hosts: FunctionHosts) {
    this.#hosts = hosts;
  }

  /**
   * Calls a function and returns the host's response, also an error, unchanged. Throws 404 for an
   * invalid name or an app without a host, 401 for an internal name, 413 and 408 for the arguments,
   * 429 for too many concurrent calls, 124 (HTTP 503) when the response times out, 524 when the
   * connection times out, 503 when the host refuses the connection, 502 for a response that is no
   * JSON.
   */
  async call(
    caller: FunctionCaller,
    { encoding, name, sent }: FunctionCall,
  ): Promise<FunctionReply> {
    const checked = checkFunctionName(name);
    // A host that finds a hook under this name would run it for a caller without its key.
    if (isInternalName(checked) && !caller.isMaster && !caller.hasHookKey)
      throw refuse('unauthorized');
    const host = this.#hostOf(caller, checked);
    if (this.#hosts.isLoop(sent.via))
      throw refuse('badGateway', 'The address of this app’s functions leads back to this service.');
    return this.#forward(caller, host, {
      method: 'POST',
      path: `/1.1/${encoding}/${encodeURIComponent(checked)}`,
      headers: {
        ...this.#hosts.headers(caller, host),
        ...agentHeaders(sent),
        'content-type': 'application/json; charset=utf-8',
        'accept-encoding': 'identity',
        accept: 'application/json',
        'content-length': String(Buffer.byteLength(sent.text)),
      },
      body: sent.text,
    });
  }

  /**
   * Returns the names of functions and hooks that the host declares. Throws 401 without the master
   * key, and the refusals of `call`.
   */
  async metadatas(caller: FunctionCaller): Promise<FunctionReply> {
    if (!caller.isMaster) throw refuse('unauthorized');
    const host = this.#hostOf(caller, '_ops');
    const headers = { ...this.#hosts.headers(caller, host), 'accept-encoding': 'identity' };
    const request = {
      method: 'GET',
      path: '/1.1/functions/_ops/metadatas',
      headers,
      body: null,
    } as const;
    return this.#forward(caller, host, request);
  }

  #hostOf(caller: FunctionCaller, name: string): FunctionHost {
    const host = this.#hosts.find(caller);
    if (host) return host;
    throw refuse(
      'noSuchFunction',
      `No such cloud function '${name}': this app has no functionsUrl.`,
    );
  }

  async #forward(
    { app }: FunctionCaller,
    host: FunctionHost,
    request: ForwardRequest,
  ): Promise<FunctionReply> {
    const reply = await host.forwardClient.forward(request);
    if (reply.kind === 'failed') throw refusalOfFailure(host.url, reply);
    const { status, headers, body } = reply;
    if (!isForwardable(reply)) {
      body.once('error', () => undefined).destroy();
      throw refusalOfStatus(host.url, status);
    }
    const text = await this.#answers.read(app.appId, body).catch((error: unknown) => {
      // A proxy before the host says by its own page that the host is slow or away.
      const isPage = error instanceof Refusal && error.kind === 'badGateway';
      if (isPage) throw refusalOfStatus(host.url, status, error);
      throw error;
    });
    const retryAfter = headers['retry-after'];
    return {
      status,
      headers: {
        // A browser must not guess another type and run the response.
        'X-Content-Type-Options': 'nosniff',
        ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
      },
      body: text,
    };
  }
}

/** Tells whether an answer may be forwarded: no redirect, and no compressed data. */
function isForwardable({ status, headers }: Extract<ForwardResult, { kind: 'response' }>): boolean {
  const isPlain = [undefined, 'identity'].includes(headers['content-encoding']);
  return isPlain && ((status >= 200 && status < 300) || (status >= 400 && status < 600));
}

/** Returns the refusal of an answer that is no JSON, by its status. */
function refusalOfStatus(url: string, status: number, fault?: Refusal): Refusal {
  const cause = new PeerError(url, `status ${status}${fault ? `: ${fault.message}` : ''}`);
  if (status === 504) return new Refusal('upstreamTimeout', { cause });
  if (status === 503) return new Refusal('unavailable', { retryAfterSeconds: 5, cause });
  return new Refusal('badGateway', {
    ...(fault?.hasOwnText ? { text: fault.message } : {}),
    cause,
  });
}

function refusalOfFailure(
  url: string,
  failure: Extract<ForwardResult, { kind: 'failed' }>,
): Refusal {
  const cause = peerErrorOf(url, failure);
  switch (failure.reason) {
    case 'busy':
      return new Refusal('tooManyRequests', { retryAfterSeconds: 1, cause });
    case 'bad_request':
      return refuse('malformedJson');
    case 'request_too_large':
      return refuse('payloadTooLarge');
    case 'timeout':
    case 'queue_timeout':
      return new Refusal('functionTimedOut', { cause });
    case 'connect_timeout':
      return new Refusal('upstreamTimeout', { cause });
    case 'address_refused':
      return new Refusal('unavailable', {
        text: 'The function host has a private address that this service may not connect to (CARILLON_PRIVATE_HOSTS).',
        retryAfterSeconds: 5,
        cause,
      });
    case 'connect_failed':
    case 'certificate_refused':
    case 'closed':
    case 'aborted':
      return new Refusal('unavailable', {
        text: 'The function host is not there.',
        retryAfterSeconds: 5,
        cause,
      });
    case 'reply_too_large':
    case 'connection_lost':
      return new Refusal('badGateway', { cause });
  }
}
