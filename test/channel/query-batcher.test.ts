import { describe, expect, test } from 'vitest';
import { QueryBatcher } from '../../api/channel/query-batcher.ts';

/** Batches that are answered when the test says so. */
function manual(lanes: number, size: number) {
  const runs: { items: string[]; answer(): void; fail(): void }[] = [];
  const batches = new QueryBatcher<string, string>({
    concurrency: lanes,
    size,
    keyOf: (item) => item,
    run: (items) =>
      new Promise((resolve, reject) =>
        runs.push({
          items,
          answer: () => resolve(items.map((item) => item.toUpperCase())),
          fail: () => reject(new Error('gone')),
        }),
      ),
  });
  const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
  return { runs, batches, turn };
}

describe('batches', () => {
  test('take together what is asked in one breath, and what comes while all lanes are busy', async () => {
    const { runs, batches, turn } = manual(1, 3);
    const asked = ['a', 'b', 'c', 'd'].map((item) => batches.load(item));
    await turn();
    expect(runs.map(({ items }) => items)).toEqual([['a', 'b', 'c']]);
    asked.push(batches.load('e'));
    await turn();
    expect(runs).toHaveLength(1);
    runs[0]?.answer();
    await turn();
    expect(runs[1]?.items).toEqual(['d', 'e']);
    runs[1]?.answer();
    expect(await Promise.all(asked)).toEqual(['A', 'B', 'C', 'D', 'E']);
  });

  test('hold one of each key, the others first in the next', async () => {
    const { runs, batches, turn } = manual(1, 3);
    for (const item of ['a', 'a', 'b', 'a', 'c', 'd']) void batches.load(item);
    for (let i = 0; i < 3; i += 1) {
      await turn();
      runs[i]?.answer();
    }
    expect(runs.map(({ items }) => items)).toEqual([['a', 'b', 'c'], ['a', 'd'], ['a']]);
  });

  test('that fail reject their own questions only', async () => {
    const { runs, batches, turn } = manual(2, 1);
    const asked = [batches.load('a'), batches.load('b'), batches.load('c')];
    const settled = Promise.allSettled(asked);
    await turn();
    expect(runs.map(({ items }) => items)).toEqual([['a'], ['b']]);
    runs[0]?.fail();
    runs[1]?.answer();
    await turn();
    runs[2]?.answer();
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });
});
