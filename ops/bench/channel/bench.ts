import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { readArgs } from '../harness/arguments.ts';
import { type Bench, withBench } from '../harness/bench-service.ts';
import { type BenchApp, call, createApp, push, pushAndWait, untilDone } from '../harness/client.ts';
import { type Figure, spread } from '../harness/figure.ts';
import { type ProcessUse, processUse } from '../harness/process-use.ts';
import { type BenchDevices, type DevicesSeen, startBenchDevices } from './devices.ts';
import { openFilesAllowed } from './open-files.ts';

const defaultConnections = 10_000;
const defaultMessages = 3;
/** Open files of a process besides its connections. */
const otherFiles = 256;
const lookMs = 20;
const probeMs = 50;
/** Time after which the memory of an idle process is stable. */
const settleMs = 2000;

interface Stage extends Bench {
  app: BenchApp;
  devices: BenchDevices;
  connections: number;
  log: (line: string) => void;
}

/**
 * Connects `args[0]` devices (10,000) to the device channel of one api process. Measures the login rate, the memory per
 * connection, the rate at which `args[1]` pushes (3) to all devices arrive and are acknowledged, and the time until all
 * are back after the api was killed. Fails unless each device got each message once.
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
     SELECT $1, lpad(to_hex(i), 24, '0'), 'android', 'bench-' || i FROM generate_series(0, $2::int - 1) AS i`,
    [appId, count],
  );
  await db.query('VACUUM ANALYZE installation');
  await db.query('CHECKPOINT');
}

async function measureLogins(stage: Stage): Promise<Figure[]> {
  const { devices, connections, url: apiUrl, app, log } = stage;
  const before = await uses(stage);
  log(`connecting ${connections} devices, all at once`);
  const startedAtMs = performance.now();
  await devices.connect({ apiUrl, appId: app.appId, count: connections });
  const seconds = (performance.now() - startedAtMs) / 1000;
  const { api: loggedIn } = await uses(stage);
  await sleep(settleMs);
  const { api: after } = await uses(stage);
  const bytes =
    ((after?.residentMegabytes ?? Number.NaN) - (before.api?.residentMegabytes ?? Number.NaN)) * 1e6;
  return [
    { name: 'logins', value: connections / seconds, unit: 'logins/s' },
    perThousand('logins, api CPU', between(before.api, loggedIn), connections),
    { name: 'api, resident memory before', value: before.api?.residentMegabytes ?? Number.NaN, unit: 'MB' },
    { name: 'api, resident memory connected', value: after?.residentMegabytes ?? Number.NaN, unit: 'MB' },
    { name: 'memory per connection', value: bytes / connections / 1000, unit: 'kB' },
  ];
}

async function measureMessages(stage: Stage, rounds: number): Promise<Figure[]> {
  const { devices, connections, app, log } = stage;
  const rates: number[] = [];
  const firsts: number[] = [];
  const settled: number[] = [];
  const before = await uses(stage);
  for (let i = 0; i < rounds; i++) {
    log(`a push to ${connections} devices`);
    await devices.forget();
    const objectId = await push(stage, app, {});
    const acceptedAtMs = systemClock.now();
    const seen = await until(stage, ({ received }) => received >= connections);
    await untilDone(stage, app, objectId);
    await untilAcked(stage, objectId);
    settled.push(systemClock.now() - acceptedAtMs);
    if (seen.received !== connections || seen.repeated !== 0)
      throw new Error(`${connections} devices: ${seen.received} messages, ${seen.repeated} twice`);
    firsts.push(seen.firstMs - acceptedAtMs);
    rates.push((connections * 1000) / (seen.lastMs - seen.firstMs));
  }
  const after = await uses(stage);
  const messages = connections * rounds;
  return [
    { name: 'messages, slowest push', value: Math.min(...rates), unit: 'messages/s' },
    { name: 'messages, fastest push', value: Math.max(...rates), unit: 'messages/s' },
    ...spread('answer to first message', firsts),
    ...spread('answer to last acknowledgement stored', settled),
    perThousand('messages, api CPU', between(before.api, after.api), messages),
    perThousand('messages, dispatcher CPU', between(before.dispatcher, after.dispatcher), messages),
    perThousand('messages, devices CPU', between(before.devices, after.devices), messages),
    { name: 'api, peak resident memory', value: after.api?.peakMegabytes ?? Number.NaN, unit: 'MB' },
  ];
}

/** Kills the api; its supervisor restarts it, and all devices reconnect at once. */
async function measureStorm(stage: Stage): Promise<Figure[]> {
  const { devices, connections, pids, log } = stage;
  const { api: pid } = pids();
  if (pid === undefined) throw new Error('the api does not run');
  log(`killing the api: ${connections} devices come back`);
  await devices.forget();
  process.kill(pid, 'SIGKILL');
  await until(stage, ({ lost }) => lost >= connections);
  await answered(stage);
  const upAtMs = performance.now();
  let isOver = false;
  const probes = probe(stage, () => isOver);
  const seen = await until(stage, ({ connected }) => connected === connections);
  const seconds = (performance.now() - upAtMs) / 1000;
  isOver = true;
  const api = await processUse(pids().api);
  return [
    { name: 'storm, from the api up to all back', value: seconds, unit: 's' },
    { name: 'storm, connections lost or refused', value: seen.lost - connections, unit: 'connections' },
    ...spread('storm, a call of the api', await probes),
    perThousand('storm, api CPU', api, connections),
    { name: 'storm, api, peak resident memory', value: api?.peakMegabytes ?? Number.NaN, unit: 'MB' },
  ];
}

