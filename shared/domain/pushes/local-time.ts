import { dayMs, hourMs } from '../../clock.ts';
import { beginsWithDay } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import type { JsonObject } from '../json.ts';
import { detail } from '../texts/texts.ts';

/** Time at which each device gets a push, in its own time zone (protocol/push.md#local-time). */
export type LocalTime = {
  /** Time without a time zone: `2026-12-01T09:00:00.000`. */
  time: string;
  /** Time zone of devices without a valid time zone; null means the app's default. */
  zone: string | null;
  /** Lifetime from the start in each time zone; null if the push has an `expiration_time`. */
  lifeSeconds: number | null;
};

const minuteMs = 60_000;
/** Largest and smallest offset from UTC of a time zone. */
const maxOffsetMs = 14 * hourMs;
const minOffsetMs = -12 * hourMs;

/**
 * If the time in a zone passed less than this before the call, devices in the zone get the push at
 * once. If it passed earlier, their outcome is `expired`.
 */
export const lateMs = 3 * hourMs;

/**
 * Current offsets of time zones from UTC, in minutes. For zones that no targeted device has yet, a
 * push prepares a start for each of these offsets. For a zone with another offset, the start is
 * prepared when a device has this zone.
 */
const usualOffsets = [
  840, 825, 780, 765, 720, 660, 630, 600, 570, 540, 525, 480, 420, 390, 360, 345, 330, 300, 270,
  240, 210, 180, 120, 60, 0, -60, -120, -150, -180, -210, -240, -300, -360, -420, -480, -540, -570,
  -600, -660, -720,
];

const localText = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$/;

/**
 * Parses a time without a time zone. Returns it as epoch milliseconds, as if it were UTC; undefined
 * for other texts.
 */
export function parseLocalTime(text: string): number | undefined {
  const ms = localText.test(text) && beginsWithDay(text) ? Date.parse(`${text}Z`) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** Returns `LocalTime.time` for a local time in epoch milliseconds. */
const localTimeText = (wallMs: number): string => new Date(wallMs).toISOString().slice(0, -1);

/** Returns a local time as epoch milliseconds, as if it were UTC. */
export const wallMsOf = ({ time }: LocalTime): number => Date.parse(`${time}Z`);

/** Return when a local time comes in the first and in the last time zone. */
const firstStartMs = (wallMs: number): number => wallMs - maxOffsetMs;
const lastStartMs = (wallMs: number): number => wallMs - minOffsetMs;

/**
 * Fixed offsets as Android names them: `GMT+08:00`, `GMT+0800`, `UTC+8`, `+08:00`. Only whole
 * quarters of an hour.
 */
const fixedOffset = /^(?:GMT|UTC)?([+-])(\d{1,2})(?::?(00|15|30|45))?$/;

function fixedOffsetMs(zone: string): number | undefined {
  const [, sign, hours, minutes = '0'] = fixedOffset.exec(zone) ?? [];
  if (hours === undefined) return undefined;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * minuteMs * (sign === '-' ? -1 : 1);
  return offsetMs >= minOffsetMs && offsetMs <= maxOffsetMs ? offsetMs : undefined;
}

/** Maximum length of a zone name. The longest real name is shorter. */
export const maxZoneLength = 64;

/** Returns the offset of a time zone from UTC at a time, both in milliseconds. */
export type OffsetAt = (atMs: number) => number;

/**
 * Returns a function for the offsets of a time zone; undefined if the zone is unknown. Takes longer
 * than planning a push, so the result should be cached.
 */
export function offsetsOf(zone: string): OffsetAt | undefined {
  const fixedMs = fixedOffsetMs(zone);
  if (fixedMs !== undefined) return () => fixedMs;
  // Long texts of clients are not passed to `Intl`.
  if (zone.length > maxZoneLength) return undefined;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    return undefined;
  }
  return (atMs) => {
    const parts = new Map(
      format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]),
    );
    const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
    const shownMs = Date.UTC(
      of('year'),
      of('month') - 1,
      of('day'),
      of('hour'),
      of('minute'),
      of('second'),
    );
    return shownMs - Math.floor(atMs / 1000) * 1000;
  };
}

