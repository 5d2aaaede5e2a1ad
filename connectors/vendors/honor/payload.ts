/**
 * Renders `data` of a push as a body of Honor (protocol/honor.md#message;
 * protocol/push.md#vendor-objects, protocol/push.md#what-a-tap-opens). A tap on the notification
 * opens an intent that contains the app's members. With `silent`, the body is a data message with
 * all members. Pure.
 */

import { numberIn } from '../../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { type RichMember, richMembers } from '../../../shared/domain/pushes/rich-content.ts';
import type {
  Capabilities,
  ConnectorLimits,
  PushMessage,
  Rendering,
  TestLimit,
} from '../../contract/connector.ts';
import { sideOf } from '../../contract/message-class.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { withClass } from '../../kit/class-layers.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import { idsIn, withIds } from '../../kit/recall.ts';
import { richNotification } from '../../kit/rich-content.ts';
import {
  deepMerge,
  duration,
  httpsUrl,
  int,
  list,
  matching,
  object,
  objectOf,
  oneName,
  oneNumber,
  parseObject,
  text,
  unfitMember,
  type ValueType,
} from '../../kit/values.ts';

// Members of Honor's request (protocol/honor.md#message; protocol/push.md#vendor-objects).

const largestInt = 2_147_483_647;
/** 15 days, the maximum of Honor (protocol/honor.md#message). */
const maxTtlS = 1_296_000;

const activity = matching(/^[A-Za-z][\w$.]{0,255}$/, 'the full name of an activity');

/** A string. An object is converted to JSON text. */
const dataText: ValueType = {
  expected: 'a string',
  read: (value) => (isJsonObject(value) ? JSON.stringify(value) : text().read(value)),
};

/**
 * Badge of Honor. A number sets the badge, and `Increment` adds one on the device
 * (protocol/honor.md#message).
 */
const badge: ValueType = {
  expected: 'a whole number of at least 0, the string Increment, or the object of Honor',
  read: (value) => changeOf(value) ?? undefined,
};

const textMembers = { title: text(), body: text(), image: text() };

export const honorMembers = new MemberTable(
  [
    ...membersAt('', { notification: part, data: dataText, android: part }),
    ...membersAt('notification', textMembers),
    ...membersAt('android', {
      ttl: duration(1, maxTtlS, true),
      biTag: text(),
      data: dataText,
      targetUserType: oneNumber(0, 1),
      notification: part,
    }),
    ...membersAt('android.notification', {
      ...textMembers,
      clickAction: part,
      style: oneNumber(0, 1),
      bigTitle: text(),
      bigBody: text(),
      importance: oneName(['LOW', 'NORMAL']),
      when: text(),
      buttons: list(object, 'a list of at most 3 objects', 3),
      badge,
      notifyId: int(0, largestInt),
      tag: text(),
      group: text(),
    }),
    ...membersAt('android.notification.clickAction', {
      type: oneNumber(1, 2, 3),
      intent: text(1),
      action: text(1),
      url: httpsUrl,
    }),
    ...membersAt('android.notification.badge', {
      addNum: int(1, 99),
      setNum: int(0, 99),
      badgeClass: activity,
    }),
  ],
  { flat: ['android', 'android.notification'], unknown: { parent: 'android' } },
);

/**
 * Members that callers cannot set because they select devices, and `badgeClass`, which is moved
 * into the badge.
 */
const protectedMembers = new Set(['token', 'badgeClass']);

/** Returns the members of the request that the vendor's object sets. */
function vendorMembers(vendor: JsonObject, path: string): Rendering<JsonObject> {
  const members = Object.entries(vendor).filter(([name]) => !protectedMembers.has(name));
  // If the object is a complete body of Honor, `notification` is already in the right place.
  const moved: Record<string, string> = hasOwnText(vendor)
    ? {}
    : { notification: 'android.notification' };
  const own = honorMembers.arrange(Object.fromEntries(members), path, { moved });
  const { badgeClass = null } = vendor;
  if (badgeClass !== null && activity.read(badgeClass) === undefined)
    return { ok: false, error: unfitMember(`${path}.badgeClass`, `must be ${activity.expected}`) };
  const error = own.ok
    ? clickError(objectOf(objectOf(own.payload.android).notification), path)
    : null;
  return error === null ? own : { ok: false, error };
}

