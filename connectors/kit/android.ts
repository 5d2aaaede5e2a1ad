/**
 * `data` of a push as an Android device of one vendor gets it (protocol/push.md#content, protocol/push.md#hybrid-push;
 * protocol/push.md#content, protocol/push.md#vendor-objects): the default members, over them those of `android`, over them those of the vendor's own object
 * under its neutral or wire name. Merged, not replaced. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { type ConnectorId, dataKeyOwners } from '../../shared/domain/labels.ts';
import type { Capabilities, ConnectorLimits, PushMessage, Rendering } from '../contract/connector.ts';

export interface AndroidContent {
  /** Text of the notification; empty where the message is silent or the vendor's body is native. */
  alert: string;
  /** Null where the push names none: `titleOf` then gives what a gateway may show. */
  title: string | null;
  silent: boolean;
  /** `_notificationChannel` (or `channel` of a push to devices): the Android notification channel. */
  notificationChannel: string | null;
  /** `badge`, where it is a whole number. */
  badge: number | null;
  /** All members for the app, `alert`, `title`, `silent` and `action` among them: what pass-through messages carry. */
  data: JsonObject;
  /** The app's own members only: what a notification carries along. */
  custom: JsonObject;
  /** Members of the vendor's object that are not content: handed on to the vendor as they are (protocol/push.md#vendor-objects). */
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
   * Whether the vendor's object is the vendor's own request body, which is passed on as it is: such a push needs no
   * alert and its texts are the caller's business.
   */
  isNative?(vendor: JsonObject): boolean;
}

/** The content for this vendor's devices, or a sentence that says what is wrong with it. */
export function androidContent(message: PushMessage, options: AndroidOptions): Rendering<AndroidContent> {
  const { data } = message;
  // `fcm` is vendor_g under its other name: the keys of `data` are the same.
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

/** Default members (those of other kinds of devices left out), `android`, and the content of the vendor's object. */
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

/** Characters as gateways count them: Unicode code points (protocol/gateways.md#text-lengths). */
export const charsOf = (text: string): number => {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
};

/** The first so many characters of a text, none of them cut in half. */
export const firstChars = (text: string, chars: number): string => [...text].slice(0, chars).join('');

/** A title for gateways that show nothing without one: the push's, else the beginning of its text. */
export function titleOf({ title, alert }: AndroidContent, chars: number): string {
  return title !== null && title.trim() !== '' ? title : firstChars(alert.trim(), chars);
}

/** Refuses a body that is larger than the gateway takes; `bytes` without the devices' addresses. */
export function bodySizeError(connector: ConnectorId, bytes: number, limits: ConnectorLimits): string | null {
  return bytes > limits.bodyBytes
    ? `the message has ${bytes} bytes; ${connector} takes at most ${limits.bodyBytes}`
    : null;
}
