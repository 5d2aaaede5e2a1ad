/**
 * Response tables: one rule per response code of a gateway. Each vendor's `responses.ts` contains
 * such a table. A code that is not in the table never marks a token as dead.
 */
import { longerWait } from '../../shared/backoff.ts';
import {
  type Hint,
  httpReason,
  reason as reasonOf,
  reasonText,
} from '../../shared/domain/reasons.ts';
import { type HttpFailure, isTemporaryStatus } from '../../shared/http/result.ts';
import type { AttemptResult, SendRequest } from '../contract/connector.ts';

/** How a connector reacts to a response. */
export type Reaction =
  | 'sent'
  /**
   * The gateway says that this token is invalid. Applies to a whole request only if the request has
   * one recipient.
   */
  | 'dead_token'
  /** These recipients are refused permanently. Others may succeed. */
  | 'fail'
  /**
   * Like `fail`, but the recipient counts as dropped: the gateway does not support such a message,
   * or folds it.
   */
  | 'drop'
  /**
   * The gateway would refuse all recipients of this push. The remaining recipients are not sent to.
   */
  | 'fail_push'
  | 'retry'
  /**
   * The rate limit is exceeded. These recipients and the remaining recipients of this send wait.
   */
  | 'throttle'
  /** Repeat once with a new access token. If that fails, the result is `profile_error`. */
  | 'renew_token'
  /**
   * Repeat once with a new access token. If that fails, the result is `retry`, because the response
   * may come from a proxy.
   */
  | 'try_new_token'
  /** The credentials or the configuration are wrong. */
  | 'profile_error'
  /**
   * The day's quota of this message class is used up. No dispatcher sends more messages of the
   * class today.
   */
  | 'cap'
  /**
   * The request contains an invalid token, but the response does not name it. The request is halved
   * until one recipient is left. That recipient gets `singleTarget`.
   */
  | 'ambiguous';

export interface ResponseRule {
  /** The gateway's code, as text. */
  code: string;
  /** Stored reason, used as a metric label and in the push record. Comes from a bounded set. */
  reason: string;
  reaction: Reaction;
  /**
   * For `dead_token`: true if the gateway's documentation says that the token has ended. Otherwise
   * the token is only called invalid, and a wrong environment or project may be the cause
   * (protocol/delivery.md#promise-7).
   */
  isProof?: true;
  /** For `dead_token`: keeps the device if it was saved within this time. */
  keepForMs?: number;
  /**
   * True if the refusal concerns the state of one device only. Many equal refusals then say nothing
   * about other devices (`EqualRefusals`).
   */
  isOfDevice?: true;
  /** For `renew_token`: the rule if a new access token does not help, instead of `profile_error`. */
  withNewToken?: ResponseRule;
  /** Hint to the operator, for `profile_error` and `renew_token`. */
  hint?: Hint;
  /** Minimum wait for `retry` and `throttle`. The gateway cannot lower it. */
  afterMs?: number;
  /** Wait for `retry` and `throttle` if the gateway asks for no wait. */
  defaultWaitMs?: number;
  /** Reaction to `ambiguous` if the request has one recipient. */
  singleTarget?: 'dead_token' | 'fail';
}

// Shorthands for frequent kinds of rules.
export const rateLimited = (code: string, reason: string): ResponseRule => ({
  code,
  reason,
  reaction: 'throttle',
});
export const invalidMessage = (code: string, reason: string): ResponseRule => ({
  code,
  reason,
  reaction: 'fail_push',
});
export const configError = (code: string, reason: string, hint: Hint): ResponseRule => ({
  code,
  reason,
  reaction: 'profile_error',
  hint,
});

/** Returns the rule of a code. */
export type ResponseTable = (code: string | number) => ResponseRule;

/** Builds a response table. A code without a row gets the rule `unknown`. */
export function responseTable(
  rows: readonly ResponseRule[],
  unknown: Omit<ResponseRule, 'code'> = unknownCode,
): ResponseTable {
  const rulesByCode = new Map(rows.map((rule) => [rule.code, rule]));
  return (code) => rulesByCode.get(String(code)) ?? { ...unknown, code: String(code) };
}

const unknownCode: Omit<ResponseRule, 'code'> = { reason: 'unknown_code', reaction: 'fail' };

