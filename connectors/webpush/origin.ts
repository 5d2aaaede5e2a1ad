/**
 * Client of one push service of one profile: HTTP/2 if the service has it, HTTP/1.1 otherwise, and
 * the health of the service. A profile sends to many services, so a service that is down must not
 * stop the others.
 */
import type { Clock } from '../../shared/clock.ts';
import { createHttpClient, defaultHttpTiming, type HttpClient } from '../../shared/http/client.ts';
import type { HttpResult } from '../../shared/http/result.ts';
import { codeOf, connectTls, targetOf } from '../http2/connect.ts';
import { openTransport } from '../http2/pooled-transport.ts';
import type {
  RequestBatch,
  RequestResult,
  ResponseDecision,
  Transport,
  TransportLoad,
  TransportOptions,
} from '../http2/transport.ts';

/** Connections per service and thread, for HTTP/2 and for HTTP/1.1. */
const maxConnections = 8;
const maxHttp1Connections = 16;

/** Failures in a row after which the service gets no request for a while. */
const maxFailures = 20;
const cooldownMs = 30_000;

/** Header in which Microsoft's push service names the reason of a refusal. */
const responseHeader = 'x-wns-error-description';

/** Codes of a TLS handshake that found no common protocol. */
const noHttp2 = /NO_HTTP2|NO_APPLICATION_PROTOCOL/;

/** Result of a request. HTTP/1.1 has further reasons of failures. */
export type OriginResult = RequestResult | Exclude<HttpResult, { kind: 'response' }>;

export type OnOriginResult = (index: number, result: OriginResult) => ResponseDecision;

export type OriginOptions = Omit<TransportOptions, 'maxConnections'> & { clock: Clock };

/** One request: the path of the endpoint and the encrypted body. */
export interface OriginRequest {
  path: string;
  splice: Buffer;
}

export interface OriginBatch {
  headers: Readonly<Record<string, string>>;
  requests: readonly OriginRequest[];
  signal: AbortSignal;
}

export class Origin {
  readonly #options: OriginOptions;
  #client: Promise<Transport | HttpClient> | undefined;
  #transport: Transport | undefined;
  #failures = 0;
  #closedUntilMs = 0;
  /** After a pause, a test is due. While it is running, no other message is sent. */
  #test: 'none' | 'due' | 'running' = 'none';
  /** Sends in progress. An origin in use is not closed. */
  users = 0;

  constructor(options: OriginOptions) {
    this.#options = options;
  }

  /** Returns the time in ms until the service gets requests again; 0 if it gets them now. */
  cooldownMs(): number {
    return Math.max(0, this.#closedUntilMs - this.#options.clock.monotonicMs());
  }

  /**
   * Returns how many of `wanted` messages may be sent now. After a pause, one message tests the
   * service, so that a service that does not answer delays only one batch.
   */
  admit(wanted: number): number {
    if (this.cooldownMs() > 0 || this.#test === 'running') return 0;
    if (this.#test === 'none') return wanted;
    this.#test = 'running';
    return Math.min(1, wanted);
  }

  /**
   * Counts a result for the health of the service. Null if it says nothing about the service, such
   * as an aborted request.
   */
  record(isFailure: boolean | null): void {
    const wasTest = this.#test === 'running';
    if (wasTest) this.#test = 'due';
    if (isFailure === null) return;
    if (!isFailure) {
      this.#failures = 0;
      this.#test = 'none';
    } else if (++this.#failures >= maxFailures || wasTest) {
      this.#failures = 0;
      this.#test = 'due';
      this.#closedUntilMs = this.#options.clock.monotonicMs() + cooldownMs;
    }
  }

  /** Sends requests. Calls `onResult` exactly once for each. */
  async sendMany(
    { headers, requests, signal }: OriginBatch,
    onResult: OnOriginResult,
  ): Promise<void> {
    this.#client ??= this.#open();
    const client = await this.#client;
    if ('sendMany' in client) {
      const template = { pathPrefix: '', headers, body: Buffer.alloc(0), spliceAt: 0 };
      const batch: RequestBatch = { template, requests, signal };
      return client.sendMany(batch, onResult);
    }
    await this.#sendHttp1(client, { headers, requests, signal }, onResult);
  }

  async #sendHttp1(
    client: HttpClient,
    { headers, requests, signal }: OriginBatch,
    onResult: OnOriginResult,
  ): Promise<void> {
    const stop = new AbortController();
    const waiting = requests.entries();
    const work = async () => {
      for (const [index, { path, splice }] of waiting) {
        const isAborted = signal.aborted || stop.signal.aborted;
        const result: OriginResult = isAborted
          ? { kind: 'not_sent', reason: signal.aborted ? 'aborted' : 'stopped', afterMs: null }
          : withHeader(
              await client.request({ method: 'POST', path, headers, body: splice, signal }),
            );
        if (onResult(index, result) === 'stop') stop.abort();
      }
    };
    const workers = Math.min(maxHttp1Connections, requests.length);
    await Promise.all(Array.from({ length: workers }, work));
  }

  /** Returns the open HTTP/2 connections and streams. */
  load(): TransportLoad {
    return this.#transport?.load() ?? { connections: 0, streams: 0 };
  }

  async close(): Promise<void> {
    await (await this.#client)?.close();
  }

  /** Chooses the protocol by one TLS handshake. A failed connection is reported by HTTP/2. */
  async #open(): Promise<Transport | HttpClient> {
    const { baseUrl, ca, proxy, timing, clock } = this.#options;
    const isHttp2 = await hasHttp2({ ...this.#options, maxConnections });
    if (isHttp2) {
      this.#transport = openTransport({ ...this.#options, responseHeader, maxConnections });
      return this.#transport;
    }
    return createHttpClient({
      baseUrl,
      ca,
      proxy,
      connections: maxHttp1Connections,
      timing: { ...defaultHttpTiming, requestMs: timing.requestMs, drainMs: timing.drainMs },
      clock,
    });
  }
}

/** Returns a result of HTTP/1.1 in the form of HTTP/2. */
const withHeader = (result: HttpResult): OriginResult =>
  result.kind === 'response' ? { ...result, header: result.headers[responseHeader] } : result;

/** False if the service answers the TLS handshake and has no HTTP/2. */
async function hasHttp2(options: TransportOptions): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(options.timing.connectMs);
    const socket = await connectTls(targetOf(options), signal);
    // Without a listener, a late error of the destroyed socket would be an uncaught error.
    socket.on('error', () => undefined).destroy();
    return true;
  } catch (error) {
    return !noHttp2.test(codeOf(error));
  }
}
