import { readUsage } from '../../shared/db/tables/usage.ts';
import { type Fees, feesOf, type Usage } from '../../shared/domain/usage.ts';
import { requireApp } from './apps.ts';
import type { Means } from './means.ts';

/** A day of an app with its fees, as the admin API shows it (protocol/admin-api.md#usage). */
export interface DayReport extends Usage {
  day: string;
  fees: Fees;
}

/** What apps use (protocol/admin-api.md#usage, protocol/push.md#fees). */
export class UsageService {
  readonly #means: Means;

  constructor(means: Means) {
    this.#means = means;
  }

  /** `day` is `YYYY-MM-DD` in UTC; today when absent. Throws 404 when there is no such app. */
  async report(appId: string, day: string | undefined): Promise<DayReport> {
    const app = await requireApp(this.#means, appId);
    const wanted = day ?? new Date(this.#means.clock.now()).toISOString().slice(0, 10);
    const { calls, peakCallsPerMinute, recipients } = await readUsage(this.#means.db, appId, wanted);
    const usage = { calls, peakCallsPerMinute, recipients };
    return { day: wanted, ...usage, fees: feesOf(app, usage) };
  }
}
