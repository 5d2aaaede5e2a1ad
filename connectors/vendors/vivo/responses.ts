/**
 * Parses responses of vivo (protocol/vivo.md#message, protocol/vivo.md#lists). The code is in the
 * body, and single devices of a successful response may have failed.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import {
  configError,
  invalidMessage,
  type ResponseRule,
  responseTable,
  ruleForReply,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';

// Response tables of vivo (protocol/vivo.md#codes; protocol/vivo.md#lists for single devices of a
// list).

const badField = (code: string): ResponseRule => ({
  code,
  reason: reason('fieldRefused', { field: code }),
  reaction: 'fail_push',
});

/** Daily quota of lists. Single messages are not affected. */
export const listQuotaCode = '10252';
/** vivo accepts operation messages only from 07:00 to 23:00 China time. */
export const hoursCode = '10071';
/** The saved message is too old and must be saved again. */
export const taskExpiredCode = '10155';

export const responseRules: readonly ResponseRule[] = [
  { code: '0', reason: 'ok', reaction: 'sent' },
  {
    code: '10000',
    reason: 'auth_failed',
    reaction: 'renew_token',
    hint: 'vivoTokenRefused',
  },
  configError('10094', 'token_of_another_app', 'vivoTokenApp'),
  configError('10200', 'app_id_missing', 'vivoCredentials'),
  configError('10201', 'app_id_invalid', 'vivoCredentials'),
  configError('10202', 'app_key_missing', 'vivoCredentials'),
  configError('10203', 'app_key_invalid', 'vivoCredentials'),
  configError('10204', 'timestamp_missing', 'vivoCredentials'),
  configError('10205', 'sign_missing', 'vivoCredentials'),
  configError('10206', 'sign_invalid', 'vivoCredentials'),
  configError('10207', 'timestamp_invalid', 'vivoTime'),
  configError('10043', 'push_closed', 'vivoClosed'),
  configError('10045', 'app_in_review', 'vivoReview'),
  configError('10082', 'system_messages_off', 'vivoSystemMessages'),
  configError('10051', 'classification_invalid', 'vivoCategory'),
  configError('10096', 'category_invalid', 'vivoCategory'),
  configError('10097', 'category_contradicts_classification', 'vivoCategory'),
  // The device is unknown, the app was uninstalled, or its data was cleared.
  { code: '10302', reason: 'reg_id_invalid', reaction: 'ambiguous', singleTarget: 'dead_token' },
  // Notifications are off, or the device was offline for a long time. It may come back.
  {
    code: '10311',
    reason: 'device_unreachable_now',
    reaction: 'ambiguous',
    singleTarget: 'fail',
    isOfDevice: true,
  },
  { code: '10070', reason: 'operation_quota_exceeded', reaction: 'cap' },
  { code: '10073', reason: 'system_quota_exceeded', reaction: 'cap' },
  { code: listQuotaCode, reason: 'list_quota_exceeded', reaction: 'cap' },
  { code: '10254', reason: 'broadcast_quota_exceeded', reaction: 'cap' },
  { code: hoursCode, reason: 'outside_sending_hours', reaction: 'retry' },
  { code: '10072', reason: 'too_fast', reaction: 'throttle' },
  ...['10050', '10054', '10055', '10056', '10057', '10058', '10059', '10060'].map(badField),
  ...['10065', '10067', '10095', '10304', '10305', '10306'].map(badField),
  invalidMessage('10352', 'request_id_missing'),
  invalidMessage('10353', 'request_id_too_long'),
  invalidMessage('10085', 'looks_like_a_test'),
  invalidMessage('10104', 'looks_like_a_test'),
  invalidMessage('10103', 'sensitive_words'),
  invalidMessage('10150', 'reg_ids_missing'),
  invalidMessage('10151', 'task_id_missing'),
  invalidMessage('10152', 'task_id_invalid'),
  invalidMessage('10153', 'bad_number_of_reg_ids'),
  { code: taskExpiredCode, reason: 'task_expired', reaction: 'retry' },
  invalidMessage('10800', 'too_many_registration_tokens'),
  invalidMessage('10801', 'notification_missing'),
];

export const ruleFor = responseTable(responseRules);

/**
 * Rules for the `status` of a single device (protocol/vivo.md#lists). The meanings of 3 and 5 come
 * from weak sources, so they do not mark a token as dead.
 */
export const userRules: readonly ResponseRule[] = [
  { code: '1', reason: 'unknown_user', reaction: 'dead_token' },
  { code: '2', reason: 'uninstalled_or_unsubscribed', reaction: 'dead_token' },
  { code: '3', reason: 'inactive', reaction: 'fail', isOfDevice: true },
  { code: '4', reason: 'no_test_user', reaction: 'fail' },
  { code: '5', reason: 'notifications_off', reaction: 'fail', isOfDevice: true },
];

const userRuleFor = responseTable(userRules, { reason: 'unknown_user_status', reaction: 'fail' });

/** Parses the response to a message to one device. */
export function parseSingleResponse(reply: HttpResponse, deviceToken: string): ExchangeResult {
  const { body, result } = parseCallResponse(reply);
  if (!body || result.kind !== 'parsed') return result;
  const { invalidUser } = body;
  const isAboutUser = result.rule.code === '0' || result.rule.code === '10302';
  if (!isAboutUser || !isJsonObject(invalidUser)) return result;
  return { ...result, targets: new Map([[deviceToken, userRule(invalidUser)]]) };
}

/** Parses the response to a list of devices. */
export function parseListResponse(reply: HttpResponse): ExchangeResult {
  const { body, result } = parseCallResponse(reply);
  if (!body || result.kind !== 'parsed' || result.rule.code !== '0') return result;
  const targets = new Map<string, ResponseRule>();
  for (const user of Array.isArray(body.invalidUsers) ? body.invalidUsers : [])
    if (isJsonObject(user) && typeof user.userid === 'string')
      targets.set(user.userid, userRule(user));
  return { ...result, targets };
}

/** Parses any response: its code, and the task id, which is vivo's message id. */
export function parseCallResponse(reply: HttpResponse): {
  body?: JsonObject;
  result: ExchangeResult;
} {
  const body = parseObject(reply.body);
  const code = body?.result;
  if (!body || (typeof code !== 'number' && typeof code !== 'string'))
    return { result: unreadable(reply) };
  const { retryAfterMs, status } = reply;
  const messageId = taskOf(body.taskId);
  const rule = ruleForReply(status, ruleFor(code));
  return { body, result: { kind: 'parsed', status, rule, messageId, retryAfterMs } };
}

const userRule = ({ status }: JsonObject): ResponseRule =>
  userRuleFor(typeof status === 'number' || typeof status === 'string' ? status : '');

const taskOf = (value: Json | undefined): string | undefined =>
  (typeof value === 'string' && value !== '') ||
  typeof value === 'number' ||
  typeof value === 'bigint'
    ? String(value).slice(0, 200)
    : undefined;
