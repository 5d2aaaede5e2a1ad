import { say } from './language.ts';
import { UsageError } from './report.ts';

const unitSeconds = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
type Unit = keyof typeof unitSeconds;

/** ISO 8601 with a date, a time of day and a zone; seconds are optional. */
const momentPattern = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/;

/**
 * Parses a time: ISO 8601 with a zone, or a span from now such as `+10m` (units s, m, h, d). Returns it in ISO 8601.
 * Throws `UsageError` with the option's name for other text and for a time in the past. `nowMs` is in epoch milliseconds.
 */
export function futureTime(option: string, text: string, nowMs: number): string {
  const timeMs = spanMs(text) === undefined ? momentMs(text) : nowMs + (spanMs(text) ?? 0);
  if (timeMs === undefined || !Number.isFinite(timeMs))
    throw new UsageError(
      say('{option} expects a time such as 2027-01-31T12:00Z, or a span such as +10m', { option }),
    );
  if (timeMs <= nowMs) throw new UsageError(say('{option} names a time that is past', { option }));
  return new Date(timeMs).toISOString();
}

/** As `futureTime`, for any time; a span is not allowed. */
export function anyTime(option: string, text: string): string {
  const timeMs = momentMs(text);
  if (timeMs === undefined)
    throw new UsageError(say('{option} expects a time such as 2027-01-31T12:00Z', { option }));
  return new Date(timeMs).toISOString();
}

/** As `futureTime`, for a time that is past; a span is not allowed. */
export function pastTime(option: string, text: string, nowMs: number): string {
  const time = anyTime(option, text);
  if (Date.parse(time) > nowMs) throw new UsageError(say('{option} names a time in the future', { option }));
  return time;
}

function spanMs(text: string): number | undefined {
  const [, amount, unit] = /^\+(\d{1,6})([smhd])$/.exec(text) ?? [];
  return isUnit(unit) ? Number(amount) * unitSeconds[unit] * 1000 : undefined;
}

const isUnit = (text: string | undefined): text is Unit => text !== undefined && text in unitSeconds;

function momentMs(text: string): number | undefined {
  const timeMs = momentPattern.test(text) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
