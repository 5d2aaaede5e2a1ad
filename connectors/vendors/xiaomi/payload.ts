/**
 * Renders `data` of a push as form fields of Xiaomi (protocol/xiaomi.md#fields;
 * protocol/push.md#what-a-tap-opens). A notification contains the whole push as JSON in `payload`.
 * A silent message contains only the `payload`. Pure.
 */

import { createHash } from 'node:crypto';
import { dayMs } from '../../../shared/clock.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import {
  type Capabilities,
  type ConnectorLimits,
  misfit,
  type PushMessage,
  type Rendering,
} from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { withClass } from '../../kit/class-layers.ts';
import { MemberTable, membersAt } from '../../kit/members.ts';
import { isWebUrl } from '../../kit/rich-content.ts';
import {
  bit,
  bytes,
  charsOf,
  contentRefused,
  int,
  jsonObject,
  jsonText,
  matching,
  object,
  oneNumber,
  refined,
  scalarText,
  text,
  tooLong,
  unfitMember,
  type ValueType,
} from '../../kit/values.ts';

// Members of the vendor's object as form fields of Xiaomi (protocol/xiaomi.md#fields), checked
// before anything is sent.

const url = matching(/^https?:\/\/\S+$/, 'an http:// or https:// URL');

/** Value of a variable of a template (protocol/xiaomi.md#templates). */
const templateValue = refined(
  scalarText,
  (value) => isFilledTo(128, String(value)) && !/[\p{So}\p{Cn}]/u.test(String(value)),
  'a string of 1 to 128 characters that is not blank and has no emoji or other symbols',
);
const maxTemplateValues = 9;
const isFilledTo = (max: number, value: string): boolean =>
  value.trim() !== '' && charsOf(value) <= max;

const templateParam: ValueType = {
  ...refined(
    jsonObject,
    (value) => isJsonObject(value) && Object.keys(value).length <= maxTemplateValues,
    `an object of at most ${maxTemplateValues} strings`,
  ),
  values: templateValue,
};

const longestText = 4096;

/**
 * Fields of the form, and fields with the prefix `extra.`, which callers may write without the
 * prefix.
 */
export const xiaomiMembers = new MemberTable(
  [
    ...membersAt('', {
      title: text(),
      description: text(),
      payload: {
        expected: 'a string or an object',
        read: (value) => (isJsonObject(value) ? value : scalarText.read(value)),
      },
      pass_through: bit,
      notify_type: int(-1, 7, '-1, or a sum of 1, 2 and 4'),
      notify_id: int(0, 2_147_483_647),
      time_to_live: int(1, 10 * dayMs, 'milliseconds, at most ten days'),
      time_to_send: int(0, 9_999_999_999_999, 'epoch milliseconds'),
      restricted_package_name: refined(
        bytes(128),
        (value) => value !== '',
        'a string of 1 to 128 bytes',
      ),
      extra: object,
    }),
    ...membersAt('extra', {
      channel_id: scalarText,
      notify_effect: oneNumber(1, 2, 3),
      intent_uri: text(1),
      web_uri: url,
      notify_foreground: bit,
      sound_uri: text(),
      badge: scalarText,
      only_send_once: bit,
      jobkey: matching(
        /^[0-9A-Za-z-][\w-]{0,19}$/,
        'at most 20 letters, digits, _ or -, the first no _',
      ),
      flow_control: int(1, 1_000_000),
      callback: url,
      'callback.param': bytes(64),
      'callback.type': int(1, 2047, 'a sum of the events that are asked for'),
      template_id: text(1, 64),
      template_param: templateParam,
      'miui.focus.param': jsonText(longestText),
    }),
  ],
  { flat: ['extra'], unknown: { parent: '' } },
);

/** Fields that select devices. Callers cannot set them. */
const targetNames = new Set([
  'registration_id',
  'alias',
  'user_account',
  'topic',
  'topics',
  'topic_op',
]);

/**
 * Prefix of the members of a focus notification: its parameter and its pictures
 * (protocol/xiaomi.md#focus).
 */
const focusPrefix = 'miui.focus.';

