import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { dataKeyOwners } from '../../shared/domain/labels.ts';
import type { PushMessage, Rendering } from '../contract/connector.ts';

const typeNames = { string: 'a string', boolean: 'true or false' } as const;

/** Members with a fixed type on Android (protocol/push.md#android-content). */
const androidMembers: Record<string, keyof typeof typeNames> = {
  alert: 'string',
  title: 'string',
  silent: 'boolean',
  action: 'string',
};

/** Selects members of `data` for every type of device. A member named `mi` or `fcm` is a vendor's only if it is an object. */
function isForAll([name, value]: [string, Json]): boolean {
  return !dataKeyOwners.has(name) || !isJsonObject(value);
}

/** Returns entries, not an object, for `fromEntries`: an assignment to `__proto__` would change the prototype. */
function contentMembers(data: JsonObject, deviceType: string): [string, Json][] {
  const android = data.android;
  const overrides = deviceType === 'android' && isJsonObject(android) ? Object.entries(android) : [];
  return [...Object.entries(data).filter(isForAll), ...overrides];
}

/** Returns the members that the server adds for the device (protocol/channel.md#message-members). */
function addedMembers(message: PushMessage): [string, Json][] {
  const added: [string, Json][] = [];
  const [channel, ...more] = message.channels ?? [];
  if (channel !== undefined && more.length === 0) added.push(['_channel', channel]);
  added.push(['_expiration_time', new Date(message.expiresAtMs).toISOString()]);
  if (message.notificationChannel !== undefined)
    added.push(['_notificationChannel', message.notificationChannel]);
  return added;
}

function androidError(content: JsonObject): string | undefined {
  if (isShown(content) && isEmpty(content.alert)) return 'Android content needs an alert.';
  for (const [name, type] of Object.entries(androidMembers))
    if (Object.hasOwn(content, name) && typeof content[name] !== type)
      return `${name} of Android content must be ${typeNames[type]}.`;
  return undefined;
}

/** The client shows a notification unless the message is silent or has an action (protocol/channel.md#message-members). */
const isShown = ({ action, silent }: JsonObject): boolean =>
  silent !== true && (typeof action !== 'string' || action === '');

const isEmpty = (alert: Json | undefined): boolean =>
  alert === undefined || (typeof alert === 'string' && alert.trim() === '');

/**
 * Renders the content for a device: the default members of `data`, on Android overridden by those of its `android`
 * object (merged, not replaced: protocol/push.md#content), and the members that the server adds. Pure.
 * Checks Android content (protocol/push.md#android-content); other device types (`web`, …) take any.
 */
export function renderChannelContent(message: PushMessage, deviceType: string): Rendering<JsonObject> {
  const content = Object.fromEntries([...contentMembers(message.data, deviceType), ...addedMembers(message)]);
  const error = deviceType === 'android' ? androidError(content) : undefined;
  return error === undefined ? { ok: true, payload: content } : { ok: false, error };
}