async function until({ devices }: Stage, isEnough: (seen: DevicesSeen) => boolean): Promise<DevicesSeen> {
  for (;;) {
    const seen = await devices.observe();
    if (isEnough(seen)) return seen;
    await sleep(lookMs);
  }
}

async function untilAcked({ db, app, connections }: Stage, objectId: string): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ acked: number }>(
      'SELECT acked FROM notification WHERE app_id = $1 AND object_id = $2',
      [app.appId, objectId],
    );
    if (rows[0]?.acked === connections) return;
    await sleep(lookMs);
  }
}

/** Makes a call of the HTTP API that queries the database. */
function ask({ url, app }: Stage): Promise<unknown> {
  const headers = { 'x-lc-id': app.appId, 'x-lc-key': `${app.masterKey},master` };
  return call(`${url}/1.1/installations?limit=1`, { headers }, z.unknown());
}

async function answered(stage: Stage): Promise<void> {
  while (
    !(await ask(stage).then(
      () => true,
      () => false,
    ))
  )
    await sleep(lookMs);
}

/** Measures the duration of calls until stopped, in milliseconds. */
async function probe(stage: Stage, isOver: () => boolean): Promise<number[]> {
  const waits: number[] = [];
  while (!isOver()) {
    const askedAtMs = performance.now();
    await ask(stage);
    waits.push(performance.now() - askedAtMs);
    await sleep(probeMs);
  }
  return waits;
}

async function uses({ pids, devices }: Stage) {
  const { api, dispatchers } = pids();
  return {
    api: await processUse(api),
    dispatcher: await processUse(dispatchers[0]),
    devices: await processUse(devices.pid),
  };
}

function between(
  before: ProcessUse | undefined,
  after: ProcessUse | undefined,
): Pick<ProcessUse, 'cpuSeconds'> {
  return { cpuSeconds: (after?.cpuSeconds ?? Number.NaN) - (before?.cpuSeconds ?? Number.NaN) };
}

function perThousand(name: string, use: Pick<ProcessUse, 'cpuSeconds'> | undefined, count: number): Figure {
  return { name, value: ((use?.cpuSeconds ?? Number.NaN) * 1000) / count, unit: 'CPU s per 1,000' };
}
