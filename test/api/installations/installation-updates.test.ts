import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let api: TestApi;
let app: App;
beforeAll(async () => {
  database = await createTestDatabase();
  // Each call of the clock returns a later millisecond, so that all times differ.
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { now: () => ++nowMs, monotonicMs: () => performance.now() };
  api = await startTestApi({ databaseUrl: database.url, clock });
  app = await api.createApp();
});
afterAll(async () => {
  await api.close();
  await database.drop();
});

const path = '/1.1/installations';
let serial = 0;
async function create(more: object = {}): Promise<string> {
  serial += 1;
  const body = { deviceType: 'android', installationId: `id-${serial}`, ...more };
  return (await api.request('POST', path, { app, body })).body.objectId;
}
const put = (id: string, body: unknown, query = '') =>
  api.request('PUT', `${path}/${id}${query}`, { app, body });
const get = async (id: string) => (await api.request('GET', `${path}/${id}`, { app })).body;

describe('PUT /1.1/installations/:objectId', () => {
  test('refuses an unknown id with code 1', async () => {
    const { status, body } = await put('nowhere', { a: 1 });
    expect(status).toBe(400);
    expect(body).toEqual({
      code: 1,
      error: "Could not find object by id 'nowhere' for class '_Installation'.",
    });
    expect((await put('%00', {})).status).toBe(400);
  });

  const refusals: [string, object, number][] = [
    ['another object id', { objectId: 'x' }, 117],
    ['another creation time', { createdAt: '2020-01-01T00:00:00.000Z' }, 117],
    [
      'another update time',
      { updatedAt: { __type: 'Date', iso: '2020-01-01T00:00:00.000Z' } },
      117,
    ],
    ['an operation on the object id', { objectId: { __op: 'Delete' } }, 117],
    ['another device type', { deviceType: 'web' }, 117],
    ['another installation id', { installationId: 'x' }, 117],
    ['a deleted installation id', { installationId: { __op: 'Delete' } }, 117],
    ['a deleted device type', { deviceType: { __op: 'Delete' } }, 111],
    ['a deleted member that is true or false', { valid: { __op: 'Delete' } }, 111],
    ['a count of a device token', { deviceToken: { __op: 'Increment', amount: 1 } }, 114],
    ['a count of a text', { name: { __op: 'Increment', amount: 1 } }, 111],
    ['a count by a text', { n: { __op: 'Increment', amount: '1' } }, 111],
    [
      'a count out of range',
      { n: { __op: 'Increment', amount: 1.7e308 }, m: { __op: 'Batch', ops: 1 } },
      111,
    ],
    ['an addition to a text', { name: { __op: 'Add', objects: [1] } }, 111],
    ['objects that are not an array', { list: { __op: 'Add', objects: 1 } }, 111],
    ['a bad channel in an operation', { channels: { __op: 'AddUnique', objects: ['a b'] } }, 112],
    ['bits of a fraction', { n: { __op: 'BitAnd', value: 0.5 } }, 111],
    ['a relation', { r: { __op: 'AddRelation', objects: [] } }, 111],
    ['an operation inside a value', { a: { b: { __op: 'Delete' } } }, 111],
    ['a dotted key into a text', { 'name.x': 1 }, 111],
    ['a dotted key into a column', { 'channels.0': 'x' }, 112],
    ['a dotted key with an empty part', { 'a..b': 1 }, 105],
    ['a dotted key with a quote', { "a'b.c": 1 }, 105],
  ];
  test.each(refusals)('refuses %s', async (_name, body, code) => {
    const id = await create({ name: 'text', list: [], n: 1 });
    const before = await get(id);
    const reply = await put(id, body);
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 400, code });
    expect(await get(id)).toEqual(before);
  });

  test('refuses an id that another installation has (137)', async () => {
    const { objectId } = (
      await api.request('POST', path, { app, body: { deviceType: 'ios', deviceToken: 'holder' } })
    ).body;
    const id = await create();
    expect((await put(id, { deviceToken: 'holder' })).body.code).toBe(137);
    expect((await get(objectId)).deviceToken).toBe('holder');
  });

  test('accepts a new device token, but not its removal', async () => {
    const id = await create({ deviceToken: 'first' });
    expect((await put(id, { deviceToken: 'second' })).status).toBe(200);
    expect((await get(id)).deviceToken).toBe('second');
    expect((await put(id, { deviceToken: { __op: 'Delete' } })).body.code).toBe(117);
  });

  test('returns updatedAt and objectId, and sets updatedAt even without a change', async () => {
    const id = await create();
    const before = await get(id);
    const { status, body } = await put(id, {});
    expect(status).toBe(200);
    expect(Object.keys(body).sort()).toEqual(['objectId', 'updatedAt']);
    expect(body.updatedAt > before.updatedAt).toBe(true);
    expect((await get(id)).updatedAt).toBe(body.updatedAt);
  });

  test('accepts the whole object as GET returns it', async () => {
    const id = await create({ channels: ['a'], apnsTopic: 't', a: { b: 1 } });
    const before = await get(id);
    const { status } = await put(id, { ...before, __type: 'Object', className: '_Installation' });
    expect(status).toBe(200);
    const after = await get(id);
    expect(after).toEqual({ ...before, updatedAt: after.updatedAt });
  });

  test('every operation has its effect', async () => {
    const start = {
      n: 5,
      f: 6,
      list: [1, { a: 1, b: 2 }],
      gone: 1,
      deep: { n: 1, gone: 1 },
      apnsTopic: 'x',
    };
    const id = await create(start);
    const { status } = await put(id, {
      n: { __op: 'Increment', amount: 2.5 },
      f: { __op: 'BitXor', value: 3 },
      bits: { __op: 'BitOr', value: 4 },
      list: { __op: 'AddUnique', objects: [{ b: 2, a: 1 }, 2] },
      made: { __op: 'Add', objects: [1, 1] },
      rest: {
        __op: 'Batch',
        ops: [
          { __op: 'Add', objects: [1, 2] },
          { __op: 'Remove', objects: [1] },
        ],
      },
      gone: { __op: 'Delete' },
      'deep.n': { __op: 'Decrement', amount: 3 },
      'deep.gone': { __op: 'Delete' },
      'deep.new.inner': 'x',
      'absent.inner': { __op: 'Delete' },
      apnsTopic: { __op: 'Delete' },
      channels: { __op: 'Remove', objects: ['a'] },
    });
    expect(status).toBe(200);
    const after = await get(id);
    expect(after).toMatchObject({
      n: 7.5,
      f: 5,
      bits: 4,
      list: [1, { a: 1, b: 2 }, 2],
      made: [1, 1],
      rest: [2],
      deep: { n: -2, new: { inner: 'x' } },
      channels: [],
    });
    for (const name of ['gone', 'absent', 'apnsTopic']) expect(after).not.toHaveProperty(name);
    expect(after.deep).not.toHaveProperty('gone');
  });

  test('returns the changed members with new or fetchWhenSave', async () => {
    const id = await create({ a: 1, b: 2, apnsTopic: 'x' });
    const { body } = await put(
      id,
      { a: { __op: 'Increment', amount: 1 }, pgwTopic: 'y' },
      '?new=true',
    );
    expect(body).toEqual({ a: 2, pgwTopic: 'y', objectId: id, updatedAt: body.updatedAt });
    expect(await get(id)).not.toHaveProperty('apnsTopic');
  });

  test('saves only if the installation matches where (305), unless it is empty', async () => {
    const id = await create({ n: 5 });
    const where = (condition: unknown) => `?where=${encodeURIComponent(JSON.stringify(condition))}`;
    const refused = await put(id, { n: 0 }, where({ n: { $lt: 5 } }));
    expect(refused).toMatchObject({ status: 400, body: { code: 305 } });
    expect((await put(id, { n: 6 }, where({ n: 5, deviceType: 'android' }))).status).toBe(200);
    expect((await put(id, { n: 7 }, '?fetchWhenSave=false&where=')).status).toBe(200);
    expect((await put(id, { n: 8 }, where({ _x: 1 }))).body.code).toBe(105);
    expect((await get(id)).n).toBe(7);
  });

  test('applies all of 100 concurrent increments and 100 additions', async () => {
    const id = await create();
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        put(id, {
          n: { __op: 'Increment', amount: 1 },
          channels: { __op: 'Add', objects: [`c${i}`] },
        }),
      ),
    );
    expect(replies.every(({ status }) => status === 200)).toBe(true);
    const after = await get(id);
    expect(after.n).toBe(100);
    expect(new Set(after.channels).size).toBe(100);
  });

  test('applies exactly one of 20 concurrent conditional updates', async () => {
    const id = await create({ turn: 0 });
    const query = `?where=${encodeURIComponent('{"turn":0}')}`;
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => put(id, { turn: 1 }, query)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter((reply) => reply.body.code === 305)).toHaveLength(19);
  });
});

