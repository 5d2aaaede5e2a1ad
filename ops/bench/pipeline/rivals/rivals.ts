import { resolve } from 'node:path';
import { currentEnvironment } from '../../../../shared/config/config.ts';
import { Supervised } from '../../../local/supervised.ts';
import { readArgs, type Setup } from '../../harness/arguments.ts';
import { type Bench, withBench } from '../../harness/bench-service.ts';
import { type BenchApp, createApp } from '../../harness/client.ts';
import type { Figure } from '../../harness/figure.ts';
import { allDatabaseCpuSeconds, processUse } from '../../harness/process-use.ts';
import { writeInstallations } from '../../harness/seed.ts';
import { measurePushes, serviceCpuMs } from '../measure.ts';
import { type RivalOrder, rivalAnswer } from './rival-process.ts';

const defaultSizes = [20_000, 100_000];
const warmPushes = 4;
/** Requests of a client that ends before the measurement, so that the gateway's code is compiled. */
const gatewayRequests = 50_000;
const stopMs = 6000;
const database = 'rival';

/** Kind of a rival. */
interface RivalKind {
  name: string;
  file: string;
  /** Whether PostgreSQL works for it, so that its processor time counts. */
  isStoring: boolean;
}

const bareLoop: RivalKind = { name: 'bare loop', file: 'bare-loop-process.ts', isStoring: false };

/** Rivals whose packages the caller installs. */
const withPackages: RivalKind[] = [
  { name: '@parse/node-apn', file: 'apns-client-process.ts', isStoring: false },
  { name: 'Parse Server', file: 'parse-server-process.ts', isStoring: true },
];

/** Result of one push or the mean of several. */
interface Course {
  seconds: number;
  /** CPU time per 1,000 recipients; of a rival its process, and PostgreSQL if it stores. */
  cpuMs: number;
}

/** A kind of rival and its running process. */
interface Rival {
  kind: RivalKind;
  push(devices: number): Promise<Course>;
}

/**
 * Compares pushes to `args` devices (20,000 and 100,000) with rivals that send to the same quick gateway and take turns: a
 * bare loop over `node:http2` (bare-loop-process.ts), which is what the best public APNs client for Node does for each token
 * and has its tokens in memory; with `--packages <folder>` also `@parse/node-apn` and Parse Server, which that folder has in
 * its `node_modules`. Each size has fresh processes; prints the first push and the mean of four more.
 */
export async function benchRivals(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups, packages = '' } = readArgs(args);
  const kinds = packages === '' ? [bareLoop] : [bareLoop, ...withPackages];
  const figures: Figure[] = [];
  for (const devices of numbers.length === 0 ? defaultSizes : numbers) {
    const comparison = { devices, kinds, packages: resolve(packages) };
    figures.push(...(await compare(comparison, { ...setups[0], gateway: 'quick' }, log)));
  }
  return figures;
}

interface Comparison {
  devices: number;
  kinds: RivalKind[];
  packages: string;
}

function compare(
  { devices, kinds, packages }: Comparison,
  setup: Setup,
  log: (line: string) => void,
): Promise<Figure[]> {
  return withBench(log, setup, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, devices);
    await bench.db.query(`CREATE DATABASE ${database}`);
    log('warming up the gateway');
    const warmUp = new RivalProcess(bareLoop, { bench, packages, log });
    await warmUp.push(gatewayRequests).finally(() => warmUp.stop());
    const rivals = kinds.map((kind) => new RivalProcess(kind, { bench, packages, log }));
    try {
      return [
        ...(await timeAll({ bench, app, devices, rivals, count: 1 }, `${devices}, first push`)),
        ...(await timeAll(
          { bench, app, devices, rivals, count: warmPushes },
          `${devices}, mean of the next ${warmPushes}`,
        )),
      ];
    } finally {
      for (const rival of rivals) await rival.stop();
    }
  });
}

interface Turn {
  bench: Bench;
  app: BenchApp;
  devices: number;
  rivals: Rival[];
  count: number;
}

