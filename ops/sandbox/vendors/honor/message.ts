import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';

const topMembers = new Set(['notification', 'data', 'android', 'token']);

/** Returns the first error of a body (protocol/honor.md#message), or null. */
export function bodyFault(body: JsonObject): string | null {
  const unknownMember = Object.keys(body).find((name) => !topMembers.has(name));
  if (unknownMember !== undefined) return `${unknownMember} is no member of the body`;
  const { android = {}, data, notification: common } = body;
  if (data !== undefined && typeof data !== 'string') return 'data must be a string';
  if (!isJsonObject(android)) return 'android must be an object';
  const { notification } = android;
  const shared = isJsonObject(common) ? common : {};
  if (common === undefined && notification === undefined)
    return androidFault(android) ?? (data === undefined ? 'neither data nor a notification' : null);
  if (!isJsonObject(notification)) return 'a notification needs android.notification';
  return androidFault(android) ?? notificationFault({ ...shared, ...notification });
}

function androidFault({ biTag, data, targetUserType, ttl }: JsonObject): string | null {
  if (
    ttl !== undefined &&
    !(typeof ttl === 'string' && /^\d{1,7}s$/.test(ttl) && Number.parseInt(ttl, 10) <= 1_296_000)
  )
    return 'ttl must be seconds with an s, at most 1296000s';
  if (biTag !== undefined && typeof biTag !== 'string') return 'biTag must be a string';
  if (data !== undefined && typeof data !== 'string') return 'android.data must be a string';
  return targetUserType === undefined || isWithin(targetUserType, 0, 1)
    ? null
    : 'targetUserType must be 0 or 1';
}

function notificationFault(notification: JsonObject): string | null {
  const { badge, bigBody, bigTitle, body, clickAction, importance, notifyId, style, tag, title } =
    notification;
  if (!isText(title) || !isText(body)) return 'title and body are needed';
  const action = clickFault(clickAction);
  if (action !== null) return action;
  if (importance !== undefined && importance !== 'LOW' && importance !== 'NORMAL')
    return 'importance must be LOW or NORMAL';
  if (style === 1 && (bigTitle !== title || bigBody !== body)) return 'large text must be the text';
  if (tag !== undefined && typeof tag !== 'string') return 'tag must be a string';
  if (notifyId !== undefined && !isWithin(notifyId, 0, 0x7fffffff)) return 'notifyId must be a number';
  return badge === undefined ? null : badgeFault(badge);
}

function clickFault(action: Json | undefined): string | null {
  if (!isJsonObject(action) || !isWithin(action.type, 1, 3)) return 'clickAction is needed';
  if (action.type === 1 && !isText(action.intent) && !isText(action.action))
    return 'clickAction needs an intent or an action';
  return action.type === 2 && !/^https:\/\//.test(String(action.url))
    ? 'clickAction.url must be https'
    : null;
}

function badgeFault(badge: Json): string | null {
  if (!isJsonObject(badge)) return 'badge must be an object';
  const { addNum, badgeClass, setNum } = badge;
  if (addNum !== undefined && !isWithin(addNum, 1, 99)) return 'addNum must be 1 to 99';
  if (setNum !== undefined && !isWithin(setNum, 0, 99)) return 'setNum must be 0 to 99';
  return badgeClass === undefined || isText(badgeClass) ? null : 'badgeClass must be a string';
}

const isText = (value: Json | undefined): boolean => typeof value === 'string' && value !== '';
const isWithin = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;
