import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../harness/bench-service.ts';
import { masterHeaders } from '../harness/client.ts';
import { type Figure, spread } from '../harness/figure.ts';
import {
  delta,
  type Load,
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

const pollMs = 20;
/** Longest time of pushes without a dispatcher, which delivers them afterwards. */
const maxAloneSeconds = 4;

function pushPhase(tenants: Tenant[]): Phase {
  const call = (client: number, n: number) => {
    const objectId = (((client * 31 + n) % devices) + 1).toString(16).padStart(24, '0');
    const body = { data: { alert: 'Benchmark' }, where: { objectId }, prod: 'prod' };
    return { path: '/1.1/push', headers: masterHeaders(tenantOf(tenants, client, n).app), body };
  };
  return { name: 'pushes', unit: 'pushes/s', call };
}

/** Measures pushes without dispatchers, then with them. */
export async function pushFigures(load: Load, seconds: number, tenants: Tenant[]): Promise<Figure[]> {
  const phase = pushPhase(tenants);
  await untilAllDone(load.bench);
  const alone = await figuresAlone(load, Math.min(seconds, maxAloneSeconds), phase);
  return [...alone, ...(await figuresTogether(load, seconds, phase))];
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
  let figures: Figure[];
  let accepted: number;
  try {
    const warm = await run(load, warmUpMs, phase, 0);
    const before = await uses(load.bench);
    const done = await run(load, seconds * 1000, phase, warm.next);
    const { api, database } = delta(before, await uses(load.bench));
    const count = done.tookMs.length;
    accepted = warm.tookMs.length + count;
    figures = [
      { name: 'pushes, no dispatcher: accepted', value: count / done.seconds, unit: phase.unit },
      ...spread('pushes, no dispatcher', done.tookMs),
      perThousand('pushes, no dispatcher: api CPU', api, count),
      perThousand('pushes, no dispatcher: PostgreSQL CPU', database, count),
    ];
  } finally {
    signal('SIGCONT');
  }
  const continuedAtMs = performance.now();
  await untilAllDone(load.bench);
  const rate = (accepted * 1000) / (performance.now() - continuedAtMs);
  return [...figures, { name: 'pushes, no calls: delivered', value: rate, unit: phase.unit }];
}

/** Measures pushes until the last one is done: the rate of the replies, and that of the finished records. */
async function figuresTogether(load: Load, seconds: number, phase: Phase): Promise<Figure[]> {
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

async function untilAllDone({ db }: Bench): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ open: boolean }>(
      `SELECT EXISTS (SELECT FROM notification WHERE state IN ('queued', 'sending')) AS open`,
    );
    if (!rows[0]?.open) return;
    await sleep(pollMs);
  }
}
