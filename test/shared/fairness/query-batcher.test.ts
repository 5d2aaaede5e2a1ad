import { describe, expect, test } from 'vitest';
import { QueryBatcher } from '../../../shared/fairness/query-batcher.ts';

/** Batcher whose batches complete when the test decides. */
function manual(concurrency: number, size: number) {
  const runs: { items: string[]; answer(): void; fail(): void }[] = [];
  const batcher = new QueryBatcher<string, string>({
    concurrency,
    size,
    keyOf: (item) => item,
    run: (items) =>
      new Promise((resolve, reject) =>
        runs.push({
          items,
          answer: () => resolve(items.map((item) => item.toUpperCase())),
          fail: () => reject(new Error('failed')),
        }),
      ),
  });
  const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
  return { runs, batches: batcher, turn };
}

describe('query batches', () => {
  test('combine queries of one tick, and those that arrive while all slots are busy', async () => {
    const { runs, batches: batcher, turn } = manual(1, 3);
    const results = ['a', 'b', 'c', 'd'].map((item) => batcher.load(item));
    await turn();
    expect(runs.map(({ items }) => items)).toEqual([['a', 'b', 'c']]);
    results.push(batcher.load('e'));
    await turn();
    expect(runs).toHaveLength(1);
    runs[0]?.answer();
    await turn();
    expect(runs[1]?.items).toEqual(['d', 'e']);
    runs[1]?.answer();
    expect(await Promise.all(results)).toEqual(['A', 'B', 'C', 'D', 'E']);
  });

  test('contain one query of each key; the others come first in the next', async () => {
    const { runs, batches: batcher, turn } = manual(1, 3);
    for (const item of ['a', 'a', 'b', 'a', 'c', 'd']) void batcher.load(item);
    for (let i = 0; i < 3; i += 1) {
      await turn();
      runs[i]?.answer();
    }
    expect(runs.map(({ items }) => items)).toEqual([['a', 'b', 'c'], ['a', 'd'], ['a']]);
  });

  test('that fail reject their own queries only', async () => {
    const { runs, batches: batcher, turn } = manual(2, 1);
    const results = [batcher.load('a'), batcher.load('b'), batcher.load('c')];
    const settled = Promise.allSettled(results);
    await turn();
    expect(runs.map(({ items }) => items)).toEqual([['a'], ['b']]);
    runs[0]?.fail();
    runs[1]?.answer();
    await turn();
    runs[2]?.answer();
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });

  test('that fail because of one query run again query by query', async () => {
    const runs: string[][] = [];
    const batcher = new QueryBatcher<string, string>({
      concurrency: 1,
      size: 10,
      isOfOneItem: (error) => String(error).includes('bad'),
      run: async (items) => {
        runs.push(items);
        if (items.includes('bad')) throw new Error('a bad one');
        return items;
      },
    });
    const results = await Promise.allSettled(['a', 'bad', 'a'].map((item) => batcher.load(item)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(runs).toEqual([['a', 'bad', 'a'], ['a'], ['bad'], ['a']]);
  });
});
