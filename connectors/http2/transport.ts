/**
 * What a connector needs of HTTP/2: many small POSTs to one gateway, one answer each, told as data.
 *
 * Two transports stand behind it: our own framing (`native/`) and `http2-wrapper/`. The shape is
 * the one a fast client wants (http2 notes, "What made it fast"): what all requests of a push share is
 * given once, what differs is a short path, one header value and a splice into the body, and replies come
 * through one callback instead of a promise per request.
 */
import type { Clock } from '../../shared/clock.ts';

/** What every request of one batch shares. */
export interface RequestTemplate {
  /** Comes before each request's own `path`; follows the path of the base URL. */
  pathPrefix: string;
  /** Shared headers, lower-case names, no pseudo headers. */
  headers: Readonly<Record<string, string>>;
  /** Names among `headers` whose values serve this push only; absent: they last (HPACK, protocol/apns.md#connections). */
  batchHeaders?: readonly string[];
  /** Name of the header whose value is each request's own (`headerValue`). */
  requestHeaderName?: string;
  /** The body, or the body around the splice. */
  body: Buffer;
  /** Byte at which each request's `splice` goes into `body`; absent: the body is the same for all. */
  spliceAt?: number;
}

/** What differs from one request to the next. */
export interface TransportRequest {
  /** Must be safe in a path: the caller checks it. Empty where all requests have the same path. */
  path: string;
  headerValue?: string;
  splice?: string;
}

/** Why a request did not leave, or left without an answer. A bounded set: it becomes a metric label. */
export type TransportReason =
  | 'aborted'
  | 'stopped'
  | 'closed'
  | 'connect_failed'
  | 'certificate_refused'
  | 'queue_timeout'
  | 'refused_stream'
  | 'goaway'
  | 'timeout'
  | 'stream_reset'
  | 'connection_lost';

/** An answer of the gateway; `body` up to 64 KiB. */
export interface Http2Response {
  kind: 'response';
  status: number;
  body: string;
  retryAfterMs: number | null;
  seconds: number;
}

/** The gateway did not process it: sending it again repeats nothing. */
export interface NotSent {
  kind: 'not_sent';
  reason: TransportReason;
  /** Not before. */
  afterMs: number | null;
  /** Why there is no connection: `ENOTFOUND`, `CERT_HAS_EXPIRED` (`failureCode`). */
  cause?: string;
}

/** How one request ended. Never thrown. */
export type RequestResult =
  | Http2Response
  | NotSent
  /** It was written and no answer came. */
  | { kind: 'unknown'; reason: TransportReason; seconds: number };

/**
 * What the caller makes of a reply: `drain` lets the connection that carried it take no further requests,
 * `stop` hands back the rest of the batch that has not left (`not_sent`, `stopped`).
 */
export type ResponseDecision = 'drain' | 'stop' | undefined;

/** `reply` is yours until you return: the same object may tell the next answer. Copy what you keep of it. */
export type OnResult = (index: number, reply: RequestResult) => ResponseDecision;

export interface RequestBatch {
  template: RequestTemplate;
  requests: readonly TransportRequest[];
  /** Hands back what has not left (`not_sent`, `aborted`); what is in flight is finished. */
  signal?: AbortSignal;
}

/** Things that happen to connections, for metrics and logs. Measuring never decides. */
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
  /** Of `round_trip`: from our SETTINGS to their acknowledgement, once per connection. */
  seconds?: number;
}

/** What a transport holds at the moment. */
export interface TransportLoad {
  connections: number;
  /** Requests on their way. */
  streams: number;
}

/** A long-lived pool of connections to one gateway with one credential. */
export interface Transport {
  /**
   * Sends every request and calls `onReply` exactly once for each, in any order. Resolves after the last;
   * rejects only when `onReply` throws or something of ours is broken.
   */
  sendMany(batch: RequestBatch, onReply: OnResult): Promise<void>;
  /** Sends one request by itself. */
  request(template: RequestTemplate, request: TransportRequest, signal?: AbortSignal): Promise<RequestResult>;
  load(): TransportLoad;
  /** Lets every connection of now finish and opens new ones: after a change of provider token. */
  renew(): void;
  /** Hands back what waits, gives what is in flight `drainMs`, closes every connection. */
  close(): Promise<void>;
}

export interface TransportOptions {
  /** Base URL; its path, if any, comes before every request's path. */
  baseUrl: string;
  /** PEM trusted beside the system's. */
  ca?: string;
  /** Client certificate and its key, PEM. */
  certificate?: string;
  privateKey?: string;
  /** URL of an HTTP proxy to go through by CONNECT, with user and password where it wants them. */
  proxy?: string;
  /**
   * Streams on a new connection until its first answer that accepts our credentials. APNs with tokens: 1
   * (protocol/apns.md#connections). Absent: the peer's limit from the start.
   */
  firstStreams?: number;
  /** Most connections at a time. */
  maxConnections: number;
  /** Requests after which a connection is replaced: numbers of streams end at 2^31. Default 500 million. */
  streamsPerConnection?: number;
  /** About the age at which a connection is replaced by another; default 8 hours. */
  maxAgeMs?: number;
  timing: TransportTiming;
  clock: Clock;
  onEvent?(fact: TransportEvent): void;
}

export interface TransportTiming {
  /** TCP, TLS and the peer's first SETTINGS together. */
  connectMs: number;
  /** From writing a request to its whole answer. */
  requestMs: number;
  /** Longest wait for a free stream. */
  queueMs: number;
  /** A connection without a read for this long is pinged; protocol/apns.md#connections asks for 30–60 s. */
  pingAfterMs: number;
  /** … and destroyed when the ping is not answered; 10–15 s. */
  pingMs: number;
  /** What requests in flight get at `close()`. */
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

/** Far below 2^30, where the numbers of our streams end (protocol/apns.md#connections). */
export const defaultStreamsPerConnection = 500_000_000;
