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

/** Result of one request; failures are values too. `cause`: the code of a connection failure (`failureCode`). */
export type HttpResult =
  | HttpResponse
  /** The server has not processed it: a retry repeats nothing. */
  | { kind: 'not_sent'; reason: HttpFailureReason; seconds: number; cause?: string }
  /** It was written, but no complete response arrived. */
  | { kind: 'unknown'; reason: HttpFailureReason; seconds: number; cause?: string };

export type HttpFailure = Exclude<HttpResult, HttpResponse>;

/** Temporary statuses below 500: timed out, locked, too early, too many requests. */
const temporaryRefusals = new Set([408, 423, 425, 429]);

/**
 * Returns whether an HTTP status is temporary: the same request may succeed later. All callers of other servers decide by
 * this function (protocol/gateways.md#temporary-answers).
 */
export const isTemporaryStatus = (status: number): boolean => status >= 500 || temporaryRefusals.has(status);

/** Parses `Retry-After` in either form of RFC 9110 10.2.3 to milliseconds from now; null if it is invalid. */
export function retryAfterMs(value: string, epochMs: number): number | null {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - epochMs);
}
