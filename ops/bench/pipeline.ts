import {
  type Bench,
  type BenchApp,
  cpuSeconds,
  createApp,
  pushAndWait,
  withBench,
  writeInstallations,
} from './bench-service.ts';
import type { Figure } from './figure.ts';

const defaultDevices = 100_000;

/**
 * One push to `args[0]` iOS devices (100,000 by default) by `args[1]` worker threads (one per core) through
 * api, dispatcher and sandbox gateway, all processes of their own on this machine with a durable database:
 * what a user of `npm start` gets.
 */
export function benchPipeline(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const devices = Number(args[0] ?? defaultDevices);
  const threads = args[1] === undefined ? undefined : Number(args[1]);
  if (!Number.isSafeInteger(devices) || devices < 1)
    throw new Error('the number of devices is a whole number above 0');
  return withBench(log, threads === undefined ? {} : { threads }, async (bench) => {
    const app = await createApp(bench);
    log(`writing ${devices} installations`);
    await writeInstallations(bench, app.appId, devices);
    log('a first push to one device warms up the processes');
    await pushAndWait(bench, app, { where: { badge: 1 } });
    log(`sending to ${devices} devices`);
    return measure(bench, app, devices);
  });
}

async function measure(bench: Bench, app: BenchApp, devices: number): Promise<Figure[]> {
  const before = { api: await cpuSeconds(bench.url), dispatcher: await cpuSeconds(bench.metricsUrl) };
  const { seconds, successes } = await pushAndWait(bench, app, {});
  const after = { api: await cpuSeconds(bench.url), dispatcher: await cpuSeconds(bench.metricsUrl) };
  if (successes !== devices) throw new Error(`${successes} of ${devices} devices were reached`);
  const per1000 = 1000 / devices;
  return [
    { name: 'devices', value: devices, unit: 'recipients' },
    { name: 'answer to done', value: seconds, unit: 's' },
    { name: 'throughput', value: devices / seconds, unit: 'recipients/s' },
    {
      name: 'dispatcher CPU',
      value: (after.dispatcher - before.dispatcher) * per1000,
      unit: 'CPU s per 1,000',
    },
    { name: 'api CPU', value: (after.api - before.api) * per1000, unit: 'CPU s per 1,000' },
  ];
}
