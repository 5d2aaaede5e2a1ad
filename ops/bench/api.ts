import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseJson } from '../../shared/domain/json.ts';
import { readArgs } from './harness/arguments.ts';
import { type Bench, withBench } from './harness/bench-service.ts';
import { type BenchApp, callAsMaster, createApp, masterHeaders, pushAndWait } from './harness/client.ts';
import { type Figure, spread } from './harness/figure.ts';
import { type KeepAliveCall, KeepAliveClient } from './harness/keep-alive-client.ts';
import { databaseCpuSeconds, processUse } from './harness/process-use.ts';
import { writeInstallations } from './harness/seed.ts';

const defaultSeconds = 10;
const defaultClients = 32;
/** Several apps: an app may make 9,600 push calls a minute and has a share of the connections. */
const apps = 16;
/** Devices of an app that pushes name, one each. */
const devices = 1000;
/** Calls of a phase before the measured ones: they open connections and compile code. */
const warmUpMs = 1000;
const pollMs = 20;

const createdUser = z.object({ objectId: z.string(), sessionToken: z.string() });

/** App of the benchmark with a user who is logged in. */
interface Tenant {
  app: BenchApp;
  sessionToken: string;
}

/** One phase: the clients make these calls, one after the other. */
interface Phase {
  name: string;
  unit: string;
  /** Returns call number `n` of a client. */
  call(client: number, n: number): KeepAliveCall;
}

/** Measured calls of a phase. */
interface Measured {
  seconds: number;
  tookMs: number[];
}

/**
 * Measures the calls of `args[1]` clients (32) over open connections, for `args[0]` seconds (10) each: saves of
 * installations, half of them new and half repeats; reads of the own user; pushes to one device each. Prints the
 * processor time of api and PostgreSQL per 1,000 calls.
 */
export function benchApi(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [seconds = defaultSeconds, clients = defaultClients] = numbers;
  return withBench(log, { gateway: 'quick', ...setups[0] }, async (bench) => {
    const tenants: Tenant[] = [];
    log(`creating ${apps} apps with ${devices} installations each`);
    for (let i = 0; i < apps; i += 1) tenants.push(await createTenant(bench));
    const client = new KeepAliveClient(bench.url, clients);
    const load = { bench, client, clients, log };
    try {
      const saves = await figuresOf(load, seconds, savePhase(tenants));
      const reads = await figuresOf(load, seconds, readPhase(tenants));
      const pushes = await pushFigures(load, seconds, tenants);
      return [...saves, ...reads, ...pushes];
    } finally {
      client.close();
    }
  });
}

async function createTenant(bench: Bench): Promise<Tenant> {
  const app = await createApp(bench);
  await writeInstallations(bench, app.appId, devices);
  const body = { username: 'reader', password: 'the password of a benchmark' };
  const { sessionToken } = await callAsMaster(bench, app, { path: '/1.1/users', body }, createdUser);
  await pushAndWait(bench, app, { where: { badge: 1 } });
  return { app, sessionToken };
}

const tenantOf = (tenants: Tenant[], client: number, n: number): Tenant => {
  const tenant = tenants[(client + n) % tenants.length];
  if (!tenant) throw new Error('the benchmark has no apps');
  return tenant;
};

/** A client saves a new installation, then the same one again. */
function savePhase(tenants: Tenant[]): Phase {
  const call = (client: number, n: number) => {
    const device = Math.floor(n / 2);
    const installationId = `device-${client}-${device}`;
    const deviceToken = `${client.toString(16).padStart(8, '0')}${device.toString(16).padStart(56, '0')}`;
    const body = { deviceType: 'ios', installationId, deviceToken, timeZone: 'Europe/Berlin' };
    const { app } = tenantOf(tenants, client, device);
    return { path: '/1.1/installations', headers: masterHeaders(app), body };
  };
  return { name: 'installation saves', unit: 'saves/s', call };
}

function readPhase(tenants: Tenant[]): Phase {
  const call = (client: number, n: number) => {
    const { app, sessionToken } = tenantOf(tenants, client, n);
    return { path: '/1.1/users/me', headers: { ...masterHeaders(app), 'x-lc-session': sessionToken } };
  };
  return { name: 'user reads', unit: 'reads/s', call };
}

function pushPhase(tenants: Tenant[]): Phase {
  const call = (client: number, n: number) => {
    const objectId = (((client * 31 + n) % devices) + 1).toString(16).padStart(24, '0');
    const body = { data: { alert: 'Benchmark' }, where: { objectId }, prod: 'prod' };
    return { path: '/1.1/push', headers: masterHeaders(tenantOf(tenants, client, n).app), body };
  };
  return { name: 'pushes', unit: 'pushes/s', call };
}

