/** Reads what vivo answers (protocol/vivo.md#message, protocol/vivo.md#lists). HTTP 200 says nothing; within a success single devices may fail. */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/client.ts';
import { parseObject } from '../../kit/access-token.ts';
import { type Reading, unreadable } from '../../kit/multicast.ts';
import type { Row } from '../../kit/response-rules.ts';
import { rowOf, userRowOf } from './errors.ts';

/** The answer to a message to one device; `address` is that device. */
export function readSingle(reply: HttpResponse, address: string): Reading {
  const { body, reading } = readCall(reply);
  if (!body || reading.kind !== 'answer') return reading;
  const { invalidUser } = body;
  const isAboutUser = reading.row.code === '0' || reading.row.code === '10302';
  if (!isAboutUser || !isJsonObject(invalidUser)) return reading;
  return { ...reading, targets: new Map([[address, userRow(invalidUser)]]) };
}

/** The answer to a list of devices. */
export function readList(reply: HttpResponse): Reading {
  const { body, reading } = readCall(reply);
  if (!body || reading.kind !== 'answer' || reading.row.code !== '0') return reading;
  const targets = new Map<string, Row>();
  for (const user of Array.isArray(body.invalidUsers) ? body.invalidUsers : [])
    if (isJsonObject(user) && typeof user.userid === 'string') targets.set(user.userid, userRow(user));
  return { ...reading, targets };
}

/** Any answer: its code, and the task that vivo calls the message. */
export function readCall(reply: HttpResponse): { body?: JsonObject; reading: Reading } {
  const body = parseObject(reply.body);
  const code = body?.result;
  if (!body || (typeof code !== 'number' && typeof code !== 'string') || reply.status >= 500)
    return { reading: unreadable(reply) };
  const { retryAfterMs, status } = reply;
  const messageId = taskOf(body.taskId);
  return { body, reading: { kind: 'answer', status, row: rowOf(code), messageId, retryAfterMs } };
}

const userRow = ({ status }: JsonObject): Row =>
  userRowOf(typeof status === 'number' || typeof status === 'string' ? status : '');

const taskOf = (value: Json | undefined): string | undefined =>
  (typeof value === 'string' && value !== '') || typeof value === 'number'
    ? String(value).slice(0, 200)
    : undefined;
