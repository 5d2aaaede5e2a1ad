import { sleep, systemClock } from '../../../shared/clock.ts';
import { type Figure, percentiles, readArgs } from '../harness/arguments.ts';
import { type Bench, withBench, writeAudiences } from '../harness/bench-service.ts';
import { type BenchApp, createApp, push, pushAndWait } from '../harness/client.ts';
import { firstSends, sample, singleApp } from '../latency.ts';
import { peaksOf } from './measure.ts';

const defaultApps = 200;
const defaultDevices = 5000;
const defaultScheduled = 20_000;
const defaultSeconds = 60;
/**
 * Number of apps with scheduled pushes. An app of the commercial service may have 1,000 scheduled
 * pushes.
 */
const scheduleApps = 20;
/**
 * Time from now to the first scheduled push. The minimum is a minute, and the calls take several
 * seconds.
 */
const aheadMs = 75_000;
/** Number of concurrent calls. */
const clients = 16;
const pollMs = 500;
const pollsPerLine = 10;
/** Pause between single pushes. It is long enough that these pushes cause no load. */
const singlePauseMs = 500;
/**
 * Object id of the only installation of an app with one installation (harness/bench-service.ts).
 */
const firstDevice = '1'.padStart(24, '0');

/**
 * Measures pushes of `args[0]` apps (200) to `args[1]` devices each (5,000) that arrive at once.
 * Meanwhile measures single pushes of another app. Throws if a device did not get exactly one
 * request.
 */
export function benchBacklog(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [count = defaultApps, devices = defaultDevices] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const single = await singleApp(bench);
    log(`writing ${devices} installations for each of ${count} apps`);
    const apps = await createApps(bench, count, devices);
    await bench.gateway.forget();
    const isOver = { value: false };
    const gauge = watchGauge(bench, 'push_oldest_open_seconds', oldestOpen, isOver);
    const beganAtMs = performance.now();
    await inParallel(apps, (app) => push(bench, app, {}));
    log('all accepted');
    const until = { pauseAfterMs: singlePauseMs, isOver: () => isOver.value };
    const beside = Promise.all([
      sample(bench, single, Number.POSITIVE_INFINITY, until),
      sample(bench, single, Number.POSITIVE_INFINITY, {
        ...until,
        body: { where: { objectId: firstDevice } },
      }),
    ]);
    await untilAllDone(bench, apps, log);
    isOver.value = true;
    const seconds = (performance.now() - beganAtMs) / 1000;
    const [ofApp, ofDevice] = await beside;
    await expectOnce(bench, count * devices, ofApp.length + ofDevice.length);
    return [
      { name: 'first call to all done', value: seconds, unit: 's' },
      { name: 'throughput', value: (count * devices) / seconds, unit: 'recipients/s' },
      ...percentiles(
        'answer to first send',
        await times(bench, apps, 'first_sent_at - created_at'),
      ),
      ...percentiles('answer to done', await times(bench, apps, 'finished_at - created_at')),
      ...percentiles(
        `beside them, ${ofApp.length} pushes to an app of one device, to first send`,
        firstSends(ofApp),
      ),
      ...percentiles(
        `beside them, ${ofDevice.length} pushes to one objectId, to first send`,
        firstSends(ofDevice),
      ),
      ...(await gauge),
      ...(await peaksOf(bench)),
    ];
  });
}

/**
 * Measures `args[0]` scheduled pushes (20,000) to one device each. Their times are distributed
 * evenly over `args[1]` seconds (60). Throws if a device did not get exactly one request.
 */
export function benchSchedule(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [count = defaultScheduled, seconds = defaultSeconds] = numbers;
  const each = Math.ceil(count / scheduleApps);
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const apps = await createApps(bench, scheduleApps, each);
    await pushAndWait(bench, await singleApp(bench), {});
    await bench.gateway.forget();
    const firstMs = systemClock.now() + aheadMs;
    const beganAtMs = performance.now();
    const all = Array.from({ length: each * apps.length }, (_, i) => i);
    await inParallel(all, (i) =>
      schedule(bench, apps, { i, each, atMs: firstMs + (i * seconds * 1000) / all.length }),
    );
    const callSeconds = (performance.now() - beganAtMs) / 1000;
    log(`${all.length} scheduled in ${callSeconds.toFixed(1)} s`);
    if (systemClock.now() > firstMs) throw new Error('the calls took longer than the time ahead');
    const isOver = { value: false };
    const gauge = watchGauge(bench, 'scheduled_lag_seconds', lag, isOver);
    await untilAllDone(bench, apps, log);
    isOver.value = true;
    await expectOnce(bench, all.length, 0);
    return [
      { name: 'calls', value: all.length / callSeconds, unit: 'scheduled/s' },
      ...percentiles(
        'push_time to first send',
        await times(bench, apps, 'first_sent_at - push_time'),
      ),
      ...percentiles('push_time to done', await times(bench, apps, 'finished_at - push_time')),
      ...(await gauge),
      ...(await peaksOf(bench)),
    ];
  });
}