interface Load {
  bench: Bench;
  client: KeepAliveClient;
  clients: number;
  log: (line: string) => void;
}

async function figuresOf(load: Load, seconds: number, phase: Phase): Promise<Figure[]> {
  load.log(`${phase.name}: ${load.clients} clients, ${seconds} s`);
  let done = await run(load, warmUpMs, phase, 0);
  const before = await uses(load.bench);
  done = await run(load, seconds * 1000, phase, done.next);
  const after = await uses(load.bench);
  return [
    { name: `${phase.name}: rate`, value: done.tookMs.length / done.seconds, unit: phase.unit },
    ...spread(phase.name, done.tookMs),
    ...costs(phase.name, { before, after }, done.tookMs.length),
  ];
}

/** Measures pushes until the last one is done: the rate of the replies, and that of the finished records. */
async function pushFigures(load: Load, seconds: number, tenants: Tenant[]): Promise<Figure[]> {
  const phase = pushPhase(tenants);
  await untilAllDone(load.bench);
  load.log(`${phase.name}: ${load.clients} clients, ${seconds} s`);
  const warm = await run(load, warmUpMs, phase, 0);
  await untilAllDone(load.bench);
  const before = await uses(load.bench);
  const startedAtMs = performance.now();
  const done = await run(load, seconds * 1000, phase, warm.next);
  const accepted = await uses(load.bench);
  await untilAllDone(load.bench);
  const deliveredSeconds = (performance.now() - startedAtMs) / 1000;
  const after = await uses(load.bench);
  const count = done.tookMs.length;
  const { api } = delta(before, accepted);
  const all = delta(before, after);
  return [
    { name: 'pushes: accepted', value: count / done.seconds, unit: phase.unit },
    { name: 'pushes: delivered', value: count / deliveredSeconds, unit: phase.unit },
    ...spread(phase.name, done.tookMs),
    perThousand('pushes: api CPU', api, count),
    perThousand('pushes: PostgreSQL CPU, with delivery', all.database, count),
    perThousand('pushes: dispatcher CPU', all.dispatcher, count),
  ];
}

/** Makes calls with all clients for a time. `next` numbers the next call of a client. */
async function run(
  { client, clients }: Load,
  durationMs: number,
  phase: Phase,
  first: number,
): Promise<Measured & { next: number }> {
  const startedAtMs = performance.now();
  const tookMs: number[] = [];
  let next = first;
  const repeat = async (number: number) => {
    let n = first;
    for (; performance.now() - startedAtMs < durationMs; n += 1) {
      const sentAtMs = performance.now();
      parseJson(await client.send(phase.call(number, n)));
      tookMs.push(performance.now() - sentAtMs);
    }
    next = Math.max(next, n);
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => repeat(number)));
  // An even number: the first call of a phase with repeats is a new one.
  return { tookMs, next: next + (next % 2), seconds: (performance.now() - startedAtMs) / 1000 };
}

async function untilAllDone({ db }: Bench): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ open: boolean }>(
      `SELECT EXISTS (SELECT FROM notification WHERE state IN ('queued', 'sending')) AS open`,
    );
    if (!rows[0]?.open) return;
    await sleep(pollMs);
  }
}

/** Processor time so far, in seconds. */
interface Uses {
  api: number;
  database: number;
  dispatcher: number;
  /** This process, which sends the calls. */
  client: number;
}

async function uses({ db, pids }: Bench): Promise<Uses> {
  const { api, dispatchers } = pids();
  const { rows } = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const database = (await databaseCpuSeconds(rows[0]?.pid ?? 0)) ?? Number.NaN;
  const [ofApi, ...others] = await Promise.all([api, ...dispatchers].map(processUse));
  const dispatcher = others.reduce((sum, use) => sum + (use?.cpuSeconds ?? Number.NaN), 0);
  const { user, system } = process.cpuUsage();
  const client = (user + system) / 1e6;
  return { api: ofApi?.cpuSeconds ?? Number.NaN, database, dispatcher, client };
}

const delta = (before: Uses, after: Uses): Uses => ({
  api: after.api - before.api,
  database: after.database - before.database,
  dispatcher: after.dispatcher - before.dispatcher,
  client: after.client - before.client,
});

const perThousand = (name: string, seconds: number, calls: number): Figure => ({
  name,
  value: (seconds * 1e6) / calls,
  unit: 'CPU ms per 1,000',
});

function costs(name: string, { before, after }: { before: Uses; after: Uses }, calls: number): Figure[] {
  const { api, database, client } = delta(before, after);
  return [
    perThousand(`${name}: api CPU`, api, calls),
    perThousand(`${name}: PostgreSQL CPU`, database, calls),
    perThousand(`${name}: CPU of the benchmark's client`, client, calls),
  ];
}
