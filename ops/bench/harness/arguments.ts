import { parseArgs } from 'node:util';

/** Configuration of the service in a benchmark. */
export interface Setup {
  /** Worker threads of each dispatcher; one per core when absent. */
  threads?: number;
  /** Dispatcher processes; one when absent. */
  dispatchers?: number;
  /** Concurrent streams that the gateway allows on a connection; 1000 as with APNs when absent. */
  streams?: number;
  /** Kind of the gateway; strict when absent. */
  gateway?: GatewayKind;
  /**
   * PostgreSQL in place of the embedded one, which keeps the rows of the benchmark, and its
   * standby.
   */
  database?: { url: string; readUrl?: string };
  /** Level of the processes' logs; `warn` when absent. */
  logLevel?: string;
}

/**
 * Kinds of gateways. `strict` is the sandbox APNs, which checks every request and uses more CPU
 * than the dispatcher; `quick` checks nothing and leaves the CPU to the dispatcher.
 */
const gatewayKinds = ['strict', 'quick'] as const;
export type GatewayKind = (typeof gatewayKinds)[number];

/**
 * Kinds of pushes: `increment` gives every device a badge number of its own, `sparse` goes to the
 * fiftieth part of the devices, `languages` has two translations for devices of four locales,
 * `variables` gives every device a text of its own. `local` is at the local time of devices in four
 * zones of the same time, `quiet` has quiet hours that no device is in, `capped` a limit of pushes
 * per device and day that none reaches.
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
] as const;
export type PushKind = (typeof pushKinds)[number];

interface BenchArgs {
  /** Kinds of the pushes; a plain one when undefined. */
  push: PushKind[] | undefined;
  /** Streams of live updates that watch the push; none when undefined. */
  watchers: number | undefined;
  /** Further pushes after the first one; none when undefined. */
  repeat: number | undefined;
  /** Part of the names of the patterns to run; all of them when absent. */
  pattern?: string;
  /** Positional numbers, in order. */
  numbers: number[];
  /** All requested combinations: `--threads 1,2 --dispatchers 1,2` are four. */
  setups: Setup[];
}

/**
 * Parses the arguments of a benchmark: numbers, `--threads n[,n…]`, `--dispatchers n[,n…]`,
 * `--gateway strict|quick`, `--push kind[,kind…]`, `--watchers n`, `--repeat n`, `--pattern text`
 * and `--database URL`. Throws an error for the operator when an argument is unknown.
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

/** Figure of a benchmark. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** What it must reach, as "≥ 40,000". */
  goal?: string;
  /** The same figure of an earlier version, on the quiet machine of docs/performance.md. */
  before?: string;
}

/** Returns median, 95th percentile and maximum of durations in milliseconds. */
export function spread(name: string, valuesMs: readonly number[]): Figure[] {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
  return [
    { name: `${name}, p50`, value: at(0.5), unit: 'ms' },
    { name: `${name}, p95`, value: at(0.95), unit: 'ms' },
    { name: `${name}, max`, value: at(1), unit: 'ms' },
  ];
}