/** Schedules a push to device `i`. Consecutive pushes belong to different apps. */
async function schedule(
  bench: Bench,
  apps: readonly BenchApp[],
  { i, each, atMs }: { i: number; each: number; atMs: number },
): Promise<void> {
  const appIndex = i % apps.length;
  const app = apps[appIndex];
  if (!app) return;
  const number = appIndex * each + Math.floor(i / apps.length) + 1;
  const objectId = number.toString(16).padStart(24, '0');
  await push(bench, app, { where: { objectId }, push_time: new Date(atMs).toISOString() });
}

async function createApps(bench: Bench, count: number, devices: number): Promise<BenchApp[]> {
  const apps: BenchApp[] = [];
  await inParallel(
    Array.from({ length: count }, (_, i) => i),
    async () => void apps.push(await createApp(bench)),
  );
  await writeAudiences(
    bench,
    apps.map(({ appId }) => appId),
    devices,
  );
  return apps;
}

async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const queue = items.values();
  const client = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: clients }, client));
}

const idsOf = (apps: readonly BenchApp[]) => apps.map(({ appId }) => appId);

async function untilAllDone(
  { db }: Bench,
  apps: readonly BenchApp[],
  log: (line: string) => void,
): Promise<void> {
  for (let looks = 1; ; looks += 1) {
    const { rows } = await db.query<{ open: number }>(
      `SELECT count(*) AS open FROM notification
        WHERE state IN ('scheduled', 'queued', 'sending') AND app_id = ANY($1)`,
      [idsOf(apps)],
    );
    if (rows[0]?.open === 0) return;
    if (looks % pollsPerLine === 0) log(`${rows[0]?.open} pushes are open`);
    await sleep(pollMs);
  }
}

/** Returns a time interval of each push in milliseconds. `interval` is the SQL expression. */
async function times(
  { db }: Bench,
  apps: readonly BenchApp[],
  interval: string,
): Promise<number[]> {
  const { rows } = await db.query<{ ms: number }>(
    `SELECT extract(epoch FROM ${interval})::float8 * 1000 AS ms FROM notification
      WHERE app_id = ANY($1)`,
    [idsOf(apps)],
  );
  return rows.map(({ ms }) => ms);
}

/**
 * Throws if one of `devices` did not get exactly one request. `others` is the number of single
 * pushes, which also go to the first device.
 */
async function expectOnce({ gateway }: Bench, devices: number, others: number): Promise<void> {
  const { total, distinct } = await gateway.observe();
  // The single pushes go to device 1, which is also the first device of the first app.
  if (total !== devices + others || distinct !== devices)
    throw new Error(
      `${devices} devices and ${others} single pushes: ${total} requests to ${distinct} devices`,
    );
}

const oldestOpen = `SELECT min(created_at) FROM notification WHERE state IN ('queued', 'sending')`;
const lag = 'SELECT min(push_time) FROM scheduled_push WHERE push_time <= clock_timestamp()';

/**
 * Scrapes a gauge of an age until `isOver`. Returns the highest value of the gauge, and its
 * greatest difference from the age in the table.
 */
async function watchGauge(
  { url, db }: Bench,
  name: string,
  since: string,
  isOver: { value: boolean },
): Promise<Figure[]> {
  const age = async () => {
    const { rows } = await db.query<{ age: number | null }>(
      `SELECT extract(epoch FROM clock_timestamp() - (${since}))::float8 AS age`,
    );
    return rows[0]?.age ?? 0;
  };
  const worst = { gauge: 0, error: 0, scrapeMs: 0 };
  while (!isOver.value) {
    const before = await age();
    const startedAtMs = performance.now();
    const text = await (await fetch(`${url}/metrics`)).text();
    const gauge = Number(new RegExp(`^carillon_${name} (\\S+)$`, 'm').exec(text)?.[1]);
    worst.scrapeMs = Math.max(worst.scrapeMs, performance.now() - startedAtMs);
    const after = await age();
    worst.gauge = Math.max(worst.gauge, gauge);
    worst.error = Math.max(
      worst.error,
      Math.min(before, after) - gauge,
      gauge - Math.max(before, after),
    );
    await sleep(pollMs);
  }
  return [
    { name: `carillon_${name}, highest`, value: worst.gauge, unit: 's' },
    { name: `carillon_${name}, farthest from the table`, value: worst.error, unit: 's' },
    { name: 'slowest scrape', value: worst.scrapeMs, unit: 'ms' },
  ];
}
