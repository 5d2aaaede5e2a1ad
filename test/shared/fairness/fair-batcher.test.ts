import { describe, expect, test } from 'vitest';
import { FairBatcher, type FairBatcherOptions } from '../../../shared/fairness/fair-batcher.ts';
import { QueueFull } from '../../../shared/fairness/fair-queue.ts';

describe('a fair batcher', () => {
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

  /** Returns a batcher whose batches end when the test says so, and the batches that began. */
  function controlledBatcher(options: Partial<FairBatcherOptions<string, string>> = {}) {
    const begun: string[][] = [];
    const ends: (() => void)[] = [];
    const batcher = new FairBatcher<string, string>({
      size: 4,
      atOnce: 1,
      maxWaiting: 10,
      maxWaitMs: 60_000,
      runAll: async (items) => {
        begun.push(items);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (items.includes('bad')) throw new Error('the batch failed');
        return items.map((item) => `${item} done`);
      },
      runOne: async (item) => {
        if (item === 'bad') throw new Error('the item failed');
        return `${item} alone`;
      },
      ...options,
    });
    const end = async () => {
      ends.shift()?.();
      await nextTurn();
      await nextTurn();
    };
    return { batcher, begun, end };
  }

  test('runs the items of a turn together, and those that wait for it after it', async () => {
    const { batcher, begun, end } = controlledBatcher();
    const first = [batcher.run('a', '1'), batcher.run('a', '2')];
    await nextTurn();
    const second = [batcher.run('a', '3'), batcher.run('b', '4')];
    await nextTurn();
    expect(begun).toEqual([['1', '2']]);
    await end();
    expect(await Promise.all(first)).toEqual(['1 done', '2 done']);
    expect(begun[1]).toEqual(['3', '4']);
    await end();
    expect(await Promise.all(second)).toEqual(['3 done', '4 done']);
  });

  test('takes one item of each lane in turn, at most as many as fit into a batch', async () => {
    const { batcher, begun, end } = controlledBatcher();
    const all = [
      ...['a1', 'a2', 'a3', 'a4', 'a5'].map((item) => batcher.run('a', item)),
      ...['b1', 'b2'].map((item) => batcher.run('b', item)),
      batcher.run('c', 'c1'),
    ];
    await nextTurn();
    await end();
    await end();
    expect(begun).toEqual([
      ['a1', 'b1', 'c1', 'a2'],
      ['b2', 'a3', 'a4', 'a5'],
    ]);
    expect((await Promise.all(all))[4]).toBe('a5 done');
  });

  test('takes the items of a lane that stays apart by themselves', async () => {
    const { batcher, begun, end } = controlledBatcher({ isApart: (lane) => lane === 'b' });
    const all = ['a1', 'b1', 'b2', 'a2', 'c1'].map((item) => batcher.run(item.slice(0, 1), item));
    await nextTurn();
    await end();
    await end();
    expect(begun).toEqual([
      ['a1', 'c1', 'a2'],
      ['b1', 'b2'],
    ]);
    expect(await Promise.all(all)).toHaveLength(5);
  });

  test('runs several batches at a time, up to its limit', async () => {
    const { batcher, begun, end } = controlledBatcher({ atOnce: 2, size: 1 });
    const all = ['1', '2', '3'].map((item) => batcher.run('a', item));
    await nextTurn();
    await nextTurn();
    await nextTurn();
    expect(begun).toEqual([['1'], ['2']]);
    for (let i = 0; i < 3; i += 1) await end();
    expect(await Promise.all(all)).toEqual(['1 done', '2 done', '3 done']);
  });

  test('refuses items over the limit of a lane, and accepts those of others', async () => {
    const { batcher, end } = controlledBatcher({ maxWaiting: 2 });
    const all = [batcher.run('a', '1'), batcher.run('a', '2')];
    await expect(batcher.run('a', '3')).rejects.toMatchObject({ isOfLane: true });
    all.push(batcher.run('b', '4'));
    await nextTurn();
    await end();
    expect(await Promise.all(all)).toEqual(['1 done', '2 done', '4 done']);
  });

  test('refuses an item whose batch does not begin in time', async () => {
    const { batcher, begun, end } = controlledBatcher({ maxWaitMs: 300 });
    const first = batcher.run('a', '1');
    await expect.poll(() => begun.length).toBe(1);
    await expect(batcher.run('a', '2')).rejects.toBeInstanceOf(QueueFull);
    await end();
    expect(await first).toBe('1 done');
    expect(begun).toEqual([['1']]);
  });

  test('after a batch failed, runs its items alone: only the one that fails is rejected', async () => {
    const { batcher, end } = controlledBatcher();
    const all = Promise.allSettled(['1', 'bad', '3'].map((item) => batcher.run('a', item)));
    await nextTurn();
    await end();
    const failure = expect.objectContaining({ message: 'the item failed' });
    expect(await all).toEqual([
      { status: 'fulfilled', value: '1 alone' },
      { status: 'rejected', reason: failure },
      { status: 'fulfilled', value: '3 alone' },
    ]);
  });

  test('rejects all items of a batch when the error is theirs together', async () => {
    const { batcher, end } = controlledBatcher({ isShared: () => true });
    const all = Promise.allSettled(['1', 'bad'].map((item) => batcher.run('a', item)));
    await nextTurn();
    await end();
    const reason = expect.objectContaining({ message: 'the batch failed' });
    expect(await all).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
  });
});
