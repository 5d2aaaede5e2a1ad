/**
 * What worker threads report for a scrape: their metrics and heaps, which the main thread adds up.
 */
import { type Metrics, type MetricValues, mergedMetrics } from '../../shared/metrics.ts';
import type { ThreadReport } from './task.ts';

/** Metrics of a thread that end with it; all others are counts. */
const isGauge = ({ type }: MetricValues[number]): boolean => String(type) === 'gauge';

/** The latest report of each thread, and the counts of threads that have ended. */
export class ThreadReports {
  readonly #latest = new Map<number, ThreadReport>();
  #ended: MetricValues = [];

  set(thread: number, report: ThreadReport): void {
    this.#latest.set(thread, report);
  }

  /** Keeps only the counts of threads that do not run. */
  async keepEnded(running: ReadonlySet<number>): Promise<void> {
    for (const [thread, { values }] of this.#latest) {
      if (running.has(thread)) continue;
      this.#latest.delete(thread);
      const counts = values.filter((metric) => !isGauge(metric));
      this.#ended = await mergedMetrics([this.#ended, counts]);
    }
  }

  /** Metrics of all threads, by thread. */
  get values(): MetricValues[] {
    return [this.#ended, ...[...this.#latest.values()].map(({ values }) => values)];
  }

  /** Open HTTP/2 connections of all threads. */
  get connections(): number {
    return [...this.#latest.values()]
      .flatMap(({ values }) => values.find(({ name }) => name === 'carillon_http2_connections')?.values ?? [])
      .reduce((sum, { value }) => sum + value, 0);
  }

  reportHeaps({ workerHeapBytes }: Metrics): void {
    const heaps = [...this.#latest.values()].map(({ heap }) => heap);
    const used = heaps.map((heap) => heap.used);
    workerHeapBytes.set(
      { kind: 'used' },
      used.reduce((sum, bytes) => sum + bytes, 0),
    );
    workerHeapBytes.set({ kind: 'largest' }, Math.max(0, ...used));
    workerHeapBytes.set({ kind: 'limit' }, Math.max(0, ...heaps.map(({ limit }) => limit)));
  }
}