describe('DELETE /1.1/installations/:objectId', () => {
  const remove = (id: string, as: object = { app, master: true }) =>
    api.request('DELETE', `${path}/${id}`, as);

  test('needs the master key, unless the app allows it', async () => {
    const id = await create();
    const refused = await remove(id, { app });
    expect(refused.status).toBe(403);
    expect(refused.body).toEqual({ code: 403, error: 'Forbidden to delete by class permissions.' });
    const open = await api.createApp({ allowInstallationDelete: true });
    expect(await remove('x', { app: open })).toMatchObject({ status: 200, body: {} });
    expect((await get(id)).objectId).toBe(id);
  });

  test('deletes one or several installations; a deleted one reads as {}', async () => {
    const ids = await Promise.all([create(), create(), create()]);
    expect(await remove(ids[0] ?? '')).toMatchObject({ status: 200, body: {} });
    expect(await remove(`${ids[1]},${ids[2]},unknown`)).toMatchObject({ status: 200, body: {} });
    expect(await Promise.all(ids.map(get))).toEqual([{}, {}, {}]);
    expect(await remove(ids[0] ?? '')).toMatchObject({ status: 200, body: {} });
  });

  test('deletes only if the installation matches where (305)', async () => {
    const id = await create({ n: 1 });
    expect((await remove(`${id}?where=${encodeURIComponent('{"n":2}')}`)).body.code).toBe(305);
    expect((await remove(`${id}?where=${encodeURIComponent('{"n":1}')}`)).status).toBe(200);
    expect(await get(id)).toEqual({});
  });
});
