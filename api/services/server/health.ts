import { isBearer } from '../../../shared/crypto.ts';
import { inLane } from '../../../shared/db/limits/lane.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { reportQueues } from '../../../shared/queue/report.ts';
import type { ApiDeps } from '../deps.ts';
import type { PumpingGuard } from '../sms/pumping.ts';

/** Health and metrics of this process. */
export class HealthService {
  readonly #deps: ApiDeps;
  readonly #pumping: PumpingGuard;
  #isStopping = false;
  #check: Promise<string> | undefined;

  constructor(deps: ApiDeps, pumping: PumpingGuard) {
    this.#deps = deps;
    this.#pumping = pumping;
  }

  /**
   * `ready` when this process can be given work: it is not about to stop, the database answers, is migrated and is
   * opened by CARILLON_SECRET. Else `stopping`, `database unreachable` or a sentence for the operator.
   */
  async readiness(): Promise<string> {
    return this.#isStopping ? 'stopping' : this.#databaseReadiness();
  }

  /** Asked once for all who ask at the same time: anybody may. */
  #databaseReadiness(): Promise<string> {
    const { admissionDb, readiness } = this.#deps;
    this.#check ??= inLane('health', async () =>
      (await admissionDb.isReachable()) ? ((await readiness.problem()) ?? 'ready') : 'database unreachable',
    )
      .catch(() => 'database unreachable')
      .finally(() => {
        this.#check = undefined;
      });
    return this.#check;
  }

  /** From now on whoever spreads the load is told to look elsewhere, while devices and calls still end here. */
  markStopping(): void {
    this.#isStopping = true;
  }

  /**
   * The metrics in Prometheus' text format; gauges of what all processes share are read at each scrape. Throws
   * 401 where `METRICS_TOKEN` is set and the `Authorization` header does not hold it.
   */
  async metrics(authorization?: string): Promise<{ text: string; type: string }> {
    const { metrics, queue, config } = this.#deps;
    if (config.metricsToken !== undefined && !isBearer(authorization, config.metricsToken))
      throw refuse('unauthorized');
    await reportQueues(queue, metrics);
    await this.#pumping.updateGauge().catch(() => undefined);
    return { text: await metrics.registry.metrics(), type: metrics.registry.contentType };
  }
}
