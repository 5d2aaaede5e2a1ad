import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseJson } from '../../../shared/domain/json.ts';
import { type Figure, percentiles, readArgs } from '../harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from '../harness/bench-service.ts';
import {
  type BenchApp,
  callAsMaster,
  createApp,
  type KeepAliveCall,
  KeepAliveClient,
  masterHeaders,
  pushAndWait,
} from '../harness/client.ts';
import { databaseCpuSeconds, processUse, serverNames } from '../harness/process-use.ts';

/**
 * Duration of the calls before the measured calls of a phase. They open connections and compile
 * code.
 */
const warmUpMs = 1000;

/** App of the benchmark with a user who is logged in. */
interface Tenant {
  app: BenchApp;
  sessionToken: string;
}

/** Phase of the benchmark. Each client makes the calls of the phase, one after the other. */
interface Phase {
  name: string;
  unit: string;
  /** Maximum rate of all clients together. Absent: no limit. */
  callsPerSecond?: number;
  /** Returns call number `n` of a client. */
  call(client: number, n: number): KeepAliveCall;
}

/** Measured calls of a phase. */
interface Measured {
  seconds: number;
  tookMs: number[];
}

const tenantOf = (tenants: Tenant[], client: number, n: number): Tenant => {
  const tenant = tenants[(client + n) % tenants.length];
  if (!tenant) throw new Error('the benchmark has no apps');
  return tenant;
};

interface Load {
  bench: Bench;
  client: KeepAliveClient;
  clients: number;
  log: (line: string) => void;
}

/**
 * Makes the calls of a phase with all clients for `durationMs`, from call number `first` on. `next`
 * of the result is the number of the next call.
 */
async function run(
  { client, clients }: Load,
  durationMs: number,
  phase: Phase,
  first: number,
): Promise<Measured & { next: number }> {
  const startedAtMs = performance.now();
  const tookMs: number[] = [];
  let next = first;
  let made = 0;
  const repeat = async (number: number) => {
    let n = first;
    for (; performance.now() - startedAtMs < durationMs; n += 1) {
      const dueMs = phase.callsPerSecond === undefined ? 0 : (made * 1000) / phase.callsPerSecond;
      made += 1;
      const waitMs = dueMs - (performance.now() - startedAtMs);
      if (waitMs > 0) await sleep(waitMs);
      const sentAtMs = performance.now();
      parseJson(await client.send(phase.call(number, n)));
      tookMs.push(performance.now() - sentAtMs);
    }
    next = Math.max(next, n);
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => repeat(number)));
  // An even number, because the first call of a phase with repeats must be a new save.
  return { tookMs, next: next + (next % 2), seconds: (performance.now() - startedAtMs) / 1000 };
}

/** CPU time used so far, in seconds. */
interface Uses {
  api: number;
  /** Sum over all database servers. */
  database: number;
  /** By database server. */
  servers: number[];
  dispatcher: number;
  /** This process, which makes the calls. */
  client: number;
}

async function uses({ db, pids }: Bench): Promise<Uses> {
  const { api, dispatchers } = pids();
  const servers = await databaseCpuSeconds(db);
  const database = servers.reduce((sum, seconds) => sum + seconds, 0);
  const [ofApi, ...others] = await Promise.all([api, ...dispatchers].map(processUse));
  const dispatcher = others.reduce((sum, use) => sum + (use?.cpuSeconds ?? Number.NaN), 0);
  const { user, system } = process.cpuUsage();
  const client = (user + system) / 1e6;
  return { api: ofApi?.cpuSeconds ?? Number.NaN, database, servers, dispatcher, client };
}

const delta = (before: Uses, after: Uses): Uses => ({
  api: after.api - before.api,
  database: after.database - before.database,
  servers: after.servers.map((seconds, i) => seconds - (before.servers[i] ?? Number.NaN)),
  dispatcher: after.dispatcher - before.dispatcher,
  client: after.client - before.client,
});

const perThousand = (name: string, seconds: number, calls: number): Figure => ({
  name,
  value: (seconds * 1e6) / calls,
  unit: 'CPU ms per 1,000',
});