/** True if a field below `extra.` is a custom pair of the app. Xiaomi limits these pairs. */
const isOwnPair = (name: string): boolean =>
  !name.startsWith(focusPrefix) && !xiaomiMembers.has('extra', name);

/**
 * Returns the fields that the vendor's object sets: fields of the form, and the object `extra`.
 */
export function vendorMembers(
  vendor: JsonObject,
  key: string,
  { isStrict = false }: { isStrict?: boolean } = {},
): Rendering<JsonObject> {
  const { extra = null, ...members } = withoutPrefix(vendor);
  if (extra !== null && !isJsonObject(extra))
    return { ok: false, error: unfitMember(`${key}.extra`, 'must be an object') };
  const own = Object.entries(members).filter(([name]) => !targetNames.has(name));
  const top = xiaomiMembers.arrange(Object.fromEntries(own), key, { isStrict });
  const below = xiaomiMembers.arrange(extra ?? {}, `${key}.extra`, { isStrict, parent: 'extra' });
  if (!top.ok) return top;
  if (!below.ok) return below;
  const { extra: flat = {}, ...form } = top.payload;
  return {
    ok: true,
    payload: { ...form, extra: { ...(isJsonObject(flat) ? flat : {}), ...below.payload } },
  };
}

/**
 * Writes the fields as texts. Objects become JSON text, and `extra` becomes one field per member.
 */
function toFields({ extra = {}, ...form }: JsonObject): Map<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(form))
    if (value !== null) fields.set(name, textOf(value));
  for (const [name, value] of Object.entries(isJsonObject(extra) ? extra : {}))
    if (value !== null) fields.set(`extra.${name}`, textOf(value));
  return fields;
}

/** Returns the error of members of a message class; null if Xiaomi has all of them. */
export function classError(members: JsonObject, path: string): string | null {
  const target = Object.keys(members).find((name) => targetNames.has(name));
  if (target !== undefined) return unfitMember(`${path}.${target}`, 'must not be given');
  const read = vendorMembers(members, path, { isStrict: true });
  return read.ok ? null : read.error;
}

