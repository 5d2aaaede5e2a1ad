/**
 * Runs the APNs gateway of a benchmark in a separate process. It counts requests and their times,
 * but stores no request, so that it can accept millions. If possible, it runs with a higher
 * priority than the measured processes, because a real gateway runs on another machine.
 */
import { setPriority } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { z } from 'zod';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { createApnsCredentials, startApnsGateway } from '../../sandbox/apns/server.ts';
import { answerBenchmark } from '../harness/question-process.ts';
import { Arrivals, firstDevices, numberOfToken, type Observation, SeenNumbers } from './gateway.ts';

const instrumentPriority = -10;

try {
  setPriority(instrumentPriority);
} catch {
  // Only root may raise the priority. The observation contains the longest stall of this process.
}
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const seen = new SeenNumbers();
const arrivals = new Arrivals();
/** Times of the first requests to the devices with the lowest numbers, by device number. */
const firstSeenMs = new Map<number, number>();

function arrived(token: string): void {
  const atMs = performance.timeOrigin + performance.now();
  const number = numberOfToken(token);
  seen.add(number);
  arrivals.add(atMs);
  if (number <= firstDevices && !firstSeenMs.has(number)) firstSeenMs.set(number, atMs);
}

const env = currentEnvironment();
const credentials = createApnsCredentials();
const gateway = await startApnsGateway({
  keys: [credentials],
  checks: env.BENCH_GATEWAY === 'quick' ? 'none' : 'all',
  maxStreams: Number(env.BENCH_STREAMS ?? 1000),
  onRequest: ({ token }) => arrived(token),
});

function observe(): Observation {
  return {
    total: arrivals.count,
    distinct: seen.distinct,
    repeats: seen.repeats,
    firstMs: arrivals.firstMs,
    lastMs: arrivals.lastMs,
    buckets: [...arrivals.buckets],
    firstSeenMs: [...firstSeenMs],
    stallMs: delay.max / 1e6,
  };
}

function forget(): void {
  seen.clear();
  arrivals.clear();
  firstSeenMs.clear();
  delay.reset();
}

const { publicKey: _, ...clientCredentials } = credentials;
answerBenchmark({
  name: 'gateway',
  question: z.object({ forget: z.boolean() }),
  answer(order) {
    const observation = observe();
    if (order.forget) forget();
    return observation;
  },
  ready: { url: gateway.url, ca: gateway.ca, ...clientCredentials },
  close: () => gateway.close(),
});
