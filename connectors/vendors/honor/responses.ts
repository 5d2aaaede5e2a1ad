/**
 * Parses responses of Honor (protocol/honor.md#answers). `code` is a number, and a response with
 * code 200 may list failed tokens.
 */
import { isJsonObject, type Json } from '../../../shared/domain/json.ts';
import { type HttpResponse, isTemporaryStatus } from '../../../shared/http/result.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import {
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForReply,
  ruleForStatus,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';

// Response table of Honor (protocol/honor.md#answers). Honor does not publish its codes, so the
// table contains the codes that are known. Only `expireTokens` marks a token as dead.

/** Rules for the codes in a body, which equal HTTP statuses, and for the HTTP status itself. */
export const responseRules: readonly ResponseRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '401', reason: 'auth_failed', reaction: 'renew_token', hint: 'honorTokenRefused' },
  { code: '429', reason: 'too_fast', reaction: 'throttle' },
  { code: '500', reason: 'internal', reaction: 'retry' },
  { code: '502', reason: 'bad_gateway', reaction: 'retry' },
  { code: '503', reason: 'unavailable', reaction: 'throttle' },
  { code: '504', reason: 'gateway_timeout', reaction: 'retry' },
];

/**
 * Rule for an error whose text mentions tokens or authorisation, with any code, if a new access
 * token does not help. The access token is the cause.
 */
const tokenRefused: ResponseRule = {
  code: 'message',
  reason: 'auth_message',
  reaction: 'renew_token',
  hint: 'honorTokenRefused',
};

/**
 * Rule for the same error before a new access token is tried, which is the most likely cause. If it
 * does not help, a device token is invalid, and halving the request finds it.
 */
const authMessage: ResponseRule = {
  ...tokenRefused,
  withNewToken: { ...tokenRefused, reaction: 'ambiguous', singleTarget: 'fail' },
};

/** Rules for device tokens that a response with code 200 lists (protocol/honor.md#answers). */
const tokenRules = {
  expireTokens: { code: 'expireTokens', reason: 'expired_token', reaction: 'dead_token' },
  failTokens: { code: 'failTokens', reason: 'failed_this_time', reaction: 'retry' },
} as const satisfies Record<string, ResponseRule>;

/** Rule for code 200 with `sendResult` false: the message was not sent. */
const notSent: ResponseRule = { code: 'sendResult', reason: 'send_result_false', reaction: 'fail' };

const lookUp = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/** Returns the rule of a response with a code. */
function ruleFor(status: number, code: string, message: unknown): ResponseRule {
  if (status === 401 || isTemporaryStatus(status)) return ruleForHttpStatus(status);
  if (known.has(code) && (status < 300 || code !== '200')) return lookUp(code);
  if (status === 403 || status === 404) return ruleForStatus(status);
  if (typeof message === 'string' && /token|auth/i.test(message)) return authMessage;
  // Honor's codes equal HTTP statuses.
  return isTemporaryStatus(Number(code)) && code.length === 3
    ? ruleForStatus(Number(code))
    : ruleForReply(status, lookUp(code));
}

/** Text of a response without a code that refuses the access token. */
const accessTokenText = /\baccess[ _-]?token\b/i;
const markup = /^\s*</;

/** Returns the rule of a response without a code. */
function ruleForText(status: number, text: string): ResponseRule {
  if (isTemporaryStatus(status)) return ruleForHttpStatus(status);
  return accessTokenText.test(text) && !markup.test(text) ? authMessage : ruleForPage(status);
}

/** Returns the rule of an HTTP status that Honor itself sent. */
function ruleForHttpStatus(status: number): ResponseRule {
  return known.has(String(status)) ? lookUp(status) : ruleForStatus(status);
}

/** Parses a response. */
export function parseResponse(reply: HttpResponse): ExchangeResult {
  const { retryAfterMs, status } = reply;
  const body = parseObject(reply.body);
  const code = codeIn(body?.code);
  if (!body || code === undefined) {
    const result = unreadable(reply);
    return result.kind === 'parsed' ? { ...result, rule: ruleForText(status, reply.body) } : result;
  }
  const rule = ruleFor(status, code, body.message);
  if (rule.reaction !== 'sent') return { kind: 'parsed', status, rule, retryAfterMs };
  const { expireTokens, failTokens, requestId, sendResult } = isJsonObject(body.data)
    ? body.data
    : {};
  const targets = new Map<string, ResponseRule>();
  for (const token of strings(failTokens)) targets.set(token, tokenRules.failTokens);
  for (const token of strings(expireTokens)) targets.set(token, tokenRules.expireTokens);
  return {
    kind: 'parsed',
    status,
    rule: sendResult === false ? notSent : rule,
    targets,
    messageId:
      typeof requestId === 'string' && requestId !== '' ? requestId.slice(0, 200) : undefined,
  };
}

const codeIn = (code: Json | undefined): string | undefined =>
  typeof code === 'number' || typeof code === 'string' ? String(code) : undefined;

const strings = (value: Json | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

/**
 * Halving finds one invalid token among a thousand in ten steps. If there are more refusals without
 * a success, the access token is the cause.
 */
const enoughRefusals = 12;

/**
 * Decides which token is meant by an error that does not say so (protocol/honor.md#answers): after
 * too many refusals without a success, it is the access token.
 */
export class TokenErrorClassifier {
  #refusals = 0;

  /** Returns the result with the rule that applies. */
  classify(result: ExchangeResult): ExchangeResult {
    if (result.kind !== 'parsed') return result;
    if (result.rule.reaction === 'sent') this.#refusals = 0;
    if (result.rule !== authMessage) return result;
    this.#refusals += 1;
    return this.#refusals > enoughRefusals ? { ...result, rule: tokenRefused } : result;
  }
}
