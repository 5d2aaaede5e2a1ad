/**
 * Content of a push for the Android devices of one vendor (protocol/push.md#content,
 * protocol/push.md#hybrid-push, protocol/push.md#vendor-objects). The members of `android` override
 * the default members. The members of the vendor's object override both.
 */

import { flagIn, numberIn } from '../../shared/domain/client-values.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { type ConnectorId, dataKeyOwners } from '../../shared/domain/labels.ts';
import type { RichContent } from '../../shared/domain/pushes/rich-content.ts';
import { reason } from '../../shared/domain/reasons.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
} from '../contract/connector.ts';
import { richContentIn } from './rich-content.ts';
import { charsOf, contentRefused, tooLong, unfitMember } from './values.ts';

export interface AndroidContent {
  /**
   * Text of the notification. Empty if the message is silent or the vendor's object is a complete
   * body.
   */
  alert: string;
  /** Null if the push has no title. `titleOf` then returns a substitute. */
  title: string | null;
  silent: boolean;
  /**
   * Android notification channel: `_notificationChannel`, or `channel` of a push to a list of
   * devices.
   */
  notificationChannel: string | null;
  /** `badge` if it is a whole number; null otherwise. */
  badge: number | null;
  /** Picture, address and buttons. The app's members contain them too. */
  rich: RichContent;
  /**
   * All members for the app, including `alert`, `title`, `silent` and `action`. Pass-through
   * messages contain them.
   */
  data: JsonObject;
  /** Custom members of the app. Notifications contain them. */
  custom: JsonObject;
  /**
   * Members of the vendor's object that are not content. They are passed to the vendor unchanged
   * (protocol/push.md#vendor-objects).
   */
  vendor: JsonObject;
  /** Key of the vendor's object in the push, for error texts. */
  vendorKey: string;
}

/** Members that all types of devices have. In a vendor's object they also count as content. */
const contentMembers = new Set(['alert', 'title', 'silent', 'action', '_notificationChannel']);

/** Members that must be strings on Android (protocol/push.md#android-content). */
const textMembers = ['alert', 'title', 'action', '_notificationChannel'];

export interface AndroidOptions {
  connector: ConnectorId;
  can: Pick<Capabilities, 'passThrough'>;
  limits: ConnectorLimits;
  /**
   * True if the vendor's object is a complete request body, which is sent unchanged. Such a push
   * needs no alert, and its texts are not checked.
   */
  isNative?(vendor: JsonObject): boolean;
}

/** Member with its path in the push, for error texts. */
type Sent = readonly [name: string, value: Json, path: string];

/** Returns the content for this vendor's devices, or the first error in it. */
export function androidContent(
  message: PushMessage,
  options: AndroidOptions,
): Rendering<AndroidContent> {
  const { data } = message;
  // Both connectors of FCM use the same keys of `data`.
  const owner = options.connector === 'fcm' ? 'vendor_g' : options.connector;
  const vendorObjects = Object.entries(data).filter(([name]) => dataKeyOwners.get(name) === owner);
  for (const [name, value] of [...vendorObjects, ['android', data.android ?? {}] as const])
    if (!isJsonObject(value)) return invalid(unfitMember(name, 'must be an object'));
  const own = vendorObjects.flatMap(([key, value]) => sentIn(value, key));
  const members = new Map<string, Json>();
  const sent = merged(layers(data, own));
  for (const [name, value, path] of sent.values()) {
    const read = contentMember(name, value, path);
    if (!read.ok) return read;
    members.set(name, read.payload);
  }
  const vendor = Object.fromEntries(
    own.filter(([name]) => !contentMembers.has(name)).map(([name, value]) => [name, value]),
  );
  const [vendorKey = owner] = vendorObjects.map(([name]) => name).reverse();
  const pathOf = (name: string) => sent.get(name)?.[2] ?? name;
  return check(contentOf(message, { members, vendor, vendorKey }), options, pathOf);
}

const sentIn = (value: Json | undefined, key: string): Sent[] =>
  isJsonObject(value)
    ? Object.entries(value).map(([name, one]): Sent => [name, one, `${key}.${name}`])
    : [];

