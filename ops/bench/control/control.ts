import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../shared/clock.ts';
import { type Observation, secondsOf } from '../gateway/gateway.ts';
import { type Figure, percentiles, readArgs, type Setup } from '../harness/arguments.ts';
import { type Bench, withBench, writeInstallations } from '../harness/bench-service.ts';
import {
  type BenchApp,
  control,
  createApp,
  freezeService,
  push,
  pushAndWait,
  releaseService,
} from '../harness/client.ts';

const defaultDevices = 100_000;
const defaultRounds = 10;
const defaultDispatchers = 2;

/**
 * Concurrent streams of a connection. The number is low so that no requests wait inside the
 * gateway, where a pause cannot stop them.
 */
const streams = 20;

/** Number of requests after which every dispatcher is sending. */
const startupRequests = 5000;
/** Time without requests after which the dispatchers have stopped sending. */
const quietMs = 1500;
const pollMs = 20;

/**
 * Scheduled pushes to one device each. Their times are random within `spanMs`, which begins after
 * `leadMs`.
 */
const scheduled = { count: 40, leadMs: 61_000, spanMs: 20_000 };

interface Waits {
  pause: number[];
  resume: number[];
  freeze: number[];
  release: number[];
  cancel: number[];
}

/**
 * Measures the time from a call to its effect at the gateway, with two dispatchers. The limit of
 * each time is one second (protocol/delivery.md#promise-8; protocol/push-records.md#state-changes).
 * The times are:
 *
 * - from a pause, a freeze of the service and a cancel to the last send; from a resume and a
 *   release to the first send. They are measured `args[1]` times (10) during a push to `args[0]`
 *   devices (100,000).
 * - from `push_time` to the send of scheduled pushes, on an idle service and during those rounds.
 */
export function benchControl(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [devices = defaultDevices, rounds = defaultRounds] = numbers;
  return withBench(
    log,
    { dispatchers: defaultDispatchers, streams, ...setups[0] },
    async (bench) => {
      const large = await createApp(bench);
      log(`writing ${devices} installations`);
      await writeInstallations(bench, large.appId, devices);
      const single = await createApp(bench);
      await writeInstallations(bench, single.appId, 1);
      await pushAndWait(bench, single, {});
      log(`${scheduled.count} scheduled pushes on an idle service: more than a minute`);
      const idle = await fired(bench, single, await schedule(bench, single));
      log(
        `pause, resume, freeze, release and cancel a push to ${devices} devices, ${rounds} times`,
      );
      const waits = await repeat(bench, large, rounds);
      log('the same once more without freezes, which hold scheduled pushes too');
      const late = await schedule(bench, single);
      // The waits of these rounds are not used, because the gateway cannot distinguish requests of
      // the scheduled pushes from requests of the large push.
      const repeated = repeat(bench, large, rounds, { isFrozen: false });
      const [busy] = await Promise.all([fired(bench, single, late), repeated]);
      return [
        ...promised('push_time to first send, idle', idle),
        ...promised('push_time to first send, busy', busy),
        ...promised('pause to last send', waits.pause),
        ...promised('resume to first send', waits.resume),
        ...promised('freeze to last send', waits.freeze),
        ...promised('release to first send', waits.release),
        ...promised('cancel to last send', waits.cancel),
      ];
    },
  );
}

const promisedMs = 1000;

function promised(name: string, waits: number[]): Figure[] {
  const over = waits.filter((ms) => ms > promisedMs).length;
  return [
    ...percentiles(name, waits),
    { name: `${name}, over 1 s`, value: over, unit: `of ${waits.length}` },
  ];
}

/** Schedules the pushes. Returns their ids. */
async function schedule(bench: Bench, app: BenchApp): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < scheduled.count; i++) {
    const atMs = systemClock.now() + scheduled.leadMs + Math.random() * scheduled.spanMs;
    ids.push(await push(bench, app, { push_time: new Date(atMs).toISOString() }));
  }
  return ids;
}

/**
 * Waits until all pushes are sent. Returns the milliseconds from `push_time` to the first send of
 * each push, from the records.
 */
async function fired({ db }: Bench, app: BenchApp, ids: string[]): Promise<number[]> {
  for (;;) {
    const { rows } = await db.query<{ ms: number }>(
      `SELECT extract(epoch FROM first_sent_at - push_time)::float8 * 1000 AS ms
         FROM notification WHERE app_id = $1 AND object_id = ANY($2) AND first_sent_at IS NOT NULL`,
      [app.appId, ids],
    );
    if (rows.length === ids.length) return rows.map(({ ms }) => ms);
    await sleep(quietMs);
  }
}

