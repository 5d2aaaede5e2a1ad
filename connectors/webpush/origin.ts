/**
 * Client of one push service of one profile: HTTP/2 if the service has it, HTTP/1.1 otherwise, and
 * the health of the service.
 */
import type { Clock } from '../../shared/clock.ts';
import { createHttpClient, defaultHttpTiming, type HttpClient } from '../../shared/http/client.ts';
import { failureCode, type HttpResult } from '../../shared/http/result.ts';
import { codeOf, connectTls, isCertificateRefusal, targetOf } from '../http2/connect.ts';
import { openTransport } from '../http2/pooled-transport.ts';
import type {
  NotSent,
  RequestBatch,
  RequestResult,
  ResponseDecision,
  Transport,
  TransportLoad,
  TransportOptions,
} from '../http2/transport.ts';
import { ServiceHealth } from './service-health.ts';

/** Connections per service and thread, for HTTP/2 and for HTTP/1.1. */
const maxConnections = 8;
const maxHttp1Connections = 16;

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
  readonly health: ServiceHealth;
  readonly #options: OriginOptions;
  #client: Promise<Transport | HttpClient | NotSent> | undefined;
  #transport: Transport | undefined;
  /** Sends in progress. An origin in use is not closed. */
  users = 0;

  constructor(options: OriginOptions) {
    this.#options = options;
    this.health = new ServiceHealth(options.clock);
  }

  /** Sends requests. Calls `onResult` exactly once for each. */
  async sendMany(
    { headers, requests, signal }: OriginBatch,
    onResult: OnOriginResult,
  ): Promise<void> {
    this.#client ??= this.#open();
    const client = await this.#client;
    if ('kind' in client) {
      for (const index of requests.keys()) onResult(index, client);
      return;
    }
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
    const client = await this.#client;
    if (client && 'close' in client) await client.close();
  }

  /** Chooses the protocol by one TLS handshake. If the service is unreachable, keeps no client. */
  async #open(): Promise<Transport | HttpClient | NotSent> {
    const { baseUrl, ca, proxy, timing, clock, onEvent } = this.#options;
    const protocol = await protocolOf({ ...this.#options, maxConnections });
    if (protocol === 'http1')
      return createHttpClient({
        baseUrl,
        ca,
        proxy,
        connections: maxHttp1Connections,
        timing: { ...defaultHttpTiming, requestMs: timing.requestMs, drainMs: timing.drainMs },
        clock,
      });
    if (protocol === 'http2') {
      this.#transport = openTransport({ ...this.#options, responseHeader, maxConnections });
      return this.#transport;
    }
    this.#client = undefined;
    onEvent?.({ event: 'connect_failed', detail: protocol.code, connections: 0 });
    const cause = failureCode(protocol.code);
    const failure = { kind: 'not_sent', reason: 'connect_failed', afterMs: null } as const;
    return cause === undefined ? failure : { ...failure, cause };
  }
}

/** Returns a result of HTTP/1.1 in the form of HTTP/2. */
const withHeader = (result: HttpResult): OriginResult =>
  result.kind === 'response' ? { ...result, header: result.headers[responseHeader] } : result;

/**
 * Returns the protocol that the service chooses, or the error code of the connection. Returns
 * HTTP/2 for a refused address or certificate, which the HTTP/2 client reports at once.
 */
async function protocolOf(
  options: TransportOptions,
): Promise<'http1' | 'http2' | { code: string }> {
  try {
    const signal = AbortSignal.timeout(options.timing.connectMs);
    const socket = await connectTls(targetOf(options), signal);
    // Without a listener, a late error of the destroyed socket would be an uncaught error.
    socket.on('error', () => undefined).destroy();
    return 'http2';
  } catch (error) {
    const code = codeOf(error);
    if (noHttp2.test(code)) return 'http1';
    return code === 'ADDRESS_REFUSED' || isCertificateRefusal(code) ? 'http2' : { code };
  }
}