function clickError(notification: JsonObject, path: string): string | null {
  const { action, intent, type, url } = objectOf(notification.clickAction);
  if (type === 1 && intent === undefined && action === undefined)
    return unfitMember(`${path}.clickAction`, 'must have intent or action for the type 1');
  return type === 2 && url === undefined
    ? unfitMember(`${path}.clickAction`, 'must have url for the type 2')
    : null;
}

/**
 * Returns the rich content that a device does not show. A complete body has its own. Marketing
 * messages have no picture (protocol/honor.md#message).
 */
export function notShown(message: PushMessage): readonly RichMember[] {
  if ([message.data.honor, message.data.vendor_f].some((own) => hasOwnText(objectOf(own))))
    return richMembers;
  return sideOf('vendor_f', message) === 'service' ? [] : ['image'];
}

/**
 * True if the vendor's object contains a text. It is then a complete body of Honor, which is sent
 * unchanged.
 */
function hasOwnText(vendor: JsonObject): boolean {
  const own = [objectOf(vendor.android).notification, vendor.notification];
  return own.some((one) => typeof objectOf(one).body === 'string');
}

/** Adds the activity to the badge. The vendor's object or the profile names it. */
function badgeOf(change: JsonObject | null, badgeClass: Json | undefined): JsonObject | null {
  if (change === null || typeof badgeClass !== 'string' || change.badgeClass !== undefined)
    return change;
  return { ...change, badgeClass };
}

/**
 * Converts a badge to Honor's object; a number is limited to 99. Returns null if the value is not a
 * badge.
 */
function changeOf(value: Json | undefined): JsonObject | null {
  if (isJsonObject(value)) return value;
  if (value === 'Increment') return { addNum: 1 };
  const count = numberIn(value);
  return count !== undefined && Number.isInteger(count) && count >= 0
    ? { setNum: Math.min(count, 99) }
    : null;
}

/** The push sets the badge (protocol/push.md#badges-by-vendor). */
export const can: Capabilities = { passThrough: true, badge: true, collapse: true };

/**
 * Honor publishes no limits. These are the limits of its own clients: 1000 devices, and 4096 bytes
 * without the device tokens (protocol/honor.md#message).
 */
export const limits: ConnectorLimits = { recipientsPerRequest: 1000, bodyBytes: 4096 };

/** The part of a rendered push that all recipients share. */
export interface HonorPayload {
  /** Body before and after the device tokens. */
  head: string;
  tail: string;
  /** True if a repeat replaces the notification on the device (protocol/honor.md#repeats). */
  isRepeatHidden: boolean;
}

interface RenderOptions {
  /** Entry activity of the app. Used if the push does not name it. */
  badgeClass?: string | undefined;
  /** Send time, from which the time to live is computed. Defaults to the creation time. */
  nowMs?: number;
}

/** Host of the intent that clients of this protocol handle (protocol/push.md#what-a-tap-opens). */
const intentHost = 'cn.leancloud.push';
const titleChars = 40;

/** Renders a push. The vendor's object may be a complete body of Honor. */
export function renderHonor(
  message: PushMessage,
  options: RenderOptions = {},
): Rendering<HonorPayload> {
  const content = androidContent(message, { connector: 'vendor_f', can, limits, isNative });
  if (!content.ok) return content;
  const own = withClass(
    message,
    vendorMembers(content.payload.vendor, content.payload.vendorKey),
    (members, path) => vendorMembers(members, path),
  );
  if (!own.ok) return own;
  const android = { ttl: `${ttlSeconds(message, options.nowMs)}s`, biTag: message.objectId };
  const body = withReplacedIds(
    deepMerge({ android }, bodyWith(own.payload, content.payload, { message, options })),
    message.replaces,
  );
  const text = JSON.stringify({ ...body, token: [] });
  const tooLarge = bodySizeError('vendor_f', Buffer.byteLength(text), limits);
  if (tooLarge) return tooLarge;
  const tail = ']}';
  const { notifyId, tag } = objectOf(objectOf(body.android).notification);
  const isRepeatHidden = (typeof tag === 'string' && tag !== '') || typeof notifyId === 'number';
  return { ok: true, payload: { head: text.slice(0, -tail.length), tail, isRepeatHidden } };
}

/** Sets the ids of the message that this message replaces, if this message is a notification. */
function withReplacedIds(body: JsonObject, ids: JsonObject | undefined): JsonObject {
  const { notification } = objectOf(body.android);
  if (!ids || !isJsonObject(notification)) return body;
  return {
    ...body,
    android: { ...objectOf(body.android), notification: withIds(notification, ids) },
  };
}

