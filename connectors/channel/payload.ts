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

/** Members of `data` that belong to every kind of device; a custom member may be called `mi` or `fcm`. */
function isForAll([name, value]: [string, Json]): boolean {
  return !dataKeyOwners.has(name) || !isJsonObject(value);
}

/** `fromEntries` defines members, where an assignment to `__proto__` would do something else. */
function ownMembers(data: JsonObject, deviceType: string): [string, Json][] {
  const android = data.android;
  const own = deviceType === 'android' && isJsonObject(android) ? Object.entries(android) : [];
  return [...Object.entries(data).filter(isForAll), ...own];
}

/** What the server adds for the device (protocol/channel.md#message-members). */
function addedMembers(message: PushMessage): [string, Json][] {
  const added: [string, Json][] = [];
  const [channel, ...more] = message.channels ?? [];
  if (channel !== undefined && more.length === 0) added.push(['_channel', channel]);
  added.push(['_expiration_time', new Date(message.expiresAtMs).toISOString()]);
  if (message.notificationChannel !== undefined)
    added.push(['_notificationChannel', message.notificationChannel]);
  return added;
}

function androidProblem(content: JsonObject): string | undefined {
  if (isShown(content) && isEmpty(content.alert)) return 'Android content needs an alert.';
  for (const [name, type] of Object.entries(androidMembers))
    if (Object.hasOwn(content, name) && typeof content[name] !== type)
      return `${name} of Android content must be ${typeNames[type]}.`;
  return undefined;
}

/** The client shows a notification unless the message is silent or names a receiver of its own (protocol/channel.md#message-members). */
const isShown = ({ action, silent }: JsonObject): boolean =>
  silent !== true && (typeof action !== 'string' || action === '');

const isEmpty = (alert: Json | undefined): boolean =>
  alert === undefined || (typeof alert === 'string' && alert.trim() === '');

/**
 * What our own channel hands to a device: the default members of `data`, on Android with those of its
 * `android` object over them (protocol/push.md#content: merged, not replaced), and what the server adds. Pure.
 * Android content is checked by protocol/push.md#android-content; other types (`web`, …) may hold anything.
 */
export function renderChannelContent(message: PushMessage, deviceType: string): Rendering<JsonObject> {
  const content = Object.fromEntries([...ownMembers(message.data, deviceType), ...addedMembers(message)]);
  const problem = deviceType === 'android' ? androidProblem(content) : undefined;
  return problem === undefined ? { ok: true, payload: content } : { ok: false, error: problem };
}
