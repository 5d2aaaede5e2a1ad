/**
 * Parses vivo's responses (protocol/vivo.md#message, protocol/vivo.md#lists): the code is in the body, and single
 * devices of a success may fail.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import { parseObject } from '../../kit/json.ts';
import { type ExchangeResult, unreadable } from '../../kit/multicast.ts';
import { type ResponseRule, ruleForReply } from '../../kit/response-rules.ts';
import { ruleFor, userRuleFor } from './errors.ts';

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
    if (isJsonObject(user) && typeof user.userid === 'string') targets.set(user.userid, userRule(user));
  return { ...result, targets };
}

/** Parses any response: its code, and the task, which is vivo's message id. */
export function parseCallResponse(reply: HttpResponse): { body?: JsonObject; result: ExchangeResult } {
  const body = parseObject(reply.body);
  const code = body?.result;
  if (!body || (typeof code !== 'number' && typeof code !== 'string')) return { result: unreadable(reply) };
  const { retryAfterMs, status } = reply;
  const messageId = taskOf(body.taskId);
  const rule = ruleForReply(status, ruleFor(code));
  return { body, result: { kind: 'parsed', status, rule, messageId, retryAfterMs } };
}

const userRule = ({ status }: JsonObject): ResponseRule =>
  userRuleFor(typeof status === 'number' || typeof status === 'string' ? status : '');

const taskOf = (value: Json | undefined): string | undefined =>
  (typeof value === 'string' && value !== '') || typeof value === 'number' || typeof value === 'bigint'
    ? String(value).slice(0, 200)
    : undefined;
