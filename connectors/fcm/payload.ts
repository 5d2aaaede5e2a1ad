/**
 * Renders `data` of a push as FCM's message (protocol/fcm.md#message; protocol/push.md#what-a-tap-opens): a notification, and
 * in `data` the member `payload` with the whole push as JSON text. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import type { Capabilities, ConnectorLimits, PushMessage, Rendering } from '../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError } from '../kit/android.ts';
import { deepMerge } from '../kit/json.ts';

export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/** One token per request; 4096 bytes without it (protocol/fcm.md#message). */
export const limits: ConnectorLimits = { recipientsPerRequest: 1, bodyBytes: 4096 };

export type FcmLabel = 'fcm' | 'vendor_g';

/** Rendered push, the part that all recipients share. */
export interface FcmPayload {
  /** Body without the device token. */
  body: Buffer;
  /** Offset of the token, between its quotes. */
  tokenAt: number;
  /** A repeat replaces the notification. */
  isRepeatHidden: boolean;
}

const head = '{"message":{"token":"';
const longestTtlS = 2_419_200;

/** Members of a message (protocol/fcm.md#message), to which `placed` sorts the vendor's object. */
const messageMembers = new Set(['data', 'notification', 'android', 'apns', 'webpush', 'fcm_options']);
const androidMembers = new Set([
  'collapse_key',
  'priority',
  'ttl',
  'restricted_package_name',
  'direct_boot_ok',
]);
const notificationMembers = new Set([
  ...['icon', 'color', 'sound', 'tag', 'click_action', 'channel_id', 'ticker', 'sticky', 'event_time'],
  ...['local_only', 'notification_priority', 'default_sound', 'default_vibrate_timings', 'vibrate_timings'],
  ...['default_light_settings', 'light_settings', 'visibility', 'notification_count', 'image'],
  ...['body_loc_key', 'body_loc_args', 'title_loc_key', 'title_loc_args'],
]);
/** Members that select the target; callers cannot set them. */
const targetMembers = ['token', 'topic', 'condition', 'fid', 'validate_only'];

/**
 * Renders a push for FCM under one of its labels; `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may be a complete `{"message":{…}}` of FCM.
 */
export function renderFcm(
  label: FcmLabel,
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<FcmPayload> {
  const content = androidContent(message, { connector: label, can, limits, isNative });
  if (!content.ok) return content;
  const { vendor } = content.payload;
  const ttl = ttlOf(message.expiresAtMs - nowMs);
  const body = isNative(vendor)
    ? deepMerge({ android: { ttl } }, isJsonObject(vendor.message) ? vendor.message : {})
    : deepMerge(messageOf(content.payload, message, ttl), placed(vendor));
  for (const name of targetMembers) delete body[name];
  const problem =
    dataError(body.data) ?? dataError(isJsonObject(body.android) ? body.android.data : undefined);
  if (problem !== null) return { ok: false, error: problem };
  const rest = JSON.stringify(body).slice(1, -1);
  const tooLarge = bodySizeError(label, Buffer.byteLength(rest) + 2, limits);
  if (tooLarge !== null) return { ok: false, error: tooLarge };
  return {
    ok: true,
    payload: {
      body: Buffer.from(`${head}"${rest === '' ? '' : `,${rest}`}}}`),
      tokenAt: Buffer.byteLength(head),
      isRepeatHidden: hasTag(body),
    },
  };
}

/** Returns the body as one device receives it. */
export function previewFcm({ body, tokenAt }: FcmPayload): string {
  return `${body.subarray(0, tokenAt)}TOKEN${body.subarray(tokenAt)}`;
}

const isNative = (vendor: JsonObject): boolean => isJsonObject(vendor.message);

/** Returns the time to live as a protobuf duration in whole seconds; 0: only online devices. */
function ttlOf(leftMs: number): string {
  return `${Math.min(longestTtlS, Math.max(0, Math.ceil(leftMs / 1000)))}s`;
}

function messageOf(content: AndroidContent, { channels, objectId }: PushMessage, ttl: string): JsonObject {
  const { action } = content.data;
  const [channel, ...more] = channels ?? [];
  const collapseId = content.data['collapse-id'];
  const group = typeof collapseId === 'string' && collapseId !== '' ? collapseId : null;
  const data: JsonObject = {
    payload: JSON.stringify(content.data),
    ...(channel !== undefined && more.length === 0 ? { _channel: channel } : {}),
    ...(typeof action === 'string' ? { action } : {}),
  };
  const android: JsonObject = { ttl, ...(group === null ? {} : { collapse_key: group }) };
  if (content.silent) return { data, android: { ...android, priority: 'NORMAL' } };
  const { alert, notificationChannel, title } = content;
  return {
    data,
    notification: { ...(title === null ? {} : { title }), body: alert },
    android: {
      ...android,
      priority: 'HIGH',
      notification: {
        // The same for every attempt: a repeat replaces the notification, another push does not (protocol/fcm.md#repeats).
        tag: group ?? objectId,
        ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
      },
    },
  };
}

/** Sorts the vendor's members into FCM's message; unknown ones stay at the top level. */
function placed({ badge: _, ...vendor }: JsonObject): JsonObject {
  const body: JsonObject = {};
  const android: JsonObject = {};
  const notification: JsonObject = {};
  for (const [name, value] of Object.entries(vendor)) {
    if (messageMembers.has(name)) body[name] = value;
    else if (androidMembers.has(name)) android[name] = value;
    else if (notificationMembers.has(name)) notification[name] = value;
    else if (name !== '__proto__') body[name] = value;
  }
  if (Object.keys(notification).length > 0) android.notification = notification;
  return Object.keys(android).length > 0 ? deepMerge({ android }, body) : body;
}

/** Checks FCM's `data`: strings only, and some names are reserved (protocol/fcm.md#message). */
function dataError(data: Json | undefined): string | null {
  if (data === undefined) return null;
  if (!isJsonObject(data)) return 'fcm.data must be an object';
  for (const [name, value] of Object.entries(data)) {
    if (typeof value !== 'string') return `fcm.data.${name.slice(0, 40)} must be a string`;
    if (/^(from|message_type|google|gcm)$|^(google|gcm)\./.test(name))
      return `fcm.data.${name.slice(0, 40)} is a name that FCM keeps to itself`;
  }
  return null;
}

function hasTag({ android }: JsonObject): boolean {
  const notification = isJsonObject(android) ? android.notification : undefined;
  return isJsonObject(notification) && typeof notification.tag === 'string' && notification.tag !== '';
}
