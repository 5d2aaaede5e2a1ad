/**
 * Renders `data` of a push as a message of Huawei's v1 API (protocol/huawei.md#messages;
 * protocol/push.md#vendor-objects, protocol/push.md#what-a-tap-opens). A tap on the notification
 * opens an intent that contains the app's members. With `silent`, it is a data message with all
 * members. Pure.
 */

import { flagIn, numberIn } from '../../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { isHarmonyDeviceType } from '../../../shared/domain/labels.ts';
import { type RichMember, richMembers } from '../../../shared/domain/pushes/rich-content.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
  type TestLimit,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { withClass, withoutNotification } from '../../kit/class-layers.ts';
import { idsIn, withIds } from '../../kit/recall.ts';
import { richNotification } from '../../kit/rich-content.ts';
import { deepMerge, objectOf, parseObject } from '../../kit/values.ts';
import { clickError, maxTtlS, nativeInV1, vendorMembersInV1 } from './members.ts';
import type { ApiVersion } from './responses.ts';

// Complete messages in the vendor's object, in the current format or in the format of Huawei's
// former API (protocol/push.md#vendor-objects, protocol/push.md#what-a-tap-opens).

/** Returns the complete v1 message in the vendor's object, or null. */
function nativeMessage(vendor: JsonObject): JsonObject | null {
  if (isJsonObject(vendor.message)) return vendor.message;
  return isJsonObject(vendor.msg) ? translated(vendor.msg) : null;
}

/**
 * Converts the former format. `{"type":1,"body":…}` is data for the app.
 * `{"type":3,"body":{"title","content"},"action":{…}}` is a notification.
 */
function translated({ action, body, type }: JsonObject): JsonObject {
  if (type === 1) return { data: typeof body === 'string' ? body : JSON.stringify(body ?? {}) };
  const { content, title } = isJsonObject(body) ? body : {};
  const notification: JsonObject = {
    ...(title === undefined ? {} : { title }),
    ...(content === undefined ? {} : { body: content }),
    click_action: clickAction(action),
  };
  return { android: { notification } };
}

/**
 * Converts an action: type 1 opens an intent, type 2 opens a URL, others open the app. The numbers
 * of the current format are the same.
 */
function clickAction(action: Json | undefined): JsonObject {
  const { param, type } = isJsonObject(action) ? action : {};
  const { intent, url } = isJsonObject(param) ? param : {};
  if (type === 1 && intent !== undefined) return { type: 1, intent };
  if (type === 2 && url !== undefined) return { type: 2, url };
  return { type: 3 };
}

/**
 * Returns the rich content that a device does not show. v3 has no buttons, and a complete message
 * has its own content.
 */
export function notShown({ data }: PushMessage, deviceType: string): readonly RichMember[] {
  const own = [objectOf(data.hms), objectOf(data.vendor_a)];
  const isHarmony = isHarmonyDeviceType(deviceType);
  const isComplete = isHarmony
    ? own.some(({ payload }) => isJsonObject(payload))
    : own.some((vendor) => nativeMessage(vendor) !== null);
  if (isComplete) return richMembers;
  return isHarmony ? ['buttons'] : [];
}

/** The device counts the badge (protocol/push.md#badges-by-vendor). */
export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/** 1000 tokens per request, and 4096 bytes without the tokens (protocol/huawei.md#messages). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1000, bodyBytes: 4096 };

/** The part of a rendered push that all recipients share. */
export interface HuaweiPayload {
  api: ApiVersion;
  /** Body before and after the device tokens. */
  head: string;
  tail: string;
  /** Additional headers. */
  headers: Readonly<Record<string, string>>;
  tokensPerRequest: number;
  /** True if a repeat replaces the notification on the device (protocol/huawei.md#repeats). */
  isRepeatHidden: boolean;
}

export interface RenderOptions {
  intentHost?: string | undefined;
  /** Send time, from which the time to live is computed. Defaults to the creation time. */
  nowMs?: number;
}

const defaultHost = 'cn.leancloud.push';
/** Number of characters of the alert that replace a missing title. */
const titleChars = 40;
/** Limit for `data` and `channels` together (protocol/push.md#sizes-of-vendors). */
const dataAndChannelsBytes = 4096;

