import type { Figure, PushKind } from '../harness/arguments.ts';
import { type Bench, writeFieldsOfAllKinds, writeInstallations } from '../harness/bench-service.ts';
import { type BenchApp, createApp } from '../harness/client.ts';
import { measurePushes, type PushCourse, serviceCpuMs } from './measure.ts';

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
export async function compareKinds(
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
  return figuresOf(courses);
}

const measureOne = (bench: Bench, app: BenchApp, push: { devices: number; kind: PushKind }) =>
  measurePushes(bench, app, { ...push, watchers: 0 });

/** Returns the cost of each kind, and its ratio to the cost of the first kind. */
function figuresOf(courses: ReadonlyMap<PushKind, PushCourse[]>): Figure[] {
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
