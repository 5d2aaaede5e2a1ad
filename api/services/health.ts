import { reportQueues } from '../../shared/queue/report.ts';
import type { Means } from './means.ts';

/** Health and metrics of this process. */
export class HealthService {
  readonly #means: Means;

  constructor(means: Means) {
    this.#means = means;
  }

  /** True when the database answers: this process can do its work. */
  isReady(): Promise<boolean> {
    return this.#means.db.isReachable();
  }

  /** The metrics in Prometheus' text format; queue gauges are read from the database at each scrape. */
  async metrics(): Promise<{ text: string; type: string }> {
    const { metrics, queue } = this.#means;
    await reportQueues(queue, metrics);
    return { text: await metrics.registry.metrics(), type: metrics.registry.contentType };
  }
}