/**
 * Renders a push for the v1 API. The vendor's object may contain a complete `message` of Huawei.
 */
export function renderV1(
  message: PushMessage,
  options: RenderOptions = {},
): Rendering<HuaweiPayload> {
  const tooMuch = dataSizeError(message);
  if (tooMuch !== null) return misfit(tooMuch);
  const isNative = (vendor: JsonObject) => nativeMessage(vendor) !== null;
  const content = androidContent(message, { connector: 'vendor_a', can, limits, isNative });
  if (!content.ok) return content;
  const own = ownMessage(content.payload, message, options.intentHost);
  if (!own.ok) return own;
  const android = { ttl: `${ttlSeconds(message, options.nowMs)}s`, bi_tag: message.objectId };
  const body = withReplacedIds(deepMerge({ android }, own.payload), message.replaces?.v1);
  return splitAtTokens(
    'v1',
    { validate_only: false, message: { ...body, token: [] } },
    {
      tokensPerRequest: limits.recipientsPerRequest,
      isRepeatHidden: isReplaced(objectOf(objectOf(body.android).notification)),
    },
  );
}

/** Sets the ids of the message that this message replaces, if this message is a notification. */
function withReplacedIds(body: JsonObject, ids: Json | undefined): JsonObject {
  const android = objectOf(body.android);
  return isJsonObject(android.notification)
    ? { ...body, android: { ...android, notification: withIds(android.notification, ids) } }
    : body;
}

/** Returns the ids with which a later v1 message replaces a notification; null without an id. */
export function identityInV1(message: PushMessage): JsonObject | null {
  const rendering = renderV1(message);
  if (!rendering.ok) return null;
  const sent = objectOf(parseObject(bodyOf(rendering.payload, []))?.message);
  return idsIn(objectOf(sent.android).notification, ['tag', 'notify_id']);
}

/**
 * Returns the complete message in the vendor's object, or builds a message from the push's content
 * and the members of the vendor's object.
 */
function ownMessage(
  content: AndroidContent,
  message: PushMessage,
  intentHost: string | undefined,
): Rendering<JsonObject> {
  const { vendor, vendorKey: key } = content;
  const native = nativeMessage(vendor);
  const nativePath = `${key}.${isJsonObject(vendor.message) ? 'message' : 'msg'}`;
  const hasNotification = native === null || isJsonObject(objectOf(native.android).notification);
  const placed = withClass(
    message,
    native === null ? vendorMembersInV1(vendor, key) : nativeInV1(native, nativePath),
    (members, path) => {
      const arranged = vendorMembersInV1(members, path);
      return arranged.ok && !hasNotification
        ? { ok: true, payload: withoutNotification(arranged.payload) }
        : arranged;
    },
  );
  if (!placed.ok) return placed;
  const notification = objectOf(objectOf(placed.payload.android).notification);
  const error = clickError(
    notification,
    native === null ? key : `${nativePath}.android.notification`,
  );
  if (error !== null) return { ok: false, error };
  const own =
    native === null
      ? contentMessage(content, message, { intentHost, placed: placed.payload })
      : placed.payload;
  return { ok: true, payload: own };
}

/** Builds the message from the push's content and the members of the vendor's object. */
function contentMessage(
  content: AndroidContent,
  { objectId }: PushMessage,
  { intentHost = defaultHost, placed }: { intentHost: string | undefined; placed: JsonObject },
): JsonObject {
  if (content.silent) {
    // If there is a notification, the app does not get the data (protocol/huawei.md#messages).
    const { notification: _, ...android } = objectOf(placed.android);
    return deepMerge({ data: JSON.stringify(content.data) }, { ...placed, android });
  }
  const { alert, custom, notificationChannel, rich } = content;
  const own = objectOf(objectOf(placed.android).notification);
  const notification: JsonObject = {
    title: titleOf(content, titleChars),
    body: alert,
    click_action: { type: 1, intent: intentOf(intentHost, custom) },
    ...richNotification(rich, 'snake'),
    ...tagOf(content, own, objectId),
    ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
  };
  // The click action of the vendor's object replaces the click action of the push. A merged action
  // would be invalid.
  if (isJsonObject(own.click_action)) delete notification.click_action;
  return deepMerge({ android: { notification } }, placed);
}

