/**
 * Parses OPPO's responses (protocol/oppo.md#single-device to protocol/oppo.md#broadcast): the code is in the body, and
 * single devices of a success may fail.
 */
import { isJsonObject, type Json, type JsonObject, parseExactly } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { parseObject } from '../../kit/json.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import { type ResponseRule, ruleForReply } from '../../kit/response-rules.ts';
import { ruleFor } from './errors.ts';

/** Parses the response to messages; in a batch each device has its own message id. */
export function parseResponse(reply: HttpResponse): ExchangeResult {
  const body = parseObject(reply.body);
  const code = body?.code;
  if (!body || (typeof code !== 'number' && typeof code !== 'string')) return unreadable(reply);
  const rule = ruleForReply(reply.status, ruleFor(code));
  const answer = { kind: 'parsed', status: reply.status, rule, retryAfterMs: reply.retryAfterMs } as const;
  if (rule.code !== '0') return answer;
  const data = dataOf(body.data);
  if (Array.isArray(data)) return { ...answer, ...itemsOf(data) };
  if (!isJsonObject(data)) return answer;
  return { ...answer, messageId: idOf(data), targets: groupsOf(data) };
}

/** Parses `data`, which sometimes is JSON text. */
export function dataOf(value: Json | undefined): Json | undefined {
  if (typeof value !== 'string') return value;
  try {
    return parseExactly(value);
  } catch {
    return undefined;
  }
}

/** Parses a batch: one item per message. */
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

/** Parses a broadcast: lists of failed devices by code. */
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
