import { dayMs, hourMs } from '../../clock.ts';
import { beginsWithDay } from '../times.ts';

/**
 * Time at which each device gets a push, in the device's own time zone
 * (protocol/push.md#local-time).
 */
export type LocalTime = {
  /** Time without a zone, `2026-12-01T09:00:00.000`. */
  time: string;
  /** Zone of devices without a known one; null: that of the app. */
  zone: string | null;
  /** Lifetime from the start of each zone; null for a push with an `expiration_time`. */
  lifeSeconds: number | null;
};

const minuteMs = 60_000;
/** First and last offset from UTC that a zone has. */
const mostOffsetMs = 14 * hourMs;
const leastOffsetMs = -12 * hourMs;

/**
 * A zone whose time passed less than this before the call gets the push at once; beyond, its
 * devices end `expired`.
 */
export const lateMs = 3 * hourMs;

/**
 * Offsets from UTC that zones have now, in minutes: at most so many starts of a push are prepared
 * for zones that no device of the audience has yet. A zone with another offset starts exactly as
 * soon as a device has it.
 */
const usualOffsets = [
  840, 825, 780, 765, 720, 660, 630, 600, 570, 540, 525, 480, 420, 390, 360, 345, 330, 300, 270,
  240, 210, 180, 120, 60, 0, -60, -120, -150, -180, -210, -240, -300, -360, -420, -480, -540, -570,
  -600, -660, -720,
];

const localText = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$/;

/**
 * Parses a time without a zone: its epoch milliseconds if the zone were UTC. Undefined for another
 * text.
 */
export function parseLocalTime(text: string): number | undefined {
  const ms = localText.test(text) && beginsWithDay(text) ? Date.parse(`${text}Z`) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** Returns `LocalTime.time` of epoch milliseconds as if the zone were UTC. */
export const localTimeText = (wallMs: number): string =>
  new Date(wallMs).toISOString().slice(0, -1);

/** Returns the epoch milliseconds of a local time as if its zone were UTC. */
export const wallMsOf = ({ time }: LocalTime): number => Date.parse(`${time}Z`);

/** Returns when a local time comes first, and last, anywhere. */
export const firstStartMs = (wallMs: number): number => wallMs - mostOffsetMs;
export const lastStartMs = (wallMs: number): number => wallMs - leastOffsetMs;

/**
 * Fixed offsets as Android names them: `GMT+08:00`, `GMT+0800`, `UTC+8`, `+08:00`; whole quarters
 * of an hour.
 */
const fixedOffset = /^(?:GMT|UTC)?([+-])(\d{1,2})(?::?(00|15|30|45))?$/;

function fixedOffsetMs(zone: string): number | undefined {
  const [, sign, hours, minutes = '0'] = fixedOffset.exec(zone) ?? [];
  if (hours === undefined) return undefined;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * minuteMs * (sign === '-' ? -1 : 1);
  return offsetMs >= leastOffsetMs && offsetMs <= mostOffsetMs ? offsetMs : undefined;
}

/** Longer than the name of any zone. */
export const maxZoneLength = 64;

/** Returns the offset of a zone from UTC at a time, both in milliseconds. */
export type OffsetAt = (atMs: number) => number;

/**
 * Returns the offsets of a zone; undefined for an unknown zone. Takes the time of several pushes.
 */
export function offsetsOf(zone: string): OffsetAt | undefined {
  const fixedMs = fixedOffsetMs(zone);
  if (fixedMs !== undefined) return () => fixedMs;
  // Keeps texts of clients out of the library.
  if (zone.length > maxZoneLength) return undefined;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
      ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
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

/** Tells whether a text names a time zone: an IANA name, or a fixed offset such as `GMT+08:00`. */
export const isTimeZone = (zone: string): boolean => offsetsOf(zone) !== undefined;

/**
 * Returns when a local time comes in a zone, in epoch milliseconds; undefined for an unknown zone.
 * A time that the clock shows twice is the first one; one that it skips is as much later as it
 * skips.
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
 * Returns when the time of a push comes in each of these zones. The key null stands for devices
 * without a known zone, and is there where a name is null or unknown. `appZone`: the default zone
 * of the app.
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
 * Returns the next time to look for zones whose time has come, behind `afterMs`; null when no zone
 * of the audience is left. `starts`: the starts of the zones of the audience. Other zones are
 * looked for in the future only.
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
