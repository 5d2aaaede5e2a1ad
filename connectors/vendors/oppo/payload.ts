/**
 * Renders `data` of a push as a notification of OPPO (protocol/oppo.md#single-device,
 * protocol/oppo.md#notification; protocol/push.md#what-a-tap-opens). A tap opens the app and passes
 * it the whole push. Pure.
 */

import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { withClass } from '../../kit/class-layers.ts';
import { MemberTable, membersAt } from '../../kit/members.ts';
import { idsIn, withIds } from '../../kit/recall.ts';
import { isWebUrl } from '../../kit/rich-content.ts';
import {
  charsOf,
  contentRefused,
  deepMerge,
  flag,
  int,
  jsonObject,
  jsonText,
  oneName,
  oneNumber,
  refined,
  scalarText,
  text,
  tooLong,
  unfitMember,
  type ValueType,
} from '../../kit/values.ts';

// Members of OPPO's message and the rules of its notification (protocol/oppo.md#notification),
// checked before anything is sent.

/** Maximum length of the content by style. For other styles, OPPO's own client checks 200. */
const contentChars: ReadonlyMap<Json | undefined, number> = new Map([
  [1, 50],
  [2, 128],
  [3, 50],
]);

const longest = ({ style }: JsonObject): number => contentChars.get(style) ?? 200;
const epochMs = int(0, 9_999_999_999_999, 'epoch milliseconds');

/** Name of a notification channel in OPPO's console. */
const channel = refined(
  text(1, 200),
  (value) => !/\p{Cc}/u.test(String(value)),
  'a string of 1 to 200 characters that can be seen',
);
/** Values of a template, as an object or as JSON text. */
const parameters: ValueType = { ...jsonObject, values: scalarText };

const serviceCategories = ['IM', 'ACCOUNT', 'DEVICE_REMINDER', 'ORDER', 'TODO', 'SUBSCRIPTION'];
const marketingCategories = ['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'];

export const oppoMembers = new MemberTable(
  [
    ...membersAt('', { verify_registration_id: flag }),
    ...membersAt('notification', {
      app_message_id: text(1, 100),
      style: int(1, 5),
      title: text(1, 50),
      sub_title: text(0, 10),
      content: text(1, 200),
      click_action_type: oneNumber(0, 1, 2, 4, 5),
      click_action_activity: text(0, 500),
      click_action_url: text(0, 2000),
      action_parameters: jsonText(4000),
      off_line: flag,
      off_line_ttl: int(0, 1_000_000_000, 'seconds'),
      show_ttl: int(0, 172_800, 'seconds, at most two days'),
      show_time_type: oneNumber(0, 1),
      show_start_time: epochMs,
      show_end_time: epochMs,
      notify_id: int(0, 2_147_483_647),
      channel_id: channel,
      category: oneName([...serviceCategories, ...marketingCategories]),
      notify_level: oneNumber(1, 2, 16),
      private_msg_template_id: text(1, 64),
      private_title_parameters: parameters,
      private_content_parameters: parameters,
      call_back_url: text(1, 200),
      call_back_parameter: text(0, 100),
      fix_speed: flag,
      fix_speed_rate: int(1000, 10_000),
      network_type: oneNumber(0, 1),
      badge_operation_type: oneNumber(0, 1),
      badge_message_count: int(0, 99_999),
      big_picture_id: text(1),
      small_picture_id: text(1),
    }),
  ],
  // OPPO's documentation uses camel case, its API snake case (protocol/oppo.md#single-device).
  { flat: ['notification'], unknown: { parent: 'notification' }, isAnyCase: true },
);

