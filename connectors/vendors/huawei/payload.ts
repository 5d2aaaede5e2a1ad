/**
 * `data` of a push → the message of Huawei's v1 API (protocol/huawei.md#messages; protocol/push.md#vendor-objects,
 * protocol/push.md#what-a-tap-opens): a notification whose tap opens an intent with the app's members, or with `silent`
 * a data message of all of them. Pure.
 */
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { flagIn, numberIn } from '../../../shared/domain/plain-values.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
  type TestLimit,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { deepMerge } from '../../kit/json.ts';
import { nativeMessage } from './legacy.ts';
import { clickError, longestTtlS, nativeInV1, objectOf, placedInV1 } from './members.ts';
import type { ApiVersion } from './responses.ts';

/** The device counts badges (protocol/push.md#badges-by-vendor). */
export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/** 1000 tokens a request; 4096 bytes without them (protocol/huawei.md#messages). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1000, bodyBytes: 4096 };

/** Rendered push, the part that all recipients share. */
export interface HuaweiPayload {
  api: ApiVersion;
  /** Body before and after the device tokens. */
  head: string;
  tail: string;
  /** Additional headers. */
  headers: Readonly<Record<string, string>>;
  tokensPerRequest: number;
  /** A repeat replaces the notification (protocol/huawei.md#repeats). */
  isRepeatHidden: boolean;
}

export interface RenderOptions {
  intentHost?: string | undefined;
  /** Send time, from which the time to live is computed; absent: creation time. */
  nowMs?: number;
}

const usualHost = 'cn.leancloud.push';
/** Characters of the alert that replace a missing title. */
const titleChars = 40;
/** protocol/push.md#sizes-of-vendors. */
const dataAndChannelsBytes = 4096;

/** Renders a push for the v1 API. The vendor's object may hold a complete `message` of Huawei. */
export function renderV1(message: PushMessage, options: RenderOptions = {}): Rendering<HuaweiPayload> {
  const tooMuch = dataSizeError(message);
  if (tooMuch !== null) return misfit(tooMuch);
  const isNative = (vendor: JsonObject) => nativeMessage(vendor) !== null;
  const content = androidContent(message, { connector: 'vendor_a', can, limits, isNative });
  if (!content.ok) return content;
  const own = ownMessage(content.payload, message, options.intentHost);
  if (!own.ok) return own;
  const android = { ttl: `${ttlSeconds(message, options.nowMs)}s`, bi_tag: message.objectId };
  const body = deepMerge({ android }, own.payload);
  return finish(
    'v1',
    { validate_only: false, message: { ...body, token: [] } },
    {
      tokensPerRequest: limits.recipientsPerRequest,
      isRepeatHidden: isReplaced(objectOf(objectOf(body.android).notification)),
    },
  );
}

/**
 * Builds the message of the vendor's object, or that of the push's content with the members of the
 * vendor's object.
 */
function ownMessage(
  content: AndroidContent,
  message: PushMessage,
  intentHost: string | undefined,
): Rendering<JsonObject> {
  const { vendor, vendorKey: key } = content;
  const native = nativeMessage(vendor);
  const nativePath = `${key}.${isJsonObject(vendor.message) ? 'message' : 'msg'}`;
  const placed = native === null ? placedInV1(vendor, key) : nativeInV1(native, nativePath);
  if (!placed.ok) return placed;
  const notification = objectOf(objectOf(placed.payload.android).notification);
  const error = clickError(notification, native === null ? key : `${nativePath}.android.notification`);
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
  { intentHost = usualHost, placed }: { intentHost: string | undefined; placed: JsonObject },
): JsonObject {
  if (content.silent) {
    // With a notification, the app would not get the data (protocol/huawei.md#messages).
    const { notification: _, ...android } = objectOf(placed.android);
    return deepMerge({ data: JSON.stringify(content.data) }, { ...placed, android });
  }
  const { alert, custom, notificationChannel } = content;
  const own = objectOf(objectOf(placed.android).notification);
  const notification: JsonObject = {
    title: titleOf(content, titleChars),
    body: alert,
    click_action: { type: 1, intent: intentOf(intentHost, custom) },
    ...tagOf(content, own, objectId),
    ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
  };
  // The vendor's click action replaces ours; merged, the two would be invalid.
  if (isJsonObject(own.click_action)) delete notification.click_action;
  return deepMerge({ android: { notification } }, placed);
}

/**
 * Returns the tag: the push's collapse id or its own id, the same for every attempt, so that a repeat replaces the
 * notification (protocol/huawei.md#repeats). No tag if the push sets a number, which does the same.
 */
function tagOf(content: AndroidContent, own: JsonObject, objectId: string): JsonObject {
  const tag = collapseId(content) ?? (typeof own.notify_id === 'number' ? null : objectId);
  return tag === null ? {} : { tag };
}

/** Returns the intent of a tap, which the clients of this protocol handle (protocol/push.md#what-a-tap-opens). */
export function intentOf(host: string, custom: JsonObject): string {
  const content = encodeURIComponent(JSON.stringify(custom));
  return `intent://${host}/notify_detail?S.content=${content}#Intent;scheme=lcpushscheme;launchFlags=0x10000000;end`;
}

/** Returns the `collapse-id`: pushes with the same one replace one another. */
export function collapseId({ data }: AndroidContent): string | null {
  const id = data['collapse-id'];
  return typeof id === 'string' && id !== '' ? id : null;
}

const isReplaced = ({ tag, notify_id }: JsonObject): boolean =>
  (typeof tag === 'string' && tag !== '') || typeof notify_id === 'number';

/** Returns the time to live in seconds: at least 1, at most Huawei's maximum. */
export function ttlSeconds({ createdAtMs, expiresAtMs }: PushMessage, nowMs = createdAtMs): number {
  return Math.min(longestTtlS, Math.max(1, Math.ceil((expiresAtMs - nowMs) / 1000)));
}

/** Checks that `data` and `channels` together stay under 4096 bytes (protocol/push.md#sizes-of-vendors). */
export function dataSizeError({ channels, data }: PushMessage): string | null {
  const bytes =
    Buffer.byteLength(JSON.stringify(data)) + (channels ? Buffer.byteLength(JSON.stringify(channels)) : 0);
  return bytes < dataAndChannelsBytes
    ? null
    : `data and channels have ${bytes} bytes; vendor_a takes less than ${dataAndChannelsBytes}`;
}

/** Splits the body around the tokens, which come last, and checks its size without them. */
export function finish(
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

/** `target_user_type` 1 marks a test (protocol/push.md#test-pushes; protocol/huawei.md#messages). */
export function testLimit(message: PushMessage): TestLimit | null {
  return isTest(message) ? { pushesPerDay: 500, devicesPerPush: 10 } : null;
}

export function isTest({ data }: PushMessage): boolean {
  return [data.hms, data.vendor_a].some((value) => {
    const vendor = objectOf(value);
    const native = objectOf(nativeMessage(vendor)?.android);
    const { testMessage = null } = objectOf(vendor.pushOptions);
    const types = [vendor, objectOf(vendor.android), native].map(({ target_user_type: type = null }) => type);
    return flagIn(testMessage) === true || types.some((type) => numberIn(type) === 1);
  });
}
