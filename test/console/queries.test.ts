import { QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { Queries } from '../../ops/console/src/api/queries.ts';

/** Shows a query whose calls end when the test ends them, each with the number of the call. */
function shown(queries: Queries, noun: string) {
  const calls: (() => void)[] = [];
  const observer = new QueryObserver(queries, {
    queryKey: [noun],
    queryFn: () =>
      new Promise<number>((resolve) => {
        const number = calls.length + 1;
        calls.push(() => resolve(number));
      }),
  });
  observer.subscribe(() => undefined);
  return { calls, data: () => observer.getCurrentResult().data };
}

test.each([
  ['a key', { queryKey: ['devices'] }],
  [
    'a predicate',
    { predicate: ({ queryKey }: { queryKey: readonly unknown[] }) => queryKey[0] === 'devices' },
  ],
])('a change restarts a first call that %s selects, and no other call', async (_name, filters) => {
  const queries = new Queries();
  const devices = shown(queries, 'devices');
  const apps = shown(queries, 'apps');
  void queries.invalidateQueries(filters);
  await expect.poll(() => devices.calls.length).toBe(2);
  for (const end of [...devices.calls, ...apps.calls]) end();
  await expect.poll(devices.data).toBe(2);
  await expect.poll(apps.data).toBe(1);
  queries.clear();
});
