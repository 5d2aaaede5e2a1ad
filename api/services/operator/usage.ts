import { readUsage } from '../../../shared/db/tables/apps/usage.ts';
import { type Fees, feesOf, type Usage } from '../../../shared/domain/apps/usage.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from './apps.ts';

/** Usage and fees of an app on one day (protocol/admin-api.md#usage). */
export interface DayReport extends Usage {
  day: string;
  fees: Fees;
}

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
}
