import { describe, expect, test } from 'vitest';
import { Batcher, type BatcherOptions } from '../../shared/batcher.ts';
import { QueueFull } from '../../shared/semaphore.ts';

const nextTick = () => new Promise((resolve) => setImmediate(resolve));
const appOf = (item: string) => item.slice(0, 1);

/**
 * Returns a batcher whose batches end when the test says so, and a list of the batches that
 * started.
 */
function controlledBatcher(options: Partial<BatcherOptions<string, string>> = {}) {
  const started: string[][] = [];
  const ends: (() => void)[] = [];
  const batcher = new Batcher<string, string>({
    size: 4,
    concurrency: 1,
    run: async (items) => {
      started.push(items);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (items.includes('bad')) throw new Error('the batch failed');
      return items.map((item) => `${item} done`);
    },
    ...options,
  });
  const end = async () => {
    ends.shift()?.();
    await nextTick();
    await nextTick();
  };
  return { batcher, begun: started, end };
}

describe('a batcher', () => {
  test('runs the items of one tick together, later items in the next batch', async () => {
    const { batcher, begun, end } = controlledBatcher();
    const first = [batcher.run('1'), batcher.run('2')];
    await nextTick();
    const second = [batcher.run('3'), batcher.run('4')];
    await nextTick();
    expect(begun).toEqual([['1', '2']]);
    await end();
    expect(await Promise.all(first)).toEqual(['1 done', '2 done']);
    expect(begun[1]).toEqual(['3', '4']);
    await end();
    expect(await Promise.all(second)).toEqual(['3 done', '4 done']);
  });

  test('takes the oldest items that fit into a batch', async () => {
    const { batcher, begun, end } = controlledBatcher({ size: 3 });
    const all = ['a', 'b', 'c', 'd'].map((item) => batcher.run(item));
    await nextTick();
    expect(begun).toEqual([['a', 'b', 'c']]);
    all.push(batcher.run('e'));
    await end();
    expect(begun[1]).toEqual(['d', 'e']);
    await end();
    expect(await Promise.all(all)).toHaveLength(5);
  });

  test('runs several batches at a time, up to its limit', async () => {
    const { batcher, begun, end } = controlledBatcher({ concurrency: 2, size: 1 });
    const all = ['1', '2', '3'].map((item) => batcher.run(item));
    for (let i = 0; i < 3; i += 1) await nextTick();
    expect(begun).toEqual([['1'], ['2']]);
    for (let i = 0; i < 3; i += 1) await end();
    expect(await Promise.all(all)).toEqual(['1 done', '2 done', '3 done']);
  });

  test('takes the items of the keys in rotation', async () => {
    const { batcher, begun, end } = controlledBatcher({ fairBy: appOf });
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'c1'].map((item) => batcher.run(item));
    await nextTick();
    await end();
    await end();
    expect(begun).toEqual([
      ['a1', 'b1', 'c1', 'a2'],
      ['b2', 'a3', 'a4', 'a5'],
    ]);
    expect((await Promise.all(all))[4]).toBe('a5 done');
  });

  test('takes the items of a separated key in their own batches', async () => {
    const { batcher, begun, end } = controlledBatcher({
      fairBy: appOf,
      isApart: (key) => key === 'b',
    });
    const all = ['a1', 'b1', 'b2', 'a2', 'c1'].map((item) => batcher.run(item));
    await nextTick();
    await end();
    await end();
    expect(begun).toEqual([
      ['a1', 'c1', 'a2'],
      ['b1', 'b2'],
    ]);
    expect(await Promise.all(all)).toHaveLength(5);
  });

  test('has no two equal items in a batch; the others come first in the next batch', async () => {
    const { batcher, begun, end } = controlledBatcher({ size: 3, uniqueBy: (item) => item });
    const all = ['a', 'a', 'b', 'a', 'c', 'd'].map((item) => batcher.run(item));
    await nextTick();
    for (let i = 0; i < 3; i += 1) await end();
    expect(begun).toEqual([['a', 'b', 'c'], ['a', 'd'], ['a']]);
    expect(await Promise.all(all)).toHaveLength(6);
  });

  test('limits a batch by the weight of its items; a larger item has its own batch', async () => {
    const weightOf = (item: string) => Number(item);
    const { batcher, begun, end } = controlledBatcher({ weightOf });
    const all = ['2', '1', '3', '9', '1'].map((item) => batcher.run(item));
    await nextTick();
    for (let i = 0; i < 4; i += 1) await end();
    expect(begun).toEqual([['2', '1'], ['3'], ['9'], ['1']]);
    expect(await Promise.all(all)).toHaveLength(5);
  });
});