/** Returns the last value of each member. A null does not override an earlier value. */
const merged = (sent: readonly Sent[]): ReadonlyMap<string, Sent> =>
  new Map(sent.filter(([, value]) => value !== null).map((one) => [one[0], one]));

/**
 * Converts a member to its type on Android. An object as default alert is meant for iOS, so the
 * error says that the message does not fit, not that a member is wrong.
 */
function contentMember(name: string, value: Json, path: string): Rendering<Json> {
  if (name === 'silent') {
    const silent = flagIn(value);
    return silent === undefined
      ? invalid(unfitMember(path, 'must be true or false'))
      : { ok: true, payload: silent };
  }
  if (!textMembers.includes(name) || typeof value === 'string') return { ok: true, payload: value };
  const error = contentRefused(`${path} of Android content must be a string`);
  return path === 'alert' && isJsonObject(value) ? misfit(error) : invalid(error);
}

/**
 * Returns the members in ascending precedence: the default members without the objects of single
 * types of devices, then `android`, then the vendor's object.
 */
function layers(data: JsonObject, own: readonly Sent[]): Sent[] {
  const defaults = Object.entries(data)
    .filter(
      ([name, value]) => name !== '__proto__' && !(dataKeyOwners.has(name) && isJsonObject(value)),
    )
    .map(([name, value]): Sent => [name, value, name]);
  const shared = own.filter(([name]) => contentMembers.has(name) || name === 'badge');
  return [...defaults, ...sentIn(data.android, 'android'), ...shared];
}

function contentOf(
  message: PushMessage,
  {
    members,
    vendor,
    vendorKey,
  }: Pick<AndroidContent, 'vendor' | 'vendorKey'> & { members: Map<string, Json> },
): AndroidContent {
  const text = (name: string) => {
    const value = members.get(name);
    return typeof value === 'string' ? value : null;
  };
  const badge = numberIn(members.get('badge'));
  const channel = text('_notificationChannel') ?? message.notificationChannel ?? null;
  members.delete('_notificationChannel');
  return {
    alert: text('alert') ?? '',
    title: text('title'),
    silent: members.get('silent') === true,
    notificationChannel: channel,
    badge: badge !== undefined && Number.isInteger(badge) && badge >= 0 ? badge : null,
    rich: richContentIn(message),
    data: Object.fromEntries(members),
    custom: Object.fromEntries([...members].filter(([name]) => !contentMembers.has(name))),
    vendor,
    vendorKey,
  };
}

function check(
  content: AndroidContent,
  { can, connector, isNative, limits }: AndroidOptions,
  pathOf: (name: string) => string,
): Rendering<AndroidContent> {
  if (content.silent && !can.passThrough)
    return {
      ok: false,
      outcome: 'dropped',
      error: reason('silentNotSupported', { connector }),
    };
  if (isNative?.(content.vendor) || content.silent) return { ok: true, payload: content };
  if (content.alert.trim() === '') return misfit(contentRefused('Android content needs an alert'));
  for (const [name, text, max] of [
    ['alert', content.alert, limits.alertChars],
    ['title', content.title ?? '', limits.titleChars],
  ] as const) {
    if (max === undefined || charsOf(text) <= max) continue;
    const error = tooLong(pathOf(name), max, connector);
    // A text in the vendor's object is only for this vendor, so it is an error.
    return pathOf(name).startsWith(`${content.vendorKey}.`) ? invalid(error) : misfit(error);
  }
  return { ok: true, payload: content };
}

const invalid = (error: string): { ok: false; error: string } => ({ ok: false, error });

/** Returns the first characters of a text. Never splits a surrogate pair. */
export const firstChars = (text: string, chars: number): string =>
  [...text].slice(0, chars).join('');

/**
 * Returns a title for gateways that require one: the title of the push, or the beginning of its
 * text.
 */
export function titleOf({ title, alert }: AndroidContent, chars: number): string {
  return title !== null && title.trim() !== '' ? title : firstChars(alert.trim(), chars);
}

/** Returns the error if a body is too large; null otherwise. `bytes` excludes the device tokens. */
export function bodySizeError(connector: ConnectorId, bytes: number, limits: ConnectorLimits) {
  return bytes > limits.bodyBytes
    ? misfit(`the message has ${bytes} bytes; ${connector} takes at most ${limits.bodyBytes}`)
    : null;
}
