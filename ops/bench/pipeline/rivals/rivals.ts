import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { currentEnvironment } from '../../../../shared/config/config.ts';
import {
  hasPrograms,
  installOnce,
  mavenPackages,
  npmPackages,
  run,
  versionIn,
} from '../../../check/toolchains.ts';
import { type Figure, readArgs, type Setup } from '../../harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from '../../harness/bench-service.ts';
import { type BenchApp, createApp } from '../../harness/client.ts';
import { allDatabaseCpuSeconds, processUse } from '../../harness/process-use.ts';
import { QuestionProcess } from '../../harness/question-process.ts';
import { measurePushes, serviceCpuMs } from '../measure.ts';
import { type RivalAnswer, type RivalOrder, rivalAnswer } from './rival-process.ts';

/** Running process of a rival. It carries out one order at a time. */
interface RivalRun {
  readonly pid: number | undefined;
  /** Resolves when the process can take an order. */
  start(order: RivalOrder): Promise<unknown>;
  push(order: RivalOrder): Promise<RivalAnswer>;
  stop(): Promise<unknown>;
}

/** Server or client of another project, called by a loop of this project. */
interface Rival {
  readonly name: string;
  readonly version: string;
  /** True if the rival uses PostgreSQL, whose CPU time then counts for the rival. */
  readonly isStoring: boolean;
  /** Programs that the rival needs. */
  readonly programs: readonly string[];
  /** Installs the rival. Resolves with a function that creates its process. */
  prepare(log: (line: string) => void): Promise<() => RivalRun>;
}

const folder = new URL('.', import.meta.url);
const npmLock = new URL('npm/package-lock.json', folder);
const npmVersion = (name: string) =>
  versionIn(npmLock, new RegExp(`"node_modules/${name}": \\{\\s+"version": "([^"]+)"`));

/** Returns a process that runs a file of this folder in Node. */
function nodeRun(
  name: string,
  file: string,
  packages: string,
  log: (line: string) => void,
): RivalRun {
  const child = new QuestionProcess({
    name,
    file: `ops/bench/pipeline/rivals/${file}`,
    // Without this setting Parse Server writes log files into the working directory.
    env: { ...currentEnvironment(), NODE_ENV: 'production', PARSE_SERVER_LOGS_FOLDER: 'null' },
    log,
  });
  return {
    get pid() {
      return child.pid;
    },
    start: () => child.start(),
    push: (order) => child.ask({ ...order, packages }, rivalAnswer),
    stop: () => child.stop(),
  };
}

/**
 * Runs a program with the gateway's URL, the file of the gateway's authority and the topic as
 * arguments. The program prints a line when it is ready. It reads numbers of devices, and answers
 * each number with a line of JSON.
 */
class ProgramRun implements RivalRun {
  readonly #command: readonly [program: string, ...args: string[]];
  readonly #workFolder: string;
  #child: ChildProcess | undefined;
  #lines: AsyncIterator<string> | undefined;

