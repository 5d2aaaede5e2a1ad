/**
 * Response table of Xiaomi (protocol/xiaomi.md#codes), with one rule per `code` of the body. A code
 * for a request with several devices never marks a token as dead; only `bad_regids` does
 * (protocol/gateways.md#dead-tokens, protocol/gateways.md#ambiguous-answers).
 */
import {
  configError,
  invalidMessage,
  type ResponseRule,
  rateLimited,
  responseTable,
} from '../../kit/response-rules.ts';

const busy = (code: string, reason: string): ResponseRule => ({ code, reason, reaction: 'retry' });

export const responseRules: readonly ResponseRule[] = [
  { code: '0', reason: 'ok', reaction: 'sent' },
  // Internal errors of Xiaomi.
  busy('-1', 'unknown_error'),
  busy('1', 'system_error'),
  busy('10001', 'system_error'),
  busy('10002', 'service_paused'),
  busy('10003', 'remote_error'),
  busy('20607', 'internal_error'),
  busy('26003', 'internal_error'),
  busy('65029', 'internal_error'),
  busy('10037', 'request_expired'),
  rateLimited('10027', 'too_frequent'),
  rateLimited('200002', 'rate_exceeded'),
  rateLimited('26004', 'broadcast_too_frequent'),
  // Rate limits of query calls, which this connector does not make.
  rateLimited('10030', 'read_too_frequent'),
  rateLimited('10032', 'read_too_frequent'),
  rateLimited('10035', 'read_too_frequent'),
  rateLimited('10039', 'nothing_left_to_read'),
  { code: '200001', reason: 'day_quota_exceeded', reaction: 'cap' },
  { code: '10034', reason: 'too_many_today', reaction: 'cap' },
  invalidMessage('10008', 'bad_parameter'),
  invalidMessage('10012', 'bad_request'),
  invalidMessage('10016', 'parameter_missing'),
  invalidMessage('10017', 'bad_parameter_value'),
  invalidMessage('10041', 'title_or_description_refused'),
  invalidMessage('21305', 'parameter_missing'),
  invalidMessage('65011', 'bad_parameter_value'),
  invalidMessage('65009', 'content_too_long'),
  invalidMessage('65014', 'too_many_extras'),
  invalidMessage('65015', 'extras_too_long'),
  invalidMessage('65036', 'callback_param_too_long'),
  invalidMessage('65037', 'callback_url_too_long'),
  invalidMessage('65038', 'callback_url_refused'),
  // These codes are reliable for a request with one device. With several devices, they do not say
  // which device is meant.
  { code: '10029', reason: 'illegal_device', reaction: 'ambiguous', singleTarget: 'dead_token' },
  { code: '66007', reason: 'illegal_regid', reaction: 'ambiguous', singleTarget: 'dead_token' },
  // Code 20301 means that sending failed. It concerns the device only if the reason is "No valid
  // targets!".
  {
    code: '20301 no valid target',
    reason: 'no_valid_target',
    reaction: 'ambiguous',
    singleTarget: 'dead_token',
  },
  { code: '20301', reason: 'send_failed', reaction: 'ambiguous', singleTarget: 'fail' },
  // The device is usually offline and may come back.
  {
    code: '65003',
    reason: 'device_not_found',
    reaction: 'ambiguous',
    singleTarget: 'fail',
    isOfDevice: true,
  },
  configError('21301', 'auth_failed', 'xiaomiSecret'),
  configError('21302', 'token_auth_failed', 'xiaomiSecret'),
  configError('21303', 'request_restricted', 'xiaomiForbidden'),
  configError('10036', 'operation_forbidden', 'xiaomiForbidden'),
  configError('22000', 'illegal_app', 'xiaomiApp'),
  configError('22006', 'bad_app_id', 'xiaomiApp'),
  configError('22007', 'bad_app_key', 'xiaomiApp'),
  configError('22022', 'bad_package_name', 'xiaomiApp'),
  configError('10031', 'app_blacklisted', 'xiaomiBlacklist'),
  configError('10033', 'app_blacklisted', 'xiaomiBlacklist'),
  configError('27001', 'invalid_channel', 'xiaomiChannel'),
  configError('26006', 'needs_review', 'xiaomiReview'),
];

const ruleFor = responseTable(responseRules);

/**
 * Rule for devices that a successful response lists in `bad_regids` (protocol/xiaomi.md#answers).
 */
export const invalidRegId: ResponseRule = {
  code: 'bad_regids',
  reason: 'bad_regid',
  reaction: 'dead_token',
};

/** Rule for `bad_regids` if the device may belong to another region. */
export const unknownInRegion: ResponseRule = {
  code: 'bad_regids',
  reason: 'unknown_in_region',
  reaction: 'fail',
  isOfDevice: true,
};

/**
 * Rule for devices that a successful response excludes because the quota of their notification
 * channel is used up (protocol/xiaomi.md#answers).
 */
export const channelQuotaExceeded: ResponseRule = {
  code: 'channel_exceed_quota',
  reason: 'channel_quota_exceeded',
  reaction: 'cap',
};

/** Returns the rule of a response. For code 20301, the reason decides too. */
export function ruleForResponse(code: string | number, reason: unknown): ResponseRule {
  const isAboutTargets = typeof reason === 'string' && /\bno valid targets?\b/i.test(reason);
  return ruleFor(String(code) === '20301' && isAboutTargets ? '20301 no valid target' : code);
}

/**
 * Changes a rule so that it never marks a token as dead. Used if the device's region is uncertain.
 */
export function forUncertainRegion(rule: ResponseRule): ResponseRule {
  if (rule.reaction === 'ambiguous') return { ...rule, singleTarget: 'fail' };
  return rule;
}
