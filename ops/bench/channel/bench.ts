import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { type Figure, percentiles, readArgs } from '../harness/arguments.ts';
import { type Bench, withBench } from '../harness/bench-service.ts';
import { type BenchApp, call, createApp, pushAndWait } from '../harness/client.ts';
import { processUse } from '../harness/process-use.ts';
import { startBenchDevices } from './devices.ts';
import { measureMessages, openFilesAllowed, type Stage, until } from './stage.ts';

const defaultConnections = 10_000;
const defaultMessages = 3;
/** Open files of a process in addition to its connections. */
const otherFiles = 256;
const probeMs = 50;
/** Time after which the memory of an idle process is stable. */
const settleMs = 2000;

/**
 * Connects `args[0]` devices (10,000) to the device channel of one api process, and measures:
 *
 * - the login rate and the memory per connection
 * - the rate at which each of `args[1]` pushes (3) to all devices arrives, after two pushes that
 *   warm up the processes
 * - the rate at which ten concurrent pushes are acknowledged
 * - the time until all devices are connected again after the api was killed
 *
 * Throws if a device did not get each message exactly once.
 */
export function benchChannel(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [connections = defaultConnections, messages = defaultMessages] = numbers;
  requireFiles(connections + otherFiles);
  return withBench(log, { threads: 1, ...setups[0] }, async (bench) => {
    const app = await createApp(bench);
    log(`writing ${connections} installations`);
    await writeDevices(bench, app, connections);
    await pushAndWait(bench, app, { where: { installationId: 'bench-0' } });
    await bench.db.query('DELETE FROM channel_inbox');
    const devices = await startBenchDevices(currentEnvironment(), log);
    try {
      const stage = { ...bench, app, devices, connections, log };
      return [
        { name: 'connections', value: connections, unit: 'devices' },
        ...(await measureLogins(stage)),
        ...(await measureMessages(stage, messages)),
        ...(await measureStorm(stage)),
      ];
    } finally {
      await devices.stop();
    }
  });
}

function requireFiles(needed: number): void {
  const allowed = openFilesAllowed();
  if (allowed < needed)
    throw new Error(
      `a process may open ${allowed} files here, ${needed} are needed: raise the hard limit (ulimit -Hn)`,
    );
}

async function writeDevices({ db }: Bench, { appId }: BenchApp, count: number): Promise<void> {
  await db.query(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id)
     SELECT $1, lpad(to_hex(i), 24, '0'), 'android', 'bench-' || i
       FROM generate_series(0, $2::int - 1) AS i`,
    [appId, count],
  );
  await db.query('VACUUM ANALYZE installation');
  await db.query('CHECKPOINT');
}

async function measureLogins(stage: Stage): Promise<Figure[]> {
  const { devices, connections, url: apiUrl, app, pids, log } = stage;
  const before = await processUse(pids().api);
  log(`connecting ${connections} devices, all at once`);
  const startedAtMs = performance.now();
  await devices.connect({ apiUrl, appId: app.appId, count: connections });
  const seconds = (performance.now() - startedAtMs) / 1000;
  const loggedIn = await processUse(pids().api);
  await sleep(settleMs);
  const after = await processUse(pids().api);
  if (!before || !loggedIn || !after)
    throw new Error('the memory of a process is known on Linux only');
  const bytes = (after.residentMegabytes - before.residentMegabytes) * 1e6;
  return [
    { name: 'logins', value: connections / seconds, unit: 'logins/s' },
    perThousand('logins, api CPU', loggedIn.cpuSeconds - before.cpuSeconds, connections),
    { name: 'api, resident memory before', value: before.residentMegabytes, unit: 'MB' },
    { name: 'api, resident memory connected', value: after.residentMegabytes, unit: 'MB' },
    {
      name: 'memory per connection',
      value: bytes / connections / 1000,
      unit: 'kB',
      goal: '≤ 15',
      before: '9.4',
    },
  ];
}

/** Kills the api. Its supervisor restarts it, and all devices reconnect at once. */
async function measureStorm(stage: Stage): Promise<Figure[]> {
  const { devices, connections, pids, log } = stage;
  const { api: pid } = pids();
  if (pid === undefined) throw new Error('the api does not run');
  log(`killing the api: ${connections} devices come back`);
  await devices.forget();
  process.kill(pid, 'SIGKILL');
  await until(stage, ({ lost }) => lost >= connections);
  // The measurement starts at the first connection. The first answered call may come only after all
  // devices are connected.
  await until(stage, ({ connected }) => connected > 0);
  const upAtMs = performance.now();
  let isOver = false;
  const probes = probe(stage, () => isOver);
  const seen = await until(stage, ({ connected }) => connected === connections);
  const seconds = (performance.now() - upAtMs) / 1000;
  isOver = true;
  const api = await processUse(pids().api);
  return [
    { name: 'storm, from the first device back to all back', value: seconds, unit: 's' },
    {
      name: 'storm, connections lost or refused',
      value: seen.lost - connections,
      unit: 'connections',
    },
    ...percentiles('storm, a call of the api', await probes),
    perThousand('storm, api CPU', api?.cpuSeconds ?? Number.NaN, connections),
    {
      name: 'storm, api, peak resident memory',
      value: api?.peakMegabytes ?? Number.NaN,
      unit: 'MB',
    },
  ];
}

/** Makes a call of the HTTP API that queries the database. */
function queryInstallations({ url, app }: Stage): Promise<unknown> {
  const headers = { 'x-lc-id': app.appId, 'x-lc-key': `${app.masterKey},master` };
  return call(`${url}/1.1/installations?limit=1`, { headers }, z.unknown());
}

/** Repeats calls until `isOver` returns true. Returns the duration of each call in milliseconds. */
async function probe(stage: Stage, isOver: () => boolean): Promise<number[]> {
  const waits: number[] = [];
  while (!isOver()) {
    const startedAtMs = performance.now();
    await queryInstallations(stage);
    waits.push(performance.now() - startedAtMs);
    await sleep(probeMs);
  }
  return waits;
}

function perThousand(name: string, seconds: number, count: number): Figure {
  return { name, value: (seconds * 1000) / count, unit: 'CPU s per 1,000' };
}