/** Returns the first error of a notification, or null. */
function notificationProblem(notification: JsonObject): string | null {
  const { category, click_action_type: click, content, title } = notification;
  if (typeof content !== 'string' || content.trim() === '')
    return reason('missingMember', { connector: 'vendor_d', member: 'content' });
  if (typeof title !== 'string' || title.trim() === '')
    return reason('missingMember', { connector: 'vendor_d', member: 'title' });
  if (charsOf(title) > 50) return tooLong('title', 50, 'vendor_d');
  if (charsOf(content) > longest(notification))
    return contentRefused(
      `content of this style must have at most ${longest(notification)} characters for vendor_d`,
    );
  const target = click === 1 || click === 4 ? 'click_action_activity' : 'click_action_url';
  if (typeof click === 'number' && click > 0 && !notification[target])
    return contentRefused(`click_action_type ${click} of vendor_d needs ${target}`);
  if (notification.notify_level !== undefined && category === undefined)
    return contentRefused('notify_level of vendor_d needs a category');
  const values = ['private_title_parameters', 'private_content_parameters'].find(
    (name) => name in notification,
  );
  return values !== undefined && notification.private_msg_template_id === undefined
    ? contentRefused(`${values} of vendor_d needs private_msg_template_id`)
    : null;
}

/**
 * OPPO has no pass-through (protocol/oppo.md#limits). Its badge is a dot, unless the push sets a
 * number (protocol/push.md#pass-through, protocol/push.md#badges-by-vendor).
 */
export const can: Capabilities = { passThrough: false, badge: false, collapse: true };

/**
 * 1000 devices per request (protocol/oppo.md#batch, protocol/oppo.md#broadcast). A text with more
 * than 50 characters uses the long style, which allows 128 (protocol/oppo.md#notification).
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
  /** Members of the request other than the notification and the device. */
  envelope: JsonObject;
  /** Message class whose daily quota applies. */
  messageClass: string;
  /**
   * True if the message needs a broadcast, that is, one saved message sent to lists of devices. Big
   * pictures and speed control need it.
   */
  isBroadcast: boolean;
  /**
   * True if a repeat is hidden. OPPO's server sends a device only one message per id. For
   * broadcasts, the device shows only the last message with the same number.
   */
  isRepeatHidden: boolean;
}

/** OPPO's maximum: ten days (protocol/oppo.md#notification). */
const maxLifeS = 864_000;
const shortTextChars = 50;

/** Members of a request that select devices. Callers cannot set them. */
const targetNames = new Set([
  'target_type',
  'target_value',
  'auth_token',
  'message_id',
  'messages',
]);

/**
 * Renders a push for OPPO. `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may contain members of OPPO's notification, or a complete message with a
 * notification, which needs no alert.
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
  const placed = withClass(message, membersOf(content.payload), (members, path) =>
    oppoMembers.arrange(members, path, { moved: { notification: 'notification' } }),
  );
  if (!placed.ok) return placed;
  const { notification: own = {}, ...envelope } = placed.payload;
  const base = baseNotification(content.payload, message, isJsonObject(own) ? own : {});
  const named = withIds(styled(deepMerge(base, isJsonObject(own) ? own : {})), message.replaces);
  const notification = withTimeToLive(named, message.expiresAtMs - nowMs);
  const problem = notificationProblem(notification);
  if (problem !== null) return { ok: false, error: problem };
  // Members that all devices get may be too long for OPPO.
  const whole = oppoMembers.arrange(notification, 'vendor_d', { parent: 'notification' });
  const tooLarge = whole.ok
    ? bodySizeError('vendor_d', sizeOf(notification), limits)
    : misfit(whole.error);
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
      isRepeatHidden:
        (isBroadcast ? notification.notify_id : notification.app_message_id) !== undefined,
    },
  };
}

/** Returns the number with which a later message replaces a notification; null without one. */
export function identityOfOppo(message: PushMessage): JsonObject | null {
  const rendering = renderOppo(message);
  return rendering.ok ? idsIn(rendering.payload.notification, ['notify_id']) : null;
}

/** Returns the notification for one device. */
export const previewOppo = ({ notification }: OppoPayload): string => JSON.stringify(notification);

