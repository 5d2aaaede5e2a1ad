/**
 * Renders `data` of a push as a message of vivo (protocol/vivo.md#message;
 * protocol/push.md#what-a-tap-opens). A tap on the notification opens an activity of the client
 * library, which gets the app's members. Pure.
 */

import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason, reasonAs } from '../../../shared/domain/reasons.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
  type TestLimit,
} from '../../contract/connector.ts';
import {
  type AndroidContent,
  androidContent,
  bodySizeError,
  firstChars,
  titleOf,
} from '../../kit/android.ts';
import { withClass } from '../../kit/class-layers.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import { idsIn, withIds } from '../../kit/recall.ts';
import { isWebUrl } from '../../kit/rich-content.ts';
import {
  charsOf,
  contentRefused,
  deepMerge,
  filled,
  flag,
  int,
  jsonObject,
  list,
  matching,
  object,
  oneName,
  oneNumber,
  text,
  tooLong,
  unfitMember,
} from '../../kit/values.ts';

// Members of vivo's message and their rules (protocol/vivo.md#message), checked before anything is
// sent.

/** Categories of the two classes of messages, system and operation (protocol/vivo.md#message). */
const systemCategories = ['IM', 'ACCOUNT', 'TODO', 'DEVICE_REMINDER', 'ORDER', 'SUBSCRIPTION'];
const operationCategories = ['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'];

export const vivoMembers = new MemberTable(
  [
    ...membersAt('', {
      notifyType: oneNumber(1, 2, 3, 4),
      title: filled(40),
      content: filled(100),
      timeToLive: int(60, 86_400, 'seconds'),
      skipType: oneNumber(1, 2, 3, 4),
      skipContent: filled(1024),
      networkType: oneNumber(-1, 1),
      classification: oneNumber(0, 1),
      category: oneName([...systemCategories, ...operationCategories]),
      clientCustomMap: jsonObject,
      pushMode: oneNumber(0, 1),
      notifyId: int(1, 2_147_483_647),
      profileId: filled(64),
      sendOnline: flag,
      foregroundShow: flag,
      addBadge: flag,
      auditReview: list(object, 'a list of objects'),
      liveMessage: object,
      extra: part,
    }),
    ...membersAt('extra', { callback: text(0, 128), 'callback.param': text(0, 64) }),
  ],
  { flat: [], unknown: { parent: '' } },
);

/** Returns the class of a message. vivo counts quotas per class. */
const kindOf = ({ category, classification }: JsonObject): 'operation' | 'system' =>
  classification === 1 || systemCategories.some((one) => one === category) ? 'system' : 'operation';

