import { expect, test } from 'vitest';
import { PushCache } from '../../../dispatcher/delivery/push-cache.ts';
import type { Push } from '../../../shared/domain/pushes/record.ts';

const pushOf = (id: number): Push => {
  const pushOrder = {
    data: { alert: `push ${id}` },
    target: { kind: 'query', where: { a: 1 }, channels: null },
  };
  return { id, appId: 'app', state: 'sending', pushOrder } as unknown as Push;
};

test('the cache keeps a push with its content but without its target', () => {
  const cache = new PushCache();
  cache.add(pushOf(1));
  const { data, target } = cache.get(1)?.pushOrder ?? {};
  expect(data).toEqual({ alert: 'push 1' });
  expect(target).toEqual({ kind: 'query', where: {}, channels: null });
  expect(cache.get(2)).toBeUndefined();
});

test('the cache keeps the 32 pushes that were added or used last', () => {
  const cache = new PushCache();
  for (let id = 1; id <= 32; id += 1) cache.add(pushOf(id));
  expect(cache.get(1)?.id).toBe(1);
  cache.add(pushOf(33));
  cache.add(pushOf(33));
  const kept = Array.from({ length: 33 }, (_, i) => i + 1).filter((id) => cache.get(id));
  expect(kept).toEqual([1, ...Array.from({ length: 31 }, (_, i) => i + 3)]);
});
