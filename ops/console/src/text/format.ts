import { currentLocale, isChinese } from './texts.ts';

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

/** Formats the time of day in the reader's zone. */
export const formatClock = (iso: string): string =>
  new Intl.DateTimeFormat(currentLocale(), { hour: '2-digit', minute: '2-digit' }).format(
    new Date(iso),
  );

/** Formats a time in UTC, for tooltips. */
export const formatUtc = (iso: string): string => `${iso.replace('T', ' ').replace('Z', '')} UTC`;

const units = [
  { belowMs: 1000, ms: 1, en: 'ms', zh: '毫秒' },
  { belowMs: 120_000, ms: 1000, en: 's', zh: '秒' },
  { belowMs: 7_200_000, ms: 60_000, en: 'min', zh: '分钟' },
  { belowMs: 172_800_000, ms: 3_600_000, en: 'h', zh: '小时' },
  { belowMs: Number.POSITIVE_INFINITY, ms: 86_400_000, en: 'd', zh: '天' },
] as const;

/** Formats a duration in the largest fitting unit, such as `36 ms`. */
export function formatDuration(ms: number): string {
  const unit = units.find(({ belowMs }) => ms < belowMs) ?? units[0];
  const maximumFractionDigits = ms / unit.ms < 10 && unit.en === 's' ? 1 : 0;
  const number = new Intl.NumberFormat(currentLocale(), { maximumFractionDigits });
  return `${number.format(ms / unit.ms)} ${isChinese() ? unit.zh : unit.en}`;
}

/** Formats an amount of money. */
export const formatMoney = (amount: number, currency: 'CNY' | 'USD'): string =>
  new Intl.NumberFormat(currentLocale(), { style: 'currency', currency }).format(amount);
