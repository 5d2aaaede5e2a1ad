import { type PushKind, readArgs, type Setup } from './harness/arguments.ts';
import { type Bench, withBench } from './harness/bench-service.ts';
import { type BenchApp, createApp, push, pushAndWait, untilDone, untilPlanned } from './harness/client.ts';
import type { Figure } from './harness/figure.ts';
import { databaseCpuSeconds, processUse } from './harness/process-use.ts';
import { subscribeSparsely, writeInstallations } from './harness/seed.ts';
import { watchPush } from './harness/watchers.ts';

const defaultDevices = 100_000;

/**
 * Measures one push to `args[0]` iOS devices (100,000 by default) with every combination of `--threads` and
 * `--dispatchers`, and a push of the kind of `--push`; `args[1]` also sets the number of threads. `--watchers` opens so
 * many streams of live updates of the push. Api, dispatchers, gateway and a durable database are separate processes on
 * this machine.
 */
export async function benchPipeline(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups, push: kind = 'plain', watchers = 0 } = readArgs(args);
  const [devices = defaultDevices, threads] = numbers;
  const figures: Figure[] = [];
  for (const asked of setups) {
    const setup = { ...(threads === undefined ? {} : { threads }), ...asked };
    log(`${nameOf(setup)}: starting the service`);
    const found = await withBench(log, setup, (bench) => run(bench, { devices, kind, watchers }, log));
    // Prints the figures now, in case a later combination fails.
    for (const { name, value, unit } of found) log(`  ${name}: ${Number(value.toPrecision(4))} ${unit}`);
    figures.push(...found.map((figure) => ({ ...figure, name: `${nameOf(setup)}: ${figure.name}` })));
  }
  return figures;
}

function nameOf({ dispatchers = 1, threads, gateway }: Setup): string {
  const by = dispatchers === 1 ? '1 dispatcher' : `${dispatchers} dispatchers`;
  const each = threads === undefined ? '' : ` × ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
  return `${by}${each}${gateway === 'quick' ? ', quick gateway' : ''}`;
}

/** What is measured: a push of a kind, in an app with so many devices, watched by so many tabs of the console. */
interface Measured {
  devices: number;
  kind: PushKind;
  watchers: number;
}

/** Devices of an app for each one that a sparse push goes to. */
const sparseness = 50;

/** Bodies of the pushes by kind. */
const bodies = {
  plain: {},
  increment: { data: { alert: 'Benchmark', badge: 'Increment' } },
  sparse: { channels: ['sparse'] },
} satisfies Record<PushKind, object>;

async function run(
  bench: Bench,
  { devices, kind, watchers }: Measured,
  log: (line: string) => void,
): Promise<Figure[]> {
  const app = await createApp(bench);
  log(`writing ${devices} installations`);
  await writeInstallations(bench, app.appId, devices);
  const bytes = await installationBytes(bench);
  if (kind === 'sparse') await subscribeSparsely(bench, app.appId, sparseness);
  log('a first push to one device warms up the processes');
  await pushAndWait(bench, app, { where: { badge: 1 } });
  await bench.gateway.forget();
  const targets = kind === 'sparse' ? Math.floor(devices / sparseness) : devices;
  log(`sending to ${targets} devices`);
  const figures = await measure(bench, app, { devices: targets, kind, watchers });
  return [...figures, { name: 'installation on disk', value: bytes, unit: 'bytes with indexes' }];
}

async function installationBytes({ db }: Bench): Promise<number> {
  const { rows } = await db.query<{ bytes: number }>(
    `SELECT pg_total_relation_size('installation') / greatest(reltuples, 1)::float8 AS bytes
       FROM pg_class WHERE oid = 'installation'::regclass`,
  );
  return rows[0]?.bytes ?? Number.NaN;
}

async function measure(bench: Bench, app: BenchApp, measured: Measured): Promise<Figure[]> {
  const { devices, watchers } = measured;
  const before = await uses(bench);
  const { seconds, plannedSeconds, successes, events } = await timePush(bench, app, measured);
  const after = await uses(bench);
  const { distinct, repeats, buckets } = await bench.gateway.observe();
  if (successes !== devices || distinct !== devices || repeats !== 0)
    throw new Error(`${devices} devices: ${successes} sent, ${distinct} reached, ${repeats} twice`);
  const ofGateway = (after.gateway?.cpuSeconds ?? Number.NaN) - (before.gateway?.cpuSeconds ?? Number.NaN);
  const ofDispatchers = sum(after.dispatchers) - sum(before.dispatchers);
  const ofDatabase = (after.database ?? Number.NaN) - (before.database ?? Number.NaN);
  const ofApi = (after.api?.cpuSeconds ?? Number.NaN) - (before.api?.cpuSeconds ?? Number.NaN);
  const perThousand = (used: number) => ({ value: (used * 1000) / devices, unit: 'CPU s per 1,000' });
  return [
    { name: 'devices', value: devices, unit: 'recipients' },
    { name: 'answer to done', value: seconds, unit: 's' },
    { name: 'answer to planned', value: plannedSeconds, unit: 's' },
    { name: 'throughput', value: devices / seconds, unit: 'recipients/s' },
    { name: 'sending alone', value: (buckets.length - 1) / 100, unit: 's' },
    { name: 'service CPU (dispatcher, api, PostgreSQL)', ...perThousand(ofDispatchers + ofApi + ofDatabase) },
    { name: 'dispatcher CPU', ...perThousand(ofDispatchers) },
    { name: 'api CPU', ...perThousand(ofApi) },
    { name: 'PostgreSQL CPU', ...perThousand(ofDatabase) },
    { name: 'gateway CPU', ...perThousand(ofGateway) },
    ...(watchers === 0
      ? []
      : [{ name: `events to each of ${watchers} watchers`, value: events, unit: 'events' }]),
    ...after.dispatchers.map((use, i) => ({
      name: `dispatcher ${i + 1}, peak resident memory`,
      value: use?.peakMegabytes ?? Number.NaN,
      unit: 'MB',
    })),
  ];
}

/** Sends a push; returns the seconds from the answer until it is planned, and until it is done. */
async function timePush(bench: Bench, app: BenchApp, { kind, watchers }: Measured) {
  const objectId = await push(bench, app, bodies[kind]);
  const answeredAtMs = performance.now();
  const secondsSince = () => (performance.now() - answeredAtMs) / 1000;
  const watching = await watchPush(bench, app, { objectId, count: watchers });
  await untilPlanned(bench, app, objectId);
  const plannedSeconds = secondsSince();
  const { successes } = await untilDone(bench, app, objectId);
  const seconds = secondsSince();
  return { plannedSeconds, seconds, successes, events: await watching.stop() };
}

const sum = (of: ({ cpuSeconds: number } | undefined)[]): number =>
  of.reduce((total, use) => total + (use?.cpuSeconds ?? Number.NaN), 0);

async function uses({ pids, gateway, db }: Bench) {
  const { api, dispatchers } = pids();
  const { rows } = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return {
    database: await databaseCpuSeconds(rows[0]?.pid ?? 0),
    api: await processUse(api),
    gateway: await processUse(gateway.pid),
    dispatchers: await Promise.all(dispatchers.map(processUse)),
  };
}
