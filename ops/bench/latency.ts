import { setTimeout as sleep } from 'node:timers/promises';
import { readArgs } from './harness/arguments.ts';
import { type Bench, withBench } from './harness/bench-service.ts';
import { type BenchApp, createApp, push, pushAndWait } from './harness/client.ts';
import { type Figure, spread } from './harness/figure.ts';
import { writeInstallations } from './harness/seed.ts';

const defaultSamples = 100;
const busyDevices = 200_000;
/** Pause between two single pushes: the next finds the service idle again. */
const pauseMs = 30;

/**
 * Time from accepting a push to one device (its `createdAt`, a little before the answer) to its first send:
 * `args[0]` pushes (100) on an idle service (protocol/delivery.md#promise-8).
 */
export function benchLatency(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [samples = defaultSamples] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const single = await singleApp(bench);
    log(`idle: ${samples} pushes to one device`);
    const idle = await sample(bench, single, samples);
    return figures('idle', idle);
  });
}

/** The same while a push of another app to `args[0]` devices (200,000) is being sent. */
export function benchFairness(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [devices = busyDevices] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
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
  const ids: string[] = [];
  for (let i = 0; i < count && !isOver(); i += 1) {
    ids.push(await push(bench, app, {}));
    await sleep(pauseMs);
  }
  return readWaits(bench, app.appId, ids);
}

async function readWaits({ db }: Bench, appId: string, ids: string[]): Promise<number[]> {
  for (;;) {
    const { rows } = await db.query<{ ms: number | null }>(
      `SELECT extract(epoch FROM first_sent_at - created_at)::float8 * 1000 AS ms
         FROM notification WHERE app_id = $1 AND object_id = ANY($2)`,
      [appId, ids],
    );
    const waits = rows.flatMap((row) => (row.ms === null ? [] : [row.ms]));
    if (waits.length === ids.length) return waits;
    await sleep(pauseMs);
  }
}

function figures(name: string, waits: number[]): Figure[] {
  return [
    { name: `${name}: single pushes`, value: waits.length, unit: 'pushes' },
    ...spread(`${name}: to first send`, waits),
  ];
}
