import { type Figure, type PushKind, readArgs, type Setup } from '../harness/arguments.ts';
import {
  type Bench,
  subscribeSparsely,
  withBench,
  writeInstallations,
  writeLocales,
  writeNames,
} from '../harness/bench-service.ts';
import { createApp, pushAndWait } from '../harness/client.ts';
import { compareKinds } from './kinds.ts';
import { figuresOf, measurePushes, peaksOf } from './measure.ts';

const defaultDevices = 100_000;

/**
 * Measures one push to `args[0]` iOS devices (100,000 by default) with every combination of
 * `--threads` and `--dispatchers`, and a push of the kind of `--push`; `args[1]` also sets the
 * number of threads. `--repeat` sends so many more of it to the same processes. Several kinds are
 * sent in turns, and compared with the first one. `--watchers` opens so many streams of live
 * updates of the push. Api, dispatchers, gateway and a durable database are separate processes on
 * this machine.
 */
export async function benchPipeline(
  args: string[],
  log: (line: string) => void,
): Promise<Figure[]> {
  const { numbers, setups, push = [], watchers = 0, repeat = 0 } = readArgs(args);
  const [kind = 'plain', ...others] = push;
  const [devices = defaultDevices, threads] = numbers;
  const figures: Figure[] = [];
  for (const asked of setups) {
    const setup = { ...(threads === undefined ? {} : { threads }), ...asked };
    log(`${nameOf(setup)}: starting the service`);
    const found = await withBench(log, setup, (bench) =>
      others.length > 0
        ? compareKinds(bench, { devices, kinds: [kind, ...others], rounds: repeat }, log)
        : run(bench, { devices, kind, watchers, repeat }, log),
    );
    // Prints the figures now, in case a later combination fails.
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

/**
 * What is measured: a push of a kind, in an app with so many devices, and how often it is repeated.
 */
interface Measured {
  devices: number;
  kind: PushKind;
  watchers: number;
  repeat: number;
}

/** Devices of an app for each one that a sparse push goes to. */
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