async function repeat(
  bench: Bench,
  app: BenchApp,
  rounds: number,
  { isFrozen } = { isFrozen: true },
): Promise<Waits> {
  const waits: Waits = { pause: [], resume: [], freeze: [], release: [], cancel: [] };
  for (let i = 0; i < rounds; i++) {
    await bench.gateway.forget();
    const objectId = await push(bench, app, {});
    await arrived(bench, startupRequests);
    waits.pause.push(await untilQuiet(bench, () => control(bench, app, objectId, 'pause')));
    waits.resume.push(await untilSent(bench, () => control(bench, app, objectId, 'resume')));
    await arrived(bench, startupRequests);
    if (isFrozen) {
      waits.freeze.push(await untilQuiet(bench, () => freezeService(bench)));
      waits.release.push(await untilSent(bench, () => releaseService(bench)));
      await arrived(bench, startupRequests);
    }
    waits.cancel.push(await untilQuiet(bench, () => control(bench, app, objectId, 'cancel')));
  }
  return waits;
}

async function arrived({ gateway }: Bench, count: number) {
  for (;;) {
    const seen = await gateway.observe();
    if (seen.total >= count) return seen;
    await sleep(pollMs);
  }
}

/** Returns the milliseconds from the call to the first request at the gateway. */
async function untilSent(bench: Bench, act: () => Promise<void>): Promise<number> {
  await bench.gateway.forget();
  const calledAtMs = systemClock.now();
  await act();
  return (await arrived(bench, 1)).firstMs - calledAtMs;
}

/** Returns the milliseconds from the call to the last request before a long silence. */
async function untilQuiet({ gateway }: Bench, act: () => Promise<void>): Promise<number> {
  const calledAtMs = systemClock.now();
  await act();
  for (;;) {
    const { lastMs } = await gateway.observe();
    if (systemClock.now() - Math.max(lastMs, calledAtMs) > quietMs)
      return Math.max(0, lastMs - calledAtMs);
    await sleep(pollMs);
  }
}

const defaultPacedDevices = 30_000;
const defaultPace = 2000;

/**
 * Measures pushes to `args[0]` devices (30,000) with a `flow_control` of `args[1]` (2,000) by two
 * dispatcher processes. Prints the most and the fewest requests per second at a quick gateway, for
 * the first push of fresh processes and for a later push. A second may begin at any hundredth of a
 * second.
 */
export function benchPace(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [devices = defaultPacedDevices, rate = defaultPace] = numbers;
  if (!(devices / rate >= 3)) throw new Error('the push has to take at least three seconds');
  const setup: Setup = { dispatchers: defaultDispatchers, gateway: 'quick', ...setups[0] };
  return withBench(log, setup, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, devices);
    const paced = async (name: string) => {
      log(`${name}: ${devices} devices, ${rate} per second`);
      await bench.gateway.forget();
      const { seconds } = await pushAndWait(bench, app, { flow_control: rate });
      return figures(name, await bench.gateway.observe(), { rate, seconds });
    };
    const cold = await paced('fresh processes');
    log('a push without a pace');
    const { seconds: unpaced } = await pushAndWait(bench, app, {});
    return [
      { name: 'devices', value: devices, unit: 'recipients' },
      { name: 'without a pace', value: devices / unpaced, unit: 'recipients/s' },
      { name: 'rate asked for', value: rate, unit: 'recipients/s' },
      ...cold,
      ...(await paced('warm processes')),
    ];
  });
}

function figures(
  name: string,
  { buckets, repeats, stallMs }: Observation,
  { rate, seconds }: { rate: number; seconds: number },
): Figure[] {
  const relative = secondsOf(buckets)
    .map((count) => count / rate)
    .sort((a, b) => a - b);
  const at = (part: number) => relative[Math.floor((relative.length - 1) * part)] ?? Number.NaN;
  return [
    { name: `${name}: answer to done`, value: seconds, unit: 's' },
    { name: `${name}: largest second`, value: at(1), unit: '× rate' },
    { name: `${name}: median second`, value: at(0.5), unit: '× rate' },
    { name: `${name}: smallest second`, value: at(0), unit: '× rate' },
    { name: `${name}: sent twice`, value: repeats, unit: 'recipients' },
    { name: `${name}: longest stall of the gateway`, value: stallMs, unit: 'ms' },
  ];
}
