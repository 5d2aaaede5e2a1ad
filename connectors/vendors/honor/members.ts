/** Members of Honor's request (protocol/honor.md#message; protocol/push.md#vendor-objects). */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { numberIn } from '../../../shared/domain/plain-values.ts';
import type { Rendering } from '../../contract/connector.ts';
import { unfitMember } from '../../kit/content-reasons.ts';
import { MemberTable, membersAt, part } from '../../kit/members.ts';
import {
  duration,
  httpsUrl,
  int,
  like,
  list,
  object,
  oneName,
  oneNumber,
  text,
  type ValueType,
} from '../../kit/values.ts';

const largestInt = 2_147_483_647;
/** 15 days (protocol/honor.md#message). */
export const longestTtlS = 1_296_000;

const activity = like(/^[A-Za-z][\w$.]{0,255}$/, 'the full name of an activity');

/** A text, also written as the object that it holds as JSON. */
const dataText: ValueType = {
  expected: 'a string',
  read: (value) => (isJsonObject(value) ? JSON.stringify(value) : text().read(value)),
};

/**
 * Honor's object; a number sets the badge, `Increment` adds one on the device
 * (protocol/honor.md#message).
 */
const badge: ValueType = {
  expected: 'a whole number of at least 0, the string Increment, or the object of Honor',
  read: (value) => changeOf(value) ?? undefined,
};

const shown = { title: text(), body: text(), image: text() };

export const honorMembers = new MemberTable(
  [
    ...membersAt('', { notification: part, data: dataText, android: part }),
    ...membersAt('notification', shown),
    ...membersAt('android', {
      ttl: duration(1, longestTtlS, true),
      biTag: text(),
      data: dataText,
      targetUserType: oneNumber(0, 1),
      notification: part,
    }),
    ...membersAt('android.notification', {
      ...shown,
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
  { flat: ['android', 'android.notification'], unknown: { place: 'android' } },
);

/**
 * Members that select devices, which callers cannot set, and the name of the activity, which
 * belongs to the badge.
 */
const ours = new Set(['token', 'badgeClass']);

/** Returns the members of the request that the vendor's object sets. */
export function placed(vendor: JsonObject, path: string): Rendering<JsonObject> {
  const members = Object.entries(vendor).filter(([name]) => !ours.has(name));
  // Beside a body of Honor's own, `notification` is that of Android.
  const moved: Record<string, string> = hasOwnText(vendor) ? {} : { notification: 'android.notification' };
  const own = honorMembers.place(Object.fromEntries(members), path, { moved });
  const { badgeClass = null } = vendor;
  if (badgeClass !== null && activity.read(badgeClass) === undefined)
    return { ok: false, error: unfitMember(`${path}.badgeClass`, `must be ${activity.expected}`) };
  const error = own.ok ? clickError(objectOf(objectOf(own.payload.android).notification), path) : null;
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

/** Whether the object is a complete body of Honor with a text: it is sent unchanged. */
export function hasOwnText(vendor: JsonObject): boolean {
  const own = [objectOf(vendor.android).notification, vendor.notification];
  return own.some((one) => typeof objectOf(one).body === 'string');
}

/**
 * Builds the badge of the push, with the activity that the vendor's object or the profile names.
 */
export function badgeOf(change: JsonObject | null, badgeClass: Json | undefined): JsonObject | null {
  if (change === null || typeof badgeClass !== 'string' || change.badgeClass !== undefined) return change;
  return { ...change, badgeClass };
}

/** Returns the change that a badge makes (0 to 99); null for a value that is no badge. */
export function changeOf(value: Json | undefined): JsonObject | null {
  if (isJsonObject(value)) return value;
  if (value === 'Increment') return { addNum: 1 };
  const count = numberIn(value);
  return count !== undefined && Number.isInteger(count) && count >= 0
    ? { setNum: Math.min(count, 99) }
    : null;
}

export const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});
