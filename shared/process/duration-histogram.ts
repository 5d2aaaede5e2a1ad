import { Histogram, type MetricObjectWithValues, type MetricValueWithName } from 'prom-client';
import { addDurations, type DurationCounts, gatewayBuckets, noDurations } from './durations.ts';

type Values = MetricObjectWithValues<MetricValueWithName<string>>;

/**
 * Histogram of durations that threads have counted by bucket: one sum for each batch, in place of an observation for each
 * request.
 */
export class DurationHistogram extends Histogram<'connector'> {
  readonly #name: string;
  /** Describes this metric: the inherited methods call each other. */
  readonly #empty: Histogram;
  readonly #byConnector = new Map<string, DurationCounts>();

  constructor(options: {
    name: string;
    help: string;
    registers: ConstructorParameters<typeof Histogram>[0]['registers'];
  }) {
    const form = { labelNames: ['connector' as const], buckets: gatewayBuckets };
    super({ ...options, ...form });
    this.#name = options.name;
    this.#empty = new Histogram({ ...options, ...form, registers: [] });
  }

  add(connector: string, durations: DurationCounts): void {
    const known = this.#byConnector.get(connector) ?? noDurations();
    addDurations(known, durations);
    this.#byConnector.set(connector, known);
  }

  override async get(): Promise<Values> {
    const values = [...this.#byConnector].flatMap(([connector, durations]) =>
      this.#values(connector, durations),
    );
    return { ...(await this.#empty.get()), values };
  }

  /** The registry asks for this in place of `get` when it writes its text. */
  getForPromString(): Promise<Values> {
    return this.get();
  }

  #values(connector: string, { counts, sumSeconds }: DurationCounts): MetricValueWithName<string>[] {
    let total = 0;
    const buckets = counts.map((count, bucket) => {
      total += count;
      const labels = { le: gatewayBuckets[bucket] ?? '+Inf', connector };
      return { labels, value: total, metricName: `${this.#name}_bucket` };
    });
    return [
      ...buckets,
      { labels: { connector }, value: sumSeconds, metricName: `${this.#name}_sum` },
      { labels: { connector }, value: total, metricName: `${this.#name}_count` },
    ];
  }
}
