/**
 * Parses responses of OPPO (protocol/oppo.md#single-device to protocol/oppo.md#broadcast). The code
 * is in the body, and single devices of a successful response may have failed.
 */
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import {
  configError,
  invalidMessage,
  type ResponseRule,
  rateLimited,
  responseTable,
  ruleForReply,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';

// Response table of OPPO (protocol/oppo.md#codes; protocol/oppo.md#broadcast for 10001 and 10004).
// A code may apply to a whole response or to one device in it.

export const responseRules: readonly ResponseRule[] = [
  { code: '0', reason: 'ok', reaction: 'sent' },
  { code: '-1', reason: 'unavailable', reaction: 'retry' },
  // OPPO's own client reports this code if a response is not JSON.
  { code: '-3', reason: 'unreadable', reaction: 'retry' },
  rateLimited('-2', 'flow_control'),
  rateLimited('13', 'app_call_limited'),
  rateLimited('55', 'app_call_frequency'),
  { code: '11', reason: 'auth_token_invalid', reaction: 'renew_token', hint: 'oppoTokenRefused' },
  { code: '29', reason: 'auth_token_missing', reaction: 'renew_token', hint: 'oppoTokenRefused' },
  configError('14', 'app_key_invalid', 'oppoCredentials'),
  configError('15', 'app_key_missing', 'oppoCredentials'),
  configError('16', 'signature_invalid', 'oppoCredentials'),
  configError('17', 'signature_missing', 'oppoCredentials'),
  configError('18', 'timestamp_missing', 'oppoTime'),
  configError('19', 'timestamp_invalid', 'oppoTime'),
  configError('26', 'ip_blacklisted', 'oppoAddress'),
  configError('27', 'access_denied', 'oppoForbidden'),
  configError('28', 'app_disabled', 'oppoForbidden'),
  configError('30', 'api_permission_denied', 'oppoForbidden'),
  invalidMessage('12', 'http_action_not_allowed'),
  invalidMessage('20', 'method_invalid'),
  invalidMessage('21', 'method_missing'),
  invalidMessage('22', 'version_missing'),
  invalidMessage('23', 'version_invalid'),
  invalidMessage('24', 'version_unsupported'),
  invalidMessage('25', 'encoding_invalid'),
  invalidMessage('40', 'argument_missing'),
  // Concerns the message or a registration id. It is not reliable for a single device.
  { code: '41', reason: 'argument_invalid', reaction: 'ambiguous', singleTarget: 'fail' },
  {
    code: '10000',
    reason: 'registration_id_invalid',
    reaction: 'ambiguous',
    singleTarget: 'dead_token',
  },
  { code: '10001', reason: 'unsubscribed', reaction: 'ambiguous', singleTarget: 'dead_token' },
  // The device is listed twice in the request. The message was sent to it.
  { code: '10004', reason: 'repeated', reaction: 'sent' },
  // OPPO already has a message with our id, so the message was sent before.
  { code: '32', reason: 'duplicate', reaction: 'sent' },
  // The saved message no longer exists. The next attempt saves it again.
  { code: '31', reason: 'data_not_exist', reaction: 'retry' },
  { code: '33', reason: 'day_quota_exceeded', reaction: 'cap' },
  { code: '42', reason: 'day_quota_of_saved_messages_exceeded', reaction: 'cap' },
  invalidMessage('34', 'day_quota_of_pictures_exceeded'),
  invalidMessage('51', 'picture_invalid'),
  invalidMessage('59', 'backup_url_not_permitted'),
  configError('54', 'template_invalid', 'oppoTemplate'),
  configError('67', 'category_not_permitted', 'oppoCategory'),
  configError('69', 'global_limit', 'oppoLimit'),
];

export const ruleFor = responseTable(responseRules);

/**
 * Number of single-device requests with code 41, without any success, after which the message
 * counts as invalid.
 */
const maxRefusals = 3;

/**
 * Distinguishes an invalid message from an invalid device in a request
 * (protocol/gateways.md#ambiguous-answers).
 */
export class InvalidMessageDetector {
  #isTaken = false;
  #refusals = 0;

  /** Returns the rule that applies to a request with this number of devices. */
  classify(rule: ResponseRule, devices: number): ResponseRule {
    if (rule.reaction === 'sent') this.#isTaken = true;
    if (rule.code !== '41' || devices > 1 || this.#isTaken) return rule;
    this.#refusals += 1;
    return this.#refusals < maxRefusals ? rule : { ...rule, reaction: 'fail_push' };
  }
}

/** Parses the response to messages. In a batch, each device has its own message id. */
export function parseResponse(reply: HttpResponse): ExchangeResult {
  const body = parseObject(reply.body);
  const code = body?.code;
  if (!body || (typeof code !== 'number' && typeof code !== 'string')) return unreadable(reply);
  const rule = ruleForReply(reply.status, ruleFor(code));
  const answer = {
    kind: 'parsed',
    status: reply.status,
    rule,
    retryAfterMs: reply.retryAfterMs,
  } as const;
  if (rule.code !== '0') return answer;
  const data = dataOf(body.data);
  if (Array.isArray(data)) return { ...answer, ...itemsOf(data) };
  if (!isJsonObject(data)) return answer;
  return { ...answer, messageId: idOf(data), targets: groupsOf(data) };
}

/** Parses `data`, which is sometimes JSON text. */
export function dataOf(value: Json | undefined): Json | undefined {
  if (typeof value !== 'string') return value;
  try {
    return parseExactly(value);
  } catch {
    return undefined;
  }
}

/** Parses the response to a batch: one item per message. */
function itemsOf(items: readonly Json[]): {
  targets: Map<string, ResponseRule>;
  messageIds: Map<string, string>;
} {
  const targets = new Map<string, ResponseRule>();
  const messageIds = new Map<string, string>();
  for (const item of items) {
    if (!isJsonObject(item)) continue;
    const deviceToken = item.registrationId;
    if (typeof deviceToken !== 'string') continue;
    const { errorCode } = item;
    const isRefused =
      (typeof errorCode === 'number' || typeof errorCode === 'string') && Number(errorCode) !== 0;
    if (isRefused) targets.set(deviceToken, ruleFor(errorCode));
    const id = idOf(item);
    if (id !== undefined) messageIds.set(deviceToken, id);
  }
  return { targets, messageIds };
}

/** Parses the response to a broadcast: lists of failed devices by code. */
function groupsOf(data: JsonObject): Map<string, ResponseRule> {
  const targets = new Map<string, ResponseRule>();
  for (const [code, group] of Object.entries(data)) {
    if (!/^-?\d+$/.test(code) || !Array.isArray(group)) continue;
    for (const deviceToken of group)
      if (typeof deviceToken === 'string') targets.set(deviceToken, ruleFor(code));
  }
  return targets;
}

const idOf = ({ message_id: saved, messageId, task_id: task }: JsonObject): string | undefined => {
  const id = messageId ?? task ?? saved;
  return typeof id === 'string' && id !== '' ? id.slice(0, 200) : undefined;
};
