/** Label filter for API calls. It excludes probes and scrapes. */
export const calls = 'route!~"/healthz|/readyz|/metrics|none"';

/** Returns the rate of a counter over the interval of the panel. */
export const rate = (metric: string, by?: string, filter = '') =>
  `sum${by === undefined ? '' : ` by (${by})`} (rate(${metric}${filter === '' ? '' : `{${filter}}`}[$__rate_interval]))`;

/** Returns a quantile of a histogram over the interval of the panel. */
export const quantile = (q: number, histogram: string, by = '', filter = '') =>
  `histogram_quantile(${q}, ${rate(`${histogram}_bucket`, by === '' ? 'le' : `le, ${by}`, filter)})`;

/** Returns zero if nothing was counted yet, because an empty panel looks broken. */
export const orZero = (expr: string) => `(${expr}) or vector(0)`;
