/**
 * Parses Honor's responses (protocol/honor.md#answers): `code` is a number, and 200 may still name
 * failed tokens.
 */
import { isJsonObject, type Json } from '../../../shared/domain/json.ts';
import { type HttpResponse, isTemporaryStatus } from '../../../shared/http/result.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import {
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForStatus,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';

// Response table of Honor (protocol/honor.md#answers). Honor publishes no codes: these are the
// known ones. Only `expireTokens` deletes a token.

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

/**
 * Rule for an error with any code whose text mentions tokens or authorisation: most likely the
 * access token.
 */
const authMessage: ResponseRule = {
  code: 'message',
  reason: 'auth_message',
  reaction: 'renew_token',
  hint: 'honorTokenRefused',
};

/**
 * Rule for the same error with a good access token: a device token is invalid, and halving finds
 * it.
 */
const ambiguousToken: ResponseRule = {
  ...authMessage,
  reaction: 'ambiguous',
  singleTarget: 'fail',
};

/** Rules for device tokens in a response with code 200 (protocol/honor.md#answers). */
const tokenRules = {
  expireTokens: { code: 'expireTokens', reason: 'expired_token', reaction: 'dead_token' },
  failTokens: { code: 'failTokens', reason: 'failed_this_time', reaction: 'retry' },
} as const satisfies Record<string, ResponseRule>;

/** Rule for code 200 with `sendResult` false: not sent. */
const notSent: ResponseRule = { code: 'sendResult', reason: 'send_result_false', reaction: 'fail' };

const lookUp = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/** Returns the rule of a response with a code. */
function ruleFor(status: number, code: string, message: unknown): ResponseRule {
  if (status === 401 || isTemporaryStatus(status)) return ruleForHttpStatus(status);
  if (known.has(code) && (status < 300 || code !== '200')) return lookUp(code);
  if (status === 403 || status === 404) return ruleForStatus(status);
  if (typeof message === 'string' && /token|auth/i.test(message)) return authMessage;
  // Its codes are those of HTTP.
  return isTemporaryStatus(Number(code)) && code.length === 3
    ? ruleForStatus(Number(code))
    : lookUp(code);
}

/** Text of an answer that refuses the access token without a code. */
const accessTokenText = /\baccess[ _-]?token\b/i;
const markup = /^\s*</;

/** Returns the rule of a response without a code. */
function ruleForText(status: number, text: string): ResponseRule {
  if (isTemporaryStatus(status)) return ruleForHttpStatus(status);
  return accessTokenText.test(text) && !markup.test(text) ? authMessage : ruleForPage(status);
}

/** Returns the rule of an HTTP status of Honor itself. */
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
 * Halving finds one token among a thousand in ten steps; more refusals without a success are due to
 * the access token.
 */
const enoughRefusals = 12;
const recentMs = 60_000;

/**
 * Decides which token an error means that does not say so (protocol/honor.md#answers): the access
 * token at first; after its renewal a device token, so that the request is halved; without any
 * success the access token again.
 */
export class TokenErrorClassifier {
  #refused: { token: string; atMs: number } | null = null;
  #refusals = 0;

  /** Returns the result with the rule that applies. `nowMs` in epoch milliseconds. */
  classify(result: ExchangeResult, token: string, nowMs: number): ExchangeResult {
    if (result.kind !== 'parsed') return result;
    if (result.rule.reaction === 'sent') this.#refusals = 0;
    if (result.rule.reason !== ambiguousToken.reason) return result;
    this.#refusals += 1;
    const isRenewed =
      this.#refused !== null &&
      this.#refused.token !== token &&
      nowMs - this.#refused.atMs < recentMs;
    if (isRenewed && this.#refusals <= enoughRefusals) return { ...result, rule: ambiguousToken };
    if (!isRenewed) this.#refused = { token, atMs: nowMs };
    return result;
  }
}
