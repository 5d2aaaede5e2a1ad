/** Parses Huawei's responses (protocol/huawei.md#answers): a code as text, and JSON text in `msg`. */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { parseObject } from '../../kit/json.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import type { ResponseRule } from '../../kit/response-rules.ts';
import { ruleFor, tokenRuleFor } from './errors.ts';

export type ApiVersion = 'v1' | 'v3';

/** APIs of a profile: the one that was asked, and whether the profile has credentials for v3. */
export interface AskedApi {
  api: ApiVersion;
  hasV3: boolean;
}

/**
 * Whether a token looks like one of HarmonyOS 5 or newer. Huawei specifies no form, so this is a
 * hint about which API to ask first (protocol/huawei.md#two-apis).
 */
export const isHarmonyToken = (token: string): boolean => token.startsWith('MAMz');

/** Parses the response to a request to these tokens. */
export function parseResponse(
  reply: HttpResponse,
  deviceTokens: readonly string[],
  asked: AskedApi,
): ExchangeResult {
  const body = parseObject(reply.body);
  const { code } = body ?? {};
  if (!body || (typeof code !== 'string' && typeof code !== 'number')) return unreadable(reply);
  const { status, retryAfterMs } = reply;
  const rule = ruleFor(status, String(code));
  const answer = { kind: 'parsed', status, rule, retryAfterMs, messageId: messageIdOf(body) } as const;
  if (rule.reason === 'partial') return { ...answer, ...parsePartial(body, rule, asked) };
  if (rule.reason === 'all_tokens_invalid')
    return { ...answer, targets: parseAllInvalid(body, asked, deviceTokens) };
  return answer;
}

const messageIdOf = ({ requestId }: JsonObject): string | undefined =>
  typeof requestId === 'string' && requestId !== '' ? requestId.slice(0, 200) : undefined;

/** Parses the refused tokens. Without names the outcome is unknown, and the request is not repeated. */
function parsePartial(
  { msg }: JsonObject,
  rule: ResponseRule,
  asked: AskedApi,
): { rule: ResponseRule; targets?: ReadonlyMap<string, ResponseRule> } {
  const details = typeof msg === 'string' ? parseObject(msg) : undefined;
  const targets = details && parseRefusedTokens(details, asked, Number(details.success) > 0);
  if (targets && targets.size > 0) return { rule, targets };
  return { rule: { ...rule, reason: 'partial_unreadable', reaction: 'fail' } };
}

/** Parses the invalid tokens: all in v1; in v3 those with a reason. */
function parseAllInvalid(
  { msg }: JsonObject,
  asked: AskedApi,
  deviceTokens: readonly string[],
): ReadonlyMap<string, ResponseRule> {
  const details = typeof msg === 'string' ? parseObject(msg) : undefined;
  const named = details && parseRefusedTokens(details, asked, false);
  if (named && named.size > 0) return named;
  return asked.api === 'v1' ? new Map(deviceTokens.map((one) => [one, v1TokenRule(one, asked)])) : new Map();
}

/** Parses refused tokens in either spelling, as a list or grouped by reason. */
function parseRefusedTokens(
  details: JsonObject,
  asked: AskedApi,
  hasSuccess: boolean,
): Map<string, ResponseRule> {
  const refused = new Map<string, ResponseRule>();
  for (const tokens of [details.illegal_tokens, details.illegalTokens]) {
    if (Array.isArray(tokens))
      for (const token of strings(tokens))
        refused.set(token, asked.api === 'v1' ? v1TokenRule(token, asked) : unspecifiedReason);
    if (!isJsonObject(tokens)) continue;
    for (const [reason, group] of Object.entries(tokens))
      for (const token of strings(group)) refused.set(token, v3TokenRule(reason.trim(), hasSuccess));
  }
  return refused;
}

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

const unspecifiedReason: ResponseRule = {
  code: 'illegalTokens',
  reason: 'refused_without_reason',
  reaction: 'fail',
};

/**
 * Returns the rule of a token that v1 refused. One that looks like HarmonyOS needs a
 * service account that the profile does not have.
 */
function v1TokenRule(token: string, { hasV3 }: AskedApi): ResponseRule {
  return isHarmonyToken(token) && !hasV3
    ? { code: 'illegal_token', reason: 'needs_service_account', reaction: 'fail' }
    : tokenRuleFor('illegal_token');
}

function v3TokenRule(reason: string, hasSuccess: boolean): ResponseRule {
  const rule = tokenRuleFor(reason);
  // Without a success the project may be wrong for all of them (protocol/huawei.md#answers).
  return rule.reason === 'no_right' && !hasSuccess ? { ...rule, reaction: 'fail' } : rule;
}
