/**
 * Response table of Honor (protocol/honor.md#answers). Honor publishes no codes: these are the known ones. Only
 * `expireTokens` deletes a token.
 */
import { isTemporaryStatus } from '../../../shared/http/result.ts';
import { type ResponseRule, responseTable, ruleForPage, ruleForStatus } from '../../kit/response-rules.ts';

/** Rules for codes of the body, which equal HTTP statuses, and for the HTTP status itself. */
export const responseRules: readonly ResponseRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '401', reason: 'auth_failed', reaction: 'renew_token', hint: 'honorTokenRefused' },
  { code: '429', reason: 'too_fast', reaction: 'throttle' },
  { code: '500', reason: 'internal', reaction: 'retry' },
  { code: '502', reason: 'bad_gateway', reaction: 'retry' },
  { code: '503', reason: 'unavailable', reaction: 'throttle' },
  { code: '504', reason: 'gateway_timeout', reaction: 'retry' },
];

/** Rule for an error with any code whose text mentions tokens or authorisation: most likely the access token. */
const authMessage: ResponseRule = {
  code: 'message',
  reason: 'auth_message',
  reaction: 'renew_token',
  hint: 'honorTokenRefused',
};

/** Rule for the same error with a good access token: a device token is invalid, and halving finds it. */
export const ambiguousToken: ResponseRule = { ...authMessage, reaction: 'ambiguous', singleTarget: 'fail' };

/** Rules for device tokens in a response with code 200 (protocol/honor.md#answers). */
export const tokenRules = {
  expireTokens: { code: 'expireTokens', reason: 'expired_token', reaction: 'dead_token' },
  failTokens: { code: 'failTokens', reason: 'failed_this_time', reaction: 'retry' },
} as const satisfies Record<string, ResponseRule>;

/** Rule for code 200 with `sendResult` false: not sent. */
export const notSent: ResponseRule = { code: 'sendResult', reason: 'send_result_false', reaction: 'fail' };

const lookUp = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/** Returns the rule of a response with a code. */
export function ruleFor(status: number, code: string, message: unknown): ResponseRule {
  if (status === 401 || isTemporaryStatus(status)) return ruleForHttpStatus(status);
  if (known.has(code) && (status < 300 || code !== '200')) return lookUp(code);
  if (status === 403 || status === 404) return ruleForStatus(status);
  if (typeof message === 'string' && /token|auth/i.test(message)) return authMessage;
  // Its codes are those of HTTP.
  return isTemporaryStatus(Number(code)) && code.length === 3 ? ruleForStatus(Number(code)) : lookUp(code);
}

/** Text of an answer that refuses the access token without a code. */
const accessTokenText = /\baccess[ _-]?token\b/i;
const markup = /^\s*</;

/** Returns the rule of a response without a code. */
export function ruleForText(status: number, text: string): ResponseRule {
  if (isTemporaryStatus(status)) return ruleForHttpStatus(status);
  return accessTokenText.test(text) && !markup.test(text) ? authMessage : ruleForPage(status);
}

/** Returns the rule of an HTTP status of Honor itself. */
function ruleForHttpStatus(status: number): ResponseRule {
  return known.has(String(status)) ? lookUp(status) : ruleForStatus(status);
}