/**
 * Returns the figures of the database: for all its servers, and for each server if there are
 * several.
 */
const ofDatabase = (name: string, { database, servers }: Uses, calls: number): Figure[] => [
  perThousand(name, database, calls),
  ...serverNames(servers).map((server, i) =>
    perThousand(`${name} of ${server}`, servers[i] ?? Number.NaN, calls),
  ),
];

/** Devices of each app. Each push is sent to one of them. */
const devices = 1000;

/**
 * Interval at which the benchmark counts finished pushes. Each poll reads all open pushes, so
 * frequent polls would take a fifth of the CPU time of the database.
 */
const pollMs = 100;
/**
 * Maximum duration of the pushes without dispatchers. The dispatchers deliver these pushes
 * afterwards.
 */
const maxAloneSeconds = 4;
/**
 * Number of clients for pushes during delivery, as a multiple of the clients of other phases. Their
 * rate is a little above the goal. Without a fixed rate, the api would take all CPU time that the
 * dispatcher leaves, and the result would say nothing.
 */
const clientsBesideDelivery = 2;
const callsPerSecondBesideDelivery = 2600;

function pushPhase(tenants: Tenant[]): Phase {
  const call = (client: number, n: number) => {
    const objectId = (((client * 31 + n) % devices) + 1).toString(16).padStart(24, '0');
    const body = { data: { alert: 'Benchmark' }, where: { objectId }, prod: 'prod' };
    return { path: '/1.1/push', headers: masterHeaders(tenantOf(tenants, client, n).app), body };
  };
  return { name: 'pushes', unit: 'pushes/s', call };
}

/**
 * Measures pushes with dispatchers, then pushes without dispatchers. The order matters: the first
 * ten thousand pushes of a fresh dispatcher and a fresh database cost half as much again.
 */
async function pushFigures(load: Load, seconds: number, tenants: Tenant[]): Promise<Figure[]> {
  const phase = pushPhase(tenants);
  const clients = load.clients * clientsBesideDelivery;
  const client = new KeepAliveClient(load.bench.url, clients);
  try {
    const wide = { ...load, client, clients };
    await run(wide, maxAloneSeconds * 1000, phase, 0);
    await untilAllDone(load.bench);
    await load.bench.db.query('VACUUM ANALYZE');
    const paced = { ...phase, callsPerSecond: callsPerSecondBesideDelivery };
    const together = await figuresTogether(wide, seconds, paced);
    return [...together, ...(await figuresAlone(load, Math.min(seconds, maxAloneSeconds), phase))];
  } finally {
    client.close();
  }
}

/**
 * Measures how many pushes the api and the database accept while the dispatchers are stopped. Then
 * measures how fast the dispatchers deliver these pushes.
 */
async function figuresAlone(load: Load, seconds: number, phase: Phase): Promise<Figure[]> {
  load.log(`pushes without dispatchers: ${load.clients} clients, ${seconds} s`);
  const { dispatchers } = load.bench.pids();
  const signal = (name: NodeJS.Signals) => {
    for (const pid of dispatchers) if (pid !== undefined) process.kill(pid, name);
  };
  signal('SIGSTOP');
  const { unit } = phase;
  let figures: Figure[];
  let accepted: number;
  try {
    const warm = await run(load, warmUpMs, phase, 0);
    const before = await uses(load.bench);
    const done = await run(load, seconds * 1000, phase, warm.next);
    const used = delta(before, await uses(load.bench));
    const count = done.tookMs.length;
    accepted = warm.tookMs.length + count;
    figures = [
      {
        name: 'pushes, no dispatcher: accepted',
        value: count / done.seconds,
        unit,
        before: '5,350',
      },
      ...percentiles('pushes, no dispatcher', done.tookMs),
      perThousand('pushes, no dispatcher: api CPU', used.api, count),
      ...ofDatabase('pushes, no dispatcher: PostgreSQL CPU', used, count),
    ];
  } finally {
    signal('SIGCONT');
  }
  const continuedAtMs = performance.now();
  await untilAllDone(load.bench);
  const value = (accepted * 1000) / (performance.now() - continuedAtMs);
  return [...figures, { name: 'pushes, no calls: delivered', value, unit, before: '1,370' }];
}

