import { expect, test, vi } from 'vitest';
import { saveAll } from '../../../api/services/batch/save.ts';
import type { Json } from '../../../shared/domain/json.ts';

test('a reply is parsed once, however many members point to its object', async () => {
  const save = (body: Json): Json => ({ method: 'POST', path: '/1.1/installations', body });
  const __children = Array.from({ length: 1000 }, (_, i) => ({
    cid: 'child',
    className: 'C',
    key: `k${i}`,
  }));
  const requests = [save({ __internalId: 'child' }), save({ __internalId: 'parent', __children })];
  const bodies: Json[] = [];
  const parse = vi.spyOn(JSON, 'parse');
  await saveAll(
    requests,
    async ({ body = null }) => {
      bodies.push(body);
      return { ok: true, text: '{"objectId":"x"}' };
    },
    () => ({}),
  );
  expect(parse).toHaveBeenCalledOnce();
  expect(bodies[1]).toMatchObject({ k999: { __type: 'Pointer', className: 'C', objectId: 'x' } });
});
