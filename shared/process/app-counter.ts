import { Counter, type CounterConfiguration, type LabelValues } from 'prom-client';

/** Apps with series of their own: each series takes memory of this process and of Prometheus. */
const mostApps = 1000;
/** Value of the label `app` for all others. */
const otherApps = 'other';

/** Creates a counter with a label `app`: beyond the first apps that the process counts, all share one value. */
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
