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