/**
 * Returns the rule for an HTTP status. Used if the body comes from the gateway but its code is in
 * no table. Never marks a token as dead.
 */
export function ruleForStatus(status: number): ResponseRule {
  const code = `http_${status}`;
  const temporary = temporaryRule(status);
  if (temporary) return temporary;
  const reason = httpReason(status);
  if (status === 401) return { code, reason, reaction: 'renew_token', hint: refusalHint(status) };
  if (status === 403 || status === 404)
    return { code, reason, reaction: 'profile_error', hint: refusalHint(status) };
  return { code, reason, reaction: 'fail' };
}

/**
 * Returns the rule for a response that does not come from the gateway, such as the page of a proxy,
 * a portal or a firewall. Such a page says nothing about the message, the device or the
 * credentials. So only this attempt fails.
 */
export function ruleForPage(status: number): ResponseRule {
  const code = `http_${status}`;
  // An expired access token is the only cause of a 401 that a repeat may fix.
  const reaction = status === 401 ? 'try_new_token' : 'retry';
  return temporaryRule(status) ?? { code, reason: httpReason(status), reaction };
}

/** Returns the rule of a temporary status; undefined for another status. */
function temporaryRule(status: number): ResponseRule | undefined {
  if (!isTemporaryStatus(status)) return undefined;
  const code = `http_${status}`;
  return {
    code,
    reason: httpReason(status),
    reaction: status === 429 || status === 503 ? 'throttle' : 'retry',
  };
}

/** Reactions that already delay further sends. A temporary status does not replace them. */
export const delayingReactions: ReadonlySet<Reaction> = new Set<Reaction>([
  'retry',
  'throttle',
  'cap',
]);

/**
 * Combines the rule of a code with the HTTP status. A temporary status wins, unless the code also
 * says to wait. A status of 300 or above is never a success.
 */
export function ruleForReply(status: number, rule: ResponseRule): ResponseRule {
  if (isTemporaryStatus(status))
    return delayingReactions.has(rule.reaction) ? rule : ruleForPage(status);
  return status >= 300 && rule.reaction === 'sent' ? ruleForPage(status) : rule;
}

const refusalHint = (status: number): Hint => ({ code: 'statusRefused', params: { status } });

const answeredHint = ({ reason, code }: ResponseRule): Hint => ({
  code: 'answered',
  params: { reason: reasonText(reason), code },
});

/** Returns the final result of a rule. `status` is the HTTP status. */
export function attemptResult(
  rule: ResponseRule,
  status: number,
  details: { retryAfterMs?: number | null; isSingle?: boolean } = {},
): AttemptResult {
  const { reaction, reason, hint = answeredHint(rule) } = rule;
  switch (reaction) {
    case 'sent':
      return sent;
    case 'dead_token':
      return invalidToken(rule, status);
    case 'drop':
      return { kind: 'rejected', outcome: 'dropped', status, reason };
    case 'fail':
    case 'fail_push':
      return failed(status, withCode(rule));
    case 'retry':
    case 'throttle':
    case 'try_new_token':
      return retry(
        status,
        reason,
        longerWait(rule.afterMs, details.retryAfterMs || rule.defaultWaitMs),
      );
    case 'cap':
      return capped(status, reason);
    case 'renew_token':
    case 'profile_error':
      return profileError(status, reason, hint);
    case 'ambiguous':
      return details.isSingle && rule.singleTarget === 'dead_token'
        ? invalidToken(rule, status)
        : failed(status, reason);
  }
}

const invalidToken = (
  { reason, isProof, keepForMs }: ResponseRule,
  status: number,
): AttemptResult => ({
  kind: 'invalid_token',
  status,
  reason,
  ...(isProof ? { isProof } : {}),
  ...(keepForMs === undefined ? {} : { keepForMs }),
});

/**
 * Adds the gateway's code to the stored reason `unknown_code`, so that the push record shows the
 * code.
 */
function withCode({ reason, code }: ResponseRule): string {
  if (reason !== 'unknown_code') return reason;
  return reasonOf('unknown_code', { vendorCode: code.replace(/[^\w.-]/g, '').slice(0, 24) });
}

