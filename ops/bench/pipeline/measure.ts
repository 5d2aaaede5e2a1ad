import { hourMs, systemClock } from '../../../shared/clock.ts';
import { inSpan, isTracing } from '../../../shared/process/tracing.ts';
import { type Figure, type PushKind, readArgs } from '../harness/arguments.ts';
import { type Bench, benchName } from '../harness/bench-service.ts';
import { type BenchApp, push, readRecord, untilEnded, untilPlanned } from '../harness/client.ts';
import { databaseCpuSeconds, processUse, serverNames, watchPush } from '../harness/process-use.ts';
import { openOutcomeReceiver } from './webhook.ts';

/**
 * Push to measure: its number of devices, its kind, and the number of console tabs that watch it.
 */
export interface PushToMeasure {
  devices: number;
  kind: PushKind;
  watchers: number;
}

const utcMinute = (atMs: number): string =>
  new Date(atMs).toISOString().slice(0, '2026-12-01T09:00'.length);

/** Returns the UTC time of day (`HH:MM`) `hours` hours from now. */
const hourAfter = (hours: number): string =>
  utcMinute(systemClock.now() + hours * hourMs).slice(-5);

/** Returns the body of a push of a kind. */
const bodyOf = (kind: PushKind): object =>
  kind === 'local'
    ? { push_time: utcMinute(systemClock.now()), push_time_local: true }
    : kind === 'quiet'
      ? { quiet_hours: `${hourAfter(10)}-${hourAfter(12)}` }
      : bodies[kind];

const bodies = {
  plain: {},
  webhook: {},
  'webhook-down': {},
  capped: { device_cap: 1000 },
  increment: { data: { alert: 'Benchmark', badge: 'Increment' } },
  sparse: { channels: ['sparse'] },
  languages: { languages: { en: { alert: 'Benchmark' }, 'zh-Hans': { alert: '基准测试' } } },
  variables: {
    data: { alert: 'Hello {{name}}, level {{level}}' },
    variables: {
      name: { field: 'name', default: 'friend' },
      level: { field: 'level', default: '1' },
    },
  },
} satisfies Record<Exclude<PushKind, 'local' | 'quiet'>, object>;

/** CPU time by role, in seconds. NaN if the system has no /proc. */
interface CpuSeconds {
  dispatchers: number;
  api: number;
  /** By server: first the server that clients connect to, then its workers. */
  database: number[];
  gateway: number;
}

/** Durations and costs of one push, or their mean over several pushes. */
export interface PushCourse {
  devices: number;
  /** From the reply until the push is done. */
  seconds: number;
  /** From the reply until all recipients are in batches. */
  plannedSeconds: number;
  /** From the reply to the first request at the gateway. Negative if the request came first. */
  firstRequestMs: number;
  /** From the first request to the last request. */
  sendingSeconds: number;
  /** CPU time per push. */
  cpu: CpuSeconds;
  /** Number of events of each watcher. */
  events: number;
}

/** Durations of one push, and its id. */
type TimedPush = Omit<PushCourse, 'cpu' | 'devices'> & { objectId: string };

const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);

/**
 * Returns the CPU time of dispatchers, api and PostgreSQL, in milliseconds per 1,000 recipients.
 */
export const serviceCpuMs = ({
  devices,
  cpu: { dispatchers, api, database },
}: PushCourse): number => ((dispatchers + api + sum(database)) * 1e6) / devices;

/**
 * Sends `count` pushes one after the other. Returns the mean of their measurements. Throws if a
 * device did not get exactly one request of each push.
 */