/**
 * Returns the tag: the collapse id, or the id of the push. It stays the same in all attempts, so a
 * repeat replaces the notification (protocol/huawei.md#repeats). Returns no tag if the push sets
 * `notify_id`, which has the same effect.
 */
function tagOf(content: AndroidContent, own: JsonObject, objectId: string): JsonObject {
  const tag = collapseId(content) ?? (typeof own.notify_id === 'number' ? null : objectId);
  return tag === null ? {} : { tag };
}

/**
 * Returns the intent that a tap opens. Clients of this protocol handle it
 * (protocol/push.md#what-a-tap-opens).
 */
function intentOf(host: string, custom: JsonObject): string {
  const content = encodeURIComponent(JSON.stringify(custom));
  return `intent://${host}/notify_detail?S.content=${content}#Intent;scheme=lcpushscheme;launchFlags=0x10000000;end`;
}

/**
 * Returns the `collapse-id`, or null. A push replaces an earlier push with the same
 * id.
 */
export function collapseId({ data }: AndroidContent): string | null {
  const id = data['collapse-id'];
  return typeof id === 'string' && id !== '' ? id : null;
}

const isReplaced = ({ tag, notify_id }: JsonObject): boolean =>
  (typeof tag === 'string' && tag !== '') || typeof notify_id === 'number';

/** Returns the time to live in seconds, from 1 to Huawei's maximum. */
export function ttlSeconds({ createdAtMs, expiresAtMs }: PushMessage, nowMs = createdAtMs): number {
  return Math.min(maxTtlS, Math.max(1, Math.ceil((expiresAtMs - nowMs) / 1000)));
}

/**
 * Returns the error if `data` and `channels` together have 4096 bytes or more
 * (protocol/push.md#sizes-of-vendors).
 */
export function dataSizeError({ channels, data }: PushMessage): string | null {
  const bytes =
    Buffer.byteLength(JSON.stringify(data)) +
    (channels ? Buffer.byteLength(JSON.stringify(channels)) : 0);
  return bytes < dataAndChannelsBytes
    ? null
    : `data and channels have ${bytes} bytes; vendor_a takes less than ${dataAndChannelsBytes}`;
}

/** Splits the body at the tokens, which come last. Checks its size without the tokens. */
export function splitAtTokens(
  api: ApiVersion,
  body: JsonObject,
  rest: Pick<HuaweiPayload, 'tokensPerRequest' | 'isRepeatHidden'> & Partial<HuaweiPayload>,
): Rendering<HuaweiPayload> {
  const text = JSON.stringify(body);
  const tooLarge = bodySizeError('vendor_a', Buffer.byteLength(text), limits);
  if (tooLarge) return tooLarge;
  const tail = ']}}';
  const payload = { api, head: text.slice(0, -tail.length), tail, headers: {}, ...rest };
  return { ok: true, payload };
}

/** Builds the body of one request. */
export function bodyOf({ head, tail }: HuaweiPayload, deviceTokens: readonly string[]): string {
  return `${head}${deviceTokens.map((deviceToken) => JSON.stringify(deviceToken)).join(',')}${tail}`;
}

/**
 * Returns the limits of a test push. `target_user_type` 1 marks a test
 * (protocol/push.md#test-pushes; protocol/huawei.md#messages).
 */
export function testLimit(message: PushMessage): TestLimit | null {
  return isTest(message) ? { pushesPerDay: 500, devicesPerPush: 10 } : null;
}

export function isTest({ data }: PushMessage): boolean {
  return [data.hms, data.vendor_a].some((value) => {
    const vendor = objectOf(value);
    const native = objectOf(nativeMessage(vendor)?.android);
    const { testMessage = null } = objectOf(vendor.pushOptions);
    const types = [vendor, objectOf(vendor.android), native].map(
      ({ target_user_type: type = null }) => type,
    );
    return flagIn(testMessage) === true || types.some((type) => numberIn(type) === 1);
  });
}
