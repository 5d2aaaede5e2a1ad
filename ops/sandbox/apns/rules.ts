/** Checks of requests, as APNs makes them (protocol/apns.md#request and protocol/apns.md#answers). Pure. */
import type { IncomingHttpHeaders } from 'node:http2';
import type { Refusal } from './tokens.ts';

/** Push type → suffix of its topic; `mdm` has a topic of its own (protocol/apns.md#push-types). */
const suffixes = new Map([
  ['alert', ''],
  ['background', ''],
  ['voip', '.voip'],
  ['complication', '.complication'],
  ['fileprovider', '.pushkit.fileprovider'],
  ['mdm', ''],
  ['liveactivity', '.push-type.liveactivity'],
  ['location', '.location-query'],
  ['pushtotalk', '.voip-ptt'],
  ['controls', '.push-type.controls'],
  ['widgets', '.push-type.widgets'],
]);

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

const pathPrefix = '/3/device/';
const tokenForm = /^[0-9a-fA-F]{64,200}$/;
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns the device token of a request, or the refusal of a request without a valid one. */
export function deviceTokenOf(headers: IncomingHttpHeaders): string | Refusal {
  const path = headers[':path'] ?? '';
  if (headers[':method'] !== 'POST') return refusals.method;
  if (!path.startsWith(pathPrefix)) return refusals.badPath;
  const token = path.slice(pathPrefix.length);
  if (token === '') return refusals.missingToken;
  return tokenForm.test(token) ? token : refusals.badToken;
}

/** Checks topic and push type together: each type has its own suffix. */
export function checkTopic(headers: IncomingHttpHeaders, topics: readonly string[]): Refusal | undefined {
  const pushType = headers['apns-push-type'] ?? 'alert';
  const topic = headers['apns-topic'];
  const suffix = typeof pushType === 'string' ? suffixes.get(pushType) : undefined;
  if (suffix === undefined) return refusals.pushType;
  if (typeof topic !== 'string' || topic === '')
    return topics.length === 1 ? undefined : refusals.missingTopic;
  if (!topic.endsWith(suffix)) return refusals.badTopic;
  const base = suffix === '' ? topic : topic.slice(0, -suffix.length);
  return topics.includes(base) || topics.includes(topic) ? undefined : refusals.disallowed;
}

/** Checks the remaining headers. */
export function checkHeaders(headers: IncomingHttpHeaders): Refusal | undefined {
  const priority = headers['apns-priority'] ?? '10';
  if (priority !== '10' && priority !== '5' && priority !== '1') return refusals.priority;
  if (headers['apns-push-type'] === 'background' && priority !== '5') return refusals.priority;
  const expiration = headers['apns-expiration'];
  if (expiration !== undefined && !/^\d{1,15}$/.test(String(expiration))) return refusals.expiration;
  const collapseId = headers['apns-collapse-id'];
  if (collapseId !== undefined && Buffer.byteLength(String(collapseId)) > 64) return refusals.collapse;
  const messageId = headers['apns-id'];
  if (messageId !== undefined && !uuidForm.test(String(messageId))) return refusals.messageId;
  return undefined;
}

/** Checks size and form of the payload. A body equal to `lastGood` is not parsed again. */
export function checkPayload(
  headers: IncomingHttpHeaders,
  body: Buffer,
  lastGood: Buffer,
): Refusal | undefined {
  if (body.length === 0) return refusals.empty;
  if (body.length > (headers['apns-push-type'] === 'voip' ? 5120 : 4096)) return refusals.tooLarge;
  if (body.equals(lastGood)) return undefined;
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    // Apple's table has no reason for malformed JSON or an alert without content; PayloadEmpty is the nearest one.
    if (typeof parsed !== 'object' || parsed === null || !('aps' in parsed)) return refusals.empty;
    const isShown = (headers['apns-push-type'] ?? 'alert') === 'alert';
    return isShown && JSON.stringify(parsed.aps) === '{}' ? refusals.empty : undefined;
  } catch {
    return refusals.empty;
  }
}
