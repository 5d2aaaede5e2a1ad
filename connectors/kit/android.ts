/**
 * Builds the content of a push for the Android devices of one vendor (protocol/push.md#content,
 * protocol/push.md#hybrid-push, protocol/push.md#vendor-objects): the default members, overridden by those of `android`,
 * overridden by those of the vendor's object under its neutral or wire name. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { type ConnectorId, dataKeyOwners } from '../../shared/domain/labels.ts';
import type { Capabilities, ConnectorLimits, PushMessage, Rendering } from '../contract/connector.ts';

export interface AndroidContent {
  /** Text of the notification; empty if the message is silent or the vendor's body is native. */
  alert: string;
  /** Null if the push has none; `titleOf` then returns a substitute. */
  title: string | null;
  silent: boolean;
  /** `_notificationChannel` (or `channel` of a push to devices): the Android notification channel. */
  notificationChannel: string | null;
  /** `badge`, if it is a whole number. */
  badge: number | null;
  /** All members for the app, including `alert`, `title`, `silent` and `action`: the content of pass-through messages. */
  data: JsonObject;
  /** Custom members of the app, for notifications. */
  custom: JsonObject;
  /**
   * Members of the vendor's object that are not content, passed to the vendor unchanged
   * (protocol/push.md#vendor-objects).
   */
  vendor: JsonObject;
}

/** Members that every type of device understands; in a vendor's object they are content too. */
const contentMembers = new Set(['alert', 'title', 'silent', 'action', '_notificationChannel']);

const typeNames = { string: 'a string', boolean: 'true or false' } as const;

/** Members with a fixed type on Android (protocol/push.md#android-content). */
const memberTypes: readonly (readonly [string, keyof typeof typeNames])[] = [
  ['alert', 'string'],
  ['title', 'string'],
  ['silent', 'boolean'],
  ['action', 'string'],
  ['_notificationChannel', 'string'],
];

export interface AndroidOptions {
  connector: ConnectorId;
  can: Pick<Capabilities, 'passThrough'>;
  limits: ConnectorLimits;
  /**
   * Whether the vendor's object is a complete request body of the vendor, sent unchanged: such a push needs no alert, and
   * its texts are not checked.
   */
  isNative?(vendor: JsonObject): boolean;
}

/** Returns the content for this vendor's devices, or its first error. */
export function androidContent(message: PushMessage, options: AndroidOptions): Rendering<AndroidContent> {
  const { data } = message;
  // The two labels of FCM have the same keys of `data`.
  const owner = options.connector === 'fcm' ? 'vendor_g' : options.connector;
  const vendorObjects = Object.entries(data).filter(([name]) => dataKeyOwners.get(name) === owner);
  for (const [name, value] of [...vendorObjects, ['android', data.android ?? {}] as const])
    if (!isJsonObject(value)) return invalid(`${name} must be an object`);
  const own = vendorObjects.flatMap(([, value]) => (isJsonObject(value) ? Object.entries(value) : []));
  const members = new Map<string, Json>();
  for (const [name, value] of layers(data, own)) if (value !== null) members.set(name, value);
  for (const [name, type] of memberTypes) {
    const value = members.get(name);
    if (value !== undefined && typeof value !== type)
      return invalid(`${name} of Android content must be ${typeNames[type]}`);
  }
  const vendor = Object.fromEntries(own.filter(([name]) => !contentMembers.has(name)));
  return check(contentOf(message, members, vendor), options);
}

/** Returns the members by precedence: defaults without objects of other device kinds, `android`, the vendor's object. */
function layers(data: JsonObject, own: [string, Json][]): [string, Json][] {
  const defaults = Object.entries(data).filter(
    ([name, value]) => name !== '__proto__' && !(dataKeyOwners.has(name) && isJsonObject(value)),
  );
  const android = isJsonObject(data.android) ? Object.entries(data.android) : [];
  return [...defaults, ...android, ...own.filter(([name]) => contentMembers.has(name) || name === 'badge')];
}

function contentOf(message: PushMessage, members: Map<string, Json>, vendor: JsonObject): AndroidContent {
  const text = (name: string) => {
    const value = members.get(name);
    return typeof value === 'string' ? value : null;
  };
  const badge = members.get('badge');
  const channel = text('_notificationChannel') ?? message.notificationChannel ?? null;
  members.delete('_notificationChannel');
  return {
    alert: text('alert') ?? '',
    title: text('title'),
    silent: members.get('silent') === true,
    notificationChannel: channel,
    badge: typeof badge === 'number' && Number.isInteger(badge) && badge >= 0 ? badge : null,
    data: Object.fromEntries(members),
    custom: Object.fromEntries([...members].filter(([name]) => !contentMembers.has(name))),
    vendor,
  };
}

function check(content: AndroidContent, options: AndroidOptions): Rendering<AndroidContent> {
  const { can, connector, isNative, limits } = options;
  if (content.silent && !can.passThrough)
    return {
      ok: false,
      outcome: 'dropped',
      error: `${connector} does not support silent messages`,
    };
  if (isNative?.(content.vendor)) return { ok: true, payload: content };
  if (!content.silent && content.alert.trim() === '') return invalid('Android content needs an alert');
  const { alertChars, titleChars } = limits;
  if (!content.silent && alertChars !== undefined && charsOf(content.alert) > alertChars)
    return invalid(`alert must have at most ${alertChars} characters for ${connector}`);
  if (!content.silent && titleChars !== undefined && charsOf(content.title ?? '') > titleChars)
    return invalid(`title must have at most ${titleChars} characters for ${connector}`);
  return { ok: true, payload: content };
}

const invalid = (error: string): { ok: false; error: string } => ({ ok: false, error });

/** Counts characters as gateways do: Unicode code points (protocol/gateways.md#text-lengths). */
export const charsOf = (text: string): number => {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
};

/** Returns the first characters of a text, without splitting surrogate pairs. */
export const firstChars = (text: string, chars: number): string => [...text].slice(0, chars).join('');

/** Returns a title for gateways that require one: the push's, else the beginning of its text. */
export function titleOf({ title, alert }: AndroidContent, chars: number): string {
  return title !== null && title.trim() !== '' ? title : firstChars(alert.trim(), chars);
}

/** Checks the size of a body. `bytes`: without the device tokens. */
export function bodySizeError(connector: ConnectorId, bytes: number, limits: ConnectorLimits): string | null {
  return bytes > limits.bodyBytes
    ? `the message has ${bytes} bytes; ${connector} takes at most ${limits.bodyBytes}`
    : null;
}
