import { z } from 'zod';
import { isJsonObject } from './json.ts';

/**
 * Times as clients write them: RFC 3339 with any offset, at a day of the calendar
 * (protocol/objects.md#typed-values, protocol/admin-api.md#times).
 */

/**
 * A day alone is midnight in UTC, and a time may lack its seconds, as in recordings of real
 * clients.
 */
const anyTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2}))?$/;
const wholeTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})$/i;

/** Canonical form, on a day that every month has, which needs no conversion. */
const canonicalText =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/**
 * Tells whether a text begins with a day of the calendar, as `2026-02-28` and not `2026-02-30`,
 * which `Date` takes for the second of March.
 */
export function beginsWithDay(text: string): boolean {
  const day = text.slice(0, 10);
  const ms = Date.parse(day);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

/** Returns the time of a text of this form; undefined where there is no such day or hour. */
function dateOf(text: string, form: RegExp): Date | undefined {
  if (!form.test(text) || !beginsWithDay(text)) return undefined;
  const time = new Date(text.toUpperCase());
  const year = time.getUTCFullYear();
  return Number.isNaN(year) || year < 0 || year > 9999 ? undefined : time;
}

/**
 * Converts a time of a stored object to the canonical UTC text with milliseconds; returns undefined
 * for an invalid one. Only years 0000 to 9999: these texts sort as times do, and PostgreSQL can
 * store them.
 */
export const canonicalTime = (text: string): string | undefined =>
  canonicalText.test(text) ? text : dateOf(text, anyTime)?.toISOString();

/** Returns the canonical time of a `{"__type":"Date","iso"}`; undefined for any other value. */
export function timeOfDate(value: unknown): string | undefined {
  if (!isJsonObject(value) || value.__type !== 'Date' || typeof value.iso !== 'string')
    return undefined;
  return canonicalTime(value.iso);
}

const timeExpected = 'expected a time such as 2027-01-31T00:00:00+08:00';

/** Schema of a time in a query or a body: date, time of day and offset. Parses to a `Date`. */
export const time = z
  .string(timeExpected)
  .refine((text) => dateOf(text, wholeTime) !== undefined, timeExpected)
  .meta({ format: 'date-time' })
  .transform((text) => new Date(text.toUpperCase()));
