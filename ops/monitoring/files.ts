import { type Alert, alertGroups, recordings } from './alerts.ts';
import { type Dashboard, dashboard } from './grafana.ts';
import { accounts } from './panels/accounts.ts';
import { delivery } from './panels/delivery.ts';
import { overview } from './panels/overview.ts';
import { scale } from './panels/scale.ts';

const head =
  '# Written by `npm run docs` from ops/monitoring/alerts.ts: change that file, not this one.\n';
/**
 * Base of the links to the runbooks. It is relative, because every installation has its own copy of
 * the documents.
 */
const runbooks = 'docs/operate/alerts.md';

/** Quotes a string for YAML. */
const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Renders the alert rules. `change` is applied to each alert first. */
export function alertRules(change: (alert: Alert) => Alert = (alert) => alert): string {
  const groups = Object.entries(alertGroups).map(([group, alerts]) => {
    const rules = alerts
      .map(change)
      .map(({ name, severity, expr, for: duration, summary }) =>
        [
          `      - alert: ${name}`,
          `        expr: ${quoted(expr)}`,
          `        for: ${duration}`,
          `        labels: { severity: ${severity} }`,
          '        annotations:',
          `          summary: ${quoted(summary)}`,
          `          runbook: ${quoted(`${runbooks}#${name.toLowerCase()}`)}`,
        ].join('\n'),
      );
    return `  - name: carillon-${group}\n    rules:\n${rules.join('\n')}\n`;
  });
  return `${head}groups:\n${groups.join('')}`;
}

function recordingRules(): string {
  const rules = Object.entries(recordings).map(
    ([name, expr]) => `      - record: ${name}\n        expr: ${quoted(expr)}\n`,
  );
  return `${head}groups:\n  - name: carillon-recordings\n    interval: 30s\n    rules:\n${rules.join('')}`;
}

/** Files of this folder that are generated from the code, by their path. */
export const monitoringFiles = (): Record<string, string> => ({
  'rules/alerts.yml': alertRules(),
  'rules/recordings.yml': recordingRules(),
  ...Object.fromEntries(
    dashboards.map((one) => [
      `dashboards/${one.uid}.json`,
      `${JSON.stringify(one, undefined, 2)}\n`,
    ]),
  ),
});

/** All dashboards of Grafana. */
export const dashboards: readonly Dashboard[] = [
  dashboard('carillon-overview', 'Carillon: overview', overview),
  dashboard('carillon-delivery', 'Carillon: delivery', delivery),
  dashboard('carillon-scale', 'Carillon: queues and scale', scale),
  dashboard('carillon-accounts', 'Carillon: accounts and API', accounts),
];
