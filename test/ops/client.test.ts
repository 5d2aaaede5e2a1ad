import { describe, expect, test } from 'vitest';
import {
  type AdminRequest,
  asUnchecked,
  createCall,
  isRefused,
  JsonText,
  requestOf,
  WrongPathPart,
} from '../../ops/client/client.ts';

/**
 * Returns a client that answers every request with `reply`, and a list of the requests that it
 * sent.
 */
function clientOf(reply: unknown) {
  const sent: AdminRequest[] = [];
  const call = createCall(async (request) => {
    sent.push(request);
    return reply;
  });
  return { call, sent };
}

describe('the client of the admin API', () => {
  test('sends the method, the path and the body of an operation', async () => {
    const { call, sent } = clientOf({ id: 'b/1' });
    expect(await call('openBreaker', { path: { id: 'apns app:_default' } })).toEqual({ id: 'b/1' });
    await call('updateApp', { path: { appId: 'a' }, body: { name: 'Store' } });
    await call('listBreakers');
    const none = { body: undefined, headers: {}, signal: undefined };
    expect(sent).toEqual([
      { ...none, method: 'POST', path: '/breakers/apns%20app%3A_default/open' },
      { ...none, method: 'PATCH', path: '/apps/a', body: '{"name":"Store"}' },
      { ...none, method: 'GET', path: '/breakers' },
    ]);
  });

  test('leaves members without a value out of the query', async () => {
    const { call, sent } = clientOf({});
    await call('listApps', { query: { view: 'list', q: undefined, limit: 2 } });
    await call('listAppPushes', { path: { appId: 'a' }, query: { text: undefined } });
    expect(sent.map(({ path }) => path)).toEqual([
      '/apps?view=list&limit=2',
      '/apps/a/notifications',
    ]);
  });

  test('passes an unchecked body and headers on', async () => {
    const { call, sent } = clientOf({});
    const body = asUnchecked({ data: { alert: 'x' }, prod: 'moon' });
    await call('sendAppPush', { path: { appId: 'a' }, body, headers: { 'Idempotency-Key': '1' } });
    expect(sent).toMatchObject([
      { body: '{"data":{"alert":"x"},"prod":"moon"}', headers: { 'Idempotency-Key': '1' } },
    ]);
  });

  test('sends a JSON text unchanged as the body', async () => {
    const { call, sent } = clientOf({});
    await call('countAudience', {
      path: { appId: 'a' },
      body: new JsonText('{"where":{"n":1e400}}'),
    });
    expect(sent).toMatchObject([{ body: '{"where":{"n":1e400}}' }]);
  });

  test('passes the abort signal on', async () => {
    const { call, sent } = clientOf({});
    const { signal } = new AbortController();
    await call('getMeta', { signal });
    expect(sent[0]?.signal).toBe(signal);
  });

  test('returns the URL of a stream, which no call returns', () => {
    const { path } = requestOf('streamEvents', { query: { topics: 'push:a/b,breakers' } });
    expect(path).toBe('/events?topics=push%3Aa%2Fb%2Cbreakers');
  });

  test.each(['', '..', '.', 'a/b', '%2e%2e'])(
    'refuses %j as a part of a path, and sends nothing',
    async (id) => {
      const { call, sent } = clientOf({});
      await expect(call('deleteConsoleToken', { path: { id } })).rejects.toThrow(WrongPathPart);
      expect(sent).toEqual([]);
    },
  );

  test('recognizes a refusal', () => {
    expect(isRefused({ code: 404, error: 'There is no such app.' })).toBe(true);
    for (const other of [undefined, null, 'x', [], { code: 404 }, { code: '404', error: 'x' }])
      expect(isRefused(other)).toBe(false);
  });
});
