/**
 * Response tables: one rule per code of a gateway. A vendor's `errors.ts` is such a table with the source of each rule; a
 * code that is not in it never deletes a token.
 */
import type { AttemptResult } from '../contract/connector.ts';
import { capped, failed, profileError, retry, sent } from './attempt-results.ts';

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
  /** Credentials or configuration are wrong. */
  | 'profile_error'
  /** The day's quota of this message class is used up: no dispatcher sends more of it today. */
  | 'cap'
  /** An unnamed token of the request is bad: the request is halved until one is left, which gets `singleTarget`. */
  | 'ambiguous';

export interface ResponseRule {
  /** The gateway's code, as text. */
  code: string;
  /** Short text from a bounded set: a metric label, and a reason on the push record. */
  reason: string;
  reaction: Reaction;
  /** Hint to the operator (`profile_error`, `renew_token`). */
  hint?: string;
  /** `retry` and `throttle`: the earliest next try. */
  afterMs?: number;
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
export const configError = (code: string, reason: string, hint: string): ResponseRule => ({
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

/** Returns the rule of an HTTP status without a meaningful body. Never deletes a token. */
export function ruleForStatus(status: number): ResponseRule {
  const code = `http_${status}`;
  if (status === 429 || status === 503) return { code, reason: code, reaction: 'throttle' };
  if (status >= 500) return { code, reason: code, reaction: 'retry' };
  if (status === 401) return { code, reason: code, reaction: 'renew_token', hint: refusalHint(status) };
  if (status === 403 || status === 404 || status === 407)
    return { code, reason: code, reaction: 'profile_error', hint: refusalHint(status) };
  return { code, reason: code, reaction: 'fail_push' };
}

const refusalHint = (status: number): string =>
  `The gateway answers with status ${status}: check the credentials, the endpoint and the app's rights there.`;

/** Returns the final result of a rule. `status`: the HTTP status. */
export function attemptResult(
  rule: ResponseRule,
  status: number,
  details: { retryAfterMs?: number | null; isSingle?: boolean } = {},
): AttemptResult {
  const { reaction, reason, hint = `The gateway answered ${reason} (${rule.code}).` } = rule;
  switch (reaction) {
    case 'sent':
      return sent;
    case 'dead_token':
      return { kind: 'invalid_token', status, reason };
    case 'drop':
      return { kind: 'rejected', outcome: 'dropped', status, reason };
    case 'fail':
    case 'fail_push':
      return failed(status, withCode(rule));
    case 'retry':
    case 'throttle':
      return retry(status, reason, details.retryAfterMs ?? rule.afterMs ?? null);
    case 'cap':
      return capped(status, reason);
    case 'renew_token':
    case 'profile_error':
      return profileError(status, reason, hint);
    case 'ambiguous':
      return details.isSingle && rule.singleTarget === 'dead_token'
        ? { kind: 'invalid_token', status, reason }
        : failed(status, reason);
  }
}

/** Shows an unknown code on the record. */
function withCode({ reason, code }: ResponseRule): string {
  return reason === 'unknown_code' ? `unknown code ${code.replace(/[^\w.-]/g, '').slice(0, 24)}` : reason;
}
