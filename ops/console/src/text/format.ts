import { currentLocale } from './texts.ts';

/** Formats a number with thousands separators. */
export const formatCount = (value: number): string =>
  new Intl.NumberFormat(currentLocale()).format(value);

/** Formats a share as a percentage. Returns `–` if `whole` is 0. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return '–';
  const percent = new Intl.NumberFormat(currentLocale(), {
    style: 'percent',
    maximumFractionDigits: 1,
  });
  return percent.format(part / whole);
}

/** Formats a time in the reader's zone. Includes the date unless it is today. */
export function formatTime(iso: string): string {
  const time = new Date(iso);
  const isToday = time.toDateString() === new Date().toDateString();
  const clock: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  };
  const day: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'short', day: 'numeric' };
  return new Intl.DateTimeFormat(currentLocale(), isToday ? clock : { ...day, ...clock }).format(
    time,
  );
}

/**
 * Formats a time without a zone, such as `2026-12-01T20:00:00.000`. It is the local time of a
 * device.
 */
export function formatWall(time: string): string {
  const options: Intl.DateTimeFormatOptions = {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  };
  return new Intl.DateTimeFormat(currentLocale(), options).format(new Date(`${time}Z`));
}

/** Formats a time in UTC, for tooltips. */
export const formatUtc = (iso: string): string => `${iso.replace('T', ' ').replace('Z', '')} UTC`;

/** Formats a duration in the largest fitting unit. */
export function formatDuration(ms: number): string {
  const units: [limit: number, unit: string, size: number][] = [
    [1000, 'millisecond', 1],
    [120_000, 'second', 1000],
    [7_200_000, 'minute', 60_000],
    [172_800_000, 'hour', 3_600_000],
    [Number.POSITIVE_INFINITY, 'day', 86_400_000],
  ];
  const [, unit, size] = units.find(([limit]) => ms < limit) ?? units[0] ?? [0, 'millisecond', 1];
  const maximumFractionDigits = ms / size < 10 && unit === 'second' ? 1 : 0;
  return new Intl.NumberFormat(currentLocale(), {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    maximumFractionDigits,
  }).format(ms / size);
}

/** Formats an amount of money. */
export const formatMoney = (amount: number, currency: 'CNY' | 'USD'): string =>
  new Intl.NumberFormat(currentLocale(), { style: 'currency', currency }).format(amount);
