import type { Setup } from '../../harness/arguments.ts';
import { readArgs } from '../../harness/arguments.ts';
import { type Bench, withBench } from '../../harness/bench-service.ts';
import { type BenchApp, createApp } from '../../harness/client.ts';
import type { Figure } from '../../harness/figure.ts';
import { allDatabaseCpuSeconds, processUse } from '../../harness/process-use.ts';
import { writeInstallations } from '../../harness/seed.ts';
import { measurePushes, serviceCpuMs } from '../measure.ts';
import type { RivalOrder } from './rival-process.ts';
import { availableRivals, type Rival, type RivalRun } from './rival-programs.ts';

const defaultSizes = [20_000, 100_000];
const warmPushes = 4;
/** Requests of a client that ends before the measurement, so that the gateway's code is compiled. */
const gatewayRequests = 50_000;
const database = 'rival';

/** Result of one push or the mean of several. */
interface Course {
  seconds: number;
  /** CPU time per 1,000 recipients: of its processes, and of PostgreSQL where it stores. */
  cpuMs: number;
  /** CPU time of the gateway per 1,000 recipients, which shows whether it was the limit. */
  gatewayMs: number;
  /** Peak memory of its processes, without PostgreSQL. */
  megabytes: number;
}

/** A push that can be timed: of this service, or of a rival. */
interface Timed {
  readonly name: string;
  push(devices: number): Promise<Course>;
}

/**
 * Compares pushes to `args` devices (20,000 and 100,000) with servers and clients that others wrote
 * (rival-programs.ts), which send the same payload to the same quick gateway, one after the other.
 * Each size has fresh processes; prints the first push and the mean of four more. The gateway
 * counts that each device got one request. Where a toolchain is missing, its row is left out.
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

/** This service: api and dispatchers. */
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

/** A rival. Its push throws unless the gateway got one request for each device. */
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
        throw new Error(`${rival.name} reached ${distinct} of ${devices} devices, ${repeats} twice`);
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
