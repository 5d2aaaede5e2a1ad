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
 * Number of recipients for one size in a round. It is large because /proc counts CPU time in
 * hundredths of a second. A round sends at least one push of each size.
 */
const recipientsOfRound = 400_000;
/**
 * Number of rounds over all sizes. The rounds go upwards and downwards alternately. So the load of
 * other machines on the host affects all sizes, and the background work of the database after a
 * large push does not always affect the smallest size.
 */
const rounds = 4;

/**
 * Measures whether the cost per recipient is the same in pushes of all sizes. Pushes go to `args`
 * devices (10,000, 100,000, 1,000,000 and 5,000,000) through a quick gateway. Prints the first push
 * of fresh processes for each size. Then prints the mean of warm pushes, whose sizes alternate in
 * the same processes. Also prints the ratio of the highest to the lowest CPU time of the service
 * per recipient.
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
  // Prints the figures now because a later push may fail.
  for (const { name, value, unit } of firstFigures)
    log(`  ${name}: ${Number(value.toPrecision(4))} ${unit}`);
  const warm = await measureAlternately(sizes, setup, log);
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

/** Returns the mean of the rounds for each size. A first round, upwards, is not measured. */
function measureAlternately(
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

/** Returns the ratio of the highest to the lowest cost per recipient among the sizes. */
function ratioOf(name: string, courses: PushCourse[]): Figure {
  const costs = courses.map(serviceCpuMs);
  return {
    name: `${name}: most to least CPU per recipient`,
    value: Math.max(...costs) / Math.min(...costs),
    unit: 'times',
  };
}