/**
 * Measures pushes until the last push is done. Returns the rate of replies and the rate of finished
 * records.
 */
async function figuresTogether(load: Load, seconds: number, phase: Phase): Promise<Figure[]> {
  load.log(
    `pushes: ${load.clients} clients, ${phase.callsPerSecond} calls/s at most, ${seconds} s`,
  );
  const { unit } = phase;
  const doneBefore = await countDone(load.bench);
  const before = await uses(load.bench);
  const startedAtMs = performance.now();
  const done = await run(load, seconds * 1000, phase, 0);
  const delivered = (await countDone(load.bench)) - doneBefore;
  const accepted = await uses(load.bench);
  await untilAllDone(load.bench);
  const allSeconds = (performance.now() - startedAtMs) / 1000;
  const after = await uses(load.bench);
  const count = done.tookMs.length;
  const { api } = delta(before, accepted);
  const all = delta(before, after);
  return [
    {
      name: 'pushes: accepted',
      value: count / done.seconds,
      unit,
      goal: '≥ 2,500',
      before: '1,830',
    },
    {
      name: 'pushes: delivered in that time',
      value: delivered / done.seconds,
      unit,
      goal: '≥ 1,500',
    },
    { name: 'pushes: delivered until the last', value: count / allSeconds, unit, before: '1,730' },
    ...percentiles(phase.name, done.tookMs),
    perThousand('pushes: api CPU', api, count),
    ...ofDatabase('pushes: PostgreSQL CPU, with delivery', all, count),
    perThousand('pushes: dispatcher CPU', all.dispatcher, count),
  ];
}

async function countDone({ db }: Bench): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*) AS n FROM notification WHERE state = 'done'`,
  );
  return rows[0]?.n ?? 0;
}

async function untilAllDone({ db }: Bench): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ open: boolean }>(
      `SELECT EXISTS (SELECT 1 FROM notification WHERE state IN ('queued', 'sending')) AS open`,
    );
    if (!rows[0]?.open) return;
    await sleep(pollMs);
  }
}

const defaultSeconds = 10;
const defaultClients = 32;
/**
 * Number of apps. There are several because an app may make only 9,600 push calls a minute, and has
 * only a share of the connections.
 */
const apps = 16;

const createdUser = z.object({ objectId: z.string(), sessionToken: z.string() });

/**
 * Measures the calls of `args[1]` clients (32) over open connections, for `args[0]` seconds (10)
 * for each kind of call. Prints the CPU time of api and PostgreSQL per 1,000 calls. The kinds are:
 *
 * - saves of installations, half of them new and half of them repeats
 * - reads of the own user
 * - pushes to one device each during their delivery (2,600 calls per second, by twice the clients)
 * - pushes to one device each without dispatchers
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
  const { sessionToken } = await callAsMaster(
    bench,
    app,
    { path: '/1.1/users', body },
    createdUser,
  );
  await pushAndWait(bench, app, { where: { badge: 1 } });
  return { app, sessionToken };
}

/** Returns the phase in which a client saves a new installation, then repeats that save. */
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
    return {
      path: '/1.1/users/me',
      headers: { ...masterHeaders(app), 'x-lc-session': sessionToken },
    };
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
    ...percentiles(phase.name, done.tookMs),
    ...costs(phase.name, { before, after }, done.tookMs.length),
  ];
}

function costs(
  name: string,
  { before, after }: { before: Uses; after: Uses },
  calls: number,
): Figure[] {
  const used = delta(before, after);
  return [
    perThousand(`${name}: api CPU`, used.api, calls),
    ...ofDatabase(`${name}: PostgreSQL CPU`, used, calls),
    perThousand(`${name}: CPU of the benchmark's client`, used.client, calls),
  ];
}
