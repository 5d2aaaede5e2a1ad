import { table } from '../cli/table.ts';
import { benchAccounts } from './accounts.ts';
import { benchApi } from './api/api.ts';
import { benchChannel } from './channel/bench.ts';
import { benchConnectors } from './connectors/bench.ts';
import { benchControl, benchPace } from './control/control.ts';
import type { Figure } from './harness/arguments.ts';
import { benchHttp2 } from './http2/compare.ts';
import { benchImport } from './import.ts';
import { benchFairness, benchLatency } from './latency.ts';
import { benchNeighbour } from './neighbour/bench.ts';
import { benchBacklog, benchSchedule } from './pipeline/backlog.ts';
import { benchFlat } from './pipeline/flat.ts';
import { benchTracing } from './pipeline/measure.ts';
import { benchPipeline } from './pipeline/pipeline.ts';
import { benchRivals } from './pipeline/rivals/rivals.ts';
import { benchMemory } from './size/memory.ts';
import { benchSizing, benchTables } from './size/sizing.ts';

interface Benchmark {
  description: string;
  run(args: string[], log: (line: string) => void): Promise<Figure[]>;
}

const benchmarks = new Map<string, Benchmark>([
  [
    'pipeline',
    {
      description:
        'one push to many devices, until its record is done [devices] [--threads n,…] [--dispatchers n,…]',
      run: benchPipeline,
    },
  ],
  [
    'flat',
    {
      description:
        'CPU per recipient of pushes to 10 k, 100 k, 1 M and 5 M, and their ratio [devices…]',
      run: benchFlat,
    },
  ],
  [
    'rivals',
    {
      description:
        'a push beside Parse Server, node-apn, apns2 (Go), pushy (Java) and a bare loop over node:http2 [devices…]',
      run: benchRivals,
    },
  ],
  [
    'sizing',
    {
      description:
        'a push and saves; writes the table of docs/operate/sizing.md from them [devices]',
      run: benchSizing,
    },
  ],
  [
    'tables',
    {
      description:
        'tables that grow: saves, a condition beside a large app, cleaning, inboxes [rows]',
      run: benchTables,
    },
  ],
  [
    'memory',
    {
      description: 'memory of each process of `npm start` at rest [seconds of rest]',
      run: benchMemory,
    },
  ],
  [
    'tracing',
    {
      description: 'cost of the spans of a batch without an SDK of OpenTelemetry [calls]',
      run: benchTracing,
    },
  ],
  [
    'latency',
    {
      description: 'time from the answer to the first send of single pushes, idle service [pushes]',
      run: benchLatency,
    },
  ],
  [
    'fairness',
    { description: 'the same during a push to many of another app [devices]', run: benchFairness },
  ],
  [
    'backlog',
    {
      description:
        'pushes of many apps at once: begin and end of each, single pushes between them, memory [apps] [devices each]',
      run: benchBacklog,
    },
  ],
  [
    'schedule',
    {
      description:
        'many scheduled pushes of 20 apps within a minute: how late each begins [pushes] [seconds]',
      run: benchSchedule,
    },
  ],
  [
    'accounts',
    {
      description:
        'logins, and the duration of a cheap call during them, without and with pushes [seconds] [clients]',
      run: benchAccounts,
    },
  ],
  [
    'api',
    {
      description:
        'installation saves, user reads and pushes to one device: rate, duration, CPU [seconds] [clients]',
      run: benchApi,
    },
  ],
  [
    'http2',
    {
      description:
        'CPU per request of HTTP/2 clients, ours and others, on one sink [requests] [rounds]',
      run: benchHttp2,
    },
  ],
  [
    'channel',
    {
      description:
        'devices on one api process: logins, memory, messages, and all back at once [connections] [messages]',
      run: benchChannel,
    },
  ],
  [
    'import',
    {
      description:
        "an export's installations through `carillon import`, and a push to a where over them [rows]",
      run: benchImport,
    },
  ],
  [
    'control',
    {
      description: 'from a call to its effect: schedule, pause, resume, cancel [devices] [rounds]',
      run: benchControl,
    },
  ],
  [
    'pace',
    {
      description:
        'most and fewest arrivals per second of a push with flow_control [devices] [rate]',
      run: benchPace,
    },
  ],
  [
    'neighbour',
    {
      description:
        'a push and a health check of one app under the load of a hostile app [seconds] [clients]',
      run: benchNeighbour,
    },
  ],
  [
    'connectors',
    {
      description: 'each connector alone against its gateway: throughput and CPU [recipients]',
      run: benchConnectors,
    },
  ],
]);

/** Names of the benchmarks. */
export const benchmarkNames: readonly string[] = [...benchmarks.keys()];

/**
 * Runs a benchmark by name. Lists the benchmarks if `name` is undefined. With `--json` among
 * `args`, prints one JSON document.
 */
export async function bench(name: string | undefined, args: string[]): Promise<void> {
  const isJson = args.includes('--json');
  const benchmark = name === undefined ? undefined : benchmarks.get(name);
  if (!benchmark) {
    if (name !== undefined) throw new Error(`there is no benchmark named ${name}`);
    const list = [...benchmarks].map(([key, { description }]) => ({ name: key, description }));
    process.stdout.write(
      isJson
        ? `${JSON.stringify(list)}\n`
        : `${list.map((b) => `${b.name}  ${b.description}`).join('\n')}\n`,
    );
    return;
  }
  const log = (line: string) => void process.stderr.write(`${line}\n`);
  const figures = await benchmark.run(
    args.filter((arg) => arg !== '--json'),
    log,
  );
  process.stdout.write(
    isJson ? `${JSON.stringify({ benchmark: name, figures })}\n` : `${show(figures)}\n`,
  );
}

/**
 * Returns figures as a table. The columns for goals and earlier values appear only if a figure has
 * such a value.
 */
function show(figures: Figure[]): string {
  const isCompared = figures.some(({ goal, before }) => goal !== undefined || before !== undefined);
  return table(
    ['figure', 'value', 'unit', ...(isCompared ? ['goal', 'before'] : [])],
    figures.map(({ name, value, unit, goal = '', before = '' }) => [
      name,
      Number(value.toPrecision(4)),
      unit,
      ...(isCompared ? [goal, before] : []),
    ]),
    Number.POSITIVE_INFINITY,
  );
}
