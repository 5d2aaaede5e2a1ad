/**
 * `data` of a push → the body Honor takes (protocol/honor.md#message; protocol/push.md#vendor-objects,
 * protocol/push.md#what-a-tap-opens): a notification whose tap opens an intent with the app's members, or with `silent`
 * a data message of all of them. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { numberIn } from '../../../shared/domain/plain-values.ts';
import type {
  Capabilities,
  ConnectorLimits,
  PushMessage,
  Rendering,
  TestLimit,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { deepMerge } from '../../kit/json.ts';
import { badgeOf, changeOf, hasOwnText, longestTtlS, objectOf, placed } from './members.ts';

/** The push sets the badge (protocol/push.md#badges-by-vendor). */
export const can: Capabilities = { passThrough: true, badge: true, collapse: true };

/** Honor publishes no limits: 1000 devices and 4096 bytes without them, as its clients assume (protocol/honor.md#message). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1000, bodyBytes: 4096 };

/** Rendered push, the part that all recipients share. */
export interface HonorPayload {
  /** Body before and after the device tokens. */
  head: string;
  tail: string;
  /** A repeat replaces the notification (protocol/honor.md#repeats). */
  isRepeatHidden: boolean;
}

export interface RenderOptions {
  /** Entry activity of the app, if the push names none. */
  badgeClass?: string | undefined;
  /** Send time, from which the time to live is computed; absent: creation time. */
  nowMs?: number;
}

/** Intent host of this protocol's clients (protocol/push.md#what-a-tap-opens). */
const intentHost = 'cn.leancloud.push';
const titleChars = 40;

/** Renders a push. The vendor's object may be a complete body of Honor. */
export function renderHonor(message: PushMessage, options: RenderOptions = {}): Rendering<HonorPayload> {
  const content = androidContent(message, { connector: 'vendor_f', can, limits, isNative });
  if (!content.ok) return content;
  const own = placed(content.payload.vendor, content.payload.vendorKey);
  if (!own.ok) return own;
  const android = { ttl: `${ttlSeconds(message, options.nowMs)}s`, biTag: message.objectId };
  const body = deepMerge({ android }, bodyWith(own.payload, content.payload, { message, options }));
  const text = JSON.stringify({ ...body, token: [] });
  const tooLarge = bodySizeError('vendor_f', Buffer.byteLength(text), limits);
  if (tooLarge) return tooLarge;
  const tail = ']}';
  const { notifyId, tag } = objectOf(objectOf(body.android).notification);
  const isRepeatHidden = (typeof tag === 'string' && tag !== '') || typeof notifyId === 'number';
  return { ok: true, payload: { head: text.slice(0, -tail.length), tail, isRepeatHidden } };
}

/** Whether the object needs no alert: it has a text, or data for the app. */
const isNative = (vendor: JsonObject): boolean =>
  hasOwnText(vendor) || typeof vendor.data === 'string' || isJsonObject(vendor.data);

/**
 * Returns the body: the vendor's own one, or that of the push's content with the members of the
 * vendor's object.
 */
function bodyWith(
  own: JsonObject,
  content: AndroidContent,
  { message, options }: { message: PushMessage; options: RenderOptions },
): JsonObject {
  const { alert, custom, data, silent, vendor } = content;
  if (hasOwnText(vendor)) return own;
  if (silent || alert.trim() === '') {
    // With a notification, the app would not get the data.
    const { notification: _, ...android } = objectOf(own.android);
    return deepMerge(silent ? { data: JSON.stringify(data) } : {}, { ...own, android });
  }
  const { clickAction, ...over } = objectOf(objectOf(own.android).notification);
  const badge = badgeOf(changeOf(over.badge ?? data.badge), vendor.badgeClass ?? options.badgeClass);
  const notification: JsonObject = {
    title: titleOf(content, titleChars),
    body: alert,
    clickAction: clickAction ?? { type: 1, intent: intentOf(custom) },
    ...tagOf(data['collapse-id'], over, message.objectId),
  };
  const shown = withBigText({ ...deepMerge(notification, over), ...(badge === null ? {} : { badge }) });
  return deepMerge(own, { android: { notification: shown } });
}

/**
 * Returns the tag: the push's collapse id or its own id, the same for every attempt, so that a repeat replaces the
 * notification (protocol/honor.md#repeats). No tag if the push sets a number, which does the same.
 */
function tagOf(group: Json | undefined, own: JsonObject, objectId: string): JsonObject {
  if (typeof group === 'string' && group !== '') return { tag: group };
  return typeof own.notifyId === 'number' ? {} : { tag: objectId };
}

/** Sets the large text, which must equal the text (protocol/honor.md#message). */
function withBigText(notification: JsonObject): JsonObject {
  const { body, style, title } = notification;
  if (style !== 1 || body === undefined || title === undefined) return notification;
  return { ...notification, bigTitle: title, bigBody: body };
}

function intentOf(custom: JsonObject): string {
  const content = encodeURIComponent(JSON.stringify(custom));
  return `intent://${intentHost}/notify_detail?S.content=${content}#Intent;scheme=lcpushscheme;launchFlags=0x10000000;end`;
}

/** Returns the time to live in seconds: at least 1, at most Honor's maximum. */
function ttlSeconds({ createdAtMs, expiresAtMs }: PushMessage, nowMs = createdAtMs): number {
  return Math.min(longestTtlS, Math.max(1, Math.ceil((expiresAtMs - nowMs) / 1000)));
}

/** Builds the body of one request. */
export function bodyOf({ head, tail }: HonorPayload, deviceTokens: readonly string[]): string {
  return `${head}${deviceTokens.map((deviceToken) => JSON.stringify(deviceToken)).join(',')}${tail}`;
}

/** `targetUserType` 1 marks a test (protocol/push.md#test-pushes; protocol/honor.md#message). */
export function testLimit({ data }: PushMessage): TestLimit | null {
  const isTest = [data.honor, data.vendor_f].some((value) => {
    const vendor = objectOf(value);
    return [vendor, objectOf(vendor.android)].some(({ targetUserType: type = null }) => numberIn(type) === 1);
  });
  return isTest ? { pushesPerDay: 1000, devicesPerPush: 10 } : null;
}
