import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Database } from '../../shared/db/pool.ts';
import {
  type Bench,
  type BenchApp,
  call,
  createApp,
  pushAndWait,
  withBench,
  writeInstallations,
} from './bench-service.ts';
import type { Figure } from './figure.ts';

const defaultSamples = 100;
const busyDevices = 200_000;
/** Pause between two single pushes: the next finds the service idle again. */
const pauseMs = 30;

/**
 * Time from the answer of a push to one device to its first send: `args[0]` pushes (100) on an idle service,
 * then as many while a push of another app to 200,000 devices is being sent (contract.md, promise 8; the
 * busy half is what `fairness` prints).
 */
export function benchLatency(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const samples = Number(args[0] ?? defaultSamples);
  return withBench(log, {}, async (bench) => {
    const single = await singleApp(bench);
    log(`idle: ${samples} pushes to one device`);
    const idle = await sample(bench, single, samples);
    return figures('idle', idle);
  });
}

/** The same while another app's push to many is under way. */
export function benchFairness(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const devices = Number(args[0] ?? busyDevices);
  return withBench(log, {}, async (bench) => {
    const single = await singleApp(bench);
    const large = await createApp(bench);
    log(`writing ${devices} installations`);
    await writeInstallations(bench, large.appId, devices);
    await pushAndWait(bench, large, { where: { badge: 1 } });
    log(`busy: single pushes of one app during a push to ${devices} devices of another`);
    let isDone = false;
    const broadcast = pushAndWait(bench, large, {}).finally(() => {
      isDone = true;
    });
    const busy = await sample(bench, single, Number.POSITIVE_INFINITY, () => isDone);
    const { seconds } = await broadcast;
    return [
      ...figures('busy', busy),
      { name: 'the large push', value: devices / seconds, unit: 'recipients/s' },
    ];
  });
}

async function singleApp(bench: Bench): Promise<BenchApp> {
  const app = await createApp(bench);
  await writeInstallations(bench, app.appId, 1);
  await pushAndWait(bench, app, {});
  return app;
}

/** Milliseconds from answer to first send, from the records themselves. */
async function sample(
  bench: Bench,
  app: BenchApp,
  count: number,
  isOver: () => boolean = () => false,
): Promise<number[]> {
  const headers = {
    'x-lc-id': app.appId,
    'x-lc-key': `${app.masterKey},master`,
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ data: { alert: 'Just one' } });
  const ids: string[] = [];
  for (let i = 0; i < count && !isOver(); i += 1) {
    const init = { method: 'POST', headers, body };
    ids.push((await call(`${bench.url}/1.1/push`, init, z.object({ objectId: z.string() }))).objectId);
    await sleep(pauseMs);
  }
  return readWaits(bench, app.appId, ids);
}

async function readWaits(bench: Bench, appId: string, ids: string[]): Promise<number[]> {
  const db = new Database({ url: bench.service.databaseUrl, applicationName: 'bench' });
  try {
    for (;;) {
      const { rows } = await db.query<{ ms: number | null }>(
        `SELECT extract(epoch FROM first_sent_at - created_at)::float8 * 1000 AS ms
           FROM notification WHERE app_id = $1 AND object_id = ANY($2)`,
        [appId, ids],
      );
      const waits = rows.flatMap((row) => (row.ms === null ? [] : [row.ms]));
      if (waits.length === ids.length) return waits.sort((a, b) => a - b);
      await sleep(pauseMs);
    }
  } finally {
    await db.close();
  }
}

function figures(name: string, sorted: number[]): Figure[] {
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return [
    { name: `${name}: single pushes`, value: sorted.length, unit: 'pushes' },
    { name: `${name}: to first send, p50`, value: at(0.5), unit: 'ms' },
    { name: `${name}: to first send, p95`, value: at(0.95), unit: 'ms' },
  ];
}
