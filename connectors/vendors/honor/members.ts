/** Places of the vendor object's members in Honor's request (protocol/honor.md#message; protocol/push.md#vendor-objects). */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';

/** Members that select targets, which callers cannot set, and badges, which `badgeOf` places. */
const ours = new Set(['token', 'badge', 'badgeClass', '__proto__']);
const notificationMembers = new Set([
  ...['body', 'image', 'clickAction', 'style', 'bigTitle', 'bigBody', 'importance', 'when', 'buttons'],
  ...['notifyId', 'tag', 'group'],
]);

/** Builds the members of the body; unknown ones go to the object that has most of them. */
export function placed(vendor: JsonObject): JsonObject {
  const { android: ownAndroid, data, notification: ownNotification, ...rest } = vendor;
  const android: JsonObject = { ...objectOf(ownAndroid) };
  const notification: JsonObject = { ...objectOf(android.notification), ...objectOf(ownNotification) };
  for (const [name, value] of Object.entries(rest)) {
    if (ours.has(name)) continue;
    if (notificationMembers.has(name)) notification[name] = value;
    else android[name] = value;
  }
  if (Object.keys(notification).length > 0) android.notification = notification;
  return { ...(data === undefined ? {} : { data }), android };
}

/** Whether the object is a complete body of Honor with a text: it is sent unchanged. */
export function hasOwnText(vendor: JsonObject): boolean {
  const own = [objectOf(vendor.android).notification, vendor.notification];
  return own.some((one) => typeof objectOf(one).body === 'string');
}

/**
 * Builds the badge: Honor's object unchanged; a number sets it (0 to 99), `Increment` adds one on the device
 * (protocol/honor.md#message).
 */
export function badgeOf(badge: Json | undefined, badgeClass: Json | undefined): JsonObject | null {
  const change = changeOf(badge);
  if (change === null || typeof badgeClass !== 'string' || change.badgeClass !== undefined) return change;
  return { ...change, badgeClass };
}

function changeOf(badge: Json | undefined): JsonObject | null {
  if (isJsonObject(badge)) return badge;
  if (badge === 'Increment') return { addNum: 1 };
  const isCount = typeof badge === 'number' && Number.isInteger(badge) && badge >= 0;
  return isCount ? { setNum: Math.min(badge, 99) } : null;
}

export const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});
