import { reportQueues } from '../../shared/queue/report.ts';
import type { Means } from './means.ts';
import type { PumpingGuard } from './sms/pumping.ts';

/** Health and metrics of this process. */
export class HealthService {
  readonly #means: Means;
  readonly #pumping: PumpingGuard;

  constructor(means: Means, pumping: PumpingGuard) {
    this.#means = means;
    this.#pumping = pumping;
  }

  /** True when the database answers: this process can do its work. */
  isReady(): Promise<boolean> {
    return this.#means.db.isReachable();
  }

  /** The metrics in Prometheus' text format; gauges of what all processes share are read at each scrape. */
  async metrics(): Promise<{ text: string; type: string }> {
    const { metrics, queue } = this.#means;
    await reportQueues(queue, metrics);
    await this.#pumping.record().catch(() => undefined);
    return { text: await metrics.registry.metrics(), type: metrics.registry.contentType };
  }
}
