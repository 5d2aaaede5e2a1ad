/**
 * Checks of requests that APNs makes (protocol/apns.md#request and protocol/apns.md#answers). Pure.
 */
import type { IncomingHttpHeaders } from 'node:http2';
import { pushTypes } from '../../../connectors/apns/push-types.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { Refusal } from './tokens.ts';

const typeOf = (headers: IncomingHttpHeaders): string =>
  String(headers['apns-push-type'] ?? 'alert');

const refusal = (status: number, reason: string): Refusal => ({ status, reason });

const refusals = {
  badPath: refusal(404, 'BadPath'),
  method: refusal(405, 'MethodNotAllowed'),
  missingToken: refusal(400, 'MissingDeviceToken'),
  badToken: refusal(400, 'BadDeviceToken'),
  missingTopic: refusal(400, 'MissingTopic'),
  badTopic: refusal(400, 'BadTopic'),
  disallowed: refusal(400, 'TopicDisallowed'),
  pushType: refusal(400, 'InvalidPushType'),
  priority: refusal(400, 'BadPriority'),
  expiration: refusal(400, 'BadExpirationDate'),
  collapse: refusal(400, 'BadCollapseId'),
  messageId: refusal(400, 'BadMessageId'),
  empty: refusal(400, 'PayloadEmpty'),
  tooLarge: refusal(413, 'PayloadTooLarge'),
} as const;

/** Beginning of the path of a request, before the device token. */
export const pathPrefix = '/3/device/';
const tokenForm = /^[0-9a-fA-F]{64,512}$/;
/** Tokens of Live Activities have any length. */
const activityTokenForm = /^[0-9a-fA-F]{1,512}$/;
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns the device token of a request, or the refusal if there is no valid token. */
export function deviceTokenOf(headers: IncomingHttpHeaders): string | Refusal {
  const path = headers[':path'] ?? '';
  if (headers[':method'] !== 'POST') return refusals.method;
  if (!path.startsWith(pathPrefix)) return refusals.badPath;
  const token = path.slice(pathPrefix.length);
  if (token === '') return refusals.missingToken;
  const form = typeOf(headers) === 'liveactivity' ? activityTokenForm : tokenForm;
  return form.test(token) ? token : refusals.badToken;
}

/**
 * Checks topic and push type together, because each push type has its own suffix. A topic with a
 * leading `=` must match exactly.
 */
export function checkTopic(
  headers: IncomingHttpHeaders,
  topics: readonly string[],
): Refusal | undefined {
  const topic = headers['apns-topic'];
  const suffix = pushTypes.get(typeOf(headers))?.topicSuffix;
  if (suffix === undefined) return refusals.pushType;
  if (typeof topic !== 'string' || topic === '')
    return topics.length === 1 ? undefined : refusals.missingTopic;
  if (!topic.endsWith(suffix)) return refusals.badTopic;
  const base = suffix === '' ? topic : topic.slice(0, -suffix.length);
  return [base, topic, `=${topic}`].some((one) => topics.includes(one))
    ? undefined
    : refusals.disallowed;
}

/** Checks the remaining headers. */
export function checkHeaders(headers: IncomingHttpHeaders): Refusal | undefined {
  const priority = headers['apns-priority'] ?? '10';
  const { expiresAtOnce, priorities = [] } = pushTypes.get(typeOf(headers)) ?? {};
  if (!priorities.some((one) => one === priority)) return refusals.priority;
  const expiration = headers['apns-expiration'];
  if (expiration !== undefined && !/^\d{1,15}$/.test(String(expiration)))
    return refusals.expiration;
  if (expiresAtOnce && expiration !== '0') return refusals.expiration;
  const collapseId = headers['apns-collapse-id'];
  // Not mentioned for Live Activities, whose timestamps order their states.
  if (collapseId !== undefined && typeOf(headers) === 'liveactivity') return refusals.collapse;
  if (collapseId !== undefined && Buffer.byteLength(String(collapseId)) > 64)
    return refusals.collapse;
  const messageId = headers['apns-id'];
  if (messageId !== undefined && !uuidForm.test(String(messageId))) return refusals.messageId;
  return undefined;
}

