import { z } from 'zod';
import { isJsonObject } from './json.ts';

/**
 * Times in the form that clients send: RFC 3339 with any offset, at a valid calendar day
 * (protocol/objects.md#typed-values, protocol/admin-api.md#times).
 */

/**
 * A day without time means midnight UTC. Seconds may be missing. Recordings of real clients contain
 * both forms.
 */
const anyTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2}))?$/;
const wholeTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})$/i;

/** Canonical form at a day that every month has. Such a text needs no conversion. */
const canonicalText =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/**
 * True if a text begins with a valid calendar day. `Date` would accept `2026-02-30` as the second
 * of March.
 */
export function beginsWithDay(text: string): boolean {
  const day = text.slice(0, 10);
  const ms = Date.parse(day);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

/** Returns the time of a text that matches `form`; undefined if the day or hour does not exist. */
function dateOf(text: string, form: RegExp): Date | undefined {
  if (!form.test(text) || !beginsWithDay(text)) return undefined;
  const time = new Date(text.toUpperCase());
  const year = time.getUTCFullYear();
  return Number.isNaN(year) || year < 0 || year > 9999 ? undefined : time;
}

/**
 * Converts a time of a stored object to canonical UTC text with milliseconds. Returns undefined if
 * it is invalid. Only the years 0000 to 9999 are valid, because their texts sort like the times,
 * and PostgreSQL can store them.
 */
export const canonicalTime = (text: string): string | undefined =>
  canonicalText.test(text) ? text : dateOf(text, anyTime)?.toISOString();

/** Returns the canonical time of a `{"__type":"Date","iso"}` object; undefined for other values. */
export function timeOfDate(value: unknown): string | undefined {
  if (!isJsonObject(value) || value.__type !== 'Date' || typeof value.iso !== 'string')
    return undefined;
  return canonicalTime(value.iso);
}

const timeExpected = 'expected a time such as 2027-01-31T00:00:00+08:00';

/** Schema of a time in a query or body: date, time of day and offset. Parses to a `Date`. */
export const time = z
  .string(timeExpected)
  .refine((text) => dateOf(text, wholeTime) !== undefined, timeExpected)
  .meta({ format: 'date-time' })
  .transform((text) => new Date(text.toUpperCase()));

/**
 * Values that clients write as text. Clients that build JSON or a query by hand send `"1"` and
 * `"true"` instead of a number or boolean (protocol/push.md#plain-forms,
 * protocol/queries.md#flags).
 */

const flags = new Map<unknown, boolean>([
  [1, true],
  [0, false],
  ['1', true],
  ['0', false],
  ['true', true],
  ['false', false],
]);

/**
 * Returns a boolean from true, false, 1 and 0, also written as text in any case. Returns undefined
 * for other values.
 */
export function flagIn(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  return flags.get(typeof value === 'string' ? value.trim().toLowerCase() : value);
}

const decimal = /^[+-]?\d{1,15}(\.\d{1,15})?$/;

/** Returns a number, also written as decimal text. Returns undefined for other values. */
export function numberIn(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && decimal.test(value.trim()) ? Number(value) : undefined;
}

/** Schema of a boolean query parameter. Parses to undefined if the parameter is absent or empty. */
export const flagQuery = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
    z.enum(['true', 'false', '1', '0', ''], 'takes true, false, 1 or 0').optional(),
  )
  .transform((text) => (text ? flagIn(text) : undefined))
  .optional();
