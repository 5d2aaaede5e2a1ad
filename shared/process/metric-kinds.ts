import {
  Counter,
  type CounterConfiguration,
  Histogram,
  type LabelValues,
  type MetricObjectWithValues,
  type MetricValueWithName,
} from 'prom-client';
import { addDurations, type DurationCounts, gatewayBuckets, noDurations } from './durations.ts';

type Values = MetricObjectWithValues<MetricValueWithName<string>>;

/**
 * Histogram of durations that were counted by bucket elsewhere, such as in threads: one sum for each batch, in place of an
 * observation for each request.
 */
export class DurationHistogram<Label extends string = string> extends Histogram<Label> {
  readonly #name: string;
  readonly #label: Label;
  /** Describes this metric: the inherited methods call each other. */
  readonly #empty: Histogram;
  readonly #byLabel = new Map<string, DurationCounts>();

  constructor({
    label,
    ...options
  }: {
    name: string;
    help: string;
    label: Label;
    registers: ConstructorParameters<typeof Histogram>[0]['registers'];
  }) {
    const form = { labelNames: [label], buckets: gatewayBuckets };
    super({ ...options, ...form });
    this.#name = options.name;
    this.#label = label;
    this.#empty = new Histogram({ ...options, ...form, registers: [] });
  }

  /** Adds durations under a value of the label. */
  add(value: string, durations: DurationCounts): void {
    const known = this.#byLabel.get(value) ?? noDurations();
    addDurations(known, durations);
    this.#byLabel.set(value, known);
  }

  override async get(): Promise<Values> {
    const values = [...this.#byLabel].flatMap(([value, durations]) => this.#values(value, durations));
    return { ...(await this.#empty.get()), values };
  }

  /** The registry asks for this in place of `get` when it writes its text. */
  getForPromString(): Promise<Values> {
    return this.get();
  }

  #values(value: string, { counts, sumSeconds }: DurationCounts): MetricValueWithName<string>[] {
    const own = { [this.#label]: value };
    let total = 0;
    const buckets = counts.map((count, bucket) => {
      total += count;
      const labels = { le: gatewayBuckets[bucket] ?? '+Inf', ...own };
      return { labels, value: total, metricName: `${this.#name}_bucket` };
    });
    return [
      ...buckets,
      { labels: own, value: sumSeconds, metricName: `${this.#name}_sum` },
      { labels: own, value: total, metricName: `${this.#name}_count` },
    ];
  }
}

/** Apps with series of their own: each series takes memory of this process and of Prometheus. */
const mostApps = 1000;
/** Value of the label `app` for all others. */
const otherApps = 'other';

/**
 * Creates a counter with a label `app`: beyond the first apps that the process counts, all share
 * one value.
 */
export function appCounter<T extends string>(options: CounterConfiguration<T>): Counter<T> {
  const counter = new Counter<T>(options);
  const inc: (labels: LabelValues<T>, value?: number) => void = counter.inc.bind(counter);
  const apps = new Set<unknown>();
  const hasOwn = (app: unknown): boolean => {
    if (apps.has(app)) return true;
    if (apps.size >= mostApps) return false;
    apps.add(app);
    return true;
  };
  const byApp = (labels: LabelValues<T> & { app?: unknown }, value?: number): void =>
    inc(hasOwn(labels.app) ? labels : { ...labels, app: otherApps }, value);
  // prom-client sets `inc` of each counter, so a subclass could not override it.
  return Object.assign(counter, { inc: byApp });
}
