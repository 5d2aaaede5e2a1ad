/** Parses Honor's responses (protocol/honor.md#answers): `code` is a number, and 200 may still name failed tokens. */
import { isJsonObject, type Json } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { parseObject } from '../../kit/json.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import type { ResponseRule } from '../../kit/response-rules.ts';
import { ambiguousToken, notSent, ruleFor, ruleForText, tokenRules } from './errors.ts';

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
  const { expireTokens, failTokens, requestId, sendResult } = isJsonObject(body.data) ? body.data : {};
  const targets = new Map<string, ResponseRule>();
  for (const token of strings(failTokens)) targets.set(token, tokenRules.failTokens);
  for (const token of strings(expireTokens)) targets.set(token, tokenRules.expireTokens);
  return {
    kind: 'parsed',
    status,
    rule: sendResult === false ? notSent : rule,
    targets,
    messageId: typeof requestId === 'string' && requestId !== '' ? requestId.slice(0, 200) : undefined,
  };
}

const codeIn = (code: Json | undefined): string | undefined =>
  typeof code === 'number' || typeof code === 'string' ? String(code) : undefined;

const strings = (value: Json | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

/** Halving finds one token among a thousand in ten steps; more refusals without a success are due to the access token. */
const enoughRefusals = 12;
const recentMs = 60_000;

/**
 * Decides which token an error means that does not say so (protocol/honor.md#answers): the access token at first; after its
 * renewal a device token, so that the request is halved; without any success the access token again.
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
      this.#refused !== null && this.#refused.token !== token && nowMs - this.#refused.atMs < recentMs;
    if (isRenewed && this.#refusals <= enoughRefusals) return { ...result, rule: ambiguousToken };
    if (!isRenewed) this.#refused = { token, atMs: nowMs };
    return result;
  }
}
