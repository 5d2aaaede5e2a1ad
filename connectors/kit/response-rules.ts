/**
 * Tables of what gateways answer: one row per code, looked up in one way. A vendor's `errors.ts` is such a table,
 * each row with its source; what is not in it is judged with care and never deletes a token.
 */
import type { AttemptResult } from '../contract/connector.ts';
import { capped, failed, profileError, retry, sent } from './attempt-results.ts';

/** What follows from an answer, before it is told as an `Attempt`. */
export type Reaction =
  | 'sent'
  /** The gateway says of this token that it is dead. Of a whole request only where it had one target. */
  | 'dead_token'
  /** These recipients are refused for good; others may do well. */
  | 'fail'
  /** As `fail`: the gateway has nothing to send it as, or folds it. */
  | 'drop'
  /** Every recipient of this push would be refused alike: the rest of it is not sent. */
  | 'fail_push'
  | 'retry'
  /** The gateway is sent to too fast: these and the rest of this send wait. */
  | 'throttle'
  /** A new access token, once; then `profile_error`. */
  | 'renew_token'
  /** Credentials or configuration are wrong. */
  | 'profile_error'
  /** The day's quota of this class is used up: nothing more of it today, by anybody. */
  | 'cap'
  /** Some token of the request is bad, nobody knows which: halves until it is one, which then is `alone`. */
  | 'ambiguous';

export interface ResponseRule {
  /** As the gateway writes it, a number as text. */
  code: string;
  /** Short, from a bounded set: it becomes a metric label and a reason on the record. */
  reason: string;
  reaction: Reaction;
  /** For an operator, where there is something to mend (`profile_error`, `renew_token`). */
  hint?: string;
  /** `retry` and `throttle`: not before. */
  afterMs?: number;
  /** `ambiguous`: what it means of a single target. */
  singleTarget?: 'dead_token' | 'fail';
}

/** Rows of the kinds that tables have many of. */
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
/** With the sentence for whoever can mend it. */
export const configError = (code: string, reason: string, sentence: string): ResponseRule => ({
  code,
  reason,
  reaction: 'profile_error',
  hint: sentence,
});

/** Looks codes up in one gateway's table. */
export type ResponseTable = (code: string | number) => ResponseRule;

/** The look-up of a gateway's rows; of a code that is not there, `unknown`, which deletes nothing. */
export function responseTable(
  rows: readonly ResponseRule[],
  unknown: Omit<ResponseRule, 'code'> = unknownCode,
): ResponseTable {
  const byCode = new Map(rows.map((rule) => [rule.code, rule]));
  return (code) => byCode.get(String(code)) ?? { ...unknown, code: String(code) };
}

const unknownCode: Omit<ResponseRule, 'code'> = { reason: 'unknown_code', reaction: 'fail' };

/** What a bare HTTP status means where the body says nothing. Deletes nothing. */
export function ruleForStatus(status: number): ResponseRule {
  const code = `http_${status}`;
  if (status === 429 || status === 503) return { code, reason: code, reaction: 'throttle' };
  if (status >= 500) return { code, reason: code, reaction: 'retry' };
  if (status === 401) return { code, reason: code, reaction: 'renew_token', hint: refusedBy(status) };
  if (status === 403 || status === 404 || status === 407)
    return { code, reason: code, reaction: 'profile_error', hint: refusedBy(status) };
  return { code, reason: code, reaction: 'fail_push' };
}

const refusedBy = (status: number): string =>
  `The gateway answers with status ${status}: check the credentials, the endpoint and the app's rights there.`;

/** The attempt of a row once nothing more is tried for it here. `status`: the HTTP status. */
export function attemptResult(
  rule: ResponseRule,
  status: number,
  told: { retryAfterMs?: number | null; isAlone?: boolean } = {},
): AttemptResult {
  const { reaction, reason, hint: sentence = `The gateway answered ${reason} (${rule.code}).` } = rule;
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
      return retry(status, reason, told.retryAfterMs ?? rule.afterMs ?? null);
    case 'cap':
      return capped(status, reason);
    case 'renew_token':
    case 'profile_error':
      return profileError(status, reason, sentence);
    case 'ambiguous':
      return told.isAlone && rule.singleTarget === 'dead_token'
        ? { kind: 'invalid_token', status, reason }
        : failed(status, reason);
  }
}

/** Of a code that nobody foresaw the record shows the code; a gateway's codes are short. */
function withCode({ reason, code }: ResponseRule): string {
  return reason === 'unknown_code' ? `unknown code ${code.replace(/[^\w.-]/g, '').slice(0, 24)}` : reason;
}
