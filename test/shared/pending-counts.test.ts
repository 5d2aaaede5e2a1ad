import { expect, test } from 'vitest';
import { PendingCounts } from '../../shared/pending-counts.ts';

test('numbers are added up by key, and written once', async () => {
  const written: unknown[] = [];
  const counts = new PendingCounts(async (key: { id: string }, numbers) => {
    written.push([key.id, ...numbers]);
  });
  counts.add({ id: 'a' }, 2, 1500);
  counts.add({ id: 'b' }, 1, 10);
  counts.add({ id: 'a' }, 1, 500);
  await counts.flush();
  await counts.flush();
  expect(written).toEqual([
    ['a', 3, 2000],
    ['b', 1, 10],
  ]);
});

test('numbers that could not be written are kept', async () => {
  let isAway = true;
  const written: unknown[] = [];
  const counts = new PendingCounts(async ({ id }: { id: string }, [n]) => {
    if (isAway && id === 'b') throw new Error('away');
    written.push([id, n]);
  });
  for (const id of ['a', 'b', 'c']) counts.add({ id }, 1);
  await expect(counts.flush()).rejects.toThrow('away');
  counts.add({ id: 'b' }, 2);
  isAway = false;
  await counts.flush();
  expect(written).toEqual([
    ['a', 1],
    ['b', 3],
    ['c', 1],
  ]);
});
