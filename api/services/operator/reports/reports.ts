import { dayMs, utcDay } from '../../../../shared/clock.ts';
import {
  type DayTotal,
  listDayTotals,
  listInstallationDays,
  listTopReasons,
  type ReportRange,
} from '../../../../shared/db/tables/reports.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { type ReportFigures, reportFigures } from '../../../../shared/domain/apps/usage.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';

/** Days of a report without `from`. */
const usualDays = 30;
/** Maximum days of a report: totals are kept for two years. */
export const maxReportDays = 731;
const maxReasons = 20;

/** Selection of a report. Days are `YYYY-MM-DD` in UTC. */
interface ReportQuery {
  from?: string | undefined;
  to?: string | undefined;
  connector?: string | undefined;
  class?: string | undefined;
}

/** Reports of an app over days (protocol/admin-api.md#reports). */
export class ReportService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns totals by day, connector and class, the most frequent reasons, and installations by
   * day. Throws error 404 for an unknown app, error 1 if the days are in the wrong order or too
   * many.
   */
  async read(appId: string, given: ReportQuery) {
    await requireApp(this.#deps, appId);
    const range = this.#rangeOf(given);
    const { db } = this.#deps;
    const totals = await listDayTotals(db, appId, range);
    const reasons = await listTopReasons(db, appId, range, maxReasons);
    const installations = await listInstallationDays(db, appId, range);
    const ofConnectors = totals.filter(({ connector }) => connector !== '');
    const ofDays = Map.groupBy(totals, ({ day }) => day);
    return {
      from: range.from,
      to: range.to,
      days: daysOf(range).map((day) => ({ day, ...sum(ofDays.get(day) ?? []) })),
      connectors: grouped(ofConnectors, 'connector'),
      classes: grouped(totals, 'class'),
      reasons: reasons.map(({ sample, ...one }) => ({ ...one, meaning: meaningOf(sample) })),
      installations,
    };
  }

  #rangeOf({ from, to, connector, class: name }: ReportQuery): ReportRange {
    const today = this.#deps.clock.now();
    const last = to ?? utcDay(today);
    const first = from ?? utcDay(Date.parse(last) - (usualDays - 1) * dayMs);
    if (first > last) throw refuse('invalidParameter', detail('reportDays'));
    if (Date.parse(last) - Date.parse(first) >= maxReportDays * dayMs)
      throw refuse('invalidParameter', detail('reportTooLong', { days: maxReportDays }));
    return { from: first, to: last, connector: connector ?? null, class: name ?? null };
  }
}

function daysOf({ from, to }: ReportRange): string[] {
  const days: string[] = [];
  for (let ms = Date.parse(from); ms <= Date.parse(to); ms += dayMs) days.push(utcDay(ms));
  return days;
}

const none = Object.fromEntries(reportFigures.map((name) => [name, 0])) as ReportFigures;
const isFigure = (name: string): name is keyof ReportFigures => Object.hasOwn(none, name);

function sum(totals: readonly DayTotal[]): ReportFigures {
  const figures = { ...none };
  for (const { outcome, n } of totals) if (isFigure(outcome)) figures[outcome] += n;
  return figures;
}

/** Returns the sums by connector or class, the one with the most sent recipients first. */
function grouped<K extends 'connector' | 'class'>(totals: readonly DayTotal[], by: K) {
  return [...Map.groupBy(totals, (total) => total[by])]
    .map(([name, of]) => ({ [by]: name, ...sum(of) }) as Record<K, string> & ReportFigures)
    .sort((one, other) => other.sent - one.sent);
}
