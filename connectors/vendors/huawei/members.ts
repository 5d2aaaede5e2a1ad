/**
 * Places of the vendor object's members in Huawei's requests (protocol/huawei.md#messages;
 * protocol/push.md#vendor-objects).
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';

/** Members that callers cannot set, since they select targets or prevent sending, and members of the v3 request. */
const notOfV1 = new Set([
  ...['token', 'topic', 'condition', 'validate_only', 'message', 'msg'],
  ...['payload', 'target', 'pushOptions', 'push-type', 'pushType', '__proto__'],
]);
const messageMembers = new Set(['data', 'apns', 'webpush', 'review']);
const notificationMembers = new Set([
  ...['body', 'icon', 'color', 'sound', 'default_sound', 'tag', 'importance', 'channel_id', 'click_action'],
  ...['body_loc_key', 'body_loc_args', 'title_loc_key', 'title_loc_args', 'multi_lang_key', 'image'],
  ...['notify_summary', 'style', 'big_title', 'big_body', 'inbox_content', 'notify_id', 'group', 'ticker'],
  ...['when', 'local_only', 'use_default_vibrate', 'use_default_light', 'vibrate_config', 'visibility'],
  ...['light_settings', 'foreground_show', 'profile_id', 'buttons'],
]);

/** Builds the v1 message members of the vendor's object; unknown ones go to the object that has most of them. */
export function placedInV1(vendor: JsonObject): JsonObject {
  const { android: ownAndroid, badge, notification: ownNotification, ...rest } = vendor;
  const message: JsonObject = {};
  const android: JsonObject = { ...objectOf(ownAndroid) };
  const notification: JsonObject = {
    ...objectOf(android.notification),
    ...objectOf(ownNotification),
    ...badgeMember('badge', badge, ['set_num', 'add_num']),
  };
  for (const [name, value] of Object.entries(rest)) {
    if (notOfV1.has(name)) continue;
    if (messageMembers.has(name)) message[name] = value;
    else if (notificationMembers.has(name)) notification[name] = value;
    else android[name] = value;
  }
  if (Object.keys(notification).length > 0) android.notification = notification;
  return { ...message, android };
}

/** v1 name → v3 name of members that both requests have. */
const v3Names: ReadonlyMap<string, string> = new Map([
  ['category', 'category'],
  ['image', 'image'],
  ['notify_id', 'notifyId'],
  ['foreground_show', 'foregroundShow'],
  ['inbox_content', 'inboxContent'],
  ['profile_id', 'profileId'],
]);
/** Members of v1 only: `style` and `sound` mean something else in v3. */
const notOfV3 = new Set([
  ...[...notificationMembers, ...messageMembers].filter((name) => !v3Names.has(name)),
  ...['collapse_key', 'urgency', 'ttl', 'bi_tag', 'receipt_id', 'fast_app_target', 'target_user_type'],
  ...['android', 'notification', 'badge', ...notOfV1],
]);

/** Builds the v3 notification members of the vendor's object. */
export function placedInV3(vendor: JsonObject): JsonObject {
  const notification: JsonObject = { ...badgeMember('badge', vendor.badge, ['setNum', 'addNum']) };
  for (const [name, value] of Object.entries(vendor)) {
    const known = v3Names.get(name);
    if (known !== undefined) notification[known] = value;
    else if (!notOfV3.has(name)) notification[name] = value;
  }
  return notification;
}

/** Builds the v3 request options of the vendor's object. */
export function v3Options({ pushOptions, receipt_id: receiptId }: JsonObject): JsonObject {
  return { ...(typeof receiptId === 'string' ? { receiptId } : {}), ...objectOf(pushOptions) };
}

export const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});

/**
 * Builds the badge: Huawei's object unchanged; a number sets it, `Increment` adds one on the device
 * (protocol/huawei.md#messages).
 */
function badgeMember(
  name: string,
  badge: Json | undefined,
  [set, add]: readonly [string, string],
): JsonObject {
  if (isJsonObject(badge)) return { [name]: badge };
  if (badge === 'Increment') return { [name]: { [add]: 1 } };
  if (typeof badge !== 'number' || !Number.isInteger(badge) || badge < 0) return {};
  return { [name]: { [set]: Math.min(badge, 99) } };
}
