import type { Readable } from 'node:stream';
import { dayMs } from '../clock.ts';

/**
 * Reason why a request was not sent or got no response. The set is bounded, because it is a metric
 * label.
 */
export type HttpFailureReason =
  | 'aborted'
  | 'closed'
  | 'address_refused'
  | 'connect_failed'
  | 'connect_timeout'
  | 'certificate_refused'
  | 'queue_timeout'
  | 'timeout'
  | 'connection_lost'
  | 'reply_too_large'
  | 'bad_request';

export interface HttpResponse {
  kind: 'response';
  status: number;
  /** Headers with lower-case names. For a repeated header, the first value. */
  headers: Readonly<Record<string, string>>;
  body: string;
  /** `Retry-After` in milliseconds; null if absent. */
  retryAfterMs: number | null;
  seconds: number;
}

/**
 * Result of one request. Failures are returned too, not thrown. `cause` is the error code of a
 * failed connection (`failureCode`).
 */
export type HttpResult =
  | HttpResponse
  /** The server did not process the request, so it is safe to retry. */
  | { kind: 'not_sent'; reason: HttpFailureReason; seconds: number; cause?: string }
  /** The request was written, but no complete response arrived. */
  | { kind: 'unknown'; reason: HttpFailureReason; seconds: number; cause?: string };

export type HttpFailure = Exclude<HttpResult, HttpResponse>;

/** A response whose body is streamed. */
interface StreamedResponse {
  kind: 'response';
  status: number;
  /** Headers with lower-case names. For a repeated header, the first value. */
  headers: Readonly<Record<string, string>>;
  body: Readable;
}

/**
 * Result of a forwarded request. Failures are returned too, not thrown. After `busy` and
 * `request_too_large` nothing was sent. `cause` is the error code of a failed connection
 * (`failureCodeOf`).
 */
export type ForwardResult =
  | StreamedResponse
  | { kind: 'failed'; reason: HttpFailureReason | 'busy' | 'request_too_large'; cause?: string };

/** Temporary statuses below 500: request timeout, locked, too early, too many requests. */
const temporaryRefusals = new Set([408, 423, 425, 429]);

/**
 * True if an HTTP status is temporary: the same request may succeed later. All clients of other
 * servers use this function (protocol/gateways.md#temporary-answers).
 */
export const isTemporaryStatus = (status: number): boolean =>
  status >= 500 || temporaryRefusals.has(status);

const days = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const months = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const time = '\\d{2}:\\d{2}:\\d{2}';
/**
 * The three forms of an HTTP date (RFC 9110 5.6.7). Recipients must accept the two obsolete forms.
 */
const dates = [
  new RegExp(`^${days}, \\d{2} ${months} \\d{4} ${time} GMT$`),
  new RegExp(`^${days}[a-z]*, \\d{2}-${months}-\\d{2} ${time} GMT$`),
  new RegExp(`^${days} ${months} [ \\d]\\d ${time} \\d{4}$`),
];

/**
 * Parses `Retry-After` as digits or HTTP date (RFC 9110 10.2.3). Returns milliseconds from now, at
 * most a day. Returns null for other texts, because `Date.parse` would read `1.5` as a day in 2001.
 */
export function retryAfterMs(value: string, epochMs: number): number | null {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, dayMs);
  if (!dates.some((form) => form.test(text))) return null;
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? null : Math.min(Math.max(0, at - epochMs), dayMs);
}

/**
 * Pattern of the error codes of Node.js, OpenSSL and this service (`PROXY_407`). It never matches
 * an address or a secret.
 */
const codePattern = /^[A-Z][A-Z0-9_]{2,59}$/;

/** Error codes of other libraries, with the equivalent codes of Node.js. */
const equivalents: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  UND_ERR_SOCKET: 'ECONNRESET',
  CONNECT_TIMEOUT: 'ETIMEDOUT',
  ABORT_ERR: 'ETIMEDOUT',
  TIMEOUTERROR: 'ETIMEDOUT',
};

/**
 * Returns the error code of a failed connection, for the operator: `ENOTFOUND`, `ECONNREFUSED`,
 * `ETIMEDOUT`, `CERT_HAS_EXPIRED`, `ERR_TLS_CERT_ALTNAME_INVALID`. Returns undefined for other
 * texts.
 */
export function failureCode(text: string): string | undefined {
  // Alerts of OpenSSL contain spaces and slashes: `ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE`,
  // `ERR_SSL_SSLV3_ALERT_BAD CERTIFICATE`.
  const code = (text.startsWith('ERR_') ? text.replace(/[ /]/g, '_') : text).toUpperCase();
  const known = equivalents[code] ?? code;
  return codePattern.test(known) ? known : undefined;
}

/** Returns the error code of an error or of its cause. */
export function failureCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const isSpecific = code !== 'Error' && code !== 'TypeError' && code !== 'AggregateError';
  if (isSpecific) return failureCode(code);
  return error.cause === undefined ? undefined : failureCodeOf(error.cause);
}

/**
 * Error of another server, used as `cause` of a refusal. The log then contains the host and what
 * happened, but callers do not see it. Contains no path, query or body.
 */
export class PeerError extends Error {
  override name = 'PeerError';

  /**
   * @param url address of the server
   * @param what what happened, such as `connect_failed (ECONNREFUSED)` or `status 502`
   */
  constructor(url: string, what: string) {
    super(`${URL.parse(url)?.host ?? 'unknown host'}: ${what}`);
  }
}

/** Returns the error for a request that got no usable response. */
export function peerErrorOf(
  url: string,
  result: HttpResult | { kind: 'failed'; reason: string; cause?: string | undefined },
): PeerError {
  if (result.kind === 'response')
    return new PeerError(url, `unusable answer with status ${result.status}`);
  return new PeerError(
    url,
    `${result.reason}${result.cause === undefined ? '' : ` (${result.cause})`}`,
  );
}
