import type { Readable } from 'node:stream';
import { checkFunctionName, isInternalName } from '../../../shared/domain/apps/functions.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { ForwardFailure, ForwardRequest, ForwardResult } from '../../../shared/http/forward.ts';
import { agentHeaders, type FunctionCaller, type FunctionHost, type FunctionHosts } from './hosts.ts';

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
  /** `call` is the object-typed encoding (protocol/functions.md#object-encoding); this service reads neither of them. */
  encoding: 'functions' | 'call';
  name: string;
  sent: SentArguments;
}

/** Response of the host: JSON, with the status of the host. */
export interface FunctionReply {
  status: number;
  headers: Record<string, string>;
  body: Readable;
}

/** Forwards calls of cloud functions to the server that runs them (protocol/functions.md#function-calls). */
export class FunctionService {
  readonly #hosts: FunctionHosts;

  constructor(hosts: FunctionHosts) {
    this.#hosts = hosts;
  }

  /**
   * Calls a function and returns the host's response, also an error, unchanged. Throws 404 for an invalid name or an app
   * without a host, 401 for an internal name, 413 and 408 for the arguments, 429 for too many concurrent calls, 124 (HTTP
   * 503) when the response times out, 524 when the connection times out, 503 when the host refuses the connection, 502
   * for an invalid response.
   */
  async call(caller: FunctionCaller, { encoding, name, sent }: FunctionCall): Promise<FunctionReply> {
    const checked = checkFunctionName(name);
    // A host that finds a hook under this name would run it for a caller without its key.
    if (isInternalName(checked) && !caller.isMaster && !caller.hasHookKey) throw refuse('unauthorized');
    const host = this.#hostOf(caller, checked);
    if (this.#hosts.isLoop(sent.via))
      throw refuse('badGateway', 'The address of this app’s functions leads back to this service.');
    return this.#forward(host, {
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
   * Returns the names of functions and hooks that the host declares. Throws 401 without the master key, and the
   * refusals of `call`.
   */
  async metadatas(caller: FunctionCaller): Promise<FunctionReply> {
    if (!caller.isMaster) throw refuse('unauthorized');
    const host = this.#hostOf(caller, '_ops');
    const headers = { ...this.#hosts.headers(caller, host), 'accept-encoding': 'identity' };
    const request = { method: 'GET', path: '/1.1/functions/_ops/metadatas', headers, body: null } as const;
    return this.#forward(host, request);
  }

  #hostOf(caller: FunctionCaller, name: string): FunctionHost {
    const host = this.#hosts.find(caller);
    if (host) return host;
    throw refuse('noSuchFunction', `No such cloud function '${name}': this app has no functionsUrl.`);
  }

  async #forward(host: FunctionHost, request: ForwardRequest): Promise<FunctionReply> {
    const reply = await host.forwardClient.forward(request);
    if (reply.kind === 'failed') throw refusalOfFailure(reply.reason);
    const { status, headers, body } = reply;
    const refusal = refusalOfResponse(reply);
    if (refusal) {
      body.once('error', () => undefined).destroy();
      throw refusal;
    }
    const retryAfter = headers['retry-after'];
    return {
      status,
      headers: {
        // A browser must not guess another type and run the response.
        'X-Content-Type-Options': 'nosniff',
        ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
      },
      body,
    };
  }
}

const isJson = (type: string | undefined): boolean =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type ?? '');

/**
 * Returns a refusal for a response that is not forwarded: a redirect, a page (a browser would show it under the address
 * of this service), or compressed data.
 */
function refusalOfResponse({
  status,
  headers,
}: Extract<ForwardResult, { kind: 'response' }>): Refusal | undefined {
  const isPlain = [undefined, 'identity'].includes(headers['content-encoding']);
  const isForwardable = (status >= 200 && status < 300) || (status >= 400 && status < 600);
  if (isForwardable && isPlain && isJson(headers['content-type'])) return undefined;
  if (status === 504) return refuse('upstreamTimeout');
  if (status === 503) return new Refusal('unavailable', { retryAfterSeconds: 5 });
  return refuse('badGateway');
}

function refusalOfFailure(reason: ForwardFailure): Refusal {
  switch (reason) {
    case 'busy':
      return new Refusal('tooManyRequests', { retryAfterSeconds: 1 });
    case 'bad_request':
      return refuse('malformedJson');
    case 'request_too_large':
      return refuse('payloadTooLarge');
    case 'timeout':
      return refuse('functionTimedOut');
    case 'connect_timeout':
      return refuse('upstreamTimeout');
    case 'address_refused':
      return new Refusal('unavailable', {
        text: 'The function host has a private address that this service may not connect to (CARILLON_PRIVATE_HOSTS).',
        retryAfterSeconds: 5,
      });
    case 'connect_failed':
    case 'closed':
      return new Refusal('unavailable', { text: 'The function host is not there.', retryAfterSeconds: 5 });
    case 'reply_too_large':
    case 'connection_lost':
      return refuse('badGateway');
  }
}
