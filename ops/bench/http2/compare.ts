/**
 * Compares the CPU time per request of our transport and of other libraries
 * (develop/decisions.md#why-our-own-http2-client). All clients send the same headers and body to
 * the same server (sink.ts). Every client runs in a new process, and only the CPU time of this
 * process counts.
 */

import { type ChildProcess, execFile, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import type { Figure } from '../harness/arguments.ts';

/** Request body of every client: a push as APNs gets it, without the badge. */
export const body = Buffer.from(
  JSON.stringify({
    aps: {
      badge: '@',
      alert: {
        title: 'Your order has left',
        body: 'It will be with you between two and four this afternoon.',
      },
      sound: 'default',
      'thread-id': 'orders',
    },
    order: '6f1d3c2a',
  }).replace('"@"', ''),
);
/** Offset in `body` at which the badge is inserted. */
export const badgeAt = body.indexOf('"badge":') + '"badge":'.length;

/** Body with a badge that all recipients share. */
export const sharedBody = withBadge('1');

function withBadge(badge: string): Buffer {
  return Buffer.concat([body.subarray(0, badgeAt), Buffer.from(badge), body.subarray(badgeAt)]);
}

export const pathPrefix = '/3/device/';

/** Text with the length of a provider token. */
const jwt = `${'eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ'}.${'x'.repeat(64)}.${'y'.repeat(86)}`;

export const headers: Record<string, string> = {
  authorization: `bearer ${jwt}`,
  'apns-topic': 'com.example.app',
  'apns-push-type': 'alert',
  'apns-priority': '10',
  'apns-expiration': '1794567890',
};
export const requestHeaderName = 'apns-id';
/** Prefix of the request ids of one push. */
export const idPrefix = 'eabeae54-14a8-81e5-a60b-';

export interface BenchRecipient {
  token: string;
  id: string;
  /** The part of `id` after `idPrefix`. */
  idEnd: string;
  badge: string;
}

/**
 * Recipients of one batch. Every client repeats this batch. Badges have two digits, so that all
 * bodies have the same length.
 */
export const recipients: readonly BenchRecipient[] = Array.from({ length: 1000 }, (_, n) => ({
  token: Buffer.from((n * 7919).toString(16).padStart(64, 'a1b2c3d4')).toString('latin1'),
  id: `${idPrefix}${String(n).padStart(12, '0')}`,
  idEnd: String(n).padStart(12, '0'),
  badge: String(10 + (n % 90)),
}));

const bodyKinds = ['personal', 'shared'] as const;
type BodyKind = (typeof bodyKinds)[number];

/** Message to a client process. */
export const order = z.object({
  client: z.string(),
  url: z.string(),
  ca: z.string(),
  body: z.enum(bodyKinds),
  warmUp: z.number(),
  requests: z.number(),
});
export type Order = z.infer<typeof order>;

/** Message of a client process. */
const measured = z.object({ seconds: z.number(), cpuSeconds: z.number() });
type Measured = z.infer<typeof measured>;

const run = promisify(execFile);

/**
 * True if the load generator of nghttp2 is installed. It is written in C (Debian's package
 * `nghttp2`).
 */
const isH2loadInstalled = (): boolean => spawnSync('h2load', ['--version']).status === 0;

/**
 * Sends requests with h2load: all of them have the same body and headers. The shell reports the CPU
 * time of h2load.
 */
async function runH2load(url: string, requests: number): Promise<Measured> {
  const directory = await mkdtemp(join(tmpdir(), 'carillon-h2load-'));
  try {
    const [bodyFile, uriFile] = [join(directory, 'body'), join(directory, 'uris')];
    await writeFile(bodyFile, sharedBody);
    await writeFile(
      uriFile,
      recipients.map(({ token }) => `${url}${pathPrefix}${token}\n`).join(''),
    );
    const sent = { ...headers, [requestHeaderName]: recipients[0]?.id ?? '' };
    const fields = Object.entries(sent).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const options = [
      '-n',
      String(requests),
      '-c',
      '1',
      '-m',
      '1000',
      '-t',
      '1',
      '-d',
      bodyFile,
      '-i',
      uriFile,
    ];
    const { stdout } = await run('bash', [
      '-c',
      'h2load "$@"; times',
      'h2load',
      ...options,
      ...fields,
    ]);
    if (!new RegExp(`status codes: ${requests} 2xx`).test(stdout))
      throw new Error('h2load was refused');
    const seconds = Number(/finished in ([\d.]+)s/.exec(stdout)?.[1] ?? milliseconds(stdout));
    return { seconds, cpuSeconds: childSeconds(stdout) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const milliseconds = (stdout: string): number =>
  Number(/finished in ([\d.]+)ms/.exec(stdout)?.[1] ?? Number.NaN) / 1000;

/** Parses the second line of `times`: user and system time of the shell's children, in seconds. */
function childSeconds(stdout: string): number {
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  return last.split(' ').reduce((sum, text) => {
    const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
    return sum + Number(minutes) * 60 + Number(seconds);
  }, 0);
}

/** First message of the sink, when it listens, and its answer to each question. */
const sinkReady = z.object({ url: z.string(), ca: z.string() });
const sinkCounts = z.object({ requests: z.number(), bodyBytes: z.number() });

interface Contender {
  client: string;
  /** Number of requests of this client as a share of the requests of our transport. */
  share: number;
}

const contenders: readonly Contender[] = [
  { client: 'our transport', share: 1 },
  { client: 'node:http2', share: 1 / 30 },
  { client: 'http2-wrapper', share: 1 / 60 },
  { client: 'undici', share: 1 / 60 },
];

/**
 * Default number of requests of our transport. They take more than half a second of CPU time, so
 * that the compilation of the code has little effect.
 */
const defaultRequests = 1_800_000;
const defaultRounds = 3;
/** Requests before the measurement, as a share of the measured requests. */
const warmUpShare = 0.2;

interface Sample extends Measured {
  requests: number;
}

/**
 * Compares the clients in `args[1]` rounds (3). Our transport sends `args[0]` requests (1,800,000)
 * in each round.
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
    const { url, ca, requests: transportRequests } = this.#target;
    for (const { client, share } of contenders) {
      const requests = roundUp(transportRequests * share);
      const warmUp = roundUp(requests * warmUpShare);
      const order = { client, url, ca, body: kind, warmUp, requests };
      const sample = await this.#counted(warmUp + requests, () => runClient(order));
      this.#add(kind, client, { ...sample, requests }, log);
    }
    if (!isH2loadInstalled()) return;
    const requests = roundUp(transportRequests / 6);
    const sample = await this.#counted(requests, () => runH2load(url, requests));
    this.#add(kind, 'h2load', { ...sample, requests }, log);
  }

  figures(): Figure[] {
    return bodyKinds.flatMap((kind) => {
      const names = [...contenders.map(({ client }) => client), 'h2load'].filter((name) =>
        this.#samples.has(`${kind} ${name}`),
      );
      const cost = (name: string) =>
        this.#median(kind, name, (s) => (s.cpuSeconds * 1e6) / s.requests);
      const speed = (name: string) => this.#median(kind, name, (s) => s.requests / s.seconds);
      return [
        ...names.map((name) => ({
          name: `${kind} body, ${name}`,
          value: cost(name),
          unit: 'CPU µs/request',
        })),
        ...names.map((name) => ({
          name: `${kind} body, ${name}`,
          value: speed(name),
          unit: 'requests/s',
        })),
        ...names.slice(1).map((name) => ({
          name: `${kind} body, ${name} to ours`,
          value: cost(name) / cost('our transport'),
          unit: 'times the CPU',
        })),
      ];
    });
  }

  /** Runs a client. Throws if the sink did not receive every request completely. */
  async #counted(requests: number, run: () => Promise<Measured>): Promise<Measured> {
    const before = await this.#counts();
    const sample = await run();
    const after = await this.#counts();
    const got = after.requests - before.requests;
    if (got !== requests) throw new Error(`the sink got ${got} of ${requests} requests`);
    const bytes = (after.bodyBytes - before.bodyBytes) / requests;
    if (Math.abs(bytes - sharedBody.length) > 1)
      throw new Error(`bodies of ${bytes} bytes arrived`);
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

/** Rounds up to whole batches, so that all clients send the same recipients. */
const roundUp = (requests: number): number => Math.ceil(requests / 1000) * 1000;

async function runClient(order: object): Promise<Measured> {
  // http2-wrapper uses an IP address as server name, which Node warns about.
  const child = fork(moduleUrl('./clients.ts', import.meta.url), {
    execArgv: ['--disable-warning=DEP0123'],
  });
  child.send(order);
  const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  const result = measured.safeParse(message);
  if (!result.success) throw new Error(`a client ended with ${JSON.stringify(message)}`);
  if (child.exitCode === null) await once(child, 'exit');
  return result.data;
}
