import { readArgs, type Setup } from '../harness/arguments.ts';
import { withBench } from '../harness/bench-service.ts';
import { createApp } from '../harness/client.ts';
import type { Figure } from '../harness/figure.ts';
import { writeInstallations } from '../harness/seed.ts';
import { measurePushes, type PushCourse, type PushToMeasure, serviceCpuMs } from './measure.ts';

const defaultSizes = [10_000, 100_000, 1_000_000, 5_000_000];

/** Recipients after which the code of a process is compiled: the pushes after them are warm. */
const warmUpRecipients = 200_000;
/** Recipients of the warm pushes that are measured, at least one push: the CPU time of /proc is counted in hundredths of a second. */
const measuredRecipients = 400_000;

/** Pushes of one size: the first one of fresh processes, and the mean of warm ones. */
interface Size {
  first: PushCourse;
  warm: PushCourse;
  pushes: number;
}

/**
 * Measures whether a recipient costs the same in a push of any size: pushes to `args` devices (10,000, 100,000, 1,000,000 and
 * 5,000,000), each size with fresh processes of its own and the quick gateway. Prints the first push, the mean of warm
 * ones, and the ratio of the most to the least CPU time of the service per recipient.
 */
export async function benchFlat(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const sizes: Size[] = [];
  for (const devices of numbers.length === 0 ? defaultSizes : numbers) {
    const size = await measureSize(devices, { ...setups[0], gateway: 'quick' }, log);
    // Prints the figures now, in case a larger push fails.
    for (const { name, value, unit } of figuresOfSize(size))
      log(`  ${name}: ${Number(value.toPrecision(4))} ${unit}`);
    sizes.push(size);
  }
  return [
    ...sizes.flatMap(figuresOfSize),
    ratioOf(
      'first pushes',
      sizes.map(({ first }) => first),
    ),
    ratioOf(
      'warm pushes',
      sizes.map(({ warm }) => warm),
    ),
  ];
}

function measureSize(devices: number, setup: Setup, log: (line: string) => void): Promise<Size> {
  return withBench(log, setup, async (bench) => {
    const app = await createApp(bench);
    log(`writing ${devices} installations`);
    await writeInstallations(bench, app.appId, devices);
    const toMeasure: PushToMeasure = { devices, kind: 'plain', watchers: 0 };
    log(`first push to ${devices}`);
    const first = await measurePushes(bench, app, toMeasure);
    const unmeasured = Math.max(0, Math.ceil(warmUpRecipients / devices) - 1);
    if (unmeasured > 0) await measurePushes(bench, app, toMeasure, unmeasured);
    const pushes = Math.max(1, Math.ceil(measuredRecipients / devices));
    log(`${pushes} warm pushes`);
    return { first, warm: await measurePushes(bench, app, toMeasure, pushes), pushes };
  });
}

function figuresOfSize({ first, warm, pushes }: Size): Figure[] {
  const figures = (kind: string, course: PushCourse): Figure[] => [
    { name: `${kind}: service CPU per 1,000`, value: serviceCpuMs(course), unit: 'ms' },
    { name: `${kind}: throughput`, value: course.devices / course.seconds, unit: 'recipients/s' },
    { name: `${kind}: answer to first request`, value: course.firstRequestMs, unit: 'ms' },
  ];
  const { devices } = first;
  return [
    ...figures(`${devices}, first push`, first),
    ...figures(`${devices}, warm (mean of ${pushes})`, warm),
  ];
}

/** Returns how much more the size with the highest cost per recipient takes than that with the lowest. */
function ratioOf(name: string, courses: PushCourse[]): Figure {
  const costs = courses.map(serviceCpuMs);
  return {
    name: `${name}: most to least CPU per recipient`,
    value: Math.max(...costs) / Math.min(...costs),
    unit: 'times',
  };
}
