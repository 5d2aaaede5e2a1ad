import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { readArgs } from '../harness/arguments.ts';
import { type Bench, withBench } from '../harness/bench-service.ts';
import { type BenchApp, call, createApp, push, pushAndWait } from '../harness/client.ts';
import { type Figure, spread } from '../harness/figure.ts';
import { processUse } from '../harness/process-use.ts';
import { writeInstallations } from '../harness/seed.ts';
import { Attack } from './attack.ts';
import { hostilePatterns, type Pattern } from './patterns.ts';
import { writeHostileRows } from './seed.ts';

const defaultSeconds = 5;
const defaultClients = 32;
/** Pause between two calls of the measured app. */
const pauseMs = 20;
/** Time until an attack has used up its share. */
const warmMs = 500;

interface Stage extends Bench {
  app: BenchApp;
  seconds: number;
  log: (line: string) => void;
}

/**
 * Measures `POST /1.1/push` of one app and `/readyz` under the load of a hostile app with its app key, for `args[0]`
 * seconds (5) with `args[1]` concurrent clients (32), pattern by pattern, after a measurement without load;
 * `--pattern where` runs those with "where" in their names.
 */
export function benchNeighbour(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups, pattern: part = '' } = readArgs(args);
  const [seconds = defaultSeconds, clients = defaultClients] = numbers;
  return withBench(log, { threads: 1, ...setups[0] }, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, 1);
    await pushAndWait(bench, app, {});
    log('writing the rows of the hostile app');
    const hostile = await createHostileApp(bench);
    const all = hostilePatterns(await writeHostileRows(bench, hostile.appId));
    const patterns = all.filter(({ name }) => name.includes(part));
    if (patterns.length === 0)
      throw new Error(`--pattern is a part of one of: ${all.map(({ name }) => name).join(', ')}`);
    const attack = new Attack({ url: bench.url, clients, headers: headersOf(hostile) });
    try {
      const stage = { ...bench, app, seconds, log };
      const figures = await measure(stage, 'no load');
      for (const pattern of patterns) figures.push(...(await underAttack(stage, attack, pattern)));
      const use = await processUse(bench.pids().api);
      const peak = { name: 'api, peak resident memory', value: use?.peakMegabytes ?? Number.NaN, unit: 'MB' };
      return [...figures, peak];
    } finally {
      await attack.close();
    }
  });
}

const hostileApp = z.object({ appId: z.string(), appKey: z.string() });
type HostileApp = z.infer<typeof hostileApp>;

const headersOf = ({ appId, appKey }: HostileApp) => ({
  'x-lc-id': appId,
  'x-lc-key': appKey,
  'content-type': 'application/json',
});

/** Creates an app whose options allow its app key everything. */
function createHostileApp({ url, adminToken }: Bench): Promise<HostileApp> {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const options = {
    allowUserQuery: true,
    allowInstallationQuery: true,
    forbidClientPush: false,
    hybridPush: true,
  };
  const body = JSON.stringify({ name: 'Hostile', options });
  return call(`${url}/console/api/apps`, { method: 'POST', headers, body }, hostileApp);
}

async function underAttack(stage: Stage, attack: Attack, { name, calls }: Pattern): Promise<Figure[]> {
  attack.begin(calls);
  await sleep(warmMs);
  const figures = await measure(stage, name);
  const answered = await attack.end();
  const use = await processUse(stage.pids().api);
  stage.log(`${name}: ${JSON.stringify(answered)}, the api has ${use?.residentMegabytes.toFixed()} MB`);
  await untilQuiet(stage);
  return figures;
}

/** Waits until the database has finished the statements of the last pattern. */
async function untilQuiet({ db }: Stage): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ busy: number }>(
      `SELECT count(*) AS busy FROM pg_stat_activity
        WHERE application_name LIKE 'carillon api%' AND state = 'active'`,
    );
    if (rows[0]?.busy === 0) return;
    await sleep(pauseMs);
  }
}

async function measure(stage: Stage, name: string): Promise<Figure[]> {
  const endsAtMs = performance.now() + stage.seconds * 1000;
  const [pushes, checks] = await Promise.all([
    repeat(endsAtMs, () => push(stage, stage.app, {})),
    repeat(endsAtMs, () => call(`${stage.url}/readyz`, {}, z.unknown())),
  ]);
  return [...spread(`${name}: push`, pushes), ...spread(`${name}: readyz`, checks)];
}

/** Repeats a call until `endsAtMs`. Returns the milliseconds that each took. */
async function repeat(endsAtMs: number, work: () => Promise<unknown>): Promise<number[]> {
  const tookMs: number[] = [];
  while (performance.now() < endsAtMs) {
    const startedAtMs = performance.now();
    await work();
    tookMs.push(performance.now() - startedAtMs);
    await sleep(pauseMs);
  }
  return tookMs;
}
