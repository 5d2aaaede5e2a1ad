import { dayMs } from '../../clock.ts';
import { isTimeZone, type OffsetAt, offsetsOf, startInZone } from './local-time.ts';

const minuteMs = 60_000;

/** Value of a push that disables the app's quiet hours. */
export const noQuietHours = 'off';

const hoursText = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;

/**
 * Quiet hours in minutes of the day, from `from` until before `to`. `to` is smaller than `from` if
 * the hours pass midnight.
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

/** True if a text is a range of hours such as `22:00-08:00`. */
export const isQuietHours = (text: string): boolean => minutesOf(text) !== undefined;

/** Error text for invalid quiet hours. */
export const quietHoursForm = 'expected hours, such as "22:00-08:00"';

/** Returns the rule for one time zone as text: `22:00-08:00 Europe/Berlin`. */
export const quietRule = (hours: string, zone: string): string => `${hours} ${zone}`;

/**
 * Returns the rule for a device. `defaultZone` is the zone of devices without a valid time zone.
 */
export const quietRuleOf = (hours: string, zone: string | null, defaultZone: string): string =>
  quietRule(hours, zone !== null && isTimeZone(zone) ? zone : defaultZone);

/** A parsed rule. It is cached, because loading a time zone takes longer than planning a push. */
interface ReadRule extends QuietMinutes {
  zone: string;
  offsetAt: OffsetAt;
}

/** Maximum number of cached rules. Enough for all time zones and several apps. */
const maxCachedRules = 1000;
const rules = new Map<string, ReadRule | undefined>();

function readRule(rule: string): ReadRule | undefined {
  const cached = rules.get(rule);
  if (cached) return cached;
  const [hours = '', zone = ''] = rule.split(' ');
  const minutes = minutesOf(hours);
  const offsetAt = offsetsOf(zone);
  const read = minutes && offsetAt && { ...minutes, zone, offsetAt };
  if (rules.size >= maxCachedRules) rules.clear();
  rules.set(rule, read);
  return read;
}

/**
 * Returns when the quiet hours of a rule end, in epoch milliseconds; undefined if `atMs` is not in
 * the quiet hours. They end when the clock of the zone shows their end. So they are an hour shorter
 * or longer when daylight saving time begins or ends.
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
  // The clock shows the end twice, and the first time has passed.
  return endMs > atMs ? endMs : endWallMs - offsetMs;
}
