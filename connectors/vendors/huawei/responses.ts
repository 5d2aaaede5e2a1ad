/**
 * Parses responses of Huawei (protocol/huawei.md#answers). The code is a string, and `msg` contains
 * JSON text.
 */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import {
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForReply,
  ruleForStatus,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';

// Response table of Huawei (protocol/huawei.md#answers; the reasons of v3 come from Huawei's page
// on v3 responses). A success only means that Huawei accepted the message.

export const responseRules: readonly ResponseRule[] = [
  { code: '80000000', reason: 'ok', reaction: 'sent' },
  // The response lists the refused tokens. The message was sent to the others, so it is never
  // repeated.
  { code: '80100000', reason: 'partial', reaction: 'sent' },
  { code: '80100001', reason: 'bad_parameter', reaction: 'fail_push' },
  { code: '80100002', reason: 'one_token_only', reaction: 'fail_push' },
  { code: '80100003', reason: 'bad_message', reaction: 'fail_push' },
  { code: '80100004', reason: 'ttl_in_the_past', reaction: 'fail_push' },
  { code: '80100013', reason: 'bad_collapse_key', reaction: 'fail_push' },
  { code: '80100016', reason: 'sensitive_words', reaction: 'fail_push' },
  { code: '80100017', reason: 'too_many_topic_tasks', reaction: 'retry', afterMs: 60_000 },
  { code: '80100018', reason: 'bad_review_signature', reaction: 'fail_push' },
  { code: '80100022', reason: 'image_not_verified', reaction: 'fail_push' },
  {
    code: '80200001',
    reason: 'auth_failed',
    reaction: 'renew_token',
    hint: 'huaweiTokenRefused',
  },
  {
    code: '80200003',
    reason: 'token_expired',
    reaction: 'renew_token',
    hint: 'huaweiTokenExpired',
  },
  {
    code: '80200005',
    reason: 'jwt_expired',
    reaction: 'renew_token',
    hint: 'huaweiJwtExpired',
  },
  {
    code: '80300002',
    reason: 'no_permission',
    reaction: 'profile_error',
    hint: 'huaweiForbidden',
  },
  // In v1, all tokens of the request are invalid. `parseAllInvalid` handles the exceptions.
  { code: '80300007', reason: 'all_tokens_invalid', reaction: 'fail' },
  { code: '80300008', reason: 'body_too_large', reaction: 'fail_push' },
  // Too many tokens for this kind of message. Halves of the request are accepted.
  { code: '80300010', reason: 'token_count', reaction: 'ambiguous', singleTarget: 'fail' },
  {
    code: '80300011',
    reason: 'no_high_priority',
    reaction: 'profile_error',
    hint: 'huaweiPriority',
  },
  {
    code: '80300013',
    reason: 'bad_receipt_id',
    reaction: 'profile_error',
    hint: 'huaweiReceipt',
  },
  { code: '80300029', reason: 'test_rate', reaction: 'throttle' },
  { code: '80300030', reason: 'test_token_count', reaction: 'ambiguous', singleTarget: 'fail' },
  {
    code: '80300036',
    reason: 'jwt_too_long',
    reaction: 'profile_error',
    hint: 'huaweiJwtLifetime',
  },
  {
    code: '80300037',
    reason: 'app_penalised',
    reaction: 'profile_error',
    hint: 'huaweiBarred',
  },
  { code: '80600003', reason: 'auth_service_failed', reaction: 'retry' },
  { code: '81000001', reason: 'internal', reaction: 'retry' },
  // Answers to a recall (protocol/huawei.md#recall). A partial success lists the refused tokens. If
  // a token belongs to another app, halves of the request tell which token is meant.
  { code: '80100020', reason: 'partial', reaction: 'sent' },
  { code: '80000001', reason: 'internal', reaction: 'retry' },
  {
    code: '80300017',
    reason: 'tokens_of_several_apps',
    reaction: 'ambiguous',
    singleTarget: 'fail',
  },
  { code: '80300028', reason: 'token_of_other_app', reaction: 'ambiguous', singleTarget: 'fail' },
  { code: '80300032', reason: 'no_recall_right', reaction: 'fail_push' },
  ...groupCodes(),
];

/**
 * Codes 82000001 to 82000013 concern device groups and topics, which this connector does not use.
 * The last two concern data storage.
 */
function groupCodes(): ResponseRule[] {
  return Array.from({ length: 13 }, (_, i) => ({
    code: String(82_000_001 + i),
    reason: i < 11 ? 'device_group_or_topic' : 'data_storage_location',
    reaction: 'fail_push',
  }));
}

const lookUp = responseTable(responseRules);

/** Form of Huawei's own codes. A proxy in front of Huawei has other codes. */
const ownCode = /^8\d{7}$/;

/**
 * Returns the rule of a code. An unknown code gets the rule of its HTTP status, which never marks a
 * token as dead.
 */
function ruleFor(status: number, code: string): ResponseRule {
  if (!ownCode.test(code) && status >= 300) return ruleForPage(status);
  // These statuses mean flow control, whatever the body says (protocol/huawei.md#answers).
  if (status === 502 || status === 503) return ruleForStatus(status);
  const rule = lookUp(code);
  return rule.reason === 'unknown_code' && status >= 300
    ? ruleForStatus(status)
    : ruleForReply(status, rule);
}

/** Rules for single tokens by reason (protocol/huawei.md#answers). v3 groups tokens by reason. */
const tokenRules: readonly ResponseRule[] = [
  { code: 'illegal_token', reason: 'illegal_token', reaction: 'dead_token' },
  { code: 'tokenFormatError', reason: 'token_format_error', reaction: 'dead_token' },
  {
    code: 'tokenPlatformNotSupport',
    reason: 'token_platform_not_supported',
    reaction: 'dead_token',
  },
  // The device was upgraded or the project is wrong. The token is invalid only if other tokens of
  // the request succeeded.
  { code: 'noRight', reason: 'no_right', reaction: 'dead_token' },
  { code: 'noPushTypeRight', reason: 'no_push_type_right', reaction: 'fail' },
  {
    code: 'atomicUnableSendUnsubscribedMsg',
    reason: 'atomic_service_not_subscribed',
    reaction: 'fail',
    isOfDevice: true,
  },
  {
    code: 'countryNotSupport',
    reason: 'country_not_supported',
    reaction: 'fail',
    isOfDevice: true,
  },
  {
    code: 'disableSendHuaweiMsgBecauseOfPenalty',
    reason: 'app_penalised',
    reaction: 'profile_error',
    hint: 'huaweiBarred',
  },
  { code: 'differentImgVerifyPolicy', reason: 'image_verified_for_other_type', reaction: 'fail' },
  { code: 'appinfoError', reason: 'app_not_created', reaction: 'fail' },
  { code: 'notSupportPlayVoice', reason: 'play_voice_not_supported', reaction: 'fail' },
  {
    code: 'noRightToSendThisLiveNotificationEvent',
    reason: 'no_live_view_right',
    reaction: 'fail',
  },
];

/** Returns the rule for single tokens with a reason. */
const tokenRuleFor = responseTable(tokenRules, { reason: 'unknown_reason', reaction: 'fail' });

export type ApiVersion = 'v1' | 'v3';

/** The API of the request, and whether the profile has credentials for v3. */
interface RequestApi {
  api: ApiVersion;
  hasV3: boolean;
}

/**
 * True if a token looks like a token of HarmonyOS 5 or newer. Huawei does not specify the form of
 * tokens, so this only decides which API is tried first (protocol/huawei.md#two-apis).
 */
export const isHarmonyToken = (token: string): boolean => token.startsWith('MAMz');

/** Parses the response to a request with these tokens. */
export function parseResponse(
  reply: HttpResponse,
  deviceTokens: readonly string[],
  requestApi: RequestApi,
): ExchangeResult {
  const body = parseObject(reply.body);
  const { code } = body ?? {};
  if (!body || (typeof code !== 'string' && typeof code !== 'number')) return unreadable(reply);
  const { status, retryAfterMs } = reply;
  const rule = ruleFor(status, String(code));
  const answer = {
    kind: 'parsed',
    status,
    rule,
    retryAfterMs,
    messageId: messageIdOf(body),
  } as const;
  if (rule.reason === 'partial') return { ...answer, ...parsePartial(body, rule, requestApi) };
  if (rule.reason === 'all_tokens_invalid')
    return { ...answer, targets: parseAllInvalid(body, requestApi, deviceTokens) };
  return answer;
}

const messageIdOf = ({ requestId }: JsonObject): string | undefined =>
  typeof requestId === 'string' && requestId !== '' ? requestId.slice(0, 200) : undefined;

/**
 * Parses the tokens that a partial success refuses. If it lists none, the outcome is unknown and
 * the request is not repeated.
 */
function parsePartial(
  { msg }: JsonObject,
  rule: ResponseRule,
  requestApi: RequestApi,
): { rule: ResponseRule; targets?: ReadonlyMap<string, ResponseRule> } {
  const details = typeof msg === 'string' ? parseObject(msg) : undefined;
  const targets = details && parseRefusedTokens(details, requestApi, Number(details.success) > 0);
  if (targets && targets.size > 0) return { rule, targets };
  return { rule: { ...rule, reason: 'partial_unreadable', reaction: 'fail' } };
}

/** Parses the invalid tokens: in v1 all tokens, in v3 the tokens that are listed with a reason. */
function parseAllInvalid(
  { msg }: JsonObject,
  requestApi: RequestApi,
  deviceTokens: readonly string[],
): ReadonlyMap<string, ResponseRule> {
  const details = typeof msg === 'string' ? parseObject(msg) : undefined;
  const named = details && parseRefusedTokens(details, requestApi, false);
  if (named && named.size > 0) return named;
  return requestApi.api === 'v1'
    ? new Map(deviceTokens.map((one) => [one, v1TokenRule(one, requestApi)]))
    : new Map();
}

/** Parses refused tokens in both spellings, as a list or grouped by reason. */
function parseRefusedTokens(
  details: JsonObject,
  requestApi: RequestApi,
  hasSuccess: boolean,
): Map<string, ResponseRule> {
  const refused = new Map<string, ResponseRule>();
  for (const tokens of [details.illegal_tokens, details.illegalTokens]) {
    if (Array.isArray(tokens))
      for (const token of strings(tokens))
        refused.set(
          token,
          requestApi.api === 'v1' ? v1TokenRule(token, requestApi) : unspecifiedReason,
        );
    if (!isJsonObject(tokens)) continue;
    for (const [reason, group] of Object.entries(tokens))
      for (const token of strings(group))
        refused.set(token, v3TokenRule(reason.trim(), hasSuccess));
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
 * Returns the rule of a token that v1 refused. A token that looks like HarmonyOS may only lack a
 * service account in the profile.
 */
function v1TokenRule(token: string, { hasV3 }: RequestApi): ResponseRule {
  return isHarmonyToken(token) && !hasV3
    ? { code: 'illegal_token', reason: 'needs_service_account', reaction: 'fail' }
    : tokenRuleFor('illegal_token');
}

function v3TokenRule(reason: string, hasSuccess: boolean): ResponseRule {
  const rule = tokenRuleFor(reason);
  // Without a success, the project may be wrong for all tokens (protocol/huawei.md#answers).
  return rule.reason === 'no_right' && !hasSuccess ? { ...rule, reaction: 'fail' } : rule;
}
