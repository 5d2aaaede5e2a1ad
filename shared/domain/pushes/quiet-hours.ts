import { dayMs } from '../../clock.ts';
import { isTimeZone, type OffsetAt, offsetsOf, startInZone } from './local-time.ts';

const minuteMs = 60_000;

/** Value of a push that lifts the quiet hours of its app. */
export const noQuietHours = 'off';

const hoursText = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;

/**
 * Minutes of the day, from the first to before the last; the last is lower where the hours go over
 * midnight.
 */
interface QuietMinutes {
  from: number;
  to: number;
}

function minutesOf(text: string): QuietMinutes | undefined {
  const [, ...parts] = hoursText.exec(text) ?? [];
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = parts.map(Number);
  const minutes = { from: fromHour * 60 + fromMinute, to: toHour * 60 + toMinute };
  return parts.length === 4 && minutes.from !== minutes.to ? minutes : undefined;
}

/** Tells whether a text names quiet hours: `22:00-08:00`. */
export const isQuietHours = (text: string): boolean => minutesOf(text) !== undefined;

/** What a text for quiet hours must look like. */
export const quietHoursForm = 'expected hours, such as "22:00-08:00"';

/** Quiet hours in one time zone, as one text: `22:00-08:00 Europe/Berlin`. */
export const quietRule = (hours: string, zone: string): string => `${hours} ${zone}`;

/** Returns the rule of a device; `defaultZone` is that of devices without a known zone. */
export const quietRuleOf = (hours: string, zone: string | null, defaultZone: string): string =>
  quietRule(hours, zone !== null && isTimeZone(zone) ? zone : defaultZone);

/** A rule that was read; reading a zone takes the time of several pushes. */
interface ReadRule extends QuietMinutes {
  zone: string;
  offsetAt: OffsetAt;
}

/** More rules than the zones of the world make for several apps. */
const maxRemembered = 1000;
const rules = new Map<string, ReadRule | undefined>();

function readRule(rule: string): ReadRule | undefined {
  const known = rules.get(rule);
  if (known) return known;
  const [hours = '', zone = ''] = rule.split(' ');
  const minutes = minutesOf(hours);
  const offsetAt = offsetsOf(zone);
  const read = minutes && offsetAt && { ...minutes, zone, offsetAt };
  if (rules.size >= maxRemembered) rules.clear();
  rules.set(rule, read);
  return read;
}

/**
 * Returns when the quiet hours of a rule end, in epoch milliseconds; undefined where `atMs` is not
 * within them. They end when the clock of the zone shows their end: at a change to or from summer
 * time they are an hour shorter or longer.
 */
export function quietEndMs(rule: string, atMs: number): number | undefined {
  const read = readRule(rule);
  if (!read) return undefined;
  const { from, to, zone, offsetAt } = read;
  const offsetMs = offsetAt(atMs);
  const wallMs = atMs + offsetMs;
  const midnightMs = Math.floor(wallMs / dayMs) * dayMs;
  const minute = Math.floor((wallMs - midnightMs) / minuteMs);
  const isQuiet = from < to ? minute >= from && minute < to : minute >= from || minute < to;
  if (!isQuiet) return undefined;
  const endWallMs = midnightMs + to * minuteMs + (minute < to ? 0 : dayMs);
  const endMs = startInZone(endWallMs, zone) ?? endWallMs - offsetMs;
  // The clock shows the end twice, and the first time is past.
  return endMs > atMs ? endMs : endWallMs - offsetMs;
}
