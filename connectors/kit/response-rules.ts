/**
 * Response tables: one rule per code of a gateway. A vendor's `errors.ts` is such a table with the
 * source of each rule; a code that is not in it never deletes a token.
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

/** Reaction to a response. */
export type Reaction =
  | 'sent'
  /** The gateway says that this token is invalid. For a whole request only if it has one target. */
  | 'dead_token'
  /** These recipients are refused for good; others may succeed. */
  | 'fail'
  /** As `fail`: the gateway has no such message, or folds it. */
  | 'drop'
  /** All recipients of this push would be refused alike: the rest is not sent. */
  | 'fail_push'
  | 'retry'
  /** Rate limit: these recipients and the rest of this send wait. */
  | 'throttle'
  /** One new access token and one repeat; then `profile_error`. */
  | 'renew_token'
  /** One new access token and one repeat; then `retry`: the answer may come from a proxy. */
  | 'try_new_token'
  /** Credentials or configuration are wrong. */
  | 'profile_error'
  /** The day's quota of this message class is used up: no dispatcher sends more of it today. */
  | 'cap'
  /**
   * An unnamed token of the request is bad: the request is halved until one is left, which gets
   * `singleTarget`.
   */
  | 'ambiguous';

export interface ResponseRule {
  /** The gateway's code, as text. */
  code: string;
  /**
   * Stored reason from a bounded set: its text is a metric label, and a reason on the push record.
   */
  reason: string;
  reaction: Reaction;
  /**
   * `dead_token`: the answer proves the end of the token, by the gateway's own words. Any other
   * only calls the token invalid, which a wrong environment or project also causes
   * (protocol/delivery.md#promise-7).
   */
  isProof?: true;
  /** `dead_token`: an installation that was saved within this time is kept. */
  keepForMs?: number;
  /**
   * The refusal concerns the state of this one device: equal ones say nothing about other devices
   * (`EqualRefusals`).
   */
  isOfDevice?: true;
  /** Hint to the operator (`profile_error`, `renew_token`). */
  hint?: Hint;
  /** `retry` and `throttle`: our own floor of the wait, which the gateway cannot lower. */
  afterMs?: number;
  /** `retry` and `throttle`: the wait where the gateway asks for none. */
  unaskedMs?: number;
  /** `ambiguous`: reaction for a request with one target. */
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

/** Builds a response table; codes that are not in it get `unknown`. */
export function responseTable(
  rows: readonly ResponseRule[],
  unknown: Omit<ResponseRule, 'code'> = unknownCode,
): ResponseTable {
  const rulesByCode = new Map(rows.map((rule) => [rule.code, rule]));
  return (code) => rulesByCode.get(String(code)) ?? { ...unknown, code: String(code) };
}

const unknownCode: Omit<ResponseRule, 'code'> = { reason: 'unknown_code', reaction: 'fail' };

/**
 * Returns the rule of a response with the gateway's own body and a code that no table has, by its
 * HTTP status. Never deletes a token.
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
 * Returns the rule of a response without the gateway's own body: the page of a proxy, a portal or a
 * firewall. Such a page says nothing about the message, the device or the credentials, so that only
 * this try fails.
 */
export function ruleForPage(status: number): ResponseRule {
  const code = `http_${status}`;
  // An expired access token is the only cause of a 401 that another try may remove.
  const reaction = status === 401 ? 'try_new_token' : 'retry';
  return temporaryRule(status) ?? { code, reason: httpReason(status), reaction };
}

/** Returns the rule of a temporary status; undefined for any other. */
function temporaryRule(status: number): ResponseRule | undefined {
  if (!isTemporaryStatus(status)) return undefined;
  const code = `http_${status}`;
  return {
    code,
    reason: httpReason(status),
    reaction: status === 429 || status === 503 ? 'throttle' : 'retry',
  };
}

/** Reactions that agree with a temporary status. */
export const waits: ReadonlySet<Reaction> = new Set<Reaction>(['retry', 'throttle', 'cap']);

/**
 * Returns the rule of a response from the rule of its code. A temporary status decides, unless the
 * code says that the message waits; a status from 300 on is no success.
 */
export function ruleForReply(status: number, rule: ResponseRule): ResponseRule {
  if (isTemporaryStatus(status)) return waits.has(rule.reaction) ? rule : ruleForPage(status);
  return status >= 300 && rule.reaction === 'sent' ? ruleForPage(status) : rule;
}

const refusalHint = (status: number): Hint => ({ code: 'statusRefused', params: { status } });

const answered = ({ reason, code }: ResponseRule): Hint => ({
  code: 'answered',
  params: { reason: reasonText(reason), code },
});

/** Returns the final result of a rule. `status`: the HTTP status. */
export function attemptResult(
  rule: ResponseRule,
  status: number,
  details: { retryAfterMs?: number | null; isSingle?: boolean } = {},
): AttemptResult {
  const { reaction, reason, hint = answered(rule) } = rule;
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
        longerWait(rule.afterMs, details.retryAfterMs || rule.unaskedMs),
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

/** Shows an unknown code on the record. */
function withCode({ reason, code }: ResponseRule): string {
  if (reason !== 'unknown_code') return reason;
  return reasonOf('unknown_code', { vendorCode: code.replace(/[^\w.-]/g, '').slice(0, 24) });
}

type Retry = Extract<AttemptResult, { kind: 'retry' }>;
type ProfileError = Extract<AttemptResult, { kind: 'profile_error' }>;

/** Reports the same result for all recipients of a request. */
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

/** Result of a message that cannot be rendered for the gateway. */
export const unrenderable = (rendering: {
  error: string;
  outcome?: 'failed' | 'dropped';
}): AttemptResult => ({
  kind: 'rejected',
  outcome: rendering.outcome ?? 'failed',
  status: 0,
  reason: rendering.error,
});

/** A quota of the gateway is used up. */
export const capped = (status: number, reason: string): AttemptResult => ({
  kind: 'rejected',
  outcome: 'capped',
  status,
  reason,
});

/** `wantedMs`: the shortest wait before another try, if there is one. */
export const retry = (status: number, reason: string, wantedMs: number | null = null): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs: longerWait(wantedMs, null),
});

