/**
 * Response table of Huawei (protocol/huawei.md#answers; v3 reasons: Huawei's v3 response page). A success means that Huawei
 * accepted the message, no more.
 */
import {
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForReply,
  ruleForStatus,
} from '../../kit/response-rules.ts';

export const responseRules: readonly ResponseRule[] = [
  { code: '80000000', reason: 'ok', reaction: 'sent' },
  // The response names the refused tokens; the others were sent to. Never repeated.
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
  // In v1 every token of the request is invalid; `parseAllInvalid` makes the exceptions.
  { code: '80300007', reason: 'all_tokens_invalid', reaction: 'fail' },
  { code: '80300008', reason: 'body_too_large', reaction: 'fail_push' },
  // Too many tokens for this kind of message: halves are accepted.
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
  ...groupCodes(),
];

/** 82000001–82000013: device groups and topics, which this connector never addresses; the last two concern data storage. */
function groupCodes(): ResponseRule[] {
  return Array.from({ length: 13 }, (_, i) => ({
    code: String(82_000_001 + i),
    reason: i < 11 ? 'device_group_or_topic' : 'data_storage_location',
    reaction: 'fail_push',
  }));
}

const lookUp = responseTable(responseRules);

/** Huawei's own codes; a proxy in front of it has others. */
const ownCode = /^8\d{7}$/;

/**
 * Returns the rule of a response by its code, an unknown code by its HTTP status, which deletes no
 * token.
 */
export function ruleFor(status: number, code: string): ResponseRule {
  if (!ownCode.test(code) && status >= 300) return ruleForPage(status);
  // The status signals flow control, whatever the body says (protocol/huawei.md#answers).
  if (status === 502 || status === 503) return ruleForStatus(status);
  const rule = lookUp(code);
  return rule.reason === 'unknown_code' && status >= 300 ? ruleForStatus(status) : ruleForReply(status, rule);
}

/** Rules for single tokens, by reason (protocol/huawei.md#answers; v3 groups tokens by reason). */
const tokenRules: readonly ResponseRule[] = [
  { code: 'illegal_token', reason: 'illegal_token', reaction: 'dead_token' },
  { code: 'tokenFormatError', reason: 'token_format_error', reaction: 'dead_token' },
  { code: 'tokenPlatformNotSupport', reason: 'token_platform_not_supported', reaction: 'dead_token' },
  // The device was upgraded, or the project is wrong: invalid only if other tokens of the request succeeded.
  { code: 'noRight', reason: 'no_right', reaction: 'dead_token' },
  { code: 'noPushTypeRight', reason: 'no_push_type_right', reaction: 'fail' },
  {
    code: 'atomicUnableSendUnsubscribedMsg',
    reason: 'atomic_service_not_subscribed',
    reaction: 'fail',
    isOfDevice: true,
  },
  { code: 'countryNotSupport', reason: 'country_not_supported', reaction: 'fail', isOfDevice: true },
  { code: 'disableSendHuaweiMsgBecauseOfPenalty', reason: 'app_penalised', reaction: 'fail' },
  { code: 'differentImgVerifyPolicy', reason: 'image_verified_for_other_type', reaction: 'fail' },
  { code: 'appinfoError', reason: 'app_not_created', reaction: 'fail' },
  { code: 'notSupportPlayVoice', reason: 'play_voice_not_supported', reaction: 'fail' },
  { code: 'noRightToSendThisLiveNotificationEvent', reason: 'no_live_view_right', reaction: 'fail' },
];

/** Returns the rule of a reason for single tokens. */
export const tokenRuleFor = responseTable(tokenRules, { reason: 'unknown_reason', reaction: 'fail' });