  constructor(command: readonly [program: string, ...args: string[]], workFolder: string) {
    this.#command = command;
    this.#workFolder = workFolder;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async push({ devices }: RivalOrder): Promise<RivalAnswer> {
    this.#child?.stdin?.write(`${devices}\n`);
    return rivalAnswer.parse(JSON.parse(await this.#nextLine()));
  }

  async stop(): Promise<void> {
    if (!this.#child) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async start({ url, ca, topic }: RivalOrder): Promise<void> {
    const [program, ...args] = this.#command;
    await mkdir(this.#workFolder, { recursive: true });
    const caFile = join(this.#workFolder, 'gateway-ca.pem');
    await writeFile(caFile, ca);
    const child = spawn(program, [...args, url, caFile, topic], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child = child;
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    await this.#nextLine();
  }

  async #nextLine(): Promise<string> {
    const { value, done } = (await this.#lines?.next()) ?? { done: true };
    if (done) throw new Error(`${this.#command[0]} ended without an answer`);
    return String(value);
  }
}

const goModule = new URL('go/go.mod', folder);
const goSum = new URL('go/go.sum', folder);
const java = new URL('java/', folder);

/** Returns a rival whose package comes from npm and runs in Node. */
const ofNpm = (
  name: string,
  packageName: string,
  { file, isStoring }: { file: string; isStoring: boolean },
): Rival => ({
  name,
  version: npmVersion(packageName),
  isStoring,
  programs: ['npm'],
  prepare: async (log) => {
    const packages = await npmPackages(npmLock);
    return () => nodeRun(name, file, packages, log);
  },
});

/** All rivals. They send to the same gateway as this service. */
const rivals: readonly Rival[] = [
  {
    name: 'bare loop over node:http2',
    version: process.version,
    isStoring: false,
    programs: [],
    prepare: async (log) => () => nodeRun('bare loop', 'bare-loop-process.ts', '', log),
  },
  ofNpm('@parse/node-apn', '@parse/node-apn', { file: 'apns-client-process.ts', isStoring: false }),
  ofNpm('Parse Server with its push adapter', 'parse-server', {
    file: 'parse-server-process.ts',
    isStoring: true,
  }),
  {
    name: 'loop over apns2 (Go)',
    version: versionIn(goModule, /apns2 v(\S+)/),
    isStoring: false,
    programs: ['go'],
    prepare: async () => {
      const built = await installOnce(
        [goModule, goSum, new URL('go/main.go', folder)],
        async (out) => {
          await mkdir(out, { recursive: true });
          await run('go', ['build', '-o', out, '.'], { cwd: fileURLToPath(new URL('go', folder)) });
        },
      );
      return () => new ProgramRun([join(built, 'rivals')], built);
    },
  },
  {
    name: 'loop over pushy (Java)',
    version: versionIn(new URL('pom.xml', java), /pushy<\/artifactId>\s*<version>([^<]+)/),
    isStoring: false,
    programs: ['java', 'javac', 'mvn'],
    prepare: async () => {
      const classPath = await mavenPackages(java);
      const source = new URL('PushyLoop.java', java);
      const built = await installOnce([source], async (out) => {
        await run('javac', ['-cp', classPath, '-d', out, fileURLToPath(source)]);
      });
      return () => new ProgramRun(['java', '-cp', `${built}:${classPath}`, 'PushyLoop'], built);
    },
  },
];

/** Returns the rivals whose programs are installed. Logs the names of the others. */
const availableRivals = (): Rival[] =>
  rivals.filter(({ name, programs }) => hasPrograms(programs, name));

const defaultSizes = [20_000, 100_000];
const warmPushes = 4;
/**
 * Number of requests before the measurement, from another client. They make the gateway compile its
 * code.
 */
const gatewayRequests = 50_000;
const database = 'rival';

/** Result of one push, or the mean of several pushes. */
interface Course {
  seconds: number;
  /**
   * CPU time per 1,000 recipients, in milliseconds. Includes PostgreSQL if the rival stores
   * devices.
   */
  cpuMs: number;
  /**
   * CPU time of the gateway per 1,000 recipients, in milliseconds. It shows whether the gateway
   * limited the rate.
   */
  gatewayMs: number;
  /** Peak memory of the processes, without PostgreSQL. */
  megabytes: number;
}

/** Program whose push can be measured: this service or a rival. */
interface Timed {
  readonly name: string;
  push(devices: number): Promise<Course>;
}

/**
 * Compares pushes of this service to `args` devices (20,000 and 100,000) with servers and clients
 * of other projects. All of them send the same payload to the same quick gateway, one after the
 * other. Each size has fresh processes. Prints the first push and the mean of four more. The
 * gateway counts that each device got one request. If a toolchain is missing, the rival is left
 * out.
 */
export async function benchRivals(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const figures: Figure[] = [];
  for (const devices of numbers.length === 0 ? defaultSizes : numbers)
    figures.push(...(await compare(devices, { ...setups[0], gateway: 'quick' }, log)));
  return figures;
}

function compare(devices: number, setup: Setup, log: (line: string) => void): Promise<Figure[]> {
  return withBench(log, setup, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, devices);
    await bench.db.query(`CREATE DATABASE ${database}`);
    const order = await orderOf(bench, devices);
    const starts: [Rival, () => RivalRun][] = [];
    for (const rival of availableRivals()) starts.push([rival, await rival.prepare(log)]);
    log('warming up the gateway');
    const [first] = starts;
    const warmUp = first?.[1]();
    await warmUp?.start(order);
    await warmUp?.push({ ...order, devices: gatewayRequests });
    await warmUp?.stop();
    const figures = await timeOne(serviceOf(bench, app), devices);
    for (const [rival, start] of starts) {
      const run = start();
      try {
        await run.start(order);
        figures.push(...(await timeOne(rivalOf(bench, { rival, run, order }), devices)));
      } finally {
        await run.stop();
      }
    }
    return figures;
  });
}

/** Measures the first push and the mean of the next ones. */
async function timeOne({ name, push }: Timed, devices: number): Promise<Figure[]> {
  const first = await push(devices);
  const next: Course[] = [];
  for (let i = 0; i < warmPushes; i += 1) next.push(await push(devices));
  return [
    ...figuresOf(`${devices}, first push: ${name}`, first, devices),
    ...figuresOf(`${devices}, mean of the next ${warmPushes}: ${name}`, meanOf(next), devices),
  ];
}

function meanOf(courses: readonly Course[]): Course {
  const mean = (of: (course: Course) => number) =>
    courses.reduce((sum, course) => sum + of(course), 0) / courses.length;
  return {
    seconds: mean(({ seconds }) => seconds),
    cpuMs: mean(({ cpuMs }) => cpuMs),
    gatewayMs: mean(({ gatewayMs }) => gatewayMs),
    megabytes: mean(({ megabytes }) => megabytes),
  };
}

const figuresOf = (
  name: string,
  { seconds, cpuMs, gatewayMs, megabytes }: Course,
  devices: number,
): Figure[] => [
  { name, value: devices / seconds, unit: 'recipients/s' },
  { name: `${name}, CPU per 1,000`, value: cpuMs, unit: 'ms' },
  { name: `${name}, CPU of the gateway per 1,000`, value: gatewayMs, unit: 'ms' },
  { name: `${name}, peak memory`, value: megabytes, unit: 'MB' },
];

const peakMegabytes = async (pids: readonly (number | undefined)[]): Promise<number> => {
  const uses = await Promise.all(pids.map(processUse));
  return uses.reduce((sum, use) => sum + (use?.peakMegabytes ?? Number.NaN), 0);
};

/** Returns this service as a measurable program: api and dispatchers. */
const serviceOf = (bench: Bench, app: BenchApp): Timed => ({
  name: 'this service',
  async push(devices) {
    const course = await measurePushes(bench, app, { devices, kind: 'plain', watchers: 0 });
    const { api, dispatchers } = bench.pids();
    return {
      seconds: course.seconds,
      cpuMs: serviceCpuMs(course),
      gatewayMs: (course.cpu.gateway * 1e6) / devices,
      megabytes: await peakMegabytes([api, ...dispatchers]),
    };
  },
});

/**
 * Returns a rival as a measurable program. Its push throws if the gateway did not get one request
 * for each device.
 */
function rivalOf(
  { gateway, db }: Bench,
  { rival, run, order }: { rival: Rival; run: RivalRun; order: RivalOrder },
): Timed {
  const cpuSeconds = async () => {
    const own = (await processUse(run.pid))?.cpuSeconds ?? Number.NaN;
    return rival.isStoring ? own + (await allDatabaseCpuSeconds(db)) : own;
  };
  const gatewaySeconds = async () => (await processUse(gateway.pid))?.cpuSeconds ?? Number.NaN;
  return {
    name: `${rival.name} ${rival.version}`,
    async push(devices) {
      await gateway.forget();
      const before = { own: await cpuSeconds(), gateway: await gatewaySeconds() };
      const answer = await run.push({ ...order, devices });
      if ('error' in answer) throw new Error(`${rival.name}: ${answer.error}`);
      const perThousand = (after: number, earlier: number) => ((after - earlier) * 1e6) / devices;
      const course = {
        seconds: answer.seconds,
        cpuMs: perThousand(await cpuSeconds(), before.own),
        gatewayMs: perThousand(await gatewaySeconds(), before.gateway),
        megabytes: await peakMegabytes([run.pid]),
      };
      const { distinct, repeats } = await gateway.observe();
      if (distinct !== devices || repeats > 0)
        throw new Error(
          `${rival.name} reached ${distinct} of ${devices} devices, ${repeats} twice`,
        );
      return course;
    },
  };
}

async function orderOf({ gateway, db }: Bench, devices: number): Promise<RivalOrder> {
  const { url, ca, topics } = gateway.apns;
  const { rows } = await db.query<{ host: string; user: string }>(
    `SELECT current_setting('unix_socket_directories') AS host, current_user AS user`,
  );
  const { host = '', user = '' } = rows[0] ?? {};
  const topic = topics[0] ?? '';
  return { url, ca, topic, devices, database: { host, user, name: database }, packages: '' };
}
