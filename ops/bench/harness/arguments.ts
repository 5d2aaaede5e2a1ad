import { parseArgs } from 'node:util';

/** One way to run the service in a benchmark. */
export interface Setup {
  /** Worker threads of each dispatcher; one per core when absent. */
  threads?: number;
  /** Dispatcher processes; one when absent. */
  dispatchers?: number;
  /** Streams the gateway allows at a time on a connection; 1000, as APNs does, when absent. */
  streams?: number;
  /** See `gatewayKinds`; strict when absent. */
  gateway?: GatewayKind;
}

/**
 * `strict` is the sandbox APNs, which checks every request and takes more of the machine than who sends to it;
 * `quick` takes next to nothing and checks nothing, so that the machine is the dispatcher's.
 */
export const gatewayKinds = ['strict', 'quick'] as const;
export type GatewayKind = (typeof gatewayKinds)[number];

export interface BenchArgs {
  /** Numbers without a name, in order. */
  numbers: number[];
  /** Every combination that was asked for: `--threads 1,2 --dispatchers 1,2` are four. */
  setups: Setup[];
}

/**
 * Arguments of a benchmark: numbers, `--threads n[,n…]`, `--dispatchers n[,n…]` and `--gateway strict|quick`.
 * Throws a sentence at what it does not know.
 */
export function readArgs(args: string[]): BenchArgs {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { threads: { type: 'string' }, dispatchers: { type: 'string' }, gateway: { type: 'string' } },
  });
  const gateway = gatewayKinds.find((kind) => kind === values.gateway);
  if (values.gateway !== undefined && gateway === undefined)
    throw new Error(`--gateway is ${gatewayKinds.join(' or ')}, not ${JSON.stringify(values.gateway)}`);
  const threads = readList('--threads', values.threads);
  const dispatchers = readList('--dispatchers', values.dispatchers);
  return {
    numbers: positionals.map((text) => readNumber('an argument', text)),
    setups: dispatchers.flatMap((dispatcherCount) =>
      threads.map((threadCount) => ({
        ...(threadCount === undefined ? {} : { threads: threadCount }),
        ...(dispatcherCount === undefined ? {} : { dispatchers: dispatcherCount }),
        ...(gateway === undefined ? {} : { gateway }),
      })),
    ),
  };
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
