/**
 * Interface of the HTTP/2 client, which sends many small POSTs to one gateway and returns one
 * result for each.
 *
 * The interface is designed for speed. The part that all requests of a batch share is given once. A
 * request adds only a short path, one header value and an insertion into the body. Results arrive
 * through one callback instead of a promise per request.
 */
import type { Clock } from '../../shared/clock.ts';

/** The part that all requests of a batch share. */
export interface RequestTemplate {
  /** Follows the path of the base URL and precedes the `path` of each request. */
  pathPrefix: string;
  /** Shared headers, with lower-case names and without pseudo headers. */
  headers: Readonly<Record<string, string>>;
  /**
   * Names of `headers` whose values are used in this batch only. HPACK indexes only their names
   * (protocol/apns.md#connections).
   */
  batchHeaders?: readonly string[];
  /** Name of the header whose value differs between requests (`headerValue`). */
  requestHeaderName?: string;
  /** Beginning of this header's value that all requests share. `headerValue` follows it. */
  requestHeaderPrefix?: string;
  /** Body without the insertion. */
  body: Buffer;
  /** Offset in `body` at which `splice` is inserted. Absent if all requests have the same body. */
  spliceAt?: number;
}

/** The part that differs between requests. */
export interface TransportRequest {
  /** The caller checks that it is safe in a path. Empty if all requests have the same path. */
  path: string;
  headerValue?: string;
  splice?: string | Buffer | undefined;
}

/**
 * Reason why a request was not sent or got no response. The set is bounded, because it is a metric
 * label.
 */
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

/** Response of the gateway. `body` contains at most 64 KiB. */
export interface Http2Response {
  kind: 'response';
  status: number;
  body: string;
  /** Value of `TransportOptions.responseHeader`, at most 512 characters. */
  header?: string | undefined;
  retryAfterMs: number | null;
  seconds: number;
}

/** Result of a request that the gateway did not process. It is safe to repeat the request. */
export interface NotSent {
  kind: 'not_sent';
  reason: TransportReason;
  /** Shortest wait before a retry, or null. */
  afterMs: number | null;
  /**
   * Error code of a failed connection, such as `ENOTFOUND` or `CERT_HAS_EXPIRED` (`failureCode`).
   */
  cause?: string;
}

/** Result of one request. Results are never thrown. */
export type RequestResult =
  | Http2Response
  | NotSent
  /** The request was written and got no response. */
  | { kind: 'unknown'; reason: TransportReason; seconds: number };

/**
 * Decision of the caller after a response. `drain` drains the connection that carried the response.
 * `stop` rejects the requests of the batch that are not written yet (`not_sent`, `stopped`).
 */
export type ResponseDecision = 'drain' | 'stop' | undefined;

/**
 * Callback for a result. The object may be reused after the callback returns, so copy the values
 * you need later.
 */
export type OnResult = (index: number, result: RequestResult) => ResponseDecision;

export interface RequestBatch {
  template: RequestTemplate;
  requests: readonly TransportRequest[];
  /**
   * Rejects requests that are not written yet (`not_sent`, `aborted`). Requests in flight complete.
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
  /** Error code or GOAWAY reason. Never contains a token. */
  detail: string;
  connections: number;
  /** For `round_trip`: time from our SETTINGS to their acknowledgement, once per connection. */
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
   * Sends all requests and calls `onResult` exactly once for each, in any order. Resolves after the
   * last result. Rejects only if `onResult` throws or the transport has a bug.
   */
  sendMany(batch: RequestBatch, onResult: OnResult): Promise<void>;
  /** Sends a single request. */
  request(
    template: RequestTemplate,
    request: TransportRequest,
    signal?: AbortSignal,
  ): Promise<RequestResult>;
  /**
   * Opens a connection if none is open. Sends no request. Resolves when it is open or has
   * failed.
   */
  connect(): Promise<void>;
  load(): TransportLoad;
  /** Drains all connections and opens new ones. Called when the provider token has changed. */
  renew(): void;
  /**
   * Rejects waiting requests. Requests in flight may take `drainMs`; then all connections are
   * closed.
   */
  close(): Promise<void>;
}

export interface TransportOptions {
  /** Base URL. Its path is the beginning of the path of each request. */
  baseUrl: string;
  /** PEM certificates that are trusted in addition to the system's certificates. */
  ca?: string;
  /** Client certificate and its key in PEM. */
  certificate?: string;
  privateKey?: string;
  /** URL of an HTTP proxy for CONNECT, with user and password if required. */
  proxy?: string;
  /**
   * Maximum number of streams on a new connection until a response shows that the credentials were
   * accepted. 1 for APNs with tokens (protocol/apns.md#connections). If absent, the peer's limit
   * counts from the start.
   */
  firstStreams?: number;
  /**
   * Lower-case name of a header of the responses that the connector reads. It must not be in the
   * static table of HPACK. If absent, responses have no `header`.
   */
  responseHeader?: string;
  /** Maximum number of connections at the same time. */
  maxConnections: number;
  /**
   * Number of requests after which a connection is replaced, because stream ids end at 2^31. 500
   * million by default.
   */
  streamsPerConnection?: number;
  /** Age at which a connection is replaced, ± 25 %; 8 hours by default. */
  maxAgeMs?: number;
  timing: TransportTiming;
  clock: Clock;
  onEvent?(fact: TransportEvent): void;
}

export interface TransportTiming {
  /** Timeout for TCP, TLS and the peer's first SETTINGS together. */
  connectMs: number;
  /** Timeout from writing a request to its complete response. */
  requestMs: number;
  /** Maximum wait for a free stream. */
  queueMs: number;
  /**
   * Time without a read after which a PING is sent. protocol/apns.md#connections recommends 30 to
   * 60 s.
   */
  pingAfterMs: number;
  /** Timeout for the PING acknowledgement, 10 to 15 s. The connection is destroyed after it. */
  pingMs: number;
  /** Time that requests in flight may take after `close()`. */
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
