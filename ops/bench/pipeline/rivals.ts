import { z } from 'zod';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { Supervised } from '../../local/supervised.ts';
import { readArgs, type Setup } from '../harness/arguments.ts';
import { type Bench, withBench } from '../harness/bench-service.ts';
import { createApp } from '../harness/client.ts';
import type { Figure } from '../harness/figure.ts';
import { processUse } from '../harness/process-use.ts';
import { writeInstallations } from '../harness/seed.ts';
import { measurePushes, serviceCpuMs } from './measure.ts';

const defaultSizes = [20_000, 100_000];
const warmPushes = 4;
/** Requests of a client that ends before the measurement, so that the gateway's code is compiled. */
const gatewayRequests = 50_000;
const stopMs = 3000;

/** Result of a loop. */
interface Loop {
  seconds: number;
  /** CPU time of its process per 1,000 recipients. */
  cpuMs: number;
}

const loopEnd = z.object({ seconds: z.number() });

/**
 * Compares pushes to `args` devices (20,000 and 100,000) with a bare loop over `node:http2` (bare-loop-process.ts), which is
 * what the best public APNs client for Node does for each token and has its tokens in memory. Both send to the same quick
 * gateway and take turns. Each size has fresh processes; prints the first push and the mean of four more.
 */
export async function benchRivals(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const figures: Figure[] = [];
  for (const devices of numbers.length === 0 ? defaultSizes : numbers)
    figures.push(...(await compare(devices, { ...setups[0], gateway: 'quick' }, log)));
  return figures;
}

function compare(devices: number, setup: Setup, log: (line: string) => void): Promise<Figure[]> {
  return withBench(log, setup, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, devices);
    log('warming up the gateway');
    await withLoop(bench, log, (run) => run(gatewayRequests));
    return withLoop(bench, log, async (run) => {
      const figures: Figure[] = [];
      for (const [name, count] of [
        [`${devices}, first push`, 1],
        [`${devices}, mean of the next ${warmPushes}`, warmPushes],
      ] as const) {
        log(name);
        const ours = await measurePushes(bench, app, { devices, kind: 'plain', watchers: 0 }, count);
        const loops: Loop[] = [];
        for (let i = 0; i < count; i += 1) loops.push(await run(devices));
        const loop = {
          seconds: mean(loops.map((one) => one.seconds)),
          cpuMs: mean(loops.map((one) => one.cpuMs)),
        };
        figures.push(
          ...figuresOf(name, { seconds: ours.seconds, cpuMs: serviceCpuMs(ours) }, { loop, devices }),
        );
      }
      return figures;
    });
  });
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function figuresOf(name: string, ours: Loop, { loop, devices }: { loop: Loop; devices: number }): Figure[] {
  return [
    { name: `${name}: this service`, value: devices / ours.seconds, unit: 'recipients/s' },
    { name: `${name}: bare loop`, value: devices / loop.seconds, unit: 'recipients/s' },
    { name: `${name}: ratio`, value: loop.seconds / ours.seconds, unit: 'times' },
    { name: `${name}: this service, CPU per 1,000`, value: ours.cpuMs, unit: 'ms' },
    { name: `${name}: bare loop, CPU per 1,000`, value: loop.cpuMs, unit: 'ms' },
  ];
}

/** Starts a fresh process of the bare loop, and ends it after `work`. */
async function withLoop<T>(
  { gateway }: Bench,
  log: (line: string) => void,
  work: (run: (devices: number) => Promise<Loop>) => Promise<T>,
): Promise<T> {
  let onEnd: ((message: unknown) => void) | undefined;
  const loop: Supervised = new Supervised({
    name: 'bare loop',
    file: 'ops/bench/pipeline/bare-loop-process.ts',
    env: currentEnvironment(),
    log,
    onMessage: (message) => onEnd?.(message),
  });
  await loop.start();
  try {
    return await work(async (devices) => {
      await gateway.forget();
      const before = await processUse(loop.pid);
      const ended = new Promise<unknown>((resolve) => {
        onEnd = resolve;
      });
      const { url, ca, topics } = gateway.apns;
      loop.send({ url, ca, topic: topics[0], devices });
      const { seconds } = loopEnd.parse(await ended);
      const after = await processUse(loop.pid);
      const { distinct } = await gateway.observe();
      if (distinct !== devices) throw new Error(`the bare loop reached ${distinct} of ${devices} devices`);
      const used = (after?.cpuSeconds ?? Number.NaN) - (before?.cpuSeconds ?? Number.NaN);
      return { seconds, cpuMs: (used * 1e6) / devices };
    });
  } finally {
    await loop.stop(stopMs);
  }
}
