/**
 * Compares the CPU time per request of our transport and of libraries, against the same sink, with
 * the same headers and body (develop/decisions.md#why-our-own-http2-client). Every client runs in a
 * new process, and only its own CPU time counts.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import type { Figure } from '../harness/figure.ts';
import { isH2loadInstalled, runH2load } from './h2load.ts';
import { type BodyKind, bodyKinds, type Measured, measured, sharedBody } from './shape.ts';

/** Messages of a sink: when it listens, and on request. */
const sinkReady = z.object({ url: z.string(), ca: z.string() });
const sinkCounts = z.object({ requests: z.number(), bodyBytes: z.number() });

interface Contender {
  client: string;
  /** Share of the requests of our transport. */
  share: number;
}

const contenders: readonly Contender[] = [
  { client: 'our transport', share: 1 },
  { client: 'node:http2', share: 1 / 30 },
  { client: 'http2-wrapper', share: 1 / 60 },
  { client: 'undici', share: 1 / 60 },
];

/**
 * More than half a second of CPU for our transport, so that its compilation does not count for
 * much.
 */
const defaultRequests = 1_800_000;
const defaultRounds = 3;
/** Concurrent streams, on one connection. */
const warmUpShare = 0.2;

interface Sample extends Measured {
  requests: number;
}

/**
 * Compares the clients `args[1]` times (3); our transport sends `args[0]` requests (1,800,000) each
 * time.
 */
export async function benchHttp2(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const [requests = defaultRequests, rounds = defaultRounds] = args.map(Number);
  if (!Number.isSafeInteger(requests) || requests < 60_000)
    throw new Error('the number of requests is a whole number of at least 60000');
  const sink = fork(moduleUrl('./sink.ts', import.meta.url));
  try {
    const [ready] = await once(sink, 'message');
    const bench = new Comparison(sink, { ...sinkReady.parse(ready), requests });
    for (let round = 1; round <= rounds; round++)
      for (const kind of bodyKinds) {
        log(`round ${round} of ${rounds}, ${kind} body`);
        await bench.round(kind, log);
      }
    return bench.figures();
  } finally {
    sink.kill();
  }
}

class Comparison {
  readonly #sink: ChildProcess;
  readonly #target: { url: string; ca: string; requests: number };
  readonly #samples = new Map<string, Sample[]>();

  constructor(sink: ChildProcess, target: { url: string; ca: string; requests: number }) {
    this.#sink = sink;
    this.#target = target;
  }

  async round(kind: BodyKind, log: (line: string) => void): Promise<void> {
    const { url, ca, requests: most } = this.#target;
    for (const { client, share } of contenders) {
      const requests = roundUp(most * share);
      const warmUp = roundUp(requests * warmUpShare);
      const order = { client, url, ca, body: kind, warmUp, requests };
      const sample = await this.#counted(warmUp + requests, () => runClient(order));
      this.#add(kind, client, { ...sample, requests }, log);
    }
    if (!isH2loadInstalled()) return;
    const requests = roundUp(most / 6);
    const sample = await this.#counted(requests, () => runH2load(url, requests));
    this.#add(kind, 'h2load', { ...sample, requests }, log);
  }

  figures(): Figure[] {
    return bodyKinds.flatMap((kind) => {
      const names = [...contenders.map(({ client }) => client), 'h2load'].filter((name) =>
        this.#samples.has(`${kind} ${name}`),
      );
      const cost = (name: string) => this.#median(kind, name, (s) => (s.cpuSeconds * 1e6) / s.requests);
      const speed = (name: string) => this.#median(kind, name, (s) => s.requests / s.seconds);
      return [
        ...names.map((name) => ({
          name: `${kind} body, ${name}`,
          value: cost(name),
          unit: 'CPU µs/request',
        })),
        ...names.map((name) => ({ name: `${kind} body, ${name}`, value: speed(name), unit: 'requests/s' })),
        ...names.slice(1).map((name) => ({
          name: `${kind} body, ${name} to ours`,
          value: cost(name) / cost('our transport'),
          unit: 'times the CPU',
        })),
      ];
    });
  }

  /** Runs a client and checks that the sink received every request completely. */
  async #counted(requests: number, run: () => Promise<Measured>): Promise<Measured> {
    const before = await this.#counts();
    const sample = await run();
    const after = await this.#counts();
    const got = after.requests - before.requests;
    if (got !== requests) throw new Error(`the sink got ${got} of ${requests} requests`);
    const bytes = (after.bodyBytes - before.bodyBytes) / requests;
    if (Math.abs(bytes - sharedBody.length) > 1) throw new Error(`bodies of ${bytes} bytes arrived`);
    return sample;
  }

  async #counts() {
    this.#sink.send('counts');
    const [counts] = await once(this.#sink, 'message');
    return sinkCounts.parse(counts);
  }

  #add(kind: BodyKind, client: string, sample: Sample, log: (line: string) => void): void {
    const key = `${kind} ${client}`;
    this.#samples.set(key, [...(this.#samples.get(key) ?? []), sample]);
    log(`  ${client}: ${((sample.cpuSeconds * 1e6) / sample.requests).toFixed(2)} µs`);
  }

  #median(kind: BodyKind, client: string, of: (sample: Sample) => number): number {
    const values = (this.#samples.get(`${kind} ${client}`) ?? []).map(of).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? Number.NaN;
  }
}

/** Rounds to whole batches, so that all clients send the same. */
const roundUp = (requests: number): number => Math.ceil(requests / 1000) * 1000;

async function runClient(order: object): Promise<Measured> {
  // http2-wrapper uses an IP address as server name, which Node warns about.
  const child = fork(moduleUrl('./client.ts', import.meta.url), { execArgv: ['--disable-warning=DEP0123'] });
  child.send(order);
  const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  const result = measured.safeParse(message);
  if (!result.success) throw new Error(`a client ended with ${JSON.stringify(message)}`);
  if (child.exitCode === null) await once(child, 'exit');
  return result.data;
}
