import { describe, expect, test } from 'vitest';
import { openFilesAllowed } from '../../ops/bench/channel/stage.ts';
import { benchConnectors } from '../../ops/bench/connectors/bench.ts';
import {
  Arrivals,
  numberOfToken,
  SeenNumbers,
  secondsOf,
} from '../../ops/bench/gateway/gateway.ts';
import { type Figure, percentiles, readArgs } from '../../ops/bench/harness/arguments.ts';
import { processUse } from '../../ops/bench/harness/process-use.ts';
import { sandboxConnectors } from '../../ops/sandbox/all/definitions.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';

describe('arrivals at the gateway of a benchmark', () => {
  test('distinguishes devices by the number in the token, even among millions', () => {
    const seen = new SeenNumbers();
    const numbers = [0, 1, 7, 8, 5_000_000, 16_000_000, 1, 5_000_000, 5_000_000];
    for (const number of numbers)
      seen.add(numberOfToken(`ab${number.toString(16).padStart(8, '0')}`));
    expect(seen).toMatchObject({ distinct: 6, repeats: 3 });
    seen.clear();
    seen.add(8);
    expect(seen).toMatchObject({ distinct: 1, repeats: 0 });
  });

  test('counts whole seconds that start at any hundredth', () => {
    const arrivals = new Arrivals();
    // 100 per second, except for a burst of 50 in the middle of the second second and a gap after
    // it.
    for (let ms = 0; ms < 4000; ms += 10) if (ms < 1500 || ms >= 2000) arrivals.add(1e12 + ms);
    for (let i = 0; i < 50; i++) arrivals.add(1e12 + 1490);
    expect(arrivals).toMatchObject({ count: 400, firstMs: 1e12, lastMs: 1e12 + 1490 });
    const seconds = secondsOf(arrivals.buckets);
    expect(seconds[0]).toBe(100);
    expect(Math.max(...seconds)).toBe(150);
    expect(Math.min(...seconds)).toBe(50);
    // Seconds end before the last hundredth, which may be incomplete.
    expect(seconds).toHaveLength(300);
  });

  test('has no whole second if the time is shorter', () => {
    const arrivals = new Arrivals();
    for (let ms = 0; ms < 990; ms += 10) arrivals.add(ms);
    expect(secondsOf(arrivals.buckets)).toEqual([]);
  });
});

describe('arguments of a benchmark', () => {
  test('are numbers and lists, each combination once', () => {
    expect(readArgs(['1000', '4'])).toEqual({ numbers: [1000, 4], setups: [{}] });
    expect(readArgs(['--threads', '1,2', '--dispatchers', '1,2', '500'])).toEqual({
      numbers: [500],
      setups: [
        { threads: 1, dispatchers: 1 },
        { threads: 2, dispatchers: 1 },
        { threads: 1, dispatchers: 2 },
        { threads: 2, dispatchers: 2 },
      ],
    });
  });

  test('may be followed by options', () => {
    expect(readArgs(['1000', '--push', 'sparse', '--repeat', '3', '--gateway', 'quick'])).toEqual({
      numbers: [1000],
      push: ['sparse'],
      repeat: 3,
      setups: [{ gateway: 'quick' }],
    });
    const url = 'postgres://postgres@localhost/bench';
    expect(readArgs(['--database', url]).setups).toEqual([{ database: { url } }]);
  });

  test.each([
    [['many']],
    [['0']],
    [['1.5']],
    [['--threads', '0']],
    [['--threads']],
    [['--speed', '9']],
  ])('refuse %j', (args) => {
    expect(() => readArgs(args)).toThrow();
  });
});

test('durations are reported as median, 95th percentile and maximum', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect(percentiles('x', hundred).map(({ value }) => value)).toEqual([50, 95, 100]);
  expect(percentiles('x', [7]).map(({ value }) => value)).toEqual([7, 7, 7]);
});

test('the limit of open files is known before thousands of devices connect', () => {
  expect(openFilesAllowed()).toBeGreaterThan(100);
});

test.runIf(process.platform === 'linux')('a process is measured from outside', async () => {
  const use = await processUse(process.pid);
  expect(use?.cpuSeconds).toBeGreaterThan(0);
  expect(use?.peakMegabytes).toBeGreaterThan(20);
  expect(use?.residentMegabytes).toBeGreaterThan(20);
  expect(await processUse(undefined)).toBeUndefined();
});

test.runIf(process.platform === 'linux')(
  'connectors are measured with their gateways',
  async () => {
    const some = ['apns', 'vendor_c', 'vendor_e'] as const;
    const figures = await benchConnectors(['1000'], () => undefined, some);
    expectNumbers(figures, some);
  },
);

test.runIf(process.platform === 'linux')('connectors are measured with fast gateways', async () => {
  const figures = await benchConnectors(['1000', '--gateway', 'quick'], () => undefined);
  expectNumbers(figures, sandboxConnectors);
});

function expectNumbers(figures: Figure[], some: readonly ConnectorId[]): void {
  expect(figures).toHaveLength(3 * some.length);
  for (const connector of some) {
    const found = figures.filter(({ name }) => name.startsWith(`${connector}: `));
    expect(found.map(({ unit }) => unit)).toEqual([
      'recipients/s',
      'CPU s per 1,000',
      'CPU s per 1,000',
    ]);
    expect(found[0]?.value).toBeGreaterThan(0);
    expect(found[1]?.value).toBeGreaterThan(0);
  }
}
