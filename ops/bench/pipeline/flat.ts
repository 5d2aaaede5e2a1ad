import { type Figure, readArgs, type Setup } from '../harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from '../harness/bench-service.ts';
import { type BenchApp, createApp } from '../harness/client.ts';
import {
  meanOf,
  measurePushes,
  type PushCourse,
  type PushToMeasure,
  serviceCpuMs,
} from './measure.ts';

const defaultSizes = [10_000, 100_000, 1_000_000, 5_000_000];

/**
 * Recipients of the pushes of one size in a round, at least one push: the CPU time of /proc is
 * counted in hundredths of a second.
 */
const recipientsOfRound = 400_000;
/**
 * Rounds over all sizes, upwards and downwards in turns: another machine on the same host meets
 * each of them, and what the database does in the background after a push of millions is not
 * counted for the smallest ones.
 */
const rounds = 4;

/**
 * Measures whether a recipient costs the same in a push of any size: pushes to `args` devices
 * (10,000, 100,000, 1,000,000 and 5,000,000), by the quick gateway. Prints the first push of fresh
 * processes for each size, then the mean of warm ones: the sizes take turns in the same processes.
 * Also prints the ratio of the most to the least CPU time of the service per recipient.
 */
export async function benchFlat(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const setup: Setup = { ...setups[0], gateway: 'quick' };
  const sizes = numbers.length === 0 ? defaultSizes : numbers;
  const first: PushCourse[] = [];
  for (const devices of sizes) first.push(await measureFirst(devices, setup, log));
  const firstFigures = first.flatMap((course) =>
    figuresOf(`${course.devices}, first push`, course),
  );
  // Prints the figures now, in case a later push fails.
  for (const { name, value, unit } of firstFigures)
    log(`  ${name}: ${Number(value.toPrecision(4))} ${unit}`);
  const warm = await measureInTurns(sizes, setup, log);
  return [
    ...firstFigures,
    ...warm.flatMap((course) => figuresOf(`${course.devices}, warm`, course)),
    ratioOf('first pushes', first),
    ratioOf('warm pushes', warm),
  ];
}

const plainTo = (devices: number): PushToMeasure => ({ devices, kind: 'plain', watchers: 0 });

function measureFirst(
  devices: number,
  setup: Setup,
  log: (line: string) => void,
): Promise<PushCourse> {
  return withBench(log, setup, async (bench) => {
    const app = await appWith(bench, devices, log);
    log(`first push to ${devices}`);
    return measurePushes(bench, app, plainTo(devices));
  });
}

/** Returns the mean of the rounds by size, after one upwards that is not measured. */
function measureInTurns(
  sizes: readonly number[],
  setup: Setup,
  log: (line: string) => void,
): Promise<PushCourse[]> {
  return withBench(log, setup, async (bench) => {
    const apps: BenchApp[] = [];
    for (const devices of sizes) apps.push(await appWith(bench, devices, log));
    const courses: PushCourse[][] = sizes.map(() => []);
    const upwards = [...sizes.entries()];
    for (let round = 0; round <= rounds; round += 1)
      for (const [i, devices] of round % 2 === 0 ? upwards : upwards.toReversed()) {
        const app = apps[i];
        if (!app) continue;
        const pushes = Math.max(1, Math.ceil(recipientsOfRound / devices));
        const course = await measurePushes(bench, app, plainTo(devices), pushes);
        log(`round ${round}, ${devices}: ${serviceCpuMs(course).toFixed(2)} ms per 1,000`);
        if (round > 0) courses[i]?.push(course);
      }
    return courses.map(meanOf);
  });
}

async function appWith(
  bench: Bench,
  devices: number,
  log: (line: string) => void,
): Promise<BenchApp> {
  const app = await createApp(bench);
  log(`writing ${devices} installations`);
  await writeInstallations(bench, app.appId, devices);
  return app;
}

function figuresOf(name: string, course: PushCourse): Figure[] {
  return [
    { name: `${name}: service CPU per 1,000`, value: serviceCpuMs(course), unit: 'ms' },
    { name: `${name}: throughput`, value: course.devices / course.seconds, unit: 'recipients/s' },
    { name: `${name}: answer to first request`, value: course.firstRequestMs, unit: 'ms' },
  ];
}

/**
 * Returns how much more the size with the highest cost per recipient takes than that with the
 * lowest.
 */
function ratioOf(name: string, courses: PushCourse[]): Figure {
  const costs = courses.map(serviceCpuMs);
  return {
    name: `${name}: most to least CPU per recipient`,
    value: Math.max(...costs) / Math.min(...costs),
    unit: 'times',
  };
}