/** Returns the ids with which a later message replaces a notification; null without an id. */
export function identityOfHonor(message: PushMessage): JsonObject | null {
  const rendering = renderHonor(message);
  if (!rendering.ok) return null;
  const { android } = parseObject(bodyOf(rendering.payload, [])) ?? {};
  return idsIn(objectOf(android).notification, ['tag', 'notifyId']);
}

/**
 * True if the push needs no alert, because the vendor's object contains a text or data for the app.
 */
const isNative = (vendor: JsonObject): boolean =>
  hasOwnText(vendor) || typeof vendor.data === 'string' || isJsonObject(vendor.data);

/**
 * Returns the body: the vendor's object if it contains a text, or the push's content with the
 * members of the vendor's object.
 */
function bodyWith(
  own: JsonObject,
  content: AndroidContent,
  { message, options }: { message: PushMessage; options: RenderOptions },
): JsonObject {
  const { alert, custom, data, rich, silent, vendor } = content;
  if (hasOwnText(vendor)) return own;
  if (silent || alert.trim() === '') {
    // If there is a notification, the app does not get the data.
    const { notification: _, ...android } = objectOf(own.android);
    return deepMerge(silent ? { data: JSON.stringify(data) } : {}, { ...own, android });
  }
  const { clickAction, ...over } = objectOf(objectOf(own.android).notification);
  const badge = badgeOf(
    changeOf(over.badge ?? data.badge),
    vendor.badgeClass ?? options.badgeClass,
  );
  const notification: JsonObject = {
    title: titleOf(content, titleChars),
    body: alert,
    clickAction: { type: 1, intent: intentOf(custom) },
    ...richNotification(rich, 'camel'),
    ...(clickAction === undefined ? {} : { clickAction }),
    ...tagOf(data['collapse-id'], over, message.objectId),
  };
  const visible = withBigText({
    ...deepMerge(notification, over),
    ...(badge === null ? {} : { badge }),
  });
  return deepMerge(own, { android: { notification: visible } });
}

/**
 * Returns the tag: the collapse id, or the id of the push. It stays the same in all attempts, so a
 * repeat replaces the notification (protocol/honor.md#repeats). Returns no tag if the push sets
 * `notifyId`, which has the same effect.
 */
function tagOf(group: Json | undefined, own: JsonObject, objectId: string): JsonObject {
  if (typeof group === 'string' && group !== '') return { tag: group };
  return typeof own.notifyId === 'number' ? {} : { tag: objectId };
}

/** Sets the large text. Honor requires that it equals the text (protocol/honor.md#message). */
function withBigText(notification: JsonObject): JsonObject {
  const { body, style, title } = notification;
  if (style !== 1 || body === undefined || title === undefined) return notification;
  return { ...notification, bigTitle: title, bigBody: body };
}

function intentOf(custom: JsonObject): string {
  const content = encodeURIComponent(JSON.stringify(custom));
  return `intent://${intentHost}/notify_detail?S.content=${content}#Intent;scheme=lcpushscheme;launchFlags=0x10000000;end`;
}

/** Returns the time to live in seconds, from 1 to Honor's maximum. */
function ttlSeconds({ createdAtMs, expiresAtMs }: PushMessage, nowMs = createdAtMs): number {
  return Math.min(maxTtlS, Math.max(1, Math.ceil((expiresAtMs - nowMs) / 1000)));
}

/** Builds the body of one request. */
export function bodyOf({ head, tail }: HonorPayload, deviceTokens: readonly string[]): string {
  return `${head}${deviceTokens.map((deviceToken) => JSON.stringify(deviceToken)).join(',')}${tail}`;
}

/**
 * Returns the limits of a test push. `targetUserType` 1 marks a test (protocol/push.md#test-pushes;
 * protocol/honor.md#message).
 */
export function testLimit({ data }: PushMessage): TestLimit | null {
  const isTest = [data.honor, data.vendor_f].some((value) => {
    const vendor = objectOf(value);
    return [vendor, objectOf(vendor.android)].some(
      ({ targetUserType: type = null }) => numberIn(type) === 1,
    );
  });
  return isTest ? { pushesPerDay: 1000, devicesPerPush: 10 } : null;
}
