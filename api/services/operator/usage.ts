import { dayMs } from '../../../shared/clock.ts';
import { listUsage, readUsage } from '../../../shared/db/tables/usage.ts';
import { type Fees, feesOf, type Usage } from '../../../shared/domain/apps/usage.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from './apps.ts';

/** Usage and fees of an app on one day (protocol/admin-api.md#usage). */
export interface DayReport extends Usage {
  day: string;
  fees: Fees;
}

/** Days of one report; older ones are deleted. */
const maxDays = 400;

/** Reports the usage of apps (protocol/admin-api.md#usage, protocol/push.md#fees). */
export class UsageService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** `day` is `YYYY-MM-DD` in UTC; today when absent. Throws 404 when there is no such app. */
  async report(appId: string, day: string | undefined): Promise<DayReport> {
    const app = await requireApp(this.#deps, appId);
    const wanted = day ?? new Date(this.#deps.clock.now()).toISOString().slice(0, 10);
    const { calls, peakCallsPerMinute, recipients } = await readUsage(this.#deps.db, appId, wanted);
    const usage = { calls, peakCallsPerMinute, recipients };
    return { day: wanted, ...usage, fees: feesOf(app, usage) };
  }

  /** Reports the days from one to another in UTC, both included, oldest first. Throws 404, 400 for more than 400 days. */
  async range(appId: string, { from, to }: { from: string; to: string }): Promise<DayReport[]> {
    const app = await requireApp(this.#deps, appId);
    const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
    if (days < 1 || days > maxDays) throw refuse('invalidParameter', detail('dayRange', { n: maxDays }));
    const rows = await listUsage(this.#deps.db, appId, { from, to });
    const known = new Map(rows.map((row) => [row.day, row]));
    return Array.from({ length: days }, (_, i) => {
      const day = new Date(Date.parse(from) + i * dayMs).toISOString().slice(0, 10);
      const { calls = 0, peakCallsPerMinute = 0, recipients = 0 } = known.get(day) ?? {};
      const usage = { calls, peakCallsPerMinute, recipients };
      return { day, ...usage, fees: feesOf(app, usage) };
    });
  }
}