/** Moves members with the prefix `extra.`, and pictures of a focus notification, into `extra`. */
function withoutPrefix(vendor: JsonObject): JsonObject {
  const prefix = 'extra.';
  const isBelow = ([name]: [string, Json]) =>
    name.startsWith(prefix) || (name.startsWith(focusPrefix) && !xiaomiMembers.has('extra', name));
  const below = Object.entries(vendor).filter(isBelow);
  if (below.length === 0) return vendor;
  const extra = isJsonObject(vendor.extra) ? vendor.extra : {};
  const named = Object.fromEntries(
    below.map(([name, value]) => [
      name.startsWith(prefix) ? name.slice(prefix.length) : name,
      value,
    ]),
  );
  const top = Object.fromEntries(Object.entries(vendor).filter((one) => !isBelow(one)));
  return { ...top, extra: { ...extra, ...named } };
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * Returns the first error of a form, or null. `key` is the key of the vendor's object
 * in the push.
 */
function formError(
  fields: ReadonlyMap<string, string>,
  { key, isPassThrough }: { key: string; isPassThrough: boolean },
): string | null {
  const textProblem = isPassThrough ? null : (textError(fields) ?? effectError(fields));
  return textProblem ?? templateError(fields) ?? extrasError(fields, key);
}

/** Checks the texts. A notification needs a title and a description that are not blank. */
function textError(fields: ReadonlyMap<string, string>): string | null {
  for (const [name, chars] of [
    ['title', 49],
    ['description', 127],
  ] as const) {
    const value = fields.get(name) ?? '';
    if (value.trim() === '')
      return reason('missingMember', { connector: 'vendor_b', member: name });
    if (charsOf(value) > chars) return tooLong(name, chars, 'vendor_b');
  }
  return null;
}

/** Checks that the tap's effect has its target. */
function effectError(fields: ReadonlyMap<string, string>): string | null {
  const effect = fields.get('extra.notify_effect') ?? '';
  const needed = { 2: 'extra.intent_uri', 3: 'extra.web_uri' }[effect];
  return needed === undefined || fields.has(needed)
    ? null
    : contentRefused(`extra.notify_effect ${effect} of vendor_b needs ${needed}`);
}

/** Checks a template: it needs its parameters and the notification channel that it belongs to. */
function templateError(fields: ReadonlyMap<string, string>): string | null {
  const names = ['extra.template_id', 'extra.template_param', 'extra.channel_id'];
  if (!names.slice(0, 2).some((name) => fields.has(name))) return null;
  const missing = names.find((name) => !fields.has(name));
  return missing === undefined ? null : contentRefused(`a template of vendor_b needs ${missing}`);
}

/** Checks the custom pairs of the app: at most ten, with 1024 characters in total. */
function extrasError(fields: ReadonlyMap<string, string>, key: string): string | null {
  const own = [...fields].filter(([name]) => name.startsWith('extra.') && isOwnPair(name.slice(6)));
  if (own.length > 10)
    return unfitMember(`${key}.extra`, 'must have at most 10 members of its own');
  const chars = own.reduce(
    (sum, [name, value]) => sum + charsOf(name.slice(6)) + charsOf(value),
    0,
  );
  return chars > 1024
    ? unfitMember(`${key}.extra`, 'must have at most 1024 characters in all')
    : null;
}

/** The device increments the badge (protocol/push.md#badges-by-vendor). */
export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/**
 * 1000 devices per request. A title has less than 50 characters, and a text less than 128
 * (protocol/xiaomi.md#fields, protocol/gateways.md#text-lengths). The limit of 4 KB is commonly
 * quoted.
 */
export const limits: ConnectorLimits = {
  recipientsPerRequest: 1000,
  bodyBytes: 4096,
  titleChars: 49,
  alertChars: 127,
};

/** Rendered push: the form without devices, package name and URL for receipts. */
export interface XiaomiPayload {
  fields: Readonly<Record<string, string>>;
  /** Message class whose daily quota applies. Each category in Xiaomi's console has one. */
  messageClass: string;
  /**
   * True if a repeat is hidden: the device shows only the first notification of a job. Repeats of
   * pass-through messages are not hidden.
   */
  isRepeatHidden: boolean;
}

/**
 * Maximum time to live (protocol/xiaomi.md#fields): ten days in a category of the console,
 * otherwise one day.
 */
const maxMs = { ofCategory: 10 * dayMs, ofDefault: dayMs };

/**
 * Renders a push for Xiaomi. `nowMs` is the send time, from which the time to live is computed. The
 * vendor's object may contain fields of Xiaomi, or be a complete message, which needs no alert.
 */
export function renderXiaomi(
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<XiaomiPayload> {
  const content = androidContent(message, {
    connector: 'vendor_b',
    can,
    limits,
    isNative: ({ description, payload }) =>
      typeof description === 'string' || payload !== undefined,
  });
  if (!content.ok) return content;
  const { rich, vendor, vendorKey } = content.payload;
  const own = withClass(message, vendorMembers(vendor, vendorKey), (members, path) =>
    vendorMembers(members, path),
  );
  if (!own.ok) return own;
  const fields = new Map([
    ...Object.entries(baseFields(content.payload, message)),
    ...toFields(own.payload),
  ]);
  const isPassThrough = fields.get('pass_through') === '1';
  const { messageClass } = message;
  // Without a channel, Xiaomi shows one message a day or refuses it (protocol/xiaomi.md#limits).
  if (messageClass && !isPassThrough && !fields.has('extra.channel_id'))
    return misfit(
      reason('classNeeds', {
        connector: 'vendor_b',
        member: 'channel_id',
        messageClass: messageClass.name,
      }),
    );
  if (!isPassThrough && !fields.get('title')?.trim() && fields.has('description'))
    fields.set(
      'title',
      titleOf({ ...content.payload, alert: fields.get('description') ?? '' }, 49),
    );
  const { notify_id: replacedId } = message.replaces ?? {};
  if (!isPassThrough && typeof replacedId === 'string') fields.set('notify_id', replacedId);
  if (!isPassThrough) setEffect(fields, rich.url);
  // The template of the profile needs the push's values. Other gateways do not.
  if (messageClass && fields.has('extra.template_id') && !fields.has('extra.template_param'))
    return misfit(
      reason('classNeeds', {
        connector: 'vendor_b',
        member: 'template_param',
        messageClass: messageClass.name,
      }),
    );
  const problem = formError(fields, { key: vendorKey, isPassThrough });
  if (problem !== null) return { ok: false, error: problem };
  setTimeToLive(fields, message.expiresAtMs - nowMs);
  const tooLarge = bodySizeError('vendor_b', sizeOf(fields), limits);
  if (tooLarge) return tooLarge;
  return {
    ok: true,
    payload: {
      fields: Object.fromEntries(fields),
      messageClass: fields.get('extra.channel_id') ?? 'default',
      isRepeatHidden: !isPassThrough,
    },
  };
}

/** Returns the number with which a notification is recalled or replaced; null if it has none. */
export function identityOfXiaomi(message: PushMessage): { notify_id: string } | null {
  const rendering = renderXiaomi(message);
  if (!rendering.ok || rendering.payload.fields.pass_through === '1') return null;
  const { notify_id } = rendering.payload.fields;
  return notify_id === undefined ? null : { notify_id };
}

/** Returns the form for one device as JSON. */
export const previewXiaomi = ({ fields }: XiaomiPayload): string => JSON.stringify(fields);

function baseFields(content: AndroidContent, { objectId }: PushMessage): Record<string, string> {
  const { alert, data, notificationChannel, silent, title } = content;
  const fields: Record<string, string> = {
    payload: JSON.stringify(data),
    pass_through: silent ? '1' : '0',
  };
  if (notificationChannel !== null) fields['extra.channel_id'] = notificationChannel;
  if (silent) return fields;
  // A complete message may have its own texts.
  const shownTitle = titleOf(content, 49);
  if (title !== null || shownTitle !== '') fields.title = shownTitle;
  if (alert.trim() !== '') fields.description = alert;
  const collapseId = data['collapse-id'];
  const group = typeof collapseId === 'string' && collapseId !== '' ? collapseId : objectId;
  fields.notify_type = '-1';
  // Stays the same in all attempts. A repeat replaces the notification; another push does not
  // (protocol/gateways.md#repeats).
  fields.notify_id = String(notifyIdOf(group));
  fields['extra.jobkey'] = objectId;
  return fields;
}

/** Returns a number from 0 to 2147483647 that depends only on the text. */
const notifyIdOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) & 0x7fff_ffff;

/**
 * Sets the effect of a tap if the push sets none. Xiaomi no longer accepts notifications without an
 * effect (protocol/xiaomi.md#what-a-tap-does).
 */
function setEffect(fields: Map<string, string>, url: string | undefined): void {
  if (fields.has('extra.notify_effect')) return;
  const hasOwn = fields.has('extra.intent_uri') || fields.has('extra.web_uri');
  if (isWebUrl(url) && !hasOwn) fields.set('extra.web_uri', url);
  const target = fields.has('extra.intent_uri') ? '2' : fields.has('extra.web_uri') ? '3' : '1';
  fields.set('extra.notify_effect', target);
}

/**
 * Sets the time to live in milliseconds (protocol/gateways.md#time-to-live). If less than a second
 * is left, only online devices get the message.
 */
function setTimeToLive(fields: Map<string, string>, leftMs: number): void {
  const longest = fields.has('extra.channel_id') ? maxMs.ofCategory : maxMs.ofDefault;
  const requestedMs = Number(fields.get('time_to_live') ?? longest);
  fields.set('time_to_live', String(Math.max(1000, Math.min(leftMs, requestedMs, longest))));
  if (leftMs < 1000) fields.set('extra.only_send_once', '1');
}

/** Returns the number of bytes that the device receives. */
function sizeOf(fields: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const [name, value] of fields)
    if (/^(title|description|payload|extra\..*)$/s.test(name)) bytes += Buffer.byteLength(value);
  return bytes;
}