export async function measurePushes(
  bench: Bench,
  app: BenchApp,
  toMeasure: PushToMeasure,
  count = 1,
): Promise<PushCourse> {
  const isSent = toMeasure.kind === 'webhook';
  const isDown = toMeasure.kind === 'webhook-down';
  const receiver = isSent || isDown ? await openOutcomeReceiver(bench, app, { isDown }) : undefined;
  const before = await cpuSeconds(bench);
  const courses: TimedPush[] = [];
  for (let i = 0; i < count; i += 1) courses.push(await timePush(bench, app, toMeasure));
  if (isSent) await receiver?.untilReceived(count * toMeasure.devices);
  const after = await cpuSeconds(bench);
  await receiver?.close();
  for (const { objectId } of courses) await checkRecord(bench, app, toMeasure, objectId);
  const per = (afterwards: number, earlier: number | undefined) =>
    (afterwards - (earlier ?? Number.NaN)) / count;
  const cpu = {
    dispatchers: per(after.dispatchers, before.dispatchers),
    api: per(after.api, before.api),
    database: after.database.map((seconds, i) => per(seconds, before.database[i])),
    gateway: per(after.gateway, before.gateway),
  };
  return meanOf(courses.map((course) => ({ ...course, devices: toMeasure.devices, cpu })));
}

/**
 * Returns the mean of measurements of pushes with the same number of devices. Needs at least one
 * measurement.
 */
export function meanOf(courses: readonly PushCourse[]): PushCourse {
  const mean = (of: (course: PushCourse) => number) => sum(courses.map(of)) / courses.length;
  return {
    devices: mean(({ devices }) => devices),
    seconds: mean(({ seconds }) => seconds),
    plannedSeconds: mean(({ plannedSeconds }) => plannedSeconds),
    firstRequestMs: mean(({ firstRequestMs }) => firstRequestMs),
    sendingSeconds: mean(({ sendingSeconds }) => sendingSeconds),
    events: mean(({ events }) => events),
    cpu: {
      dispatchers: mean(({ cpu }) => cpu.dispatchers),
      api: mean(({ cpu }) => cpu.api),
      database: (courses[0]?.cpu.database ?? []).map((_, i) =>
        mean(({ cpu }) => cpu.database[i] ?? Number.NaN),
      ),
      gateway: mean(({ cpu }) => cpu.gateway),
    },
  };
}

async function timePush(
  bench: Bench,
  app: BenchApp,
  { devices, kind, watchers }: PushToMeasure,
): Promise<TimedPush> {
  await bench.gateway.forget();
  const objectId = await push(bench, app, bodyOf(kind));
  const answeredAtMs = systemClock.now();
  const startedAtMs = performance.now();
  const secondsSince = () => (performance.now() - startedAtMs) / 1000;
  const watching = await watchPush(bench, app, { objectId, count: watchers });
  await untilPlanned(bench, app, objectId);
  const plannedSeconds = secondsSince();
  await untilEnded(bench, app, objectId);
  const seconds = secondsSince();
  const { distinct, repeats, buckets, firstMs } = await bench.gateway.observe();
  if (distinct !== devices || repeats !== 0)
    throw new Error(`${devices} devices: ${distinct} reached, ${repeats} twice`);
  const sendingSeconds = (buckets.length - 1) / 100;
  const firstRequestMs = firstMs - answeredAtMs;
  const events = await watching.stop();
  return { objectId, seconds, plannedSeconds, firstRequestMs, sendingSeconds, events };
}

/** Throws if the record of a push does not count all devices as successes. */
async function checkRecord(
  bench: Bench,
  app: BenchApp,
  { devices }: PushToMeasure,
  objectId: string,
): Promise<void> {
  const { successes } = await readRecord(bench, app, objectId);
  if (successes !== devices) throw new Error(`${devices} devices: ${successes} sent`);
}

/**
 * Reads the CPU time of the service. The benchmark's own connections to the database, which poll
 * the state of a push, are not counted.
 */
async function cpuSeconds({ pids, gateway, db }: Bench): Promise<CpuSeconds> {
  const { api, dispatchers } = pids();
  const of = async (pid: number | undefined) => (await processUse(pid))?.cpuSeconds ?? Number.NaN;
  const ofDispatchers = await Promise.all(dispatchers.map(of));
  return {
    dispatchers: ofDispatchers.reduce((sum, seconds) => sum + seconds, 0),
    api: await of(api),
    database: await databaseCpuSeconds(db, benchName),
    gateway: await of(gateway.pid),
  };
}