describe('a batcher with limits on waiting items', () => {
  test('refuses items over the limit of a key, and accepts those of other keys', async () => {
    const { batcher, end } = controlledBatcher({ fairBy: appOf, maxWaiting: 2 });
    const all = [batcher.run('a1'), batcher.run('a2')];
    await expect(batcher.run('a3')).rejects.toMatchObject({ name: 'QueueFull', isOfKey: true });
    all.push(batcher.run('b4'));
    await nextTick();
    await end();
    expect(await Promise.all(all)).toEqual(['a1 done', 'a2 done', 'b4 done']);
    const next = batcher.run('a5');
    await nextTick();
    await end();
    expect(await next).toBe('a5 done');
  });

  test('refuses an item whose batch does not start in time', async () => {
    const { batcher, begun, end } = controlledBatcher({ maxWaitMs: 300 });
    const first = batcher.run('1');
    await expect.poll(() => begun.length).toBe(1);
    await expect(batcher.run('2')).rejects.toBeInstanceOf(QueueFull);
    await end();
    expect(await first).toBe('1 done');
    expect(begun).toEqual([['1']]);
  });
});

describe('a batch that fails', () => {
  const runOne = async (item: string) => {
    if (item === 'bad') throw new Error('the item failed');
    return `${item} alone`;
  };

  test('rejects only its own items', async () => {
    const { batcher, end } = controlledBatcher({ size: 2 });
    const all = Promise.allSettled(['1', 'bad', '3'].map((item) => batcher.run(item)));
    await nextTick();
    await end();
    await end();
    expect((await all).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  });

  test('runs its items one by one: only the failing item is rejected', async () => {
    const { batcher, end } = controlledBatcher({ runOne });
    const all = Promise.allSettled(['1', 'bad', '3'].map((item) => batcher.run(item)));
    await nextTick();
    await end();
    const failure = expect.objectContaining({ message: 'the item failed' });
    expect(await all).toEqual([
      { status: 'fulfilled', value: '1 alone' },
      { status: 'rejected', reason: failure },
      { status: 'fulfilled', value: '3 alone' },
    ]);
  });

  test('rejects all items if the error concerns all of them', async () => {
    const { batcher, end } = controlledBatcher({ runOne, isShared: () => true });
    const all = Promise.allSettled(['1', 'bad'].map((item) => batcher.run(item)));
    await nextTick();
    await end();
    const reason = expect.objectContaining({ message: 'the batch failed' });
    expect(await all).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
  });
});

describe('a batcher of writes', () => {
  /** Returns a batcher whose first batch waits for `release` and fails `failures` times. */
  function blockedWrites({ failures = 0, maxWaiting = 100_000 } = {}) {
    const written: number[][] = [];
    const writing = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let failed = 0;
    const batcher = new Batcher<number>({
      size: 4000,
      concurrency: 1,
      delayMs: 1,
      maxWaiting,
      retry: { afterMs: 5, onError: () => undefined },
      run: async (items) => {
        writing.resolve();
        await released.promise;
        failed += 1;
        if (failed <= failures) throw new Error('the database is away');
        written.push(items);
        return [];
      },
    });
    return { batcher, written, writing: writing.promise, release: () => released.resolve() };
  }

  test('writes items together that arrive during a write', async () => {
    const { batcher, written, writing, release } = blockedWrites();
    batcher.add(1);
    await writing;
    for (const item of [2, 3, 4]) batcher.add(item);
    release();
    await batcher.drain();
    expect(written).toEqual([[1], [2, 3, 4]]);
  });

  test('repeats a failed write, whose items come first', async () => {
    const { batcher, written, writing, release } = blockedWrites({ failures: 2 });
    batcher.add(1);
    await writing;
    batcher.add(2);
    release();
    await expect.poll(() => written).toEqual([[1, 2]]);
    await batcher.drain();
  });

  test('tries once when it ends', async () => {
    const { batcher, written, writing, release } = blockedWrites({ failures: 1 });
    batcher.add(1);
    await writing;
    batcher.add(2);
    const drained = batcher.drain();
    release();
    await drained;
    expect(written).toEqual([]);
  });

  test('keeps a limited number of items during an outage, and drops more', async () => {
    const { batcher, written, writing, release } = blockedWrites({ maxWaiting: 10_000 });
    batcher.add(0);
    await writing;
    for (let item = 1; item <= 10_010; item += 1) batcher.add(item);
    release();
    await batcher.drain();
    expect(written.flat()).toHaveLength(10_001);
    expect(written.flat().at(-1)).toBe(10_000);
  });
});