type Retry = Extract<AttemptResult, { kind: 'retry' }>;
type ProfileError = Extract<AttemptResult, { kind: 'profile_error' }>;

/** Reports the same result for all recipients. */
export function reportAll(
  { recipients, report }: Pick<SendRequest, 'recipients' | 'report'>,
  attempt: AttemptResult,
): void {
  for (const { index } of recipients) report(index, attempt);
}

export const sent: AttemptResult = { kind: 'sent' };

export const expired: AttemptResult = {
  kind: 'rejected',
  outcome: 'expired',
  status: 0,
  reason: 'expired',
};

export const failed = (status: number, reason: string): AttemptResult => ({
  kind: 'rejected',
  outcome: 'failed',
  status,
  reason,
});

/**
 * Result of a device token that no request can contain. The device is kept, because no gateway
 * called the token invalid.
 */
export const malformedToken: AttemptResult = failed(0, reasonOf('registrationMalformed'));

/** Returns the result of a message that cannot be rendered for the gateway. */
export const unrenderable = (rendering: {
  error: string;
  outcome?: 'failed' | 'dropped';
}): AttemptResult => ({
  kind: 'rejected',
  outcome: rendering.outcome ?? 'failed',
  status: 0,
  reason: rendering.error,
});

/** Returns the result if a quota of the gateway is used up. */
export const capped = (status: number, reason: string): AttemptResult => ({
  kind: 'rejected',
  outcome: 'capped',
  status,
  reason,
});

/**
 * Returns the result of an attempt that is repeated later. `minWaitMs` is the minimum wait before
 * the next attempt, or null.
 */
export const retry = (status: number, reason: string, minWaitMs: number | null = null): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs: longerWait(minWaitMs, null),
});

/**
 * Returns the result of an attempt that is repeated without a wait. Used if this process or one of
 * several connections caused the failure.
 */
export const retryAtOnce = (status: number, reason: string): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs: 0,
});

/** Result of a recipient that was not sent to because the process stops or the push was stopped. */
export const stopping: AttemptResult = retryAtOnce(0, 'stopping');

/** Returns the result of a request that the gateway certainly did not process. */
export const notProcessed = (reason: string, minWaitMs: number | null = null): Retry =>
  reason === 'aborted' || reason === 'closed'
    ? retryAtOnce(0, reason)
    : retry(0, reason, minWaitMs);

export const profileError = (status: number, reason: string, hint: Hint): ProfileError => ({
  kind: 'profile_error',
  status,
  reason,
  hint,
});

/**
 * Returns the result of a request without a response.
 *
 * - An untrusted certificate or a private address is a configuration error.
 * - A request that the gateway certainly did not process is retried.
 * - A request that was written may have arrived; its result is `unknown`.
 */
export function unanswered(
  { kind, reason, cause }: HttpFailure,
  isRepeatHidden: boolean,
): AttemptResult {
  if (kind === 'unknown') return withCause({ kind: 'unknown', reason, isRepeatHidden }, cause);
  if (reason === 'bad_request') return failed(0, reason);
  return notSent({ reason, cause }, untrustedHint(cause));
}

/**
 * Returns the result of a request that the gateway certainly did not process. `certificateHint` is
 * the hint for `certificate_refused`: over HTTP/2 the gateway refuses our certificate, and in other
 * clients we refuse the gateway's certificate.
 */
export function notSent(
  {
    reason,
    afterMs,
    cause,
  }: { reason: string; afterMs?: number | null; cause?: string | undefined },
  certificateHint: Hint,
): AttemptResult {
  if (reason === 'certificate_refused')
    return withCause(profileError(0, reason, certificateHint), cause);
  if (reason === 'address_refused')
    return withCause(profileError(0, reason, 'privateAddress'), cause);
  return withCause(notProcessed(reason, afterMs), cause);
}

/** Hint if we refuse the gateway's certificate. */
export const untrustedHint = (cause: string | undefined): Hint =>
  cause === undefined ? 'untrusted' : { code: 'untrusted', params: { cause } };

/** Adds the error code of the connection, if there is one. */
function withCause(
  attempt: Retry | ProfileError | Extract<AttemptResult, { kind: 'unknown' }>,
  cause: string | undefined,
): AttemptResult {
  return cause === undefined ? attempt : { ...attempt, cause };
}