/** Measures `count` pushes of the service and then of each rival. */
async function timeAll({ bench, app, devices, rivals, count }: Turn, name: string): Promise<Figure[]> {
  const service = await measurePushes(bench, app, { devices, kind: 'plain', watchers: 0 }, count);
  const ours = { seconds: service.seconds, cpuMs: serviceCpuMs(service) };
  const figures = figuresOf(`${name}: this service`, ours, devices);
  for (const rival of rivals) {
    const courses: Course[] = [];
    for (let i = 0; i < count; i += 1) courses.push(await rival.push(devices));
    const theirs = {
      seconds: mean(courses.map(({ seconds }) => seconds)),
      cpuMs: mean(courses.map(({ cpuMs }) => cpuMs)),
    };
    const ofRival = `${name}: ${rival.kind.name}`;
    figures.push(...figuresOf(ofRival, theirs, devices));
    figures.push({ name: `${ofRival}, ratio`, value: theirs.seconds / ours.seconds, unit: 'times' });
  }
  return figures;
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const figuresOf = (name: string, { seconds, cpuMs }: Course, devices: number): Figure[] => [
  { name, value: devices / seconds, unit: 'recipients/s' },
  { name: `${name}, CPU per 1,000`, value: cpuMs, unit: 'ms' },
];

/** A rival as a process of its own, which the first push starts. */
class RivalProcess implements Rival {
  readonly kind: RivalKind;
  readonly #bench: Bench;
  readonly #packages: string;
  readonly #process: Supervised;
  #isStarted = false;
  #onAnswer: ((message: unknown) => void) | undefined;

  constructor(
    kind: RivalKind,
    { bench, packages, log }: { bench: Bench; packages: string; log: (line: string) => void },
  ) {
    this.kind = kind;
    this.#bench = bench;
    this.#packages = packages;
    this.#process = new Supervised({
      name: kind.name,
      file: `ops/bench/pipeline/rivals/${kind.file}`,
      // Parse Server writes its logs into files of the working directory otherwise.
      env: { ...currentEnvironment(), NODE_ENV: 'production', PARSE_SERVER_LOGS_FOLDER: 'null' },
      log,
      onMessage: (message) => this.#onAnswer?.(message),
    });
  }

  /** Lets the rival push to the first `devices` devices. Throws unless the gateway got one request for each of them. */
  async push(devices: number): Promise<Course> {
    if (!this.#isStarted) await this.#process.start();
    this.#isStarted = true;
    const { gateway } = this.#bench;
    await gateway.forget();
    const before = await this.#cpuSeconds();
    const answered = new Promise<unknown>((onAnswer) => {
      this.#onAnswer = onAnswer;
    });
    this.#process.send(await this.#order(devices));
    const answer = rivalAnswer.parse(await answered);
    if ('error' in answer) throw new Error(`${this.kind.name}: ${answer.error}`);
    const cpuMs = (((await this.#cpuSeconds()) - before) * 1e6) / devices;
    const { distinct } = await gateway.observe();
    if (distinct !== devices) throw new Error(`${this.kind.name} reached ${distinct} of ${devices} devices`);
    return { seconds: answer.seconds, cpuMs };
  }

  async stop(): Promise<void> {
    if (this.#isStarted) await this.#process.stop(stopMs);
  }

  async #order(devices: number): Promise<RivalOrder> {
    const { url, ca, topics } = this.#bench.gateway.apns;
    const { rows } = await this.#bench.db.query<{ host: string; user: string }>(
      `SELECT current_setting('unix_socket_directories') AS host, current_user AS user`,
    );
    const { host = '', user = '' } = rows[0] ?? {};
    return {
      url,
      ca,
      topic: topics[0] ?? '',
      devices,
      database: { host, user, name: database },
      packages: this.#packages,
    };
  }

  async #cpuSeconds(): Promise<number> {
    const own = (await processUse(this.#process.pid))?.cpuSeconds ?? Number.NaN;
    if (!this.kind.isStoring) return own;
    return own + (await allDatabaseCpuSeconds(this.#bench.db));
  }
}
