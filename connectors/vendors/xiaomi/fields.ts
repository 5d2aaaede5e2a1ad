import { dayMs } from '../../../shared/clock.ts';
/**
 * Converts members of the vendor's object to Xiaomi's form fields and checks them (protocol/xiaomi.md#fields) before anything
 * is sent. Pure.
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import type { Rendering } from '../../contract/connector.ts';
import { charsOf } from '../../kit/android.ts';

/** Fields below `extra.`, which callers may write without the prefix. */
const extraNames = new Set([
  ...['channel_id', 'notify_effect', 'intent_uri', 'web_uri', 'notify_foreground', 'sound_uri', 'badge'],
  ...['only_send_once', 'jobkey', 'flow_control', 'callback', 'callback.param', 'callback.type'],
]);

/** Fields that select devices; callers cannot set them. */
const targetNames = new Set(['registration_id', 'alias', 'user_account', 'topic', 'topics', 'topic_op']);

/** Returns the vendor's members by field name. Objects become JSON text, `extra` one field per member. */
export function vendorFields(vendor: JsonObject): Rendering<Map<string, string>> {
  const fields = new Map<string, string>();
  const { extra = {}, ...members } = vendor;
  if (!isJsonObject(extra)) return { ok: false, error: 'mi.extra must be an object' };
  for (const [name, value] of Object.entries(members)) {
    if (value === null || targetNames.has(name) || name === '__proto__') continue;
    fields.set(extraNames.has(name) ? `extra.${name}` : name, textOf(value));
  }
  for (const [name, value] of Object.entries(extra))
    if (value !== null) fields.set(`extra.${name}`, textOf(value));
  return { ok: true, payload: fields };
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Fields with a format, and the expectation in words. */
const forms: readonly (readonly [string, (value: string) => boolean, string])[] = [
  ['pass_through', (value) => /^[01]$/.test(value), '0 or 1'],
  ['notify_type', (value) => /^(-1|[0-7])$/.test(value), '-1 or a sum of 1, 2 and 4'],
  ['notify_id', (value) => isWithin(value, 0, 2_147_483_647), 'a whole number from 0 to 2147483647'],
  ['time_to_live', (value) => isWithin(value, 1, 10 * dayMs), 'milliseconds, at most ten days'],
  ['time_to_send', (value) => isWithin(value, 0, 9_999_999_999_999), 'an epoch time in milliseconds'],
  ['restricted_package_name', (value) => isBetween(Buffer.byteLength(value), 1, 128), 'at most 128 bytes'],
  ['extra.notify_effect', (value) => /^[123]$/.test(value), '1, 2 or 3'],
  ['extra.notify_foreground', (value) => /^[01]$/.test(value), '0 or 1'],
  ['extra.only_send_once', (value) => /^[01]$/.test(value), '0 or 1'],
  ['extra.web_uri', (value) => /^https?:\/\//.test(value), 'an http:// or https:// URL'],
  [
    'extra.jobkey',
    (value) => /^[0-9A-Za-z-][\w-]{0,19}$/.test(value),
    'at most 20 letters, digits, _ or -, the first no _',
  ],
  ['extra.callback.param', (value) => Buffer.byteLength(value) <= 64, 'at most 64 bytes'],
  ['extra.callback.type', (value) => isWithin(value, 1, 2047), 'a sum of the events that are asked for'],
];

const isBetween = (value: number, from: number, to: number): boolean => value >= from && value <= to;
const isWithin = (text: string, from: number, to: number): boolean =>
  /^\d{1,13}$/.test(text) && isBetween(Number(text), from, to);

/** Returns the first error of a form, or null. */
export function formError(fields: ReadonlyMap<string, string>, isPassThrough: boolean): string | null {
  for (const [name, isRight, expected] of forms) {
    const value = fields.get(name);
    if (value !== undefined && !isRight(value)) return `${name} of vendor_b must be ${expected}`;
  }
  return (isPassThrough ? null : textError(fields)) ?? extrasError(fields);
}

/** Checks the texts: a notification needs both, neither of them blank. */
function textError(fields: ReadonlyMap<string, string>): string | null {
  for (const [name, chars] of [
    ['title', 49],
    ['description', 127],
  ] as const) {
    const value = fields.get(name) ?? '';
    if (value.trim() === '') return `vendor_b needs a ${name}`;
    if (charsOf(value) > chars) return `${name} must have at most ${chars} characters for vendor_b`;
  }
  return null;
}

/** Checks the custom pairs: at most ten, with 1024 characters in all. */
function extrasError(fields: ReadonlyMap<string, string>): string | null {
  const own = [...fields].filter(([name]) => name.startsWith('extra.') && !extraNames.has(name.slice(6)));
  if (own.length > 10) return 'mi.extra must have at most 10 members of its own';
  const chars = own.reduce((sum, [name, value]) => sum + charsOf(name.slice(6)) + charsOf(value), 0);
  return chars > 1024 ? 'mi.extra must have at most 1024 characters in all' : null;
}
