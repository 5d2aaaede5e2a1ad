import { expect, test } from 'vitest';
import { TtlCache } from '../../shared/ttl-cache.ts';

test('an entry expires after its age, by the clock of the cache', () => {
  let nowMs = 0;
  const cache = new TtlCache<string, number>({
    clock: { monotonicMs: () => nowMs },
    maxAgeMs: 500,
  });
  cache.set('a', 1);
  nowMs = 499;
  expect(cache.get('a')).toBe(1);
  nowMs = 500;
  expect(cache.get('a')).toBeUndefined();
});

test('a new entry evicts the oldest entry', () => {
  const cache = new TtlCache<string, number>({ maxEntries: 2 });
  cache.set('a', 1);
  cache.set('b', 2);
  cache.set('a', 3);
  cache.set('c', 4);
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual([3, undefined, 4]);
  expect(cache.size).toBe(2);
});

test('concurrent callers share a load; a failed load is repeated', async () => {
  let loads = 0;
  const cache = new TtlCache<string, Promise<number>>({});
  const load = async () => {
    loads += 1;
    if (loads === 1) throw new Error('away');
    return loads;
  };
  const first = [cache.getOrMake('a', load), cache.getOrMake('a', load)];
  const settled = await Promise.allSettled(first);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(loads).toBe(1);
  expect(await cache.getOrMake('a', load)).toBe(2);
  expect(await cache.getOrMake('a', load)).toBe(2);
});

test('entries are dropped by key, or by a condition', () => {
  const cache = new TtlCache<string, number>({});
  for (const key of ['a 1', 'a 2', 'b 1']) cache.set(key, 1);
  cache.deleteWhere((key) => key.startsWith('a '));
  expect(cache.size).toBe(1);
  cache.delete('b 1');
  expect(cache.get('b 1')).toBeUndefined();
});
