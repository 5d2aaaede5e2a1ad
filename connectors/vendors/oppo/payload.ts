/**
 * Renders `data` of a push as OPPO's notification (protocol/oppo.md#single-device, protocol/oppo.md#notification;
 * protocol/push.md#what-a-tap-opens), which opens the app and hands it the whole push. Pure.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, charsOf, titleOf } from '../../kit/android.ts';
import { unfitMember } from '../../kit/content-reasons.ts';
import { deepMerge } from '../../kit/json.ts';
import { jsonObject } from '../../kit/values.ts';
import { notificationProblem, oppoMembers } from './notification.ts';

/**
 * No pass-through (protocol/oppo.md#limits); the badge is a dot unless the push sets a number
 * (protocol/push.md#pass-through, protocol/push.md#badges-by-vendor).
 */
export const can: Capabilities = { passThrough: false, badge: false, collapse: true };

/**
 * 1000 devices (protocol/oppo.md#batch, protocol/oppo.md#broadcast); a text of more than 50 characters uses the long
 * style, up to 128 (protocol/oppo.md#notification).
 */
export const limits: ConnectorLimits = {
  recipientsPerRequest: 1000,
  bodyBytes: 4096,
  titleChars: 50,
  alertChars: 128,
};

/** Rendered push: a notification without the URL for receipts. */
export interface OppoPayload {
  notification: JsonObject;
  /** Members of the request besides the notification and the device. */
  envelope: JsonObject;
  /** Message class whose day quota applies. */
  messageClass: string;
  /** Big pictures and speed control require a broadcast: one saved message to lists of devices. */
  isBroadcast: boolean;
  /** The server sends a device one message per id; of broadcasts with the same number the device shows the last. */
  isRepeatHidden: boolean;
}

/** OPPO's maximum, ten days (protocol/oppo.md#notification). */
const longestLifeS = 864_000;
const shortTextChars = 50;

/** Members of a request that select devices, which callers cannot set. */
const targetNames = new Set(['target_type', 'target_value', 'auth_token', 'message_id', 'messages']);

/**
 * Renders a push for OPPO; `nowMs` is the send time, from which the time to live is computed. The vendor's object may
 * hold members of OPPO's notification, or a complete message with one, which needs no alert.
 */
export function renderOppo(
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<OppoPayload> {
  const content = androidContent(message, {
    connector: 'vendor_d',
    can,
    limits,
    isNative: (vendor) => typeof contentIn(vendor) === 'string',
  });
  if (!content.ok) return content;
  const placed = membersOf(content.payload);
  if (!placed.ok) return placed;
  const { notification: own = {}, ...envelope } = placed.payload;
  const base = baseNotification(content.payload, message);
  const named = withOwnNumber(styled(deepMerge(base, isJsonObject(own) ? own : {})), message.objectId);
  const notification = withLife(named, message.expiresAtMs - nowMs);
  const problem = notificationProblem(notification);
  if (problem !== null) return { ok: false, error: problem };
  // Members that the push has for all devices may be too long for OPPO.
  const whole = oppoMembers.place(notification, 'vendor_d', { place: 'notification' });
  const tooLarge = whole.ok ? bodySizeError('vendor_d', sizeOf(notification), limits) : misfit(whole.error);
  if (tooLarge) return tooLarge;
  const { category, channel_id: channel } = notification;
  const isBroadcast = isForBroadcast(notification);
  const messageClass = String(category ?? channel ?? 'default');
  return {
    ok: true,
    payload: {
      notification,
      envelope,
      messageClass: isBroadcast ? `broadcast ${messageClass}` : messageClass,
      isBroadcast,
      isRepeatHidden: (isBroadcast ? notification.notify_id : notification.app_message_id) !== undefined,
    },
  };
}

/** Returns the notification as one device receives it. */
export const previewOppo = ({ notification }: OppoPayload): string => JSON.stringify(notification);

function baseNotification(content: AndroidContent, { objectId }: PushMessage): JsonObject {
  const { alert, data, notificationChannel } = content;
  const collapseId = data['collapse-id'];
  return {
    // The same for every attempt: OPPO sends a device one message per id (protocol/oppo.md#notification).
    app_message_id: objectId,
    title: titleOf(content, 50),
    content: alert,
    click_action_type: 0,
    action_parameters: JSON.stringify(data),
    off_line: true,
    ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
    ...(typeof collapseId === 'string' && collapseId !== '' ? { notify_id: notifyIdOf(collapseId) } : {}),
  };
}

const isForBroadcast = ({ fix_speed: isEven, style }: JsonObject): boolean => style === 3 || isEven === true;

/**
 * Sets `notify_id` of a broadcast from the push's id, if absent: a repeat replaces the notification
 * (protocol/oppo.md#notification).
 */
function withOwnNumber(notification: JsonObject, objectId: string): JsonObject {
  return isForBroadcast(notification) && notification.notify_id === undefined
    ? { ...notification, notify_id: notifyIdOf(objectId) }
    : notification;
}

/** 0 to 2147483647. */
const notifyIdOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) & 0x7fff_ffff;

/**
 * Returns the message of OPPO that the vendor's object is: under `message`, also as JSON text, or
 * the object itself.
 */
function messageIn({ badge: _, message = null, ...vendor }: JsonObject): JsonObject {
  const own = message === null ? {} : jsonObject.read(message);
  return isJsonObject(own) ? { ...own, ...vendor } : { ...vendor, message };
}

function contentIn(vendor: JsonObject): Json | undefined {
  const { content, notification = null } = messageIn(vendor);
  return content ?? (isJsonObject(notification) ? notification.content : undefined);
}

/** Sorts the vendor's members into the request; unknown ones belong to the notification. */
function membersOf({ vendor, vendorKey: key }: AndroidContent): Rendering<JsonObject> {
  const { message = null, ...members } = messageIn(vendor);
  if (message !== null)
    return { ok: false, error: unfitMember(`${key}.message`, `must be ${jsonObject.expected}`) };
  const own = Object.entries(members).filter(([name]) => !targetNames.has(name));
  return oppoMembers.place(Object.fromEntries(own), key, { moved: { notification: 'notification' } });
}

/** Chooses the long style for a long text, unless the push sets a style. */
function styled(notification: JsonObject): JsonObject {
  const { content, style, title } = notification;
  const isLong = typeof content === 'string' && charsOf(content) > shortTextChars;
  return {
    ...notification,
    style: style ?? (isLong ? 2 : 1),
    // A native notification may have a text without a title.
    ...(title === '' && typeof content === 'string' ? { title: [...content].slice(0, 50).join('') } : {}),
  };
}

/** Sets the time to live in seconds (protocol/gateways.md#time-to-live); with less than one, only online devices get it. */
function withLife(notification: JsonObject, leftMs: number): JsonObject {
  if (leftMs < 1000) return { ...notification, off_line: false };
  const { off_line_ttl: asked } = notification;
  const leftS = Math.min(longestLifeS, Math.floor(leftMs / 1000));
  return {
    ...notification,
    off_line_ttl: typeof asked === 'number' ? Math.min(asked, leftS) : (asked ?? leftS),
  };
}

/** Returns the bytes that the device receives, without the escapes of JSON within JSON. */
function sizeOf(notification: JsonObject): number {
  let bytes = 0;
  for (const value of Object.values(notification))
    bytes += Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value));
  return bytes;
}
