import { z } from 'zod';
import { type Figure, readArgs, spread } from '../harness/arguments.ts';
import { type Bench, withBench } from '../harness/bench-service.ts';
import { callAsMaster, createApp, masterHeaders, pushAndWait } from '../harness/client.ts';
import { KeepAliveClient } from '../harness/keep-alive-client.ts';
import { writeInstallations } from '../harness/seed.ts';
import {
  delta,
  type Load,
  ofDatabase,
  type Phase,
  perThousand,
  run,
  type Tenant,
  tenantOf,
  type Uses,
  uses,
  warmUpMs,
} from './load.ts';
import { devices, pushFigures } from './pushes.ts';

const defaultSeconds = 10;
const defaultClients = 32;
/** Several apps: an app may make 9,600 push calls a minute and has a share of the connections. */
const apps = 16;

const createdUser = z.object({ objectId: z.string(), sessionToken: z.string() });

/**
 * Measures the calls of `args[1]` clients (32) over open connections, for `args[0]` seconds (10) each: saves of
 * installations, half of them new and half repeats; reads of the own user; pushes to one device each, beside
 * their delivery (2,600 calls per second by twice the clients) and without dispatchers. Prints the processor time of api and
 * PostgreSQL per 1,000 calls.
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

function costs(name: string, { before, after }: { before: Uses; after: Uses }, calls: number): Figure[] {
  const used = delta(before, after);
  return [
    perThousand(`${name}: api CPU`, used.api, calls),
    ...ofDatabase(`${name}: PostgreSQL CPU`, used, calls),
    perThousand(`${name}: CPU of the benchmark's client`, used.client, calls),
  ];
}
