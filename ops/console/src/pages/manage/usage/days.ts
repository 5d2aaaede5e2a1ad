import type { UsageReport } from '../../../../../client/operations.ts';
import { toCsv } from '../../../kit/data/csv.ts';

const dayMs = 86_400_000;

/** Returns the day of a time in UTC, as `YYYY-MM-DD`. */
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns the days up to that of a time, both included, in UTC. */
export const lastDays = (nowMs: number, days: number): { from: string; to: string } => ({
  from: dayOf(nowMs - (days - 1) * dayMs),
  to: dayOf(nowMs),
});

/** Returns the use of days as a table of comma-separated values with a heading. */
export function usageCsv(days: readonly UsageReport[]): string {
  const headings = ['day_utc', 'recipients', 'calls', 'peak_calls_per_minute', 'fees', 'currency'];
  const rows = days.map(({ day, recipients, calls, peakCallsPerMinute, fees }) =>
    [day, recipients, calls, peakCallsPerMinute, fees.total, fees.currency].map(String),
  );
  return toCsv([headings, ...rows]);
}

/** Sums of several days. */
export function totalsOf(days: readonly UsageReport[]) {
  const sum = (read: (day: UsageReport) => number) => days.reduce((all, day) => all + read(day), 0);
  return {
    recipients: sum(({ recipients }) => recipients),
    calls: sum(({ calls }) => calls),
    fees: sum(({ fees }) => fees.total),
    currency: days[0]?.fees.currency ?? 'CNY',
    most: Math.max(0, ...days.map(({ recipients }) => recipients)),
  };
}
