/** Label filter of calls, without those of probes and Prometheus. */
export const calls = 'route!~"/healthz|/readyz|/metrics|none"';

/** Returns the rate of a counter over the interval of the panel. */
export const rate = (metric: string, by?: string, filter = '') =>
  `sum${by === undefined ? '' : ` by (${by})`} (rate(${metric}${filter === '' ? '' : `{${filter}}`}[$__rate_interval]))`;

/** Returns a quantile of a histogram over the interval of the panel. */
export const quantile = (q: number, histogram: string, by = '', filter = '') =>
  `histogram_quantile(${q}, ${rate(`${histogram}_bucket`, by === '' ? 'le' : `le, ${by}`, filter)})`;

/** Adds a zero where nothing was counted yet: an empty panel looks like a broken one. */
export const orZero = (expr: string) => `(${expr}) or vector(0)`;