/** True if a text is a time zone: an IANA name, or a fixed offset such as `GMT+08:00`. */
export const isTimeZone = (zone: string): boolean => offsetsOf(zone) !== undefined;

/**
 * Returns when a local time comes in a time zone, in epoch milliseconds; undefined if the zone is
 * unknown. If the clock shows the time twice, returns the first. If the clock skips the time,
 * returns a time that is later by the skipped duration.
 */
export function startInZone(wallMs: number, zone: string): number | undefined {
  const offsetAt = offsetsOf(zone);
  if (!offsetAt) return undefined;
  const before = wallMs - offsetAt(wallMs - dayMs);
  const after = wallMs - offsetAt(wallMs + dayMs);
  const real = [before, after].filter((ms) => ms + offsetAt(ms) === wallMs);
  return real.length > 0 ? Math.min(...real) : before;
}

/**
 * Returns when the time of a push comes in each of these zones. The key null is for devices whose
 * zone is null or unknown. `appZone` is the app's default time zone.
 */
export function startsOf(
  local: LocalTime,
  names: readonly (string | null)[],
  appZone: string,
): Map<string | null, number> {
  const wallMs = wallMsOf(local);
  const starts = new Map<string | null, number>();
  for (const name of names) {
    const start = name === null ? undefined : startInZone(wallMs, name);
    if (start === undefined) starts.set(null, startInZone(wallMs, local.zone ?? appZone) ?? wallMs);
    else starts.set(name, start);
  }
  return starts;
}

/**
 * Returns the next time after `afterMs` at which planning must look for zones whose time has come;
 * null if no zone of the audience is left. `starts` contains the start times of the audience's
 * zones. Other zones are only considered after `nowMs`.
 */
export function nextStartMs(
  wallMs: number,
  { afterMs, nowMs, starts }: { afterMs: number; nowMs: number; starts: readonly number[] },
): number | null {
  const own = starts.filter((ms) => ms > afterMs);
  if (own.length === 0) return null;
  const others = usualOffsets
    .map((offset) => wallMs - offset * minuteMs)
    .filter((ms) => ms > afterMs && ms > nowMs);
  return Math.min(...own, ...others);
}

/**
 * Local time of a push. `firstStart` and `lastStart` are when this time comes in the first and in
 * the last time zone.
 */
export interface LocalRequest {
  /** Local time as epoch milliseconds, as if it were UTC. */
  wallMs: number;
  firstStart: Date;
  lastStart: Date;
}

/**
 * Parses the `push_time` of a push with `push_time_local` (protocol/push.md#local-time). Returns
 * undefined for other pushes. Throws error 152 if the time is missing, has a time zone, or has
 * passed in all time zones.
 */
export function localRequestOf(body: JsonObject, nowMs: number): LocalRequest | undefined {
  if (body.push_time_local !== true) {
    if (typeof body.default_time_zone === 'string')
      throw refuse('invalidParameter', detail('defaultZoneAlone'));
    return undefined;
  }
  const wallMs = typeof body.push_time === 'string' ? parseLocalTime(body.push_time) : undefined;
  if (wallMs === undefined) throw refuse('invalidPushTime', detail('localTimeNeeded'));
  const lastStart = new Date(lastStartMs(wallMs));
  if (lastStart.getTime() < nowMs - lateMs)
    throw refuse('invalidPushTime', detail('localTimePast'));
  return { wallMs, firstStart: new Date(firstStartMs(wallMs)), lastStart };
}

/** Returns the local time for a push order. If the push has no expiry, it lives `usualSeconds`. */
export const localTimeOf = (
  { wallMs }: LocalRequest,
  sent: {
    default_time_zone?: string | null | undefined;
    expiration_time?: Date | null | undefined;
    expiration_interval?: number | null | undefined;
  },
  usualSeconds: number,
): LocalTime => ({
  time: localTimeText(wallMs),
  zone: sent.default_time_zone ?? null,
  lifeSeconds: sent.expiration_time ? null : (sent.expiration_interval ?? usualSeconds),
});