/** Returns the figures of a push, or of the mean of several pushes. */
export function figuresOf(
  course: PushCourse,
  { watchers }: Pick<PushToMeasure, 'watchers'>,
): Figure[] {
  const { devices, cpu } = course;
  const perThousand = (used: number) => ({
    value: (used * 1000) / devices,
    unit: 'CPU s per 1,000',
  });
  return [
    { name: 'devices', value: devices, unit: 'recipients' },
    { name: 'answer to done', value: course.seconds, unit: 's' },
    { name: 'answer to planned', value: course.plannedSeconds, unit: 's' },
    { name: 'answer to first request', value: course.firstRequestMs, unit: 'ms' },
    { name: 'throughput', value: devices / course.seconds, unit: 'recipients/s' },
    { name: 'sending alone', value: course.sendingSeconds, unit: 's' },
    {
      name: 'service CPU (dispatcher, api, PostgreSQL)',
      ...perThousand(cpu.dispatchers + cpu.api + sum(cpu.database)),
    },
    { name: 'dispatcher CPU', ...perThousand(cpu.dispatchers) },
    { name: 'api CPU', ...perThousand(cpu.api) },
    { name: 'PostgreSQL CPU', ...perThousand(sum(cpu.database)) },
    ...serverNames(cpu.database).map((server, i) => ({
      name: `PostgreSQL CPU of ${server}`,
      ...perThousand(cpu.database[i] ?? Number.NaN),
    })),
    { name: 'gateway CPU', ...perThousand(cpu.gateway) },
    ...(watchers === 0
      ? []
      : [{ name: `events to each of ${watchers} watchers`, value: course.events, unit: 'events' }]),
  ];
}

/** Returns the peak resident memory of each dispatcher. */
export async function peaksOf({ pids }: Bench): Promise<Figure[]> {
  const uses = await Promise.all(pids().dispatchers.map(processUse));
  return uses.map((use, i) => ({
    name: `dispatcher ${i + 1}, peak resident memory`,
    value: use?.peakMegabytes ?? Number.NaN,
    unit: 'MB',
  }));
}

const defaultCalls = 200_000;
const rounds = 9;
/** Number of recipients of a full batch. */
const batchSize = 1000;

type Work = () => Promise<unknown>;

/**
 * Measures the cost of spans without an SDK. Compares work inside two nested spans, as in a batch
 * with its gateway request, with the same work without spans. The two variants alternate. The
 * result of each variant is the fastest of nine rounds of `args[0]` calls.
 */
export async function benchTracing(args: string[]): Promise<Figure[]> {
  if (isTracing()) throw new Error('an SDK is registered: this measures the cost without one');
  const [calls = defaultCalls] = readArgs(args).numbers;
  const fastest = { traced: Number.POSITIVE_INFINITY, plain: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round += 1) {
    fastest.traced = Math.min(fastest.traced, await nanosecondsOf(traced, calls));
    fastest.plain = Math.min(fastest.plain, await nanosecondsOf(plain, calls));
  }
  const cost = fastest.traced - fastest.plain;
  return [
    { name: 'two spans of a batch or a request, without an SDK', value: cost, unit: 'ns' },
    { name: `per recipient of a batch of ${batchSize}`, value: cost / batchSize, unit: 'ns' },
    { name: 'the same work without them', value: fastest.plain, unit: 'ns' },
  ];
}

const work = async () => undefined;
/** Has as many awaited calls as `traced`. */
const plain: Work = async () => (async () => work())();
const traced: Work = () =>
  inSpan(
    'batch',
    { kind: 'consumer', attributes: { 'carillon.app': 'app', 'carillon.batch': 1 } },
    () => inSpan('gateway', { kind: 'client', attributes: { 'carillon.connector': 'apns' } }, work),
  );

/** Returns the duration of one call in nanoseconds. */
async function nanosecondsOf(call: Work, calls: number): Promise<number> {
  const startedAtMs = systemClock.monotonicMs();
  for (let i = 0; i < calls; i += 1) await call();
  return ((systemClock.monotonicMs() - startedAtMs) * 1e6) / calls;
}
