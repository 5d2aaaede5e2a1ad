import { isBearer } from '../../shared/crypto.ts';
import { inLane } from '../../shared/db/lane.ts';
import { refuse } from '../../shared/domain/errors.ts';
import { reportQueues } from '../../shared/queue/report.ts';
import type { Means } from './means.ts';
import type { PumpingGuard } from './sms/pumping.ts';

/** Health and metrics of this process. */
export class HealthService {
  readonly #means: Means;
  readonly #pumping: PumpingGuard;
  #isStopping = false;
  #asking: Promise<boolean> | undefined;

  constructor(means: Means, pumping: PumpingGuard) {
    this.#means = means;
    this.#pumping = pumping;
  }

  /** Whether this process can be given work: it is not about to stop, and the database answers. */
  async readiness(): Promise<'ready' | 'stopping' | 'database unreachable'> {
    if (this.#isStopping) return 'stopping';
    return (await this.#isReachable()) ? 'ready' : 'database unreachable';
  }

  /** Asked once for all who ask at the same time: anybody may. */
  #isReachable(): Promise<boolean> {
    this.#asking ??= inLane('health', () => this.#means.admissionDb.isReachable()).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** From now on whoever spreads the load is told to look elsewhere, while devices and calls still end here. */
  stop(): void {
    this.#isStopping = true;
  }

  /**
   * The metrics in Prometheus' text format; gauges of what all processes share are read at each scrape. Throws
   * 401 where `METRICS_TOKEN` is set and the `Authorization` header does not hold it.
   */
  async metrics(authorization?: string): Promise<{ text: string; type: string }> {
    const { metrics, queue, config } = this.#means;
    if (config.metricsToken !== undefined && !isBearer(authorization, config.metricsToken))
      throw refuse('unauthorized');
    await reportQueues(queue, metrics);
    await this.#pumping.record().catch(() => undefined);
    return { text: await metrics.registry.metrics(), type: metrics.registry.contentType };
  }
}
