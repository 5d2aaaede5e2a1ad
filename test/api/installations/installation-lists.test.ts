import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestResponse } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

let app: App;
const path = '/1.1/installations';

const devices = [
  {
    installationId: 'd0',
    channels: ['news'],
    n: 1,
    user: { name: 'Ann', tags: ['x'] },
    vendor: 'HMS',
  },
  {
    installationId: 'd1',
    channels: ['news', 'sport'],
    n: 2,
    user: { name: 'bob' },
    apnsTopic: 't',
  },
  { installationId: 'd2', n: 'two', at: { __type: 'Date', iso: '2024-05-01T00:00:00Z' } },
  {
    installationId: 'd3',
    n: [2, 3],
    owner: { __type: 'Pointer', className: '_User', objectId: 'u1' },
    valid: false,
  },
];

const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
  for (const device of devices)
    await api.request('POST', path, { app, body: { deviceType: 'android', ...device } });
  const other = await api.createApp();
  await api.request('POST', path, {
    app: other,
    body: { deviceType: 'ios', deviceToken: 'foreign' },
  });
});
function list(query: Record<string, unknown> = {}, from = path): Promise<TestResponse> {
  const texts = Object.entries(query).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return api.request('GET', `${from}?${new URLSearchParams(texts)}`, { app, master: true });
}

/** Returns the numbers of the devices that match a condition. */
async function found(where: unknown, more: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await list({ where, ...more });
  if (status !== 200) return `${status} ${body.code}`;
  return body.results
    .map((one: { installationId: string }) => one.installationId.slice(1))
    .join('');
}

