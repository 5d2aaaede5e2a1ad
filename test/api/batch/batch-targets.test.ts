import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { BatchService } from '../../../api/services/batch/batches.ts';
import { systemClock } from '../../../shared/clock.ts';

/** Returns the bytes in use after a garbage collection. */
function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('a batch forgets the objects of a call that has ended', async () => {
  const calls = 200;
  const ids = (call: number) => Array.from({ length: 2000 }, (_, i) => call * 2000 + i);
  const requests = Array.from({ length: calls }, (_, call) => ({
    method: 'DELETE',
    path: `/1.1/installations/${ids(call).join()}`,
  }));
  const batches = new BatchService({ clock: systemClock });
  const used: number[] = [];
  await batches.run({
    app: { appId: 'an app' },
    isMaster: false,
    body: { requests },
    language: 'en',
    runInnerCall: async ({ path }) => {
      if ([requests[4]?.path, requests[calls - 1]?.path].includes(path)) used.push(usedBytes());
      return { ok: true, text: '{}' };
    },
  });
  const [first = 0, last = Number.POSITIVE_INFINITY] = used;
  expect(used).toHaveLength(2);
  expect(last - first).toBeLessThan(8 * 1024 * 1024);
});