/** Not sent for a reason of this process, or of one connection among others. */
export const retryAtOnce = (status: number, reason: string): Retry => ({
  kind: 'retry',
  status,
  reason,
  afterMs: 0,
});

/** Not sent because the process stops or the push was stopped. */
export const stopping: AttemptResult = retryAtOnce(0, 'stopping');

/** Returns the result of a request that was certainly not processed. */
export const notProcessed = (reason: string, wantedMs: number | null = null): Retry =>
  reason === 'aborted' || reason === 'closed' ? retryAtOnce(0, reason) : retry(0, reason, wantedMs);

export const profileError = (status: number, reason: string, hint: Hint): ProfileError => ({
  kind: 'profile_error',
  status,
  reason,
  hint,
});

/**
 * Returns the result of a request without a response. An untrusted certificate is a configuration
 * error; a request that was certainly not processed is retried; a written one may have arrived.
 */
export function unanswered(
  { kind, reason, cause }: HttpFailure,
  isRepeatHidden: boolean,
): AttemptResult {
  if (kind === 'unknown') return withCause({ kind: 'unknown', reason, isRepeatHidden }, cause);
  if (reason === 'certificate_refused')
    return withCause(profileError(0, reason, untrustedHint(cause)), cause);
  if (reason === 'address_refused')
    return withCause(profileError(0, reason, refusedAddressHint), cause);
  if (reason === 'bad_request') return failed(0, reason);
  return withCause(notProcessed(reason), cause);
}

/**
 * Hint about a profile whose URL leads to a private address (shared/http/outbound-addresses.ts).
 */
export const refusedAddressHint = 'privateAddress' satisfies Hint;

const untrustedHint = (cause: string | undefined): Hint =>
  cause === undefined ? 'untrusted' : { code: 'untrusted', params: { cause } };

/** Adds the code of the failed connection, if known. */
export function withCause(
  attempt: Retry | ProfileError | Extract<AttemptResult, { kind: 'unknown' }>,
  cause: string | undefined,
): AttemptResult {
  return cause === undefined ? attempt : { ...attempt, cause };
}