function baseNotification(
  content: AndroidContent,
  { objectId }: PushMessage,
  own: JsonObject,
): JsonObject {
  const {
    alert,
    data,
    notificationChannel,
    rich: { url },
  } = content;
  const collapseId = data['collapse-id'];
  return {
    // Stays the same in all attempts. OPPO sends a device only one message per id
    // (protocol/oppo.md#notification).
    app_message_id: objectId,
    title: titleOf(content, 50),
    content: alert,
    // OPPO appends the parameters to a URL, so a web page gets none.
    ...(isWebUrl(url) && own.click_action_type === undefined
      ? { click_action_type: 2, click_action_url: url }
      : { click_action_type: 0, action_parameters: JSON.stringify(data) }),
    off_line: true,
    ...(notificationChannel === null ? {} : { channel_id: notificationChannel }),
    // A later message with this number replaces the notification. For broadcasts, it also hides a
    // repeat (protocol/oppo.md#notification).
    notify_id: notifyIdOf(
      typeof collapseId === 'string' && collapseId !== '' ? collapseId : objectId,
    ),
  };
}

const isForBroadcast = ({ fix_speed: isEven, style }: JsonObject): boolean =>
  style === 3 || isEven === true;

/** Returns a number from 0 to 2147483647 that depends only on the text. */
const notifyIdOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) & 0x7fff_ffff;

/**
 * Returns the OPPO message in the vendor's object: its member `message` (also as JSON text) merged
 * with its other members.
 */
function messageIn({ badge: _, message = null, ...vendor }: JsonObject): JsonObject {
  const own = message === null ? {} : jsonObject.read(message);
  return isJsonObject(own) ? { ...own, ...vendor } : { ...vendor, message };
}

function contentIn(vendor: JsonObject): Json | undefined {
  const { content, notification = null } = messageIn(vendor);
  return content ?? (isJsonObject(notification) ? notification.content : undefined);
}

/**
 * Sorts the members of the vendor's object into the request. Unknown members belong to the
 * notification.
 */
function membersOf({ vendor, vendorKey: key }: AndroidContent): Rendering<JsonObject> {
  const { message = null, ...members } = messageIn(vendor);
  if (message !== null)
    return { ok: false, error: unfitMember(`${key}.message`, `must be ${jsonObject.expected}`) };
  const own = Object.entries(members).filter(([name]) => !targetNames.has(name));
  return oppoMembers.arrange(Object.fromEntries(own), key, {
    moved: { notification: 'notification' },
  });
}

/** Selects the long style for a long text, unless the push sets a style. */
function styled(notification: JsonObject): JsonObject {
  const { content, style, title } = notification;
  const isLong = typeof content === 'string' && charsOf(content) > shortTextChars;
  return {
    ...notification,
    style: style ?? (isLong ? 2 : 1),
    // A complete notification may have a text but no title.
    ...(title === '' && typeof content === 'string'
      ? { title: [...content].slice(0, 50).join('') }
      : {}),
  };
}

/**
 * Sets the time to live in seconds. If less than a second is left, only online devices get the
 * message (protocol/gateways.md#time-to-live).
 */
function withTimeToLive(notification: JsonObject, leftMs: number): JsonObject {
  if (leftMs < 1000) return { ...notification, off_line: false };
  const { off_line_ttl: requestedS } = notification;
  const leftS = Math.min(maxLifeS, Math.floor(leftMs / 1000));
  return {
    ...notification,
    off_line_ttl:
      typeof requestedS === 'number' ? Math.min(requestedS, leftS) : (requestedS ?? leftS),
  };
}

/**
 * Returns the number of bytes that the device receives. Escapes of JSON within JSON do not count.
 */
function sizeOf(notification: JsonObject): number {
  let bytes = 0;
  for (const value of Object.values(notification))
    bytes += Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value));
  return bytes;
}
