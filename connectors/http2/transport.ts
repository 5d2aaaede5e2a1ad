/**
 * Interface of the HTTP/2 client: many small POSTs to one gateway, with one result each.
 *
 * Its shape serves speed: the part that all requests of a batch share is given once, the rest is a
 * short path, one header value and a splice into the body, and results come through one callback
 * instead of a promise per request.
 */
import type { Clock } from '../../shared/clock.ts';

/** Part that all requests of a batch share. */
export interface RequestTemplate {
  /** Path between that of the base URL and the `path` of each request. */
  pathPrefix: string;
  /** Shared headers, lower-case names, no pseudo headers. */
  headers: Readonly<Record<string, string>>;
  /**
   * Names among `headers` whose values serve this batch only, so HPACK indexes the name alone
   * (protocol/apns.md#connections).
   */
  batchHeaders?: readonly string[];
  /** Name of the header whose value differs by request (`headerValue`). */
  requestHeaderName?: string;
  /** Beginning of its value that all requests share; `headerValue` follows it. */
  requestHeaderPrefix?: string;
  /** Body, without the splice. */
  body: Buffer;
  /** Offset in `body` at which `splice` is inserted; absent: all requests have the same body. */
  spliceAt?: number;
}

/** Part that differs by request. */
export interface TransportRequest {
  /** The caller checks that it is safe in a path. Empty where all requests have the same path. */
  path: string;
  headerValue?: string;
  splice?: string;
}

/** Why a request was not sent, or got no response. A bounded set: it becomes a metric label. */
export type TransportReason =
  | 'aborted'
  | 'stopped'
  | 'closed'
  | 'address_refused'
  | 'connect_failed'
  | 'certificate_refused'
  | 'queue_timeout'
  | 'refused_stream'
  | 'goaway'
  | 'timeout'
  | 'stream_reset'
  | 'connection_lost';

/** Response of the gateway; `body` up to 64 KiB. */
export interface Http2Response {
  kind: 'response';
  status: number;
  body: string;
  retryAfterMs: number | null;
  seconds: number;
}

/** Result of a request that the gateway did not process: it is safe to send it again. */
export interface NotSent {
  kind: 'not_sent';
  reason: TransportReason;
  /** Earliest time for a retry. */
  afterMs: number | null;
  /** Cause of a failed connection: `ENOTFOUND`, `CERT_HAS_EXPIRED` (`failureCode`). */
  cause?: string;
}

/** Result of one request. Never thrown. */
export type RequestResult =
  | Http2Response
  | NotSent
  /** It was written and got no response. */
  | { kind: 'unknown'; reason: TransportReason; seconds: number };

/**
 * Decision of the caller on a response: `drain` drains the connection that carried it, `stop`
 * rejects the requests of the batch that are not written yet (`not_sent`, `stopped`).
 */
export type ResponseDecision = 'drain' | 'stop' | undefined;

/** Callback for one result. The object is reused after the callback returns: copy what you keep. */
export type OnResult = (index: number, result: RequestResult) => ResponseDecision;

export interface RequestBatch {
  template: RequestTemplate;
  requests: readonly TransportRequest[];
  /**
   * Rejects requests that are not written yet (`not_sent`, `aborted`); those in flight complete.
   */
  signal?: AbortSignal;
}

/** Event of a connection, for metrics and logs only. */
export interface TransportEvent {
  event:
    | 'connected'
    | 'connect_failed'
    | 'lost'
    | 'closed'
    | 'goaway'
    | 'refused'
    | 'reset'
    | 'timeout'
    | 'ping_timeout'
    | 'round_trip';
  /** Error code or GOAWAY reason; never a token. */
  detail: string;
  connections: number;
  /** For `round_trip`: from our SETTINGS to its acknowledgement, once per connection. */
  seconds?: number;
}

/** Current load of a transport. */
export interface TransportLoad {
  connections: number;
  /** Requests in flight. */
  streams: number;
}

/** Long-lived connection pool to one gateway with one set of credentials. */
export interface Transport {
  /**
   * Sends every request and calls `onResult` exactly once for each, in any order. Resolves after
   * the last; rejects only when `onResult` throws or on a defect of the transport.
   */
  sendMany(batch: RequestBatch, onResult: OnResult): Promise<void>;
  /** Sends a single request. */
  request(
    template: RequestTemplate,
    request: TransportRequest,
    signal?: AbortSignal,
  ): Promise<RequestResult>;
  /**
   * Opens a first connection, unless there is one; resolves when it is open or failed. Sends no
   * request.
   */
  connect(): Promise<void>;
  load(): TransportLoad;
  /** Drains all connections and opens new ones: after a change of the provider token. */
  renew(): void;
  /** Rejects waiting requests, gives those in flight `drainMs` and closes every connection. */
  close(): Promise<void>;
}

export interface TransportOptions {
  /** Base URL; its path is a prefix of every request's path. */
  baseUrl: string;
  /** PEM of authorities trusted in addition to the system's. */
  ca?: string;
  /** Client certificate and its key, PEM. */
  certificate?: string;
  privateKey?: string;
  /** URL of an HTTP proxy for CONNECT, with user and password where required. */
  proxy?: string;
  /**
   * Streams on a new connection until a response shows accepted credentials. APNs with tokens: 1
   * (protocol/apns.md#connections). Absent: the peer's limit from the start.
   */
  firstStreams?: number;
  /** Most connections at the same time. */
  maxConnections: number;
  /** Requests after which a connection is replaced: stream ids end at 2^31. Default 500 million. */
  streamsPerConnection?: number;
  /** Age at which a connection is replaced, ± 25 %; default 8 hours. */
  maxAgeMs?: number;
  timing: TransportTiming;
  clock: Clock;
  onEvent?(fact: TransportEvent): void;
}

export interface TransportTiming {
  /** TCP, TLS and the peer's first SETTINGS together. */
  connectMs: number;
  /** From writing a request to its complete response. */
  requestMs: number;
  /** Longest wait for a free stream. */
  queueMs: number;
  /** Silence after which a connection is pinged; protocol/apns.md#connections asks for 30–60 s. */
  pingAfterMs: number;
  /** Time for the answer to the ping, then the connection is destroyed; 10–15 s. */
  pingMs: number;
  /** Time for requests in flight at `close()`. */
  drainMs: number;
}

export const defaultTiming: TransportTiming = {
  connectMs: 10_000,
  requestMs: 15_000,
  queueMs: 30_000,
  pingAfterMs: 30_000,
  pingMs: 10_000,
  drainMs: 5_000,
};

/** Far below 2^30, the number of stream ids of a client (protocol/apns.md#connections). */
export const defaultStreamsPerConnection = 500_000_000;
