import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../../../shared/clock.ts';
import { type Figure, percentiles } from '../harness/arguments.ts';
import type { Bench } from '../harness/bench-service.ts';
import { type BenchApp, push, untilDone } from '../harness/client.ts';
import { allDatabaseCpuSeconds, processUse } from '../harness/process-use.ts';
import type { BenchDevices, DevicesSeen } from './devices.ts';

/** Running service with the devices of a benchmark. */
export interface Stage extends Bench {
  app: BenchApp;
  devices: BenchDevices;
  connections: number;
  log: (line: string) => void;
}

/** Poll interval of waits. */
const pollMs = 20;

export async function until(
  { devices }: Stage,
  isEnough: (seen: DevicesSeen) => boolean,
): Promise<DevicesSeen> {
  for (;;) {
    const seen = await devices.observe();
    if (isEnough(seen)) return seen;
    await sleep(pollMs);
  }
}

/** CPU time that each part used so far, in seconds. NaN if the value is unknown. */
interface Uses {
  api: number;
  dispatcher: number;
  database: number;
  devices: number;
}

async function uses({ pids, devices, db }: Stage): Promise<Uses> {
  const { api, dispatchers } = pids();
  const of = async (pid: number | undefined) => (await processUse(pid))?.cpuSeconds ?? Number.NaN;
  return {
    api: await of(api),
    dispatcher: await of(dispatchers[0]),
    database: await allDatabaseCpuSeconds(db),
    devices: await of(devices.pid),
  };
}

/** Returns the CPU time of each part between two samples, per 1,000 of `count`. */
function cpuFigures(name: string, [before, after]: [Uses, Uses], count: number): Figure[] {
  const parts = ['api', 'dispatcher', 'database', 'devices'] as const;
  const seconds = parts.map((part) => after[part] - before[part]);
  const figure = (part: string, value: number) => ({
    name: `${name}, ${part} CPU`,
    value: (value * 1000) / count,
    unit: 'CPU s per 1,000',
  });
  return [
    ...parts.map((part, i) =>
      figure(part === 'database' ? 'PostgreSQL' : part, seconds[i] ?? Number.NaN),
    ),
    figure(
      'total',
      seconds.reduce((sum, value) => sum + value, 0),
    ),
  ];
}

/** Number of concurrent pushes. */
const pushesTogether = 10;

/**
 * Measures single pushes to all devices, then concurrent pushes. The first single push is reported
 * separately, because the code of the processes is not compiled yet. The second is not counted. The
 * figures come from `rounds` further pushes.
 */
export async function measureMessages(stage: Stage, rounds: number): Promise<Figure[]> {
  const first = await measureSingle(stage, 1);
  await measureSingle(stage, 1);
  const { rates, figures } = await measureSingle(stage, rounds);
  const unit = 'messages/s';
  return [
    { name: 'messages, first push of the processes', value: Math.max(...first.rates), unit },
    {
      name: 'messages, slowest push',
      value: Math.min(...rates),
      unit,
      goal: '≥ 40,000',
      before: '26,600',
    },
    { name: 'messages, fastest push', value: Math.max(...rates), unit, before: '39,900' },
    ...figures,
    ...(await measureTogether(stage)),
  ];
}

/** Rate of each single push, and the figures of all single pushes together. */
interface Single {
  rates: number[];
  figures: Figure[];
}

async function measureSingle(stage: Stage, rounds: number): Promise<Single> {
  const { devices, connections, app, pids, log } = stage;
  const rates: number[] = [];
  const firsts: number[] = [];
  const settled: number[] = [];
  const before = await uses(stage);
  for (let i = 0; i < rounds; i++) {
    log(`a push to ${connections} devices`);
    await devices.forget();
    const objectId = await push(stage, app, {});
    const acceptedAtMs = systemClock.now();
    const seen = await untilReceived(stage, connections);
    await untilDone(stage, app, objectId);
    await untilAcked(stage, [objectId]);
    settled.push(systemClock.now() - acceptedAtMs);
    firsts.push(seen.firstMs - acceptedAtMs);
    rates.push((connections * 1000) / (seen.lastMs - seen.firstMs));
  }
  const after = await uses(stage);
  const api = await processUse(pids().api);
  const figures = [
    ...percentiles('answer to first message', firsts),
    ...percentiles('answer to last acknowledgement stored', settled),
    ...cpuFigures('messages', [before, after], connections * rounds),
    { name: 'api, peak resident memory', value: api?.peakMegabytes ?? Number.NaN, unit: 'MB' },
  ];
  return { rates, figures };
}

/** Measures the time from the first call until the last acknowledgement is stored. */
async function measureTogether(stage: Stage): Promise<Figure[]> {
  const { devices, connections, app, log } = stage;
  const messages = connections * pushesTogether;
  log(`${pushesTogether} pushes to ${connections} devices at the same time`);
  await devices.forget();
  const before = await uses(stage);
  const calledAtMs = performance.now();
  const objectIds = await Promise.all(
    Array.from({ length: pushesTogether }, () => push(stage, app, {})),
  );
  await untilReceived(stage, messages);
  await untilAcked(stage, objectIds);
  const seconds = (performance.now() - calledAtMs) / 1000;
  const after = await uses(stage);
  const name = `${pushesTogether} pushes together`;
  return [
    { name: `${name}, from the calls to all acknowledgements stored`, value: seconds, unit: 's' },
    { name: `${name}, acknowledged`, value: messages / seconds, unit: 'messages/s' },
    ...cpuFigures(name, [before, after], messages),
  ];
}

async function untilReceived(stage: Stage, messages: number) {
  const seen = await until(stage, ({ received }) => received >= messages);
  if (seen.received !== messages || seen.repeated !== 0)
    throw new Error(`${messages} were sent: ${seen.received} arrived, ${seen.repeated} twice`);
  return seen;
}

async function untilAcked({ db, app, connections }: Stage, objectIds: string[]): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ acked: number }>(
      'SELECT sum(acked)::bigint AS acked FROM notification WHERE app_id = $1 AND object_id = ANY ($2)',
      [app.appId, objectIds],
    );
    if (rows[0]?.acked === connections * objectIds.length) return;
    await sleep(pollMs);
  }
}

const report = z.object({
  userLimits: z.object({ open_files: z.object({ hard: z.union([z.number(), z.string()]) }) }),
});

/**
 * Returns the maximum number of open files of this process. Node raises its soft limit to the hard
 * limit when it starts.
 */
export function openFilesAllowed(): number {
  const parsed = report.safeParse(process.report?.getReport());
  const hard = parsed.data?.userLimits.open_files.hard;
  return typeof hard === 'number' ? hard : Number.POSITIVE_INFINITY;
}
