import type { Readable } from 'node:stream';
import { dayMs } from '../clock.ts';

/** Reason of a request that was not sent or not answered. A bounded set: it is a metric label. */
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
  /** Lower-case names; the first value of a repeated header. */
  headers: Readonly<Record<string, string>>;
  body: string;
  /** `Retry-After` in milliseconds; null without one. */
  retryAfterMs: number | null;
  seconds: number;
}

/**
 * Result of one request; failures are values too. `cause`: the code of a connection failure
 * (`failureCode`).
 */
export type HttpResult =
  | HttpResponse
  /** The server has not processed it: a retry repeats nothing. */
  | { kind: 'not_sent'; reason: HttpFailureReason; seconds: number; cause?: string }
  /** It was written, but no complete response arrived. */
  | { kind: 'unknown'; reason: HttpFailureReason; seconds: number; cause?: string };

export type HttpFailure = Exclude<HttpResult, HttpResponse>;

/** Response whose body is streamed. */
interface StreamedResponse {
  kind: 'response';
  status: number;
  /** Lower-case names; the first value of a repeated header. */
  headers: Readonly<Record<string, string>>;
  body: Readable;
}

/**
 * Result of a forwarded request; failures are values too. `busy` and `request_too_large`: nothing
 * was sent. `cause`: the code of a connection failure (`failureCodeOf`).
 */
export type ForwardResult =
  | StreamedResponse
  | { kind: 'failed'; reason: HttpFailureReason | 'busy' | 'request_too_large'; cause?: string };

/** Temporary statuses below 500: timed out, locked, too early, too many requests. */
const temporaryRefusals = new Set([408, 423, 425, 429]);

/**
 * Returns whether an HTTP status is temporary: the same request may succeed later. All callers of
 * other servers decide by this function (protocol/gateways.md#temporary-answers).
 */
export const isTemporaryStatus = (status: number): boolean =>
  status >= 500 || temporaryRefusals.has(status);

const days = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const months = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const time = '\\d{2}:\\d{2}:\\d{2}';
/** The three forms of an HTTP date (RFC 9110 5.6.7). The two older ones are still to be read. */
const dates = [
  new RegExp(`^${days}, \\d{2} ${months} \\d{4} ${time} GMT$`),
  new RegExp(`^${days}[a-z]*, \\d{2}-${months}-\\d{2} ${time} GMT$`),
  new RegExp(`^${days} ${months} [ \\d]\\d ${time} \\d{4}$`),
];

/**
 * Parses `Retry-After` in either form of RFC 9110 10.2.3: digits or an HTTP date. Returns
 * milliseconds from now, at most a day, and null for any other text: `Date.parse` reads `1.5` as a
 * day of 2001.
 */
export function retryAfterMs(value: string, epochMs: number): number | null {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, dayMs);
  if (!dates.some((form) => form.test(text))) return null;
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? null : Math.min(Math.max(0, at - epochMs), dayMs);
}

/**
 * Form of the codes of Node, OpenSSL and this service (`PROXY_407`): never matches an address or a
 * secret.
 */
const codePattern = /^[A-Z][A-Z0-9_]{2,59}$/;

/** Codes of other libraries, with their equivalents of Node. */
const equivalents: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  UND_ERR_SOCKET: 'ECONNRESET',
  CONNECT_TIMEOUT: 'ETIMEDOUT',
  ABORT_ERR: 'ETIMEDOUT',
  TIMEOUTERROR: 'ETIMEDOUT',
};

/**
 * Returns the code of a failed connection for the operator: `ENOTFOUND`, `ECONNREFUSED`,
 * `ETIMEDOUT`, `CERT_HAS_EXPIRED`, `ERR_TLS_CERT_ALTNAME_INVALID`. Undefined for any other text.
 */
export function failureCode(text: string): string | undefined {
  // Alerts of OpenSSL contain spaces and slashes: `ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE`,
  // `ERR_SSL_SSLV3_ALERT_BAD CERTIFICATE`.
  const code = (text.startsWith('ERR_') ? text.replace(/[ /]/g, '_') : text).toUpperCase();
  const known = equivalents[code] ?? code;
  return codePattern.test(known) ? known : undefined;
}

/** Returns the code of an error or of its cause. */
export function failureCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const isSpecific = code !== 'Error' && code !== 'TypeError' && code !== 'AggregateError';
  if (isSpecific) return failureCode(code);
  return error.cause === undefined ? undefined : failureCodeOf(error.cause);
}

/**
 * Error of another server, the `cause` of a refusal: the log names the host and what happened,
 * which callers are not told. It holds no path, query or body.
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

/** Returns the error of a request that got no usable answer. */
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
