/** Reads what Huawei answers to one request (protocol/huawei.md#answers): a code as text, and in `msg` a JSON text of its own. */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { HttpResponse } from '../../../shared/http/client.ts';
import { parseObject } from '../../kit/access-token.ts';
import { type Reading, unreadable } from '../../kit/multicast.ts';
import type { Row } from '../../kit/response-rules.ts';
import { rowOf, tokenRowOf } from './errors.ts';

export type Api = 'v1' | 'v3';

/** Tokens as devices of HarmonyOS 5 and newer have them begin so (protocol/huawei.md#v3-requests). */
export const looksNewer = (token: string): boolean => token.startsWith('MAMz');

/** What an answer means to these addresses. */
export function readAnswer(reply: HttpResponse, api: Api, addresses: readonly string[]): Reading {
  const body = parseObject(reply.body);
  const { code } = body ?? {};
  if (!body || (typeof code !== 'string' && typeof code !== 'number')) return unreadable(reply);
  const { status, retryAfterMs } = reply;
  const row = rowOf(status, String(code));
  const answer = { kind: 'answer', status, row, retryAfterMs, messageId: messageIdOf(body) } as const;
  if (row.reason === 'partial') return { ...answer, ...partial(body, row, api) };
  if (row.reason === 'all_tokens_invalid') return { ...answer, targets: allInvalid(body, api, addresses) };
  return answer;
}

const messageIdOf = ({ requestId }: JsonObject): string | undefined =>
  typeof requestId === 'string' && requestId !== '' ? requestId.slice(0, 200) : undefined;

/** Some were refused: those that are named. Named nowhere, nobody knows who was sent to; it is not sent again. */
function partial({ msg }: JsonObject, row: Row, api: Api): { row: Row; targets?: ReadonlyMap<string, Row> } {
  const told = typeof msg === 'string' ? parseObject(msg) : undefined;
  const targets = told && refusedIn(told, api, Number(told.success) > 0);
  if (targets && targets.size > 0) return { row, targets };
  return { row: { ...row, reason: 'partial_unreadable', reaction: 'fail' } };
}

/** v1 says it of every token; v3 names the reason of each, and where it names none, nobody is taken for dead. */
function allInvalid({ msg }: JsonObject, api: Api, addresses: readonly string[]): ReadonlyMap<string, Row> {
  const told = typeof msg === 'string' ? parseObject(msg) : undefined;
  const named = told && refusedIn(told, api, false);
  if (named && named.size > 0) return named;
  return api === 'v1' ? new Map(addresses.map((one) => [one, oldRow(one)])) : new Map();
}

/** The refused tokens in either spelling, as a list or grouped by reason. */
function refusedIn(told: JsonObject, api: Api, hasSuccess: boolean): Map<string, Row> {
  const refused = new Map<string, Row>();
  for (const tokens of [told.illegal_tokens, told.illegalTokens]) {
    if (Array.isArray(tokens))
      for (const token of strings(tokens)) refused.set(token, api === 'v1' ? oldRow(token) : unnamed);
    if (!isJsonObject(tokens)) continue;
    for (const [reason, group] of Object.entries(tokens))
      for (const token of strings(group)) refused.set(token, grouped(reason, hasSuccess));
  }
  return refused;
}

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

const unnamed: Row = { code: 'illegalTokens', reason: 'refused_without_reason', reaction: 'fail' };

/** A newer device's token is refused by v1 for want of a service account, not because it is dead. */
function oldRow(token: string): Row {
  return looksNewer(token)
    ? { code: 'illegal_token', reason: 'needs_service_account', reaction: 'fail' }
    : tokenRowOf('illegal_token');
}

function grouped(reason: string, hasSuccess: boolean): Row {
  const row = tokenRowOf(reason);
  // Without a success the project may be the wrong one for all of them (protocol/huawei.md#answers).
  return row.reason === 'no_right' && !hasSuccess ? { ...row, reaction: 'fail' } : row;
}
