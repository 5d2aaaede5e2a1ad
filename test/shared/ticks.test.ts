import { expect, test } from 'vitest';
import { mapInTicks } from '../../shared/event-loop.ts';

/** Keeps the CPU busy. */
function work(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('a long list is mapped in order, and other calls run in between', async () => {
  let ticks = 0;
  const count = () => {
    ticks += 1;
    setImmediate(count).unref();
  };
  setImmediate(count).unref();
  const items = Array.from({ length: 20 }, (_, i) => i);
  const mapped = await mapInTicks(items, (item) => {
    work(6);
    return item * 2;
  });
  expect(mapped).toEqual(items.map((item) => item * 2));
  expect(ticks).toBeGreaterThanOrEqual(19);
});

test('a short list is mapped in one tick, and an error ends it', async () => {
  expect(await mapInTicks([], String)).toEqual([]);
  expect(await mapInTicks([1, 2], String)).toEqual(['1', '2']);
  await expect(
    mapInTicks([1], () => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
});
