import { checkFunctionName, isInternalName } from '../../../shared/domain/apps/functions.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { ForwardRequest } from '../../../shared/http/client.ts';
import { type ForwardResult, PeerError, peerErrorOf } from '../../../shared/http/result.ts';
import type { BatchReply } from '../batch/reply-budget.ts';
import {
  agentHeaders,
  type FunctionCaller,
  type FunctionHost,
  type FunctionHosts,
  HostAnswers,
} from './hosts.ts';

/** Arguments of a function in the form that the caller sent. */
export interface SentArguments {
  /** JSON text of any value. */
  text: string;
  userAgent: string;
  clientAgent: string;
  via: string;
}

/** Call of a function. */
export interface FunctionCall {
  /**
   * `call` is the object-typed encoding (protocol/functions.md#object-encoding). Carillon parses
   * neither encoding.
   */
  encoding: 'functions' | 'call';
  name: string;
  sent: SentArguments;
}

/** Response of the host: a complete JSON text, with the host's status. */
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
   * Calls a function and returns the host's response unchanged, even if it is an error. Throws:
   *
   * - 404 if the name is invalid or the app has no host, 401 for an internal name;
   * - 413 and 408 for the arguments, 429 if too many calls run;
   * - 124 (HTTP 503) if the response times out, 524 if the connection times out;
   * - 503 if the host refuses the connection, 502 if the response is not JSON.
   */
  async call(
    caller: FunctionCaller,
    { encoding, name, sent }: FunctionCall,
  ): Promise<FunctionReply> {
    const checked = checkFunctionName(name);
    // If the host has a hook with this name, it would run the hook for a caller without the hook
    // key.
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
   * Returns the names of functions and hooks that the host declares. Throws error 401 without the
   * master key, and as `call`.
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
      // A proxy in front of the host sends its own page if the host is slow or unreachable.
      const isPage = error instanceof Refusal && error.kind === 'badGateway';
      if (isPage) throw refusalOfStatus(host.url, status, error);
      throw error;
    });
    const retryAfter = headers['retry-after'];
    return {
      status,
      headers: {
        // A browser must not guess another type and execute the response.
        'X-Content-Type-Options': 'nosniff',
        ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
      },
      body: text,
    };
  }
}

/** Returns whether a response may be forwarded. Redirects and compressed data are refused. */
function isForwardable({ status, headers }: Extract<ForwardResult, { kind: 'response' }>): boolean {
  const isPlain = [undefined, 'identity'].includes(headers['content-encoding']);
  return isPlain && ((status >= 200 && status < 300) || (status >= 400 && status < 600));
}

/** Returns the refusal of a response that is not JSON, by its status. */
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
        text:
          'The function host has a private address that this service may not connect to ' +
          '(CARILLON_PRIVATE_HOSTS).',
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