/** Skip types that require `skipContent`. */
const needsContent = new Set<Json | undefined>([2, 4]);
const webUrl = matching(/^https?:\/\//, 'an http:// or https:// URL');

/** Returns the first error that concerns several members of a message, or null. */
function messageProblem(message: JsonObject): string | null {
  for (const name of ['title', 'content', 'notifyType', 'skipType'])
    if (message[name] === undefined)
      return reason('missingMember', { connector: 'vendor_e', member: name });
  const { category, classification, skipContent = null, skipType, title } = message;
  if (charsOf(String(title)) > 40) return tooLong('title', 40, 'vendor_e');
  if (needsContent.has(skipType) && skipContent === null)
    return contentRefused('skipType of vendor_e needs skipContent');
  if (skipType === 2 && webUrl.read(skipContent) === undefined)
    return reasonAs(`skipContent of vendor_e must be ${webUrl.expected}`, 'memberRule', {
      member: 'skipContent',
      connector: 'vendor_e',
    });
  const isOperation = operationCategories.some((one) => one === category);
  if (
    category !== undefined &&
    classification !== undefined &&
    isOperation === (classification === 1)
  )
    return `classification ${classification} of vendor_e contradicts the category ${category}: leave it out`;
  return null;
}

/** Returns the error if the app's members are too long in total; null otherwise. */
function mapProblem({ clientCustomMap: map }: JsonObject) {
  const chars = isJsonObject(map) ? charsIn(map) : 0;
  return chars > maxMapChars
    ? misfit(
        unfitMember(
          'clientCustomMap',
          `must have at most ${maxMapChars} characters for vendor_e; it has ${chars}`,
        ),
      )
    : null;
}

const maxMapChars = 1024;

/** Counts the characters of all names and values. */
const charsIn = (map: JsonObject): number =>
  Object.entries(map).reduce(
    (chars, [name, value]) => chars + charsOf(name) + charsOf(String(value)),
    0,
  );

/**
 * vivo has no pass-through, and the client library sets the badge (protocol/push.md#pass-through,
 * protocol/push.md#badges-by-vendor).
 */
export const can: Capabilities = { passThrough: false, badge: false, collapse: true };

export const limits: ConnectorLimits = {
  recipientsPerRequest: 1000,
  bodyBytes: 4096,
  titleChars: 40,
  alertChars: 100,
};

/** Message classes with separate quotas. `test` has no quota. */
type MessageClass = 'operation' | 'system' | 'test';

/** Rendered push: the message without devices, request id and URL for receipts. */
export interface VivoPayload {
  message: JsonObject;
  messageClass: MessageClass;
  /**
   * True if a repeat is hidden: the device shows only the last message with the same `notifyId`.
   */
  isRepeatHidden: boolean;
}

const lifeS = { min: 60, max: 86_400 };
const titleChars = 40;

/**
 * Members that select devices or identify the call, which callers cannot set. vivo accepts no badge
 * number.
 */
const ownNames = new Set([
  'appId',
  'regId',
  'regIds',
  'alias',
  'aliases',
  'taskId',
  'requestId',
  'badge',
]);

/** Activity of the client library (protocol/push.md#what-a-tap-opens). */
const detail =
  'intent://cn.leancloud.push/detail#Intent;scheme=mixpushscheme;launchFlags=0x10000000;end';

/**
 * Renders a push for vivo. `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may contain members of vivo's message, or be a complete message, which needs no
 * alert.
 */
export function renderVivo(
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<VivoPayload> {
  const content = androidContent(message, {
    connector: 'vendor_e',
    can,
    limits,
    isNative: (vendor) => typeof vendor.content === 'string',
  });
  if (!content.ok) return content;
  const { vendor, vendorKey } = content.payload;
  const named = Object.entries(vendor).filter(([name]) => !ownNames.has(name));
  const own = withClass(
    message,
    vivoMembers.arrange(Object.fromEntries(named), vendorKey),
    (members, path) => vivoMembers.arrange(members, path),
  );
  if (!own.ok) return own;
  const whole = withIds(
    withTitle(deepMerge(baseMessage(content.payload, message, own.payload), own.payload)),
    message.replaces,
  );
  const problem = messageProblem(whole);
  if (problem !== null) return { ok: false, error: problem };
  const payload = withTimeToLive(whole, message.expiresAtMs - nowMs);
  const tooLarge =
    mapProblem(payload) ??
    bodySizeError('vendor_e', Buffer.byteLength(JSON.stringify(payload)), limits);
  if (tooLarge) return tooLarge;
  const isRepeatHidden = payload.notifyId !== undefined;
  return {
    ok: true,
    payload: { message: payload, messageClass: classOf(payload), isRepeatHidden },
  };
}

/** Returns the number with which a later message replaces a message; null without one. */
export function identityOfVivo(message: PushMessage): JsonObject | null {
  const rendering = renderVivo(message);
  return rendering.ok ? idsIn(rendering.payload.message, ['notifyId']) : null;
}

/** Returns the message for one device. */
export const previewVivo = ({ message }: VivoPayload): string => JSON.stringify(message);

/**
 * Returns the limits of a test push: the console accepts 20 test devices, and vivo limits tests per
 * day (protocol/vivo.md#limits).
 */
export function testLimit(message: PushMessage): TestLimit | null {
  const rendering = renderVivo(message);
  if (!rendering.ok || rendering.payload.messageClass !== 'test') return null;
  const isSystem = kindOf(rendering.payload.message) === 'system';
  return { pushesPerDay: isSystem ? 10_000 : 100, devicesPerPush: 20 };
}

function baseMessage(
  content: AndroidContent,
  { objectId }: PushMessage,
  own: JsonObject,
): JsonObject {
  const {
    alert,
    custom,
    data,
    rich: { url },
  } = content;
  const collapseId = data['collapse-id'];
  const tap = isWebUrl(url)
    ? { skipType: 2, skipContent: url }
    : { skipType: 4, skipContent: detail };
  const group = typeof collapseId === 'string' && collapseId !== '' ? collapseId : objectId;
  return {
    notifyType: 4,
    title: titleOf(content, titleChars),
    content: alert,
    // Other skip types have other content or none.
    ...(own.skipType === undefined ? tap : {}),
    networkType: -1,
    clientCustomMap: custom,
    // Stays the same in all attempts. A repeat replaces the notification; another push does not.
    notifyId: notifyIdOf(group),
  };
}

/** Converts values that are not strings to JSON text, because vivo only passes on strings. */
const texts = (members: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]: [string, Json]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );

/** Returns a number from 1 to 2147483647 that depends only on the text. */
const notifyIdOf = (text: string): number =>
  (createHash('sha256').update(text).digest().readUInt32BE(0) % 2_147_483_647) + 1;

/** Completes a message: adds a title if it is empty, and removes an empty map of app members. */
function withTitle(message: JsonObject): JsonObject {
  const { clientCustomMap: map, content, title, ...rest } = message;
  const isEmpty = isJsonObject(map) && Object.keys(map).length === 0;
  const shownTitle =
    title === '' && typeof content === 'string' ? firstChars(content.trim(), titleChars) : title;
  return {
    ...rest,
    ...(shownTitle === undefined ? {} : { title: shownTitle }),
    ...(content === undefined ? {} : { content }),
    ...(map === undefined || isEmpty
      ? {}
      : { clientCustomMap: isJsonObject(map) ? texts(map) : map }),
  };
}

/**
 * Sets the time to live in seconds (protocol/gateways.md#time-to-live). If less than vivo's minimum
 * is left, only online devices get the message, so that it is never late.
 */
function withTimeToLive(message: JsonObject, leftMs: number): JsonObject {
  const leftS = Math.floor(leftMs / 1000);
  if (leftS < lifeS.min) return { ...message, timeToLive: lifeS.min, sendOnline: true };
  const { timeToLive: requestedS } = message;
  return {
    ...message,
    timeToLive: Math.min(typeof requestedS === 'number' ? requestedS : lifeS.max, leftS, lifeS.max),
  };
}

const classOf = (message: JsonObject): MessageClass =>
  message.pushMode === 1 ? 'test' : kindOf(message);
