import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../shared/clock.ts';
import { type Figure, readArgs, spread } from './harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from './harness/bench-service.ts';
import { type BenchApp, createApp, push, pushAndWait, untilDone } from './harness/client.ts';

const defaultSamples = 100;
const busyDevices = 200_000;
/** Devices of a push whose first request is timed. */
const largeDevices = 20_000;
const largeSamples = 10;
/** Pause between two single pushes: the next finds the service idle again. */
const pauseMs = 30;

/**
 * Time from accepting a push to one device (its `createdAt`, a little before the answer) to its
 * first send: the first push of fresh processes, and `args[0]` further ones (100) on an idle
 * service (protocol/delivery.md#promise-8). Then the time from the answer for a push to 20,000
 * devices to its first request at the gateway.
 */
export function benchLatency(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [samples = defaultSamples] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const single = await createApp(bench);
    await writeInstallations(bench, single.appId, 1);
    log('the first push of these processes');
    const first = await sample(bench, single, 1);
    log(`idle: ${samples} pushes to one device`);
    const idle = await sample(bench, single, samples);
    const large = await createApp(bench);
    await writeInstallations(bench, large.appId, largeDevices);
    log(`${largeSamples} pushes to ${largeDevices} devices`);
    const waits: number[] = [];
    for (let i = 0; i < largeSamples; i += 1) waits.push(await firstRequest(bench, large));
    return [
      {
        name: 'first push of the processes: to first send',
        value: first[0] ?? Number.NaN,
        unit: 'ms',
      },
      ...figures('idle', idle),
      {
        name: `first push to ${largeDevices}: to first request`,
        value: waits[0] ?? Number.NaN,
        unit: 'ms',
      },
      ...spread(`push to ${largeDevices}: to first request`, waits),
    ];
  });
}

/**
 * Returns the milliseconds from the answer to a push until its first request at the gateway, after
 * the push is done.
 */
async function firstRequest(bench: Bench, app: BenchApp): Promise<number> {
  await bench.gateway.forget();
  const objectId = await push(bench, app, {});
  const answeredAtMs = systemClock.now();
  await untilDone(bench, app, objectId);
  return (await bench.gateway.observe()).firstMs - answeredAtMs;
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
    const busy = await sample(bench, single, Number.POSITIVE_INFINITY, { isOver: () => isDone });
    const { seconds } = await broadcast;
    return [
      ...figures('busy', busy),
      { name: 'the large push', value: devices / seconds, unit: 'recipients/s' },
    ];
  });
}

export async function singleApp(bench: Bench): Promise<BenchApp> {
  const app = await createApp(bench);
  await writeInstallations(bench, app.appId, 1);
  await pushAndWait(bench, app, {});
  return app;
}

/**
 * Which pushes are sampled: their body, the pause after each (30 ms), and when there are enough
 * before `count`.
 */
interface Sampled {
  body?: object;
  restMs?: number;
  isOver?: () => boolean;
}

/**
 * Sends `count` pushes; returns the milliseconds from each answer to its first send, from the
 * records themselves.
 */
export async function sample(
  bench: Bench,
  app: BenchApp,
  count: number,
  { body = {}, restMs = pauseMs, isOver = () => false }: Sampled = {},
): Promise<number[]> {
  const ids: string[] = [];
  for (let i = 0; i < count && !isOver(); i += 1) {
    ids.push(await push(bench, app, body));
    await sleep(restMs);
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
