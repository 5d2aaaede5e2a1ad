import { beforeAll, describe, expect, test } from 'vitest';
import { dayMs, hourMs, systemClock } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const api = useTestApi();
let app: App;
let sender: ConsoleCall;
let operator: ConsoleCall;

beforeAll(async () => {
  app = await api.createApp();
  sender = await callerOf(api, 'sender', { name: 'Li' });
  operator = await callerOf(api, 'operator');
});

const path = (rest = '') => `/apps/${app.appId}/scheduled${rest}`;
const inHours = (hours: number) => new Date(systemClock.now() + hours * hourMs).toISOString();
const schedule = async (hours: number, more: object = {}): Promise<string> => {
  const body = { data: { alert: 'x' }, push_time: inHours(hours), ...more };
  const reply = await sender('POST', `/apps/${app.appId}/push`, { body });
  expect(reply).toMatchObject({ status: 201, body: { status: 'scheduled' } });
  return reply.body.objectId;
};
const list = async (query = '') => (await operator('GET', path(query))).body;
const entryOf = async (objectId: string) =>
  (await list()).results.find((entry: { objectId: string }) => entry.objectId === objectId);

describe('scheduled pushes', () => {
  test('are listed in pages, next one first', async () => {
    const ids = [await schedule(30), await schedule(10), await schedule(20)];
    const order = [ids[1], ids[2], ids[0]];
    const first = await list('?limit=2');
    const listed = [...first.results, ...(await list(`?limit=2&cursor=${first.next}`)).results];
    expect(listed.map(({ objectId }) => objectId)).toEqual(order);
    expect(listed[0]).toMatchObject({
      id: expect.any(Number),
      createdBy: 'Li',
      state: 'scheduled',
    });
    expect((await list('?cursor=1')).code).toBe(1);
    expect((await operator('GET', '/apps/nowhere/scheduled')).status).toBe(404);
  });

  test('are cancelled by their number, once', async () => {
    const { id, objectId } = await entryOf(await schedule(5));
    expect((await sender('DELETE', path(`/${id}`))).body).toEqual({});
    expect(await entryOf(objectId)).toBeUndefined();
    expect(await sender('DELETE', path(`/${id}`))).toMatchObject({
      status: 404,
      body: { code: 101 },
    });
    expect((await sender('DELETE', path('/x'))).status).toBe(400);
  });

  test('move with the default expiry, and keep their own expiry', async () => {
    const lifeOf = (one: Record<string, string>) =>
      Date.parse(one.expiresAt ?? '') - Date.parse(one['push-time'] ?? '');
    const { id } = await entryOf(await schedule(5));
    const time = inHours(2000);
    const moved = await sender('PATCH', path(`/${id}`), { body: { push_time: time } });
    expect(moved).toMatchObject({ status: 200, body: { id, 'push-time': time } });
    expect(lifeOf(moved.body)).toBe(7 * dayMs);
    const own = await entryOf(await schedule(5, { expiration_time: inHours(6) }));
    const change = (body: object) => sender('PATCH', path(`/${own.id}`), { body });
    expect((await change({ push_time: inHours(5.5) })).body.expiresAt).toBe(own.expiresAt);
    expect((await change({ push_time: time })).body.error).toContain('expiration_time');
    expect(lifeOf((await change({ push_time: time, expiration_interval: 60 })).body)).toBe(60_000);
  });

  test.each([
    ['no time', {}, 152],
    ['a past time', { push_time: inHours(-1) }, 152],
    ['a time in eleven years', { push_time: inHours(100_000) }, 152],
    ['a text', { push_time: 'later' }, 111],
    [
      'two expiries',
      { push_time: inHours(1), expiration_time: inHours(2), expiration_interval: 5 },
      1,
    ],
  ])('%s moves nothing', async (_name, body, code) => {
    const { id } = await entryOf(await schedule(5));
    expect((await sender('PATCH', path(`/${id}`), { body })).body.code).toBe(code);
  });

  test('can be moved and cancelled by their sender, and by operators', async () => {
    const { id } = await entryOf(await schedule(5));
    const other = await callerOf(api, 'sender');
    const body = { push_time: inHours(6) };
    expect((await other('PATCH', path(`/${id}`), { body })).status).toBe(403);
    expect((await other('DELETE', path(`/${id}`))).status).toBe(403);
    expect((await operator('PATCH', path(`/${id}`), { body })).status).toBe(200);
    expect((await operator('DELETE', path(`/${id}`))).status).toBe(200);
  });
});
