import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type Figure, percentiles, readArgs } from './harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from './harness/bench-service.ts';
import { type BenchApp, callAsMaster, createApp, pushAndWait } from './harness/client.ts';
import { processUse } from './harness/process-use.ts';

const defaultSeconds = 10;
const defaultClients = 16;
const users = 50;
const password = 'the password of a benchmark';
/** Number of devices that each push is sent to. */
const devices = 20_000;
/** Pause between two cheap calls. */
const pauseMs = 10;

const anything = z.unknown();

/** Measurements of one round. */
interface Round {
  /** Duration of the round. The last push may end after the last login. */
  seconds: number;
  loginSeconds: number;
  loginsMs: number[];
  cheapMs: number[];
  recipients: number;
  apiCpuSeconds: number;
}

/**
 * Measures logins with a password by `args[1]` clients (16) without pause for `args[0]` seconds
 * (10). Also measures the duration of a cheap call (`GET /1.1/date`) in three rounds: on an idle
 * service, during logins, and during logins and pushes.
 */
export function benchAccounts(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [seconds = defaultSeconds, clients = defaultClients] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const app = await createApp(bench);
    const pushing = await createApp(bench);
    log(`writing ${users} users and ${devices} installations`);
    for (let i = 0; i < users; i += 1)
      await callAsMaster(
        bench,
        app,
        { path: '/1.1/users', body: { username: `user ${i}`, password } },
        anything,
      );
    await writeInstallations(bench, pushing.appId, devices);
    await pushAndWait(bench, pushing, { where: { badge: 1 } });
    const rounds = { seconds, app, pushing };
    log(`no logins: ${seconds} s`);
    const idle = await round(bench, { ...rounds, clients: 0, hasPushes: false });
    log(`${clients} clients log in: ${seconds} s`);
    const logins = await round(bench, { ...rounds, clients, hasPushes: false });
    log(`${clients} clients log in while pushes to ${devices} devices run: ${seconds} s`);
    const both = await round(bench, { ...rounds, clients, hasPushes: true });
    return [
      ...percentiles('cheap call, idle', idle.cheapMs),
      ...figuresOf('logins', logins),
      ...figuresOf('logins and pushes', both),
      {
        name: 'logins and pushes: sent',
        value: both.recipients / both.seconds,
        unit: 'recipients/s',
      },
    ];
  });
}

function figuresOf(
  name: string,
  { loginSeconds, loginsMs, cheapMs, apiCpuSeconds }: Round,
): Figure[] {
  return [
    { name: `${name}: throughput`, value: loginsMs.length / loginSeconds, unit: 'logins/s' },
    {
      name: `${name}: api CPU`,
      value: (apiCpuSeconds * 1000) / loginsMs.length,
      unit: 'CPU ms per login',
    },
    ...percentiles(`${name}: login`, loginsMs),
    ...percentiles(`${name}: cheap call`, cheapMs),
  ];
}

interface Plan {
  seconds: number;
  clients: number;
  app: BenchApp;
  pushing: BenchApp;
  hasPushes: boolean;
}

async function round(
  bench: Bench,
  { seconds, clients, app, pushing, hasPushes }: Plan,
): Promise<Round> {
  const startedAtMs = performance.now();
  const secondsSince = () => (performance.now() - startedAtMs) / 1000;
  const isOver = () => secondsSince() > seconds;
  const before = await processUse(bench.pids().api);
  const logins = Promise.all(
    Array.from({ length: clients }, (_, i) =>
      repeat(isOver, 0, (n) => logIn(bench, app, i * 7 + n)),
    ),
  ).then((all) => ({ loginsMs: all.flat(), loginSeconds: secondsSince() }));
  const [cheapMs, recipients, entered] = await Promise.all([
    repeat(isOver, pauseMs, () => callAsMaster(bench, app, { path: '/1.1/date' }, anything)),
    hasPushes ? pushUntil(bench, pushing, isOver) : 0,
    logins,
  ]);
  const after = await processUse(bench.pids().api);
  const apiCpuSeconds = (after?.cpuSeconds ?? Number.NaN) - (before?.cpuSeconds ?? Number.NaN);
  return { ...entered, seconds: secondsSince(), cheapMs, recipients, apiCpuSeconds };
}

async function logIn(bench: Bench, app: BenchApp, n: number): Promise<void> {
  const body = { username: `user ${n % users}`, password };
  await callAsMaster(
    bench,
    app,
    { path: '/1.1/login', body },
    z.object({ sessionToken: z.string() }),
  );
}

/** Repeats a call until `isOver` returns true. Returns the milliseconds that each call took. */
async function repeat(
  isOver: () => boolean,
  pauseMs: number,
  work: (n: number) => Promise<unknown>,
): Promise<number[]> {
  const tookMs: number[] = [];
  while (!isOver()) {
    const startedAtMs = performance.now();
    await work(tookMs.length);
    tookMs.push(performance.now() - startedAtMs);
    if (pauseMs > 0) await sleep(pauseMs);
  }
  return tookMs;
}

/**
 * Sends pushes to all devices, one after the other, until `isOver` returns true. Returns the number
 * of sent recipients.
 */
async function pushUntil(bench: Bench, app: BenchApp, isOver: () => boolean): Promise<number> {
  let sent = 0;
  while (!isOver()) sent += (await pushAndWait(bench, app, {})).successes;
  return sent;
}