describe('GET /1.1/installations', () => {
  test('needs the master key, unless the app allows queries', async () => {
    const refused = await api.request('GET', path, { app });
    expect(refused.status).toBe(403);
    expect(refused.body).toEqual({ code: 403, error: 'Forbidden to find by class permissions.' });
    const open = await api.createApp({ allowInstallationQuery: true });
    expect(await api.request('GET', path, { app: open })).toMatchObject({
      status: 200,
      body: { results: [] },
    });
  });

  const refusals: [Record<string, unknown>, number][] = [
    [{ where: '{' }, 102],
    [{ where: '5' }, 102],
    [{ where: { n: { $near: 1 } } }, 102],
    [{ where: { n: { $nearSphere: { __type: 'GeoPoint', latitude: 91, longitude: 0 } } } }, 111],
    [{ where: { n: { $inQuery: { where: { password: 'x' } } } } }, 105],
    [{ where: { n: { $regex: '(' } } }, 102],
    [{ where: { _app: 1 } }, 105],
    [{ where: { $or: [{ a: 1 }, { $and: [{ _internal: 1 }] }] } }, 105],
    [{ where: { "a'; DROP TABLE installation; --": 1 } }, 105],
    [{ where: { __proto__x: 1 } }, 105],
    [{ where: { 'a."b': 1 } }, 105],
    [{ where: { n: 'x\u0000' } }, 111],
    [{ where: '{"n":"\\ud800"}' }, 111],
    [{ where: '{"n":1e999}' }, 111],
    [{ where: { u: { __type: 'Pointer' } } }, 106],
    [{ where: { deviceProfile: { $ne: 'x' } } }, 102],
    [{ order: '_id' }, 105],
    [{ order: 'a"; SELECT 1' }, 105],
    [{ keys: 'a,-_secret' }, 105],
    [{ keys: "a'b" }, 105],
    [{ skip: '-1' }, 102],
    [{ skip: 'x' }, 102],
  ];
  test.each(refusals)('refuses %j', async (query, code) => {
    const { status, body } = await list(query);
    expect({ status, code: body.code }).toEqual({ status: 400, code });
  });

  test('refuses a repeated parameter', async () => {
    const twice = await api.request('GET', `${path}?where={}&where={}`, { app, master: true });
    expect(twice).toMatchObject({ status: 400, body: { code: 102 } });
  });

  test('returns results in order of creation, and only of this app', async () => {
    const { status, body } = await list();
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['results']);
    expect(body.results.map((one: { n: unknown }) => one.n)).toEqual([1, 2, 'two', [2, 3]]);
    expect((await list({}, '/1.1/classes/_Installation')).body).toEqual(body);
  });

  test('finds by value, in arrays, in objects, by dates and pointers', async () => {
    expect(await found({ channels: 'news' })).toBe('01');
    expect(await found({ channels: { $all: ['news', 'sport'] } })).toBe('1');
    expect(await found({ channels: { $in: ['sport', 'none'] } })).toBe('1');
    expect(await found({ channels: null })).toBe('23');
    expect(await found({ n: 2 })).toBe('13');
    expect(await found({ n: { $ne: 2 } })).toBe('02');
    expect(await found({ n: { $gte: 2 } })).toBe('13');
    expect(await found({ n: { $size: 2 } })).toBe('3');
    expect(await found({ 'user.name': 'Ann' })).toBe('0');
    expect(await found({ 'user.tags': 'x' })).toBe('0');
    expect(await found({ user: { name: 'bob' } })).toBe('1');
    expect(await found({ at: { __type: 'Date', iso: '2024-05-01T02:00:00+02:00' } })).toBe('2');
    expect(await found({ at: { $lt: { __type: 'Date', iso: '2024-05-01T00:00:00.001Z' } } })).toBe(
      '2',
    );
    const pointer = { __type: 'Pointer', className: '_User', objectId: 'u1', extra: 'ignored' };
    expect(await found({ owner: pointer })).toBe('3');
    expect(await found({ vendor: 'vendor_a' })).toBe('0');
    expect(await found({ vendor: { $in: ['hms'] } })).toBe('0');
    expect(await found({ vendor: { $regex: '^H' } })).toBe('0');
    expect(await found({ pgwTopic: 't' })).toBe('1');
    expect(await found({ valid: { $ne: true } })).toBe('3');
    expect(await found({ missing: { $exists: false } })).toBe('0123');
    expect(await found({ constructor: null, toString: { $exists: false } })).toBe('0123');
    expect(await found({ 'user.name': { $regex: '^\\QA\\E', $options: 'i' } })).toBe('0');
  });

  test('compares createdAt and updatedAt with objects or texts', async () => {
    const past = '2020-01-01T00:00:00.000Z';
    expect(await found({ createdAt: { $gt: { __type: 'Date', iso: past } } })).toBe('0123');
    expect(await found({ updatedAt: { $lt: past } })).toBe('');
  });

  test('combines conditions: $or, $and, and an array as AND', async () => {
    expect(await found({ $or: [{ n: 1 }, { n: 'two' }] })).toBe('02');
    expect(await found({ $and: [{ channels: 'news' }, { n: { $gt: 1 } }] })).toBe('1');
    expect(await found([{ channels: 'news' }, { n: 1 }])).toBe('0');
    expect(await found('')).toBe('0123');
  });

  test('limits, skips, orders and counts', async () => {
    expect(await found({}, { limit: 2 })).toBe('01');
    expect(await found({}, { limit: 2, skip: 1 })).toBe('12');
    for (const limit of ['0', '1001', '-1', 'x', '1.5'])
      expect(await found({}, { limit })).toBe('0123');
    expect(await found({}, { order: '-createdAt' })).toBe('3210');
    expect(await found({}, { order: '-valid,-installationId' })).toBe('2103');
    expect(await found({ n: { $in: [1, 2] } }, { order: '-user.name' })).toBe('103');
    expect((await list({ count: 1, limit: 0 })).body).toEqual({ results: [], count: 4 });
    expect((await list({ count: 1, limit: 1, order: 'n', where: { n: 2 } })).body).toMatchObject({
      count: 2,
    });
  });

  test('returns the members in keys', async () => {
    const first = async (keys: string) =>
      (await list({ where: { installationId: 'd0' }, keys })).body.results[0];
    const always = ['createdAt', 'objectId', 'updatedAt'];
    expect(Object.keys(await first('n')).sort()).toEqual([...always, 'n'].sort());
    expect(await first('n, user.name')).toMatchObject({ n: 1, user: { name: 'Ann' } });
    expect(await first('user.name')).not.toHaveProperty('user.tags');
    const without = await first('-user.tags,-createdAt,-channels');
    expect(without).toMatchObject({ n: 1, user: { name: 'Ann' } });
    for (const name of ['user.tags', 'createdAt', 'channels'])
      expect(without).not.toHaveProperty(name);
    const bare = await first('-createdAt,-updatedAt,-objectId');
    for (const name of always) expect(bare).not.toHaveProperty(name);
    const [second] = (await list({ where: { n: 2 }, keys: 'pgwTopic' })).body.results;
    expect(second.apnsTopic).toBe('t');
  });
});

describe('GET /1.1/installations/:objectId', () => {
  test('needs only the app key, returns {} for unknown ids, and applies keys', async () => {
    const { objectId } = (await list({ where: { n: 1 } })).body.results[0];
    const read = await api.request('GET', `${path}/${objectId}?keys=n`, { app });
    expect(Object.keys(read.body).sort()).toEqual(['createdAt', 'n', 'objectId', 'updatedAt']);
    for (const id of ['unknown', '%00', "x'--", 'a b', '%E0%A4%A'])
      expect(await api.request('GET', `${path}/${id}`, { app })).toMatchObject({
        status: 200,
        body: {},
      });
  });
});
