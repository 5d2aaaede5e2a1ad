import { systemClock } from '../../../shared/clock.ts';
import { inSpan, isTracing } from '../../../shared/process/tracing.ts';
import { type Figure, readArgs } from '../harness/arguments.ts';

const defaultCalls = 200_000;
const rounds = 9;
/** Recipients of a full batch. */
const batchSize = 1000;

type Work = () => Promise<unknown>;

/**
 * Measures what spans cost without an SDK: work inside two nested spans, as a batch has them and a
 * request that sends a push, against the same work without, in turns. Of each the fastest of nine
 * rounds of `args[0]` calls counts.
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
/** Both have the same number of awaited calls. */
const plain: Work = async () => (async () => work())();
const traced: Work = () =>
  inSpan(
    'batch',
    { kind: 'consumer', attributes: { 'carillon.app': 'app', 'carillon.batch': 1 } },
    () => inSpan('gateway', { kind: 'client', attributes: { 'carillon.connector': 'apns' } }, work),
  );

/** Returns the nanoseconds of one call. */
async function nanosecondsOf(call: Work, calls: number): Promise<number> {
  const startedAtMs = systemClock.monotonicMs();
  for (let i = 0; i < calls; i += 1) await call();
  return ((systemClock.monotonicMs() - startedAtMs) * 1e6) / calls;
}
