import { type Figure, type PushKind, readArgs, type Setup } from '../harness/arguments.ts';
import {
  type Bench,
  subscribeSparsely,
  withBench,
  writeFieldsOfAllKinds,
  writeInstallations,
  writeLocales,
  writeNames,
} from '../harness/bench-service.ts';
import { type BenchApp, createApp, pushAndWait } from '../harness/client.ts';
import { figuresOf, measurePushes, type PushCourse, peaksOf, serviceCpuMs } from './measure.ts';

const defaultDevices = 100_000;

/**
 * Measures one push to `args[0]` iOS devices (100,000) with every combination of `--threads` and
 * `--dispatchers`. `args[1]` also sets the number of threads. Api, dispatchers, gateway and a
 * durable database are separate processes on this machine. Other options:
 *
 * - `--push` sets the kind of the push. Pushes of several kinds alternate, and each kind is
 *   compared with the first kind.
 * - `--repeat` sends this number of further pushes to the same processes.
 * - `--watchers` opens this number of streams of live updates of the push.
 */
export async function benchPipeline(
  args: string[],
  log: (line: string) => void,
): Promise<Figure[]> {
  const { numbers, setups, push = [], watchers = 0, repeat = 0 } = readArgs(args);
  const [kind = 'plain', ...others] = push;
  const [devices = defaultDevices, threads] = numbers;
  const figures: Figure[] = [];
  for (const requested of setups) {
    const setup = { ...(threads === undefined ? {} : { threads }), ...requested };
    log(`${nameOf(setup)}: starting the service`);
    const found = await withBench(log, setup, (bench) =>
      others.length > 0
        ? compareKinds(bench, { devices, kinds: [kind, ...others], rounds: repeat }, log)
        : run(bench, { devices, kind, watchers, repeat }, log),
    );
    // Prints the figures now because a later combination may fail.
    for (const { name, value, unit } of found)
      log(`  ${name}: ${Number(value.toPrecision(4))} ${unit}`);
    figures.push(
      ...found.map((figure) => ({ ...figure, name: `${nameOf(setup)}: ${figure.name}` })),
    );
  }
  return figures;
}

function nameOf({ dispatchers = 1, threads, gateway }: Setup): string {
  const by = dispatchers === 1 ? '1 dispatcher' : `${dispatchers} dispatchers`;
  const each = threads === undefined ? '' : ` × ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
  return `${by}${each}${gateway === 'quick' ? ', quick gateway' : ''}`;
}

/** Push to measure, and its number of repeats. */
interface Measured {
  devices: number;
  kind: PushKind;
  watchers: number;
  repeat: number;
}

/** A sparse push goes to one of this number of devices. */
const sparseness = 50;

async function run(
  bench: Bench,
  { devices, kind, watchers, repeat }: Measured,
  log: (line: string) => void,
): Promise<Figure[]> {
  const app = await createApp(bench);
  log(`writing ${devices} installations`);
  await writeInstallations(bench, app.appId, devices);
  const bytes = await installationBytes(bench);
  if (kind === 'sparse') await subscribeSparsely(bench, app.appId, sparseness);
  if (kind === 'languages') await writeLocales(bench, app.appId);
  if (kind === 'variables') await writeNames(bench, app.appId);
  log('a first push to one device warms up the processes');
  await pushAndWait(bench, app, { where: { badge: 1 } });
  const targets = kind === 'sparse' ? Math.floor(devices / sparseness) : devices;
  log(`sending to ${targets} devices`);
  const toMeasure = { devices: targets, kind, watchers };
  const figures = figuresOf(await measurePushes(bench, app, toMeasure), toMeasure);
  if (repeat > 0) {
    log(`sending ${repeat} more`);
    const next = figuresOf(await measurePushes(bench, app, toMeasure, repeat), toMeasure);
    figures.push(
      ...next.map((figure) => ({ ...figure, name: `mean of the next ${repeat}, ${figure.name}` })),
    );
  }
  const disk = { name: 'installation on disk', value: bytes, unit: 'bytes with indexes' };
  return [...figures, ...(await peaksOf(bench)), disk];
}

async function installationBytes({ db }: Bench): Promise<number> {
  const { rows } = await db.query<{ bytes: number }>(
    `SELECT pg_total_relation_size('installation') / greatest(reltuples, 1)::float8 AS bytes
       FROM pg_class WHERE oid = 'installation'::regclass`,
  );
  return rows[0]?.bytes ?? Number.NaN;
}

interface Comparison {
  devices: number;
  kinds: readonly PushKind[];
  /** Number of measured pushes of each kind. 0 means four. */
  rounds: number;
}

const defaultRounds = 4;

/**
 * Sends pushes of several kinds alternately to the same devices and processes, so that the ratios
 * are valid on a busy machine too. The first round is not measured, because it compiles the code of
 * each kind.
 */
async function compareKinds(
  bench: Bench,
  { devices, kinds, rounds }: Comparison,
  log: (line: string) => void,
): Promise<Figure[]> {
  if (kinds.includes('sparse'))
    throw new Error('a sparse push has fewer recipients: run it on its own');
  const app = await createApp(bench);
  log(`writing ${devices} installations`);
  await writeInstallations(bench, app.appId, devices);
  await writeFieldsOfAllKinds(bench, app.appId);
  const courses = new Map<PushKind, PushCourse[]>(kinds.map((kind) => [kind, []]));
  const count = rounds || defaultRounds;
  for (let round = 0; round <= count; round += 1) {
    log(round === 0 ? 'a first push of each kind warms up' : `round ${round} of ${count}`);
    for (const kind of kinds) {
      const course = await measureOne(bench, app, { devices, kind });
      if (round > 0) courses.get(kind)?.push(course);
    }
  }
  return figuresByKind(courses);
}

const measureOne = (bench: Bench, app: BenchApp, push: { devices: number; kind: PushKind }) =>
  measurePushes(bench, app, { ...push, watchers: 0 });

/** Returns the cost of each kind, and its ratio to the cost of the first kind. */
function figuresByKind(courses: ReadonlyMap<PushKind, PushCourse[]>): Figure[] {
  const means = [...courses].map(([kind, ofKind]) => ({
    kind,
    cpuMs: meanOf(ofKind.map(serviceCpuMs)),
    dispatcherMs: meanOf(ofKind.map(({ cpu, devices }) => (cpu.dispatchers * 1e6) / devices)),
    seconds: meanOf(ofKind.map(({ seconds }) => seconds)),
    devices: ofKind[0]?.devices ?? 0,
  }));
  const [first] = means;
  return means.flatMap(({ kind, cpuMs, dispatcherMs, seconds, devices }) => [
    { name: `${kind}: service CPU per 1,000`, value: cpuMs, unit: 'ms' },
    { name: `${kind}: dispatcher CPU per 1,000`, value: dispatcherMs, unit: 'ms' },
    { name: `${kind}: throughput`, value: devices / seconds, unit: 'recipients/s' },
    ...(first === undefined || kind === first.kind
      ? []
      : [
          {
            name: `${kind}: service CPU to that of ${first.kind}`,
            value: cpuMs / first.cpuMs,
            unit: 'times',
          },
        ]),
  ]);
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
