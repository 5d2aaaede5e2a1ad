import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../shared/clock.ts';
import { type Figure, percentiles, readArgs } from './harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from './harness/bench-service.ts';
import { type BenchApp, createApp, push, pushAndWait, untilDone } from './harness/client.ts';

const defaultSamples = 100;
const busyDevices = 200_000;
/** Number of devices of the pushes whose first request is measured. */
const largeDevices = 20_000;
const largeSamples = 10;
/** Pause between two single pushes, so that the service is idle again at the next push. */
const pauseMs = 30;

/**
 * Measures the time from the acceptance of a push to one device (its `createdAt`, shortly before
 * the reply) until its first send (protocol/delivery.md#promise-8). Measures the first push of
 * fresh processes, then `args[0]` further pushes (100) on an idle service. Then measures the time
 * from the reply to a push to 20,000 devices until its first request at the gateway.
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
        value: first[0]?.firstSendMs ?? Number.NaN,
        unit: 'ms',
      },
      ...figures('idle', idle),
      {
        name: `first push to ${largeDevices}: to first request`,
        value: waits[0] ?? Number.NaN,
        unit: 'ms',
      },
      ...percentiles(`push to ${largeDevices}: to first request`, waits),
    ];
  });
}

/**
 * Sends a push and waits until it is done. Returns the milliseconds from the reply until the first
 * request at the gateway.
 */
async function firstRequest(bench: Bench, app: BenchApp): Promise<number> {
  await bench.gateway.forget();
  const objectId = await push(bench, app, {});
  const answeredAtMs = systemClock.now();
  await untilDone(bench, app, objectId);
  return (await bench.gateway.observe()).firstMs - answeredAtMs;
}

/**
 * Measures the time to the first send of single pushes while a push of another app to `args[0]`
 * devices (200,000) is being sent.
 */
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
 * Options of the sampled pushes: their body, the pause after each push (30 ms), and a function that
 * ends the sampling before `count` pushes.
 */
interface Sampled {
  body?: object;
  pauseAfterMs?: number;
  isOver?: () => boolean;
}

/**
 * Times of a push from its acceptance, in ms, from its record: until its batch went to a thread
 * (`first_sent_at`), and until its result was recorded. Only the second one includes the thread.
 */
interface Waits {
  firstSendMs: number;
  doneMs: number;
}

/** Sends `count` pushes, and returns the times of each. */
export async function sample(
  bench: Bench,
  app: BenchApp,
  count: number,
  { body = {}, pauseAfterMs = pauseMs, isOver = () => false }: Sampled = {},
): Promise<Waits[]> {
  const ids: string[] = [];
  for (let i = 0; i < count && !isOver(); i += 1) {
    ids.push(await push(bench, app, body));
    await sleep(pauseAfterMs);
  }
  return readWaits(bench, app.appId, ids);
}

async function readWaits({ db }: Bench, appId: string, ids: string[]): Promise<Waits[]> {
  for (;;) {
    const { rows } = await db.query<Waits>(
      `SELECT extract(epoch FROM first_sent_at - created_at)::float8 * 1000 AS "firstSendMs",
              extract(epoch FROM finished_at - created_at)::float8 * 1000 AS "doneMs"
         FROM notification
        WHERE app_id = $1 AND object_id = ANY($2) AND first_sent_at IS NOT NULL
          AND finished_at IS NOT NULL`,
      [appId, ids],
    );
    if (rows.length === ids.length) return rows;
    await sleep(pauseMs);
  }
}

function figures(name: string, waits: Waits[]): Figure[] {
  return [
    { name: `${name}: single pushes`, value: waits.length, unit: 'pushes' },
    ...percentiles(`${name}: to first send`, firstSends(waits)),
    ...percentiles(
      `${name}: to done`,
      waits.map(({ doneMs }) => doneMs),
    ),
  ];
}

export const firstSends = (waits: readonly Waits[]): number[] =>
  waits.map(({ firstSendMs }) => firstSendMs);
