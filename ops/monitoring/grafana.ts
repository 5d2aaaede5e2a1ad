/** Panel of a dashboard. */
export interface Panel {
  title: string;
  /** Unit id of Grafana. */
  unit: 'none' | 's' | 'ops' | 'reqps' | 'percentunit' | 'bytes';
  queries: { expr: string; legend: string }[];
}

/** Dashboard in Grafana's JSON model. Contains only the members that this folder uses. */
export interface Dashboard {
  uid: string;
  title: string;
  schemaVersion: number;
  editable: boolean;
  refresh: string;
  tags: string[];
  time: { from: string; to: string };
  templating: { list: object[] };
  panels: GrafanaPanel[];
}

interface GrafanaPanel {
  id: number;
  type: 'timeseries';
  title: string;
  datasource: typeof datasource;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig: { defaults: { unit: string; min: number }; overrides: [] };
  options: object;
  targets: { refId: string; expr: string; legendFormat: string; datasource: typeof datasource }[];
}

/** Data source, which the viewer of the dashboard selects. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's own placeholder
const datasource = { type: 'prometheus', uid: '${datasource}' } as const;

const columns = 2;
const width = 24 / columns;
const height = 8;

/** Returns a dashboard with its panels in two columns. */
export function dashboard(uid: string, title: string, panels: readonly Panel[]): Dashboard {
  return {
    uid,
    title,
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    tags: ['carillon'],
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' }],
    },
    panels: panels.map((panel, index) => asGrafana(panel, index)),
  };
}

const asGrafana = ({ title, unit, queries }: Panel, index: number): GrafanaPanel => ({
  id: index + 1,
  type: 'timeseries',
  title,
  datasource,
  gridPos: {
    x: (index % columns) * width,
    y: Math.floor(index / columns) * height,
    w: width,
    h: height,
  },
  fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  options: { legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'] } },
  targets: queries.map(({ expr, legend }, i) => ({
    refId: String.fromCharCode(65 + i),
    expr,
    legendFormat: legend,
    datasource,
  })),
});

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
