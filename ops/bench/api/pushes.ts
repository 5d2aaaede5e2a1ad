import { setTimeout as sleep } from 'node:timers/promises';
import { type Figure, spread } from '../harness/arguments.ts';
import type { Bench } from '../harness/bench-service.ts';
import { masterHeaders } from '../harness/client.ts';
import { KeepAliveClient } from '../harness/keep-alive-client.ts';
import {
  delta,
  type Load,
  ofDatabase,
  type Phase,
  perThousand,
  run,
  type Tenant,
  tenantOf,
  uses,
  warmUpMs,
} from './load.ts';

/** Devices of an app that pushes name, one each. */
export const devices = 1000;

/** A look reads all open pushes, so that many of them would take a fifth of the processor time of the database. */
const pollMs = 100;
/** Longest time of pushes without a dispatcher, which delivers them afterwards. */
const maxAloneSeconds = 4;
/**
 * Clients of pushes beside their delivery, for each of the other phases, and what they send: the goal and a little more. Without
 * a rate they would leave the dispatcher as much of the processor as it takes from the api, whatever that is.
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
 * Measures pushes with dispatchers, then without. This order, because the code and the statements of a fresh dispatcher, and the
 * statistics of a fresh database, cost its first ten thousand pushes half as much again.
 */
export async function pushFigures(load: Load, seconds: number, tenants: Tenant[]): Promise<Figure[]> {
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
 * Measures how many pushes api and database accept while dispatchers take no processor time, and how fast dispatchers deliver
 * these when no more arrive.
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
      { name: 'pushes, no dispatcher: accepted', value: count / done.seconds, unit, before: '5,350' },
      ...spread('pushes, no dispatcher', done.tookMs),
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

/** Measures pushes until the last one is done: the rate of the replies, and that of the finished records, in the same time. */
async function figuresTogether(load: Load, seconds: number, phase: Phase): Promise<Figure[]> {
  load.log(`pushes: ${load.clients} clients, ${phase.callsPerSecond} calls/s at most, ${seconds} s`);
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
    { name: 'pushes: accepted', value: count / done.seconds, unit, goal: '≥ 2,500', before: '1,830' },
    { name: 'pushes: delivered in that time', value: delivered / done.seconds, unit, goal: '≥ 1,500' },
    { name: 'pushes: delivered until the last', value: count / allSeconds, unit, before: '1,730' },
    ...spread(phase.name, done.tookMs),
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
