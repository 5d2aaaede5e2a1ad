import { flagIn } from '../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { dataKeyOwners } from '../../shared/domain/labels.ts';
import { misfit, type PushMessage, type Rendering } from '../contract/connector.ts';
import { contentRefused } from '../kit/values.ts';

/** Members that must be strings on Android (protocol/push.md#android-content). */
const textMembers = ['alert', 'title', 'action'];

/**
 * True if a member of `data` is for all types of devices. A member with a vendor's name, such as
 * `mi` or `fcm`, belongs to that vendor only if it is an object.
 */
function isForAll([name, value]: [string, Json]): boolean {
  return !dataKeyOwners.has(name) || !isJsonObject(value);
}

/**
 * Returns the members of the content as entries for `fromEntries`. Assigning a member named
 * `__proto__` to an object would change its prototype.
 */
function contentMembers(data: JsonObject, deviceType: string): [string, Json][] {
  const android = data.android;
  const overrides =
    deviceType === 'android' && isJsonObject(android) ? Object.entries(android) : [];
  return [...Object.entries(data).filter(isForAll), ...overrides];
}

/** Returns the members that the server adds (protocol/channel.md#message-members). */
function addedMembers(message: PushMessage): [string, Json][] {
  const added: [string, Json][] = [];
  const [channel, ...more] = message.channels ?? [];
  if (channel !== undefined && more.length === 0) added.push(['_channel', channel]);
  added.push(['_expiration_time', new Date(message.expiresAtMs).toISOString()]);
  if (message.notificationChannel !== undefined)
    added.push(['_notificationChannel', message.notificationChannel]);
  return added;
}

/** Checks Android content, and converts its short forms (protocol/push.md#plain-forms). */
function androidContent(content: JsonObject, { data }: PushMessage): Rendering<JsonObject> {
  const pathOf = (name: string) =>
    isJsonObject(data.android) && Object.hasOwn(data.android, name) ? `android.${name}` : name;
  const { silent = null } = content;
  const isSilent = flagIn(silent === null ? false : silent);
  if (isSilent === undefined)
    return {
      ok: false,
      error: contentRefused(`${pathOf('silent')} of Android content must be true or false.`),
    };
  const read = silent === null ? content : { ...content, silent: isSilent };
  if (isShown(read) && isEmpty(read.alert))
    return misfit(contentRefused('Android content needs an alert.'));
  const wrong = textMembers.find((name) => typeof (read[name] ?? '') !== 'string');
  if (wrong === undefined) return { ok: true, payload: read };
  const error = contentRefused(`${pathOf(wrong)} of Android content must be a string.`);
  // An alert that is an object is for iOS, unless it is in the `android` object.
  return pathOf(wrong) === 'alert' && isJsonObject(read.alert)
    ? misfit(error)
    : { ok: false, error };
}

/**
 * True if the client shows a notification. It shows none for a message that is silent or has an
 * action (protocol/channel.md#message-members).
 */
const isShown = ({ action, silent }: JsonObject): boolean =>
  silent !== true && (typeof action !== 'string' || action === '');

const isEmpty = (alert: Json | undefined): boolean =>
  alert === undefined || alert === null || (typeof alert === 'string' && alert.trim() === '');

/**
 * Renders the content for a type of device: the default members of `data`, plus the members that
 * the server adds. On Android, the members of the `android` object override the default members;
 * they are merged, not replaced (protocol/push.md#content). Checks Android content
 * (protocol/push.md#android-content); other device types accept any content.
 */
export function renderChannelContent(
  message: PushMessage,
  deviceType: string,
): Rendering<JsonObject> {
  const content = Object.fromEntries([
    ...contentMembers(message.data, deviceType),
    ...addedMembers(message),
  ]);
  return deviceType === 'android'
    ? androidContent(content, message)
    : { ok: true, payload: content };
}
