import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';
import { signUp, type TestUser } from '../../support/users.ts';

/** Tests undocumented queries that SDKs send (protocol/queries.md#operators). */
let app: App;
let ann: TestUser;
const pointer = (objectId: string) => ({ __type: 'Pointer', className: '_User', objectId });
const at = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
const avatar = {
  __type: 'File',
  id: '5d831ac89c9235000886c691',
  name: 'a.png',
  url: 'http://f.example/a.png',
};

const devices = () => [
  { n: 3, city: 'Paris', owner: pointer(ann.id), at: at(48.8, 2.3), rank: 'b' },
  { n: 1, city: 'Rome', owner: [pointer(ann.id), pointer('other')], at: at(41.9, 12.5), rank: 'b' },
  { n: 2, city: 'Oslo', at: at(2.3, 48.8), rank: 2 },
  { n: 4, city: 'Bonn' },
];

const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
  ann = await signUp(api, app, {
    cities: ['Rome', 'Oslo'],
    visited: { list: [['Paris']] },
    avatar,
  });
  for (const [i, device] of devices().entries()) {
    const body = { deviceType: 'android', installationId: `d${i}`, ...device };
    await api.request('POST', '/1.1/installations', { app, body });
  }
});
const get = (path: string, query: Record<string, string> = {}) =>
  api.request('GET', `/1.1/${path}?${new URLSearchParams(query)}`, { app, master: true });
const numbersIn = (body: { results: { n: number }[] }) => body.results.map(({ n }) => n);

async function found(where: object): Promise<number[]> {
  const { body } = await get('classes/_Installation', { where: JSON.stringify(where), order: 'n' });
  return numbersIn(body);
}

describe('a condition', () => {
  test('may have a pointer and operators together', async () => {
    expect(await found({ owner: pointer(ann.id) })).toEqual([1, 3]);
    expect(await found({ owner: { ...pointer(ann.id), $exists: true } })).toEqual([1, 3]);
    expect(await found({ owner: { ...pointer(ann.id), $size: 2 } })).toEqual([1]);
    expect(await found({ owner: { ...pointer(ann.id), $ne: pointer('other') } })).toEqual([3]);
  });

  test('may have both in a push too, and the trace shows each clause', async () => {
    const body = { data: { alert: 'x' }, where: { owner: { ...pointer(ann.id), $size: 2 } } };
    const path = `/console/api/apps/${app.appId}/push/explain`;
    const { body: explanation } = await api.request('POST', path, { admin: true, body });
    expect(explanation.devices).toBe(1);
  });

  test('accepts a box of pairs of longitude and latitude', async () => {
    const box = (...corners: unknown[]) => found({ at: { $within: { $box: corners } } });
    expect(await box([2, 48], [13, 49])).toEqual([3]);
    expect(await box(at(48, 2), [13, 49])).toEqual([3]);
    expect(await box([0, 40], [20, 50])).toEqual([1, 3]);
  });

  test('selects from arrays by each of their members', async () => {
    const select = (key: string, name = '$select') =>
      found({ city: { [name]: { key, query: { className: '_User', where: {} } } } });
    expect(await select('cities')).toEqual([1, 2]);
    expect(await select('cities', '$dontSelect')).toEqual([3, 4]);
    expect(await select('visited.list')).toEqual([]);
  });
});

describe('include', () => {
  test.each(['city', 'channels.x', 'deviceType', 'installationId.a', 'owner.username', 'nothing'])(
    'of %s, which is not a pointer, is ignored',
    async (name) => {
      const { status, body } = await get('classes/_Installation', {
        include: `owner,${name}`,
        order: '-n',
      });
      expect([status, numbersIn(body)]).toEqual([200, [4, 3, 2, 1]]);
      expect(body.results[1].owner.username).toBe(ann.body.username);
    },
  );

  test('does not return hidden members', async () => {
    const { body } = await api.request(
      'GET',
      `/1.1/users/${ann.id}?include=password,authData,sessionToken`,
      {
        app,
      },
    );
    expect(Object.keys(body)).not.toContain('sessionToken');
  });
});

