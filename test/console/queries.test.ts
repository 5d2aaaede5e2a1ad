import { expect, test } from 'vitest';
import { Queries, showState } from '../../ops/console/src/api/queries.ts';

interface Selected {
  queryKey: readonly unknown[];
}

// That the ended call starts again is tested in a browser (flows/send.test.ts).
test.each([
  ['a key', { queryKey: ['devices'] }],
  ['a predicate', { predicate: ({ queryKey }: Selected) => queryKey[0] === 'devices' }],
])('a change ends a first call that %s selects, and no other call', async (_name, filters) => {
  const queries = new Queries();
  const replies = Promise.withResolvers<string>();
  const call = (noun: string) =>
    queries.fetchQuery({ queryKey: [noun], queryFn: () => replies.promise });
  const devices = call('devices');
  const apps = call('apps');
  const ended = expect(devices).rejects.toThrow('CancelledError');
  await queries.invalidateQueries(filters);
  await ended;
  replies.resolve('reply');
  expect(await apps).toBe('reply');
  queries.clear();
});

test('the state of an event is not replaced by the older reply of a call', async () => {
  const queries = new Queries();
  const replies = Promise.withResolvers<string>();
  const queryKey = ['progress'];
  const call = queries.fetchQuery({ queryKey, queryFn: () => replies.promise });
  showState(queries, queryKey, 'paused');
  replies.resolve('sending');
  expect(await call).toBe('paused');
  expect(queries.getQueryData(queryKey)).toBe('paused');
  queries.clear();
});
