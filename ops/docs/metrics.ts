import { z } from 'zod';
import { createMetrics } from '../../shared/metrics.ts';
import { code, page, table } from './markdown.ts';

const intro = `\`GET /metrics\` of the api (its own port) and of each dispatcher (\`METRICS_PORT\`) returns these in the text format of Prometheus,
beside the process metrics of prom-client (\`process_…\`, \`nodejs_…\`). A process reports what it does itself: sums over all processes
are made by Prometheus. No label holds a token, a phone number or an address. A counter has the label \`app\` for the first 1,000 apps that
a process counts; all others are \`other\`. \`METRICS_TOKEN\` is asked for where it is set; without it \`/metrics\` answers callers on the same machine only.`;

const ownPrefix = 'carillon_';

const metric = z.object({
  name: z.string(),
  help: z.string(),
  type: z.string(),
  labelNames: z.array(z.string()).default([]),
  upperBounds: z.array(z.number()).optional(),
});
type Metric = z.infer<typeof metric>;

/**
 * Renders every `carillon_` metric. The metrics of prom-client are left out, because they depend on
 * the machine.
 */
export async function metricsPage(): Promise<string> {
  const { registry } = createMetrics();
  const types = new Map(
    (await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]),
  );
  const all = registry
    .getMetricsAsArray()
    .filter(({ name }) => name.startsWith(ownPrefix))
    .map((one) => metric.parse({ ...one, type: types.get(one.name) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  registry.clear();
  return page(
    'Metrics',
    intro,
    table(['metric', 'type', 'labels', 'meaning'], all.map(rowOf)),
    '## Buckets',
    'Upper bounds of the histograms, in seconds.',
    table(
      ['metric', 'buckets'],
      all
        .filter(({ upperBounds }) => upperBounds)
        .map(({ name, upperBounds = [] }) => [code(name), upperBounds.join(', ')]),
    ),
  );
}

const rowOf = ({ name, type, labelNames, help }: Metric): string[] => [
  code(name),
  type,
  labelNames.map(code).join(', '),
  help,
];