describe('a scan', () => {
  async function scan(query: Record<string, string>): Promise<number[]> {
    const numbers: number[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, body } = await get('scan/classes/_Installation', { ...query, cursor });
      expect(status, JSON.stringify(body)).toBe(200);
      numbers.push(...numbersIn(body));
      cursor = body.cursor;
    }
    return numbers;
  }

  test('sorts by a custom member, even with missing and equal values', async () => {
    expect(await scan({ scan_key: 'n', limit: '1' })).toEqual([1, 2, 3, 4]);
    expect(await scan({ scan_key: '-n', limit: '3' })).toEqual([4, 3, 2, 1]);
    expect(await scan({ scan_key: 'city', limit: '1' })).toEqual([4, 2, 3, 1]);
    // Order: missing values, then texts, then numbers.
    expect(await scan({ scan_key: 'rank', limit: '1' })).toEqual([4, 3, 1, 2]);
    expect(await scan({ scan_key: '-rank', limit: '1' })).toEqual([2, 1, 3, 4]);
    expect((await scan({ scan_key: 'constructor', limit: '1' })).sort()).toEqual([1, 2, 3, 4]);
  });

  test.each(['installationId', 'n.a', '_n', "n'", 'ACL.x'])(
    'refuses to sort by %s (102)',
    async (scan_key) => {
      expect(await get('scan/classes/_User', { scan_key })).toMatchObject(
        scan_key === 'installationId' ? { status: 200 } : { status: 400, body: { code: 102 } },
      );
      expect(await get('scan/classes/_Installation', { scan_key })).toMatchObject({
        body: { code: 102 },
      });
    },
  );

  test('refuses a forged cursor, and returns none for values that are too long', async () => {
    const { body } = await get('scan/classes/_Installation', { scan_key: 'n', limit: '1' });
    const inside = JSON.parse(Buffer.from(body.cursor, 'base64url').toString());
    for (const value of ['', '{', '"\\u0000"', '1e400', '[[[', '"\\ud800"']) {
      const cursor = Buffer.from(JSON.stringify({ ...inside, value })).toString('base64url');
      const reply = await get('scan/classes/_Installation', { scan_key: 'n', cursor });
      expect([value, reply.status, reply.body.code]).toEqual([value, 400, 102]);
    }
    const long = await api.createApp();
    for (const id of ['a', 'b'])
      await api.request('POST', '/1.1/installations', {
        app: long,
        body: { deviceType: 'android', installationId: id, text: id.repeat(2000) },
      });
    const path = '/1.1/scan/classes/_Installation?scan_key=text';
    const reply = await api.request('GET', `${path}&limit=1`, { app: long, master: true });
    expect(reply).toMatchObject({ status: 400, body: { code: 102 } });
    expect((await api.request('GET', path, { app: long, master: true })).body.results).toHaveLength(
      2,
    );
  });
});

describe('GET /1.1/cloudQuery', () => {
  const cql = 'select * from _Installation where city = ? and n < ? order by n';
  const values = ['Rome', 5];

  test.each([
    ['as JSON', JSON.stringify(values)],
    ['as JSON of JSON', JSON.stringify(JSON.stringify(values))],
    ['encoded for the URL twice', encodeURIComponent(JSON.stringify(values))],
  ])('accepts its values %s', async (_name, pvalues) => {
    const { body } = await get('cloudQuery', { cql, pvalues });
    expect(numbersIn(body)).toEqual([1]);
  });

  test.each(['%', '%5B', '"x"', '"[1"', '{}', '""', '"\\"[]\\""'])(
    'refuses %s (107)',
    async (pvalues) => {
      expect(await get('cloudQuery', { cql, pvalues })).toMatchObject({
        status: 400,
        body: { code: 107 },
      });
    },
  );

  test('counts a key like count(*)', async () => {
    const count = (what: string) => get('cloudQuery', { cql: `select ${what} from _Installation` });
    expect((await count('count(objectId)')).body).toEqual((await count('count(*)')).body);
    expect((await count('count(objectId)')).body).toMatchObject({ count: 4, results: [] });
    expect((await count('*, count(city)')).body).toMatchObject({
      count: 4,
      results: { length: 4 },
    });
    expect((await count('count()')).body.code).toBe(300);
    expect((await count('count(_x)')).body.code).toBe(105);
  });
});

describe('a file', () => {
  test('is returned with its id under both names', async () => {
    const avatarWithObjectId = { ...avatar, objectId: avatar.id };
    expect((await ann.me()).avatar).toEqual(avatarWithObjectId);
    await ann.put({
      other: { __type: 'File', objectId: 'f1', name: 'b' },
      link: { __type: 'File', url: 'u' },
    });
    expect(await ann.me()).toMatchObject({
      other: { __type: 'File', id: 'f1', objectId: 'f1', name: 'b' },
      link: { __type: 'File', url: 'u' },
    });
    for (const file of [avatar, avatarWithObjectId]) {
      const { body } = await get('users', { where: JSON.stringify({ avatar: file }) });
      expect(body.results).toHaveLength(1);
    }
  });
});
