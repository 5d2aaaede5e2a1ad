/** Reads what Huawei answers to one request (protocol/huawei.md#answers): a code as text, and in `msg` a JSON text of its own. */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/client.ts';
import { parseObject } from '../../kit/json.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import type { ResponseRule } from '../../kit/response-rules.ts';
import { ruleFor, tokenRuleFor } from './errors.ts';

export type ApiVersion = 'v1' | 'v3';

/** Tokens as devices of HarmonyOS 5 and newer have them begin so (protocol/huawei.md#v3-requests). */
export const isHarmonyToken = (token: string): boolean => token.startsWith('MAMz');

/** What an answer means to these addresses. */
export function parseResponse(
  reply: HttpResponse,
  api: ApiVersion,
  deviceTokens: readonly string[],
): ExchangeResult {
  const body = parseObject(reply.body);
  const { code } = body ?? {};
  if (!body || (typeof code !== 'string' && typeof code !== 'number')) return unreadable(reply);
  const { status, retryAfterMs } = reply;
  const rule = ruleFor(status, String(code));
  const answer = { kind: 'parsed', status, rule, retryAfterMs, messageId: messageIdOf(body) } as const;
  if (rule.reason === 'partial') return { ...answer, ...parsePartial(body, rule, api) };
  if (rule.reason === 'all_tokens_invalid')
    return { ...answer, targets: parseAllInvalid(body, api, deviceTokens) };
  return answer;
}

const messageIdOf = ({ requestId }: JsonObject): string | undefined =>
  typeof requestId === 'string' && requestId !== '' ? requestId.slice(0, 200) : undefined;

/** Some were refused: those that are named. Named nowhere, nobody knows who was sent to; it is not sent again. */
function parsePartial(
  { msg }: JsonObject,
  rule: ResponseRule,
  api: ApiVersion,
): { rule: ResponseRule; targets?: ReadonlyMap<string, ResponseRule> } {
  const told = typeof msg === 'string' ? parseObject(msg) : undefined;
  const targets = told && parseRefusedTokens(told, api, Number(told.success) > 0);
  if (targets && targets.size > 0) return { rule, targets };
  return { rule: { ...rule, reason: 'partial_unreadable', reaction: 'fail' } };
}

/** v1 says it of every token; v3 names the reason of each, and where it names none, nobody is taken for dead. */
function parseAllInvalid(
  { msg }: JsonObject,
  api: ApiVersion,
  deviceTokens: readonly string[],
): ReadonlyMap<string, ResponseRule> {
  const told = typeof msg === 'string' ? parseObject(msg) : undefined;
  const named = told && parseRefusedTokens(told, api, false);
  if (named && named.size > 0) return named;
  return api === 'v1' ? new Map(deviceTokens.map((one) => [one, v1TokenRule(one)])) : new Map();
}

/** The refused tokens in either spelling, as a list or grouped by reason. */
function parseRefusedTokens(
  told: JsonObject,
  api: ApiVersion,
  hasSuccess: boolean,
): Map<string, ResponseRule> {
  const refused = new Map<string, ResponseRule>();
  for (const tokens of [told.illegal_tokens, told.illegalTokens]) {
    if (Array.isArray(tokens))
      for (const token of strings(tokens))
        refused.set(token, api === 'v1' ? v1TokenRule(token) : unspecifiedReason);
    if (!isJsonObject(tokens)) continue;
    for (const [reason, group] of Object.entries(tokens))
      for (const token of strings(group)) refused.set(token, v3TokenRule(reason, hasSuccess));
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

/** A newer device's token is refused by v1 for want of a service account, not because it is dead. */
function v1TokenRule(token: string): ResponseRule {
  return isHarmonyToken(token)
    ? { code: 'illegal_token', reason: 'needs_service_account', reaction: 'fail' }
    : tokenRuleFor('illegal_token');
}

function v3TokenRule(reason: string, hasSuccess: boolean): ResponseRule {
  const rule = tokenRuleFor(reason);
  // Without a success the project may be the wrong one for all of them (protocol/huawei.md#answers).
  return rule.reason === 'no_right' && !hasSuccess ? { ...rule, reaction: 'fail' } : rule;
}
