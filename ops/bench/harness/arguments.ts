import { parseArgs } from 'node:util';

/** Configuration of the service in a benchmark. */
export interface Setup {
  /** Worker threads of each dispatcher. Absent: one per core. */
  threads?: number;
  /** Dispatcher processes. Absent: one. */
  dispatchers?: number;
  /** Concurrent streams that the gateway allows on a connection. Absent: 1000, as with APNs. */
  streams?: number;
  /** Kind of the gateway. Absent: strict. */
  gateway?: GatewayKind;
  /**
   * Running PostgreSQL and its standby. The rows of the benchmark remain in this database. Absent:
   * an embedded PostgreSQL.
   */
  database?: { url: string; readUrl?: string };
  /** Log level of the processes. Absent: `warn`. */
  logLevel?: string;
}

/**
 * Kinds of gateways. A `strict` gateway is the APNs of the sandbox: it checks every request, and
 * uses more CPU time than the dispatcher. A `quick` gateway checks nothing, so that the dispatcher
 * can use the CPU.
 */
const gatewayKinds = ['strict', 'quick'] as const;
export type GatewayKind = (typeof gatewayKinds)[number];

/**
 * Kinds of pushes:
 *
 * - `increment`: every device has a different badge number
 * - `sparse`: only every fiftieth device is a recipient
 * - `languages`: two translations, for devices of four locales
 * - `variables`: every device gets a different text
 * - `local`: sent at the local time of the devices, which are in four zones with the same time
 * - `quiet`: with quiet hours, which no device is in
 * - `capped`: with a limit of pushes per device and day, which no device reaches
 * - `webhook`: the outcome of each recipient is also sent to a webhook
 * - `webhook-down`: the same, to a webhook that does not answer
 */
const pushKinds = [
  'plain',
  'increment',
  'sparse',
  'languages',
  'variables',
  'local',
  'quiet',
  'capped',
  'webhook',
  'webhook-down',
] as const;
export type PushKind = (typeof pushKinds)[number];

interface BenchArgs {
  /** Kinds of the pushes. Undefined: only `plain`. */
  push: PushKind[] | undefined;
  /** Number of streams of live updates that watch the push. Undefined: none. */
  watchers: number | undefined;
  /** Number of further pushes after the first push. Undefined: none. */
  repeat: number | undefined;
  /** The benchmark runs the patterns whose names contain this text. Absent: all patterns. */
  pattern?: string;
  /** Positional numbers, in order. */
  numbers: number[];
  /** All requested combinations. For example, `--threads 1,2 --dispatchers 1,2` gives four. */
  setups: Setup[];
}

/**
 * Parses the arguments of a benchmark: numbers, `--threads n[,n…]`, `--dispatchers n[,n…]`,
 * `--gateway strict|quick`, `--push kind[,kind…]`, `--watchers n`, `--repeat n`, `--pattern text`
 * and `--database URL`. Throws an operator error if an argument is unknown.
 */
export function readArgs(args: string[]): BenchArgs {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      threads: { type: 'string' },
      dispatchers: { type: 'string' },
      gateway: { type: 'string' },
      push: { type: 'string' },
      watchers: { type: 'string' },
      repeat: { type: 'string' },
      pattern: { type: 'string' },
      database: { type: 'string' },
    },
  });
  const gateway =
    values.gateway === undefined ? undefined : readKind('--gateway', values.gateway, gatewayKinds);
  const { database } = values;
  const threads = readList('--threads', values.threads);
  const dispatchers = readList('--dispatchers', values.dispatchers);
  return {
    push: values.push?.split(',').map((kind) => readKind('--push', kind, pushKinds)),
    watchers: values.watchers === undefined ? undefined : readNumber('--watchers', values.watchers),
    repeat: values.repeat === undefined ? undefined : readNumber('--repeat', values.repeat),
    ...(values.pattern === undefined ? {} : { pattern: values.pattern }),
    numbers: positionals.map((text) => readNumber('an argument', text)),
    setups: dispatchers.flatMap((dispatcherCount) =>
      threads.map((threadCount) => ({
        ...(threadCount === undefined ? {} : { threads: threadCount }),
        ...(dispatcherCount === undefined ? {} : { dispatchers: dispatcherCount }),
        ...(gateway === undefined ? {} : { gateway }),
        ...(database === undefined ? {} : { database: { url: database } }),
      })),
    ),
  };
}

function readKind<K extends string>(name: string, text: string, kinds: readonly K[]): K {
  const kind = kinds.find((known) => known === text);
  if (kind === undefined)
    throw new Error(`${name} is ${kinds.join(' or ')}, not ${JSON.stringify(text)}`);
  return kind;
}

function readList(name: string, text: string | undefined): (number | undefined)[] {
  return text === undefined ? [undefined] : text.split(',').map((part) => readNumber(name, part));
}

function readNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`${name} is a whole number above 0, not ${JSON.stringify(text)}`);
  return value;
}

/** Result of a benchmark with its unit. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** Value that the figure must reach, for example "≥ 40,000". */
  goal?: string;
  /** Value of an earlier version, measured on the quiet machine of docs/performance.md. */
  before?: string;
}

/** Returns the median, the 95th percentile and the maximum of durations in milliseconds. */
export function percentiles(name: string, valuesMs: readonly number[]): Figure[] {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
  return [
    { name: `${name}, p50`, value: at(0.5), unit: 'ms' },
    { name: `${name}, p95`, value: at(0.95), unit: 'ms' },
    { name: `${name}, max`, value: at(1), unit: 'ms' },
  ];
}