/** Checks size and form of the payload. A body that equals `lastGood` is not parsed again. */
export function checkPayload(
  headers: IncomingHttpHeaders,
  body: Buffer,
  lastGood: Buffer,
): Refusal | undefined {
  if (body.length === 0) return refusals.empty;
  if (body.length > (pushTypes.get(typeOf(headers))?.maxBytes ?? 4096)) return refusals.tooLarge;
  if (body.equals(lastGood)) return undefined;
  // Apple's table has no reason for malformed JSON or wrong members. PayloadEmpty is the nearest
  // reason.
  return bodyProblem(body, typeOf(headers)) === undefined ? undefined : refusals.empty;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Returns in words why an Apple device would refuse a body; undefined if it would accept it. */
export function bodyProblem(body: Buffer, pushType: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(utf8.decode(body));
  } catch {
    return 'no JSON in UTF-8';
  }
  if (!isJsonObject(parsed) || Object.keys(parsed).length === 0) return 'no members';
  const { aps } = parsed;
  if (pushTypes.get(pushType)?.hasAps === false)
    return aps === undefined ? undefined : 'a body with aps';
  if (aps === undefined) return needsAps.has(pushType) ? 'a body without aps' : undefined;
  if (!isJsonObject(aps)) return 'aps is no object';
  return memberProblem(aps, pushType) ?? formProblem(aps, pushType);
}

/** Types whose body must have `aps`. Others, such as VoIP, may have one. */
const needsAps = new Set(['alert', 'background', 'liveactivity', 'controls', 'widgets']);

const isString = (value: Json): boolean => typeof value === 'string';
const isBit = (value: Json): boolean => value === 0 || value === 1;
const isNumber = (value: Json): boolean => typeof value === 'number';

/** Checks of members of `aps` by name. */
const forms: Readonly<Record<string, (value: Json) => boolean>> = {
  badge: (value) => typeof value === 'number' && Number.isInteger(value) && value >= 0,
  alert: (value) => isString(value) || isJsonObject(value),
  sound: (value) => isString(value) || isJsonObject(value),
  category: isString,
  'thread-id': isString,
  'target-content-id': isString,
  'filter-criteria': isString,
  'content-available': isBit,
  'mutable-content': isBit,
  'interruption-level': (value) =>
    ['passive', 'active', 'time-sensitive', 'critical'].includes(String(value)),
  'relevance-score': isNumber,
  event: (value) => ['start', 'update', 'end'].includes(String(value)),
  timestamp: isNumber,
  'stale-date': isNumber,
  'dismissal-date': isNumber,
  'content-state': isJsonObject,
  attributes: isJsonObject,
  'attributes-type': isString,
  'input-push-token': (value) => value === 1,
  'input-push-channel': isString,
  'content-changed': (value) => value === true,
};

function memberProblem(aps: JsonObject, pushType: string): string | undefined {
  const wrong = Object.entries(aps).find(([name, value]) => forms[name]?.(value) === false);
  if (wrong) return `${wrong[0]} is ${JSON.stringify(wrong[1])}`;
  const { 'relevance-score': score = 0 } = aps;
  return pushType !== 'liveactivity' && (Number(score) < 0 || Number(score) > 1)
    ? 'a relevance-score over 1'
    : undefined;
}

/** Members that a push type requires. */
const needed: Readonly<Record<string, readonly string[]>> = {
  background: ['content-available'],
  liveactivity: ['event', 'timestamp'],
  'liveactivity start': ['content-state', 'attributes-type', 'attributes', 'alert'],
  'liveactivity update': ['content-state'],
  controls: ['content-changed'],
  widgets: ['content-changed'],
};

function formProblem(aps: JsonObject, pushType: string): string | undefined {
  const showing = ['alert', 'badge', 'sound'].filter((name) => name in aps);
  if (pushType === 'alert' && Object.keys(aps).length === 0) return 'nothing to show';
  if (['background', 'controls', 'widgets'].includes(pushType) && showing.length > 0)
    return `${showing[0]}`;
  const missing = [...(needed[pushType] ?? []), ...(needed[`${pushType} ${aps.event}`] ?? [])].find(
    (name) => !(name in aps),
  );
  if (missing !== undefined) return `no ${missing}`;
  return 'input-push-token' in aps && 'input-push-channel' in aps
    ? 'both kinds of input'
    : undefined;
}
