import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from '../harness/arguments.ts';
import type { Bench } from '../harness/bench-service.ts';
import type { BenchApp } from '../harness/client.ts';
import { allDatabaseCpuSeconds, processUse } from '../harness/process-use.ts';
import type { BenchDevices, DevicesSeen } from './devices.ts';

/** Running service with the devices of a benchmark. */
export interface Stage extends Bench {
  app: BenchApp;
  devices: BenchDevices;
  connections: number;
  log: (line: string) => void;
}

/** Interval at which waits look again. */
export const lookMs = 20;

export async function until(
  { devices }: Stage,
  isEnough: (seen: DevicesSeen) => boolean,
): Promise<DevicesSeen> {
  for (;;) {
    const seen = await devices.observe();
    if (isEnough(seen)) return seen;
    await sleep(lookMs);
  }
}

/** Processor time in seconds that each part used so far; NaN where it is unknown. */
export interface Uses {
  api: number;
  dispatcher: number;
  database: number;
  devices: number;
}

export async function uses({ pids, devices, db }: Stage): Promise<Uses> {
  const { api, dispatchers } = pids();
  const of = async (pid: number | undefined) => (await processUse(pid))?.cpuSeconds ?? Number.NaN;
  return {
    api: await of(api),
    dispatcher: await of(dispatchers[0]),
    database: await allDatabaseCpuSeconds(db),
    devices: await of(devices.pid),
  };
}

/** Returns the processor time of each part between two readings, per 1,000 of `count`. */
export function cpuFigures(name: string, [before, after]: [Uses, Uses], count: number): Figure[] {
  const parts = ['api', 'dispatcher', 'database', 'devices'] as const;
  const seconds = parts.map((part) => after[part] - before[part]);
  const figure = (part: string, value: number) => ({
    name: `${name}, ${part} CPU`,
    value: (value * 1000) / count,
    unit: 'CPU s per 1,000',
  });
  return [
    ...parts.map((part, i) => figure(part === 'database' ? 'PostgreSQL' : part, seconds[i] ?? Number.NaN)),
    figure(
      'total',
      seconds.reduce((sum, value) => sum + value, 0),
    ),
  ];
}
