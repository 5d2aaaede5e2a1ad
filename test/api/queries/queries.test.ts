import { beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestRequest, TestResponse } from '../../support/api.ts';
import { changeDevices } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';
import { signUp, type TestUser } from '../../support/users.ts';

let app: App;
let ann: TestUser;
let bob: TestUser;
const geo = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
const beijing = geo(39.9, 116.4);
const pointer = (user: TestUser) => ({ __type: 'Pointer', className: '_User', objectId: user.id });

const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp({ allowInstallationQuery: true });
  ann = await signUp(api, app, { city: 'Beijing', level: 3 });
  bob = await signUp(api, app, { city: 'Paris', level: 1, ACL: { '*': { write: true } } });
  const devices = [
    { installationId: 'd0', at: geo(48.85, 2.35), owner: pointer(bob), city: 'Paris' },
    { installationId: 'd1', at: geo(31.2, 121.5), owner: pointer(ann), city: 'Shanghai' },
    { installationId: 'd2', at: geo(39.1, 117.2), owner: [pointer(ann), pointer(bob)] },
    {
      installationId: 'd3',
      city: 'Beijing',
      raw: { __type: 'Bytes', base64: '_-8=' },
      spot: geo(1e-200, 5e-324),
    },
  ];
  for (const device of devices)
    await api.request('POST', '/1.1/installations', {
      app,
      body: { deviceType: 'android', ...device },
    });
});
const call = (where: unknown, more: Record<string, string> = {}, from = app, master = true) =>
  api.request(
    'GET',
    `/1.1/installations?${new URLSearchParams({ where: JSON.stringify(where), ...more })}`,
    {
      app: from,
      master,
    },
  );

/** Returns the numbers of the devices that match a condition, in order. */
async function found(where: unknown, more: Record<string, string> = {}): Promise<string> {
  const { status, body } = await call(where, more);
  if (status !== 200) return `${status} ${body.code}`;
  return body.results
    .map((one: { installationId: string }) => one.installationId.slice(1))
    .join('');
}

describe('$nearSphere', () => {
  test('sorts by distance, unless the query has an order', async () => {
    expect(await found({ at: { $nearSphere: beijing } })).toBe('210');
    expect(await found({ at: { $nearSphere: beijing } }, { order: 'installationId' })).toBe('012');
    expect(
      await found({ $and: [{ at: { $nearSphere: beijing } }] }, { limit: '1', skip: '1' }),
    ).toBe('1');
  });

  test('finds devices up to the distance, in each unit', async () => {
    const within = (distance: object) => found({ at: { $nearSphere: beijing, ...distance } });
    expect(await within({ $maxDistanceInKilometers: 500 })).toBe('2');
    expect(await within({ $maxDistanceInMiles: 800 })).toBe('21');
    expect(await within({ $maxDistance: 500 / 6371 })).toBe('2');
    expect(await within({ $maxDistanceInRadians: 1.4, $minDistanceInKilometers: 500 })).toBe('10');
    expect(await within({ $minDistance: 0.5 })).toBe('0');
  });

  test('finds points whose coordinates are too small to be squared', async () => {
    for (const point of [geo(0, 0), geo(5e-324, -1e-160), geo(1e-200, 45)])
      expect(await found({ spot: { $nearSphere: point, $maxDistance: 1 } })).toBe('3');
  });

  test('counts in addition to sorting', async () => {
    const { body } = await call({ at: { $nearSphere: beijing } }, { limit: '1', count: '1' });
    expect({ count: body.count, first: body.results[0].installationId }).toEqual({
      count: 3,
      first: 'd2',
    });
  });
});

describe('other types', () => {
  test('a box, even across the date line', async () => {
    expect(await found({ at: { $within: { $box: [geo(30, 110), geo(40, 120)] } } })).toBe('2');
    expect(await found({ at: { $within: { $box: [geo(30, 120), geo(60, 10)] } } })).toBe('01');
  });

  test('bytes in either alphabet of base64', async () => {
    for (const base64 of ['_-8=', '/+8=', '/+8'])
      expect(await found({ raw: { __type: 'Bytes', base64 } })).toBe('3');
    expect(await found({ raw: { $in: [{ __type: 'Bytes', base64: 'AA==' }] } })).toBe('');
  });
});

describe('sub-queries', () => {
  test('find by the objects of pointers, even without className', async () => {
    const beijingers = { where: { city: 'Beijing' } };
    expect(await found({ owner: { $inQuery: { ...beijingers, className: '_User' } } })).toBe('12');
    expect(await found({ owner: { $inQuery: beijingers } })).toBe('12');
    expect(await found({ owner: { $notInQuery: beijingers } })).toBe('03');
    expect(await found({ owner: { $inQuery: { where: {}, order: '-level', limit: 1 } } })).toBe(
      '12',
    );
    expect(
      await found({ owner: { $inQuery: { where: {}, order: '-level', limit: 1, skip: 1 } } }),
    ).toBe('02');
  });

  test('find by the members of other rows', async () => {
    const ofUsers = { key: 'city', query: { className: '_User', where: { level: { $gt: 2 } } } };
    expect(await found({ city: { $select: ofUsers } })).toBe('3');
    expect(await found({ city: { $dontSelect: ofUsers } })).toBe('012');
  });

  test('refuse a class that the client may not list', async () => {
    const where = { owner: { $inQuery: { where: { city: 'Beijing' } } } };
    expect(await call(where, {}, app, false)).toMatchObject({ status: 403, body: { code: 403 } });
    const put = await api.request(
      'PUT',
      `/1.1/users/${ann.id}?where=${JSON.stringify({ a: where.owner })}`,
      {
        app,
        headers: { 'X-LC-Session': ann.token },
        body: { a: 1 },
      },
    );
    expect(put).toMatchObject({ status: 403, body: { code: 403 } });
  });

  test('find only users that the caller may read by their ACL', async () => {
    await api.request('PATCH', `/console/api/apps/${app.appId}`, {
      admin: true,
      body: { options: { allowUserQuery: true } },
    });
    const where = { owner: { $inQuery: { where: {} } } };
    const { body } = await call(where, { order: 'installationId' }, app, false);
    expect(body.results.map((one: { installationId: string }) => one.installationId)).toEqual([
      'd1',
      'd2',
    ]);
    expect(await found(where, { order: 'installationId' })).toBe('012');
  });

  test('keep strictlyQuery strict', async () => {
    const guess = { a: { $inQuery: { where: { email: { $regex: '^a' } } } } };
    const path = `/1.1/users/strictlyQuery?where=${encodeURIComponent(JSON.stringify(guess))}`;
    expect(await api.request('GET', path, { app })).toMatchObject({
      status: 400,
      body: { code: 102 },
    });
  });
});

describe('include', () => {
  const device = (user: TestUser) => `twin-of-${user.body.username}`;
  let eve: TestUser;
  let twin: string;
  let closed: App;
  let first: string;
  let get: (
    path: string,
    query: Record<string, string>,
    more?: TestRequest,
  ) => Promise<TestResponse>;
  const asMaster = { master: true };

  beforeAll(async () => {
    closed = await api.createApp();
    const authData = { github: { uid: 'g', access_token: 'secret token' } };
    eve = await signUp(api, closed, { authData, city: 'Rome' });
    const hidden = await signUp(api, closed, {
      ACL: { [eve.id]: { read: true } },
      boss: pointer(eve),
    });
    const post = async (body: object): Promise<string> => {
      const sent = { app: closed, body: { deviceType: 'android', ...body } };
      return (await api.request('POST', '/1.1/installations', sent)).body.objectId;
    };
    twin = await post({ installationId: device(eve), at: { owner: pointer(hidden) } });
    first = await post({
      installationId: 'first',
      owner: pointer(eve),
      hidden: pointer(hidden),
      all: [pointer(eve), pointer(hidden), 7],
      twin: { __type: 'Pointer', className: '_Installation', objectId: twin },
      gone: { __type: 'Pointer', className: '_User', objectId: 'unknown' },
      alien: { __type: 'Pointer', className: 'GameScore', objectId: eve.id },
    });
    const itself = { __type: 'Pointer', className: '_Installation', objectId: first };
    await api.request('PUT', `/1.1/installations/${first}`, { app: closed, body: { itself } });
    get = (at, query, more) =>
      api.request('GET', `${at}?${new URLSearchParams(query)}`, { app: closed, ...more });
  });
  const one = (include: string, more?: TestRequest, keys = '') =>
    get(`/1.1/installations/${first}`, { include, keys }, more).then(({ body }) => body);
  const bySession = () => ({ headers: { 'X-LC-Session': eve.token } });

  test('puts the object into its pointer, alone and in lists, and ignores spaces', async () => {
    const body = await one('owner, twin');
    const owner = { __type: 'Pointer', className: '_User', objectId: eve.id, city: 'Rome' };
    expect(body.owner).toMatchObject({
      ...owner,
      username: eve.body.username,
      createdAt: expect.any(String),
    });
    expect(body.twin).toMatchObject({
      __type: 'Pointer',
      className: '_Installation',
      objectId: twin,
    });
    expect(body.twin.installationId).toBe(device(eve));
    expect(body.hidden).not.toHaveProperty('username');
    const list = await get(
      '/1.1/classes/_Installation',
      { include: 'owner', order: 'createdAt' },
      asMaster,
    );
    expect(list.body.results.map((row: { owner?: { city: string } }) => row.owner?.city)).toEqual([
      undefined,
      'Rome',
    ]);
  });

  test('follows lists, objects and included objects', async () => {
    const body = await one('all, twin.at.owner, hidden.boss', asMaster);
    const names = body.all.map((item: { username?: string }) => item.username ?? item);
    expect(names).toEqual([eve.body.username, expect.stringContaining('user-'), 7]);
    expect(body.twin.at.owner.boss).toEqual(pointer(eve));
    expect(body.hidden.boss.username).toBe(eve.body.username);
    expect((await one('itself.itself.owner')).itself.itself.owner.city).toBe('Rome');
  });

  test('shows a user as its GET does, and leaves hidden users as pointers', async () => {
    const byKey = await one('owner,hidden,gone,alien,all');
    expect(Object.keys(byKey.hidden).sort()).toEqual(['__type', 'className', 'objectId']);
    expect(byKey.all[1]).toEqual(byKey.hidden);
    for (const name of ['gone', 'alien']) expect(Object.keys(byKey[name])).toHaveLength(3);
    expect((await one('hidden', bySession())).hidden.username).toEqual(expect.any(String));
    const secrets = ['authData', 'sessionToken', 'password', 'ACL'];
    for (const name of secrets) expect(byKey.owner).not.toHaveProperty(name);
    expect((await one('owner', bySession())).owner.authData.github.uid).toBe('g');
    const text = JSON.stringify([byKey, await one('owner', asMaster)]);
    expect(text).not.toContain(eve.token);
    expect(text).not.toMatch(/argon2/);
  });

  test('applies keys to the included object, which keeps its identifying members', async () => {
    const some = await one('owner', {}, 'owner.city');
    expect(Object.keys(some.owner).sort()).toEqual(
      ['__type', 'city', 'className', 'createdAt', 'objectId', 'updatedAt'].sort(),
    );
    const without = await one('owner', {}, '-owner.createdAt,-twin');
    expect(without.owner).toMatchObject({ city: 'Rome', objectId: eve.id });
    expect(without.owner).not.toHaveProperty('createdAt');
    expect(without).not.toHaveProperty('twin');
  });

  test('works for users, and in a statement', async () => {
    const list = await get(
      '/1.1/users',
      { include: 'boss', where: '{"boss":{"$exists":true}}' },
      asMaster,
    );
    const [{ objectId, boss }] = list.body.results;
    expect(boss.city).toBe('Rome');
    const path = `/1.1/classes/_User/${objectId}`;
    expect((await get(path, { include: 'boss' }, bySession())).body.boss.city).toBe('Rome');
    const cql = 'select include boss, username from _User where boss is exists';
    const found = await get('/1.1/cloudQuery', { cql }, asMaster);
    expect(found.body.results).toMatchObject([
      { username: expect.any(String), boss: { city: 'Rome' } },
    ]);
  });

  test.each([
    ['a.b.c.d', 102],
    [Array.from({ length: 11 }, (_, i) => `a${i}`).join(), 102],
    ['_secret', 105],
    ["a'b", 105],
  ])('refuses %s', async (include, code) => {
    expect(await one(include)).toMatchObject({ code });
  });

  test('stops at the limit of included objects', async () => {
    const itself = { __type: 'Pointer', className: '_Installation', objectId: twin };
    const body = { all: Array.from({ length: 200 }, () => itself) };
    const change = { app: closed, master: true, body };
    const { status } = await api.request('PUT', `/1.1/installations/${twin}`, change);
    expect(status).toBe(200);
    const deep = await get(`/1.1/installations/${twin}`, { include: 'all.all.all' });
    expect(deep).toMatchObject({ status: 400, body: { code: 116 } });
  });
});

describe('GET /1.1/scan/classes/:className', () => {
  const page = (
    query: Record<string, string>,
    cls = '_Installation',
    more: TestRequest = { master: true },
  ) =>
    api.request('GET', `/1.1/scan/classes/${cls}?${new URLSearchParams(query)}`, { app, ...more });
  /** Reads all rows page by page. */
  async function scan(query: Record<string, string>, cls?: string) {
    const rows: Record<string, string>[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await page({ ...query, cursor }, cls);
      expect(body.results.length).toBeLessThanOrEqual(Number(query.limit ?? 100));
      rows.push(...body.results);
      cursor = body.cursor;
    }
    return rows;
  }

  test('returns each row once, in the order of the key, even with equal keys', async () => {
    const ids = (await scan({ limit: '2' })).map(({ objectId }) => objectId);
    expect(ids).toHaveLength(4);
    expect(ids).toEqual([...ids].sort());
    const back = (await scan({ limit: '1', scan_key: '-objectId' })).map(
      ({ objectId }) => objectId,
    );
    expect(back).toEqual([...ids].reverse());
    await changeDevices(api.db, app, { createdAt: new Date() });
    for (const scanKey of ['createdAt', '-createdAt'])
      expect(
        (await scan({ limit: '3', scan_key: scanKey })).map(({ objectId }) => objectId).sort(),
      ).toEqual(ids);
  });

  test('applies where and keys, also to users, and ends without a cursor', async () => {
    const found = await scan({ where: '{"city":"Paris"}', keys: 'installationId' });
    expect(found.map((one) => Object.keys(one).sort())).toEqual([
      ['createdAt', 'installationId', 'objectId', 'updatedAt'],
    ]);
    const users = await scan({ limit: '1' }, '_User');
    expect(users.map(({ objectId }) => objectId).sort()).toEqual([ann.id, bob.id].sort());
    expect(JSON.stringify(users)).not.toMatch(/sessionToken|password/);
    expect((await page({ limit: '4' })).body.cursor).toBeNull();
  });

  test('needs the master key and a known class', async () => {
    const message = 'The request must be signed by master key.';
    expect((await page({}, '_Installation', {})).body).toEqual({ code: 1, error: message });
    expect(await page({}, 'GameScore')).toMatchObject({ status: 404, body: { code: 101 } });
    const other = await api.createApp();
    expect((await page({}, '_User', { app: other, master: true })).body).toEqual({
      results: [],
      cursor: null,
    });
  });

  test('accepts only its own cursors, for ten minutes', async () => {
    const { cursor } = (await page({ limit: '1' })).body;
    const inside = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const forged = (change: object) =>
      Buffer.from(JSON.stringify({ ...inside, ...change })).toString('base64url');
    const refusedOnes: Record<string, string>[] = [
      { cursor: 'x' },
      { cursor, scan_key: 'createdAt' },
      { cursor: forged({ id: '1; DROP TABLE app_user' }) },
      { cursor: forged({ value: 'a\0' }) },
      { cursor: forged({ key: 'createdAt', value: 'today' }), scan_key: 'createdAt' },
      { cursor: forged({ untilMs: Date.now() - 1 }) },
      { scan_key: 'installationId' },
      { scan_key: 'city.part' },
    ];
    for (const query of refusedOnes)
      expect(await page(query)).toMatchObject({ status: 400, body: { code: 102 } });
  });
});

test('unknown classes are 101 in every call', async () => {
  for (const [method, path] of [
    ['GET', '/1.1/classes/GameScore'],
    ['GET', '/1.1/classes/_File/x'],
    ['POST', '/1.1/classes/Todo'],
    ['PUT', '/1.1/classes/Todo/x'],
    ['DELETE', '/1.1/classes/__proto__/x'],
  ] as const)
    expect(await api.request(method, path, { app })).toMatchObject({
      status: 404,
      body: { code: 101 },
    });
  expect(await api.request('GET', '/1.1/classes/GameScore')).toMatchObject({ status: 401 });
});

describe('the targets of a push', () => {
  const explain = (where: unknown) =>
    api.request('POST', `/console/api/apps/${app.appId}/push/explain`, {
      admin: true,
      body: { where, data: { alert: 'hi' } },
    });

  test('are found by the same conditions', async () => {
    for (const [where, devices] of [
      [{ owner: { $inQuery: { where: { city: 'Beijing' } } } }, 2],
      [{ city: { $select: { key: 'city', query: { className: '_User', where: {} } } } }, 2],
      [{ at: { $nearSphere: beijing, $maxDistanceInKilometers: 500 } }, 1],
      [[{ at: { $within: { $box: [geo(30, 110), geo(40, 120)] } } }, { valid: true }], 1],
    ])
      expect(await explain(where)).toMatchObject({ status: 200, body: { devices } });
  });

  test('may depend on other rows only with the master key', async () => {
    const open = await api.createApp({ forbidClientPush: false, allowUserQuery: true });
    const body = { data: { alert: 'hi' }, where: { owner: { $inQuery: { where: {} } } } };
    expect(await api.request('POST', '/1.1/push', { app: open, body })).toMatchObject({
      status: 403,
      body: { code: 403 },
    });
    expect(await api.request('POST', '/1.1/push', { app: open, master: true, body })).toMatchObject(
      {
        status: 200,
      },
    );
  });
});

describe('GET /1.1/cloudQuery', () => {
  const query = (cql: string, pvalues?: unknown[], master = true) =>
    api.request(
      'GET',
      `/1.1/cloudQuery?${new URLSearchParams({ cql, ...(pvalues ? { pvalues: JSON.stringify(pvalues) } : {}) })}`,
      { app, master },
    );
  const ids = ({ body }: TestResponse): string =>
    body.results.map((one: { installationId: string }) => one.installationId.slice(1)).join('');
  const select = 'select * from _Installation where';

  test('returns the list of the class, and its name', async () => {
    const { status, body } = await query("select username, city from _User where city = 'Paris'");
    expect({ status, className: body.className }).toEqual({ status: 200, className: '_User' });
    expect(body.results.map((user: object) => Object.keys(user).sort())).toEqual([
      ['city', 'createdAt', 'objectId', 'updatedAt', 'username'],
    ]);
    expect((await query('select count(*) from _Installation')).body).toEqual({
      results: [],
      count: 4,
      className: '_Installation',
    });
  });

  test('finds the rows that match the conditions', async () => {
    const order = 'order by installationId';
    expect(ids(await query(`${select} city in ('Paris', 'Beijing') ${order} desc`))).toBe('30');
    expect(
      ids(
        await query(`${select} city = ? or owner = pointer('_User', ?) ${order}`, [
          'Paris',
          ann.id,
        ]),
      ),
    ).toBe('012');
    expect(ids(await query(`${select} city like 'Sh%' and not_there is not exists`))).toBe('1');
    expect(ids(await query(`${select} city in (select city from _User where level > 2)`))).toBe(
      '3',
    );
    expect(ids(await query(`${select} at near [39.9, 116.4] max 500 km`))).toBe('2');
    expect(ids(await query(`${select} at near geopoint(39.9, 116.4) limit 1, 1`))).toBe('1');
    expect(ids(await query(`${select} at within [30, 110] and [40, 120]`))).toBe('2');
  });

  test('ignores extra values, and refuses placeholders without a value', async () => {
    const cql = 'select * from _User where city = ?';
    const found = await query(cql, ['Paris']);
    for (const values of [
      ['Paris', 1],
      ['Paris', { $gt: '' }, [], null],
    ])
      expect((await query(cql, values)).body).toEqual(found.body);
    for (const [text, values] of [
      [cql, []],
      [`${cql} and username = ?`, ['Paris']],
      ['select * from _User limit ?, ?', [1]],
    ] as const)
      expect((await query(text, [...values])).body.code).toBe(300);
  });

  test('treats the value of a placeholder as a value only', async () => {
    expect(await query(`${select} city = ?`, [{ $ne: 'x' }])).toMatchObject({
      status: 400,
      body: { code: 121 },
    });
    expect(ids(await query(`${select} city = ?`, ["x' or 'a' = 'a"]))).toBe('');
  });

  test('needs the permissions of a list', async () => {
    const closed = await api.createApp();
    for (const name of ['_User', '_Installation'])
      expect(
        await api.request(
          'GET',
          `/1.1/cloudQuery?cql=${encodeURIComponent(`select * from ${name}`)}`,
          {
            app: closed,
          },
        ),
      ).toMatchObject({ status: 403, body: { code: 403 } });
  });

  test.each([
    ['update _User set a = 1', 400, 300],
    ["delete from _User where objectId = 'x'", 400, 300],
    ['select * from _User where', 400, 300],
    ['select * from _User where a = ?', 400, 300],
    ["select * from _User where password = 'x'", 400, 105],
    ['select password_hash, authData from GameScore', 404, 101],
    ['select * from _User order by sessionToken', 400, 105],
  ])('refuses %s', async (cql, status, code) => {
    expect(await query(cql)).toMatchObject({ status, body: { code } });
  });

  test('refuses pvalues other than a list', async () => {
    const path = `/1.1/cloudQuery?cql=${encodeURIComponent('select * from _User')}&pvalues=`;
    for (const pvalues of ['{', '5', '{"a":1}'])
      expect(
        await api.request('GET', path + encodeURIComponent(pvalues), { app, master: true }),
      ).toMatchObject({
        status: 400,
        body: { code: 107 },
      });
  });
});

describe('cql of a push', () => {
  test('finds the same devices as the same where', async () => {
    const explain = (body: object) =>
      api.request('POST', `/console/api/apps/${app.appId}/push/explain`, {
        admin: true,
        body: { ...body, data: { alert: 'hi' } },
      });
    const cql = "select * from _Installation where city = 'Paris' or city = 'Beijing'";
    expect(await explain({ cql })).toMatchObject({ status: 200, body: { devices: 2 } });
    const sent = await api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { cql, data: { alert: 'hi' } },
    });
    const record = await api.request('GET', `/1.1/tables/Notifications/${sent.body.objectId}`, {
      app,
    });
    expect(JSON.stringify(record.body)).toContain('Beijing');
  });
});

test('a query that takes too long ends with 124 in every call', async () => {
  const lock = new Database({ url: api.databaseUrl, applicationName: 'test' });
  const list = `/1.1/installations?where=${encodeURIComponent('{"a":{"$gt":1}}')}`;
  const cql = `/1.1/cloudQuery?cql=${encodeURIComponent('select * from _Installation')}`;
  // The table is locked, so that each call waits until its timeout.
  const replies = await lock.transaction(async (tx) => {
    await tx.query('LOCK TABLE installation IN ACCESS EXCLUSIVE MODE');
    return Promise.all([
      api.request('GET', list, { app, master: true }),
      api.request('GET', cql, { app, master: true }),
      api.request('POST', '/1.1/batch', {
        app,
        master: true,
        body: { requests: [{ path: list }] },
      }),
    ]);
  });
  await lock.close();
  const codes = replies.map(({ body }) => body.code ?? body[0].error.code);
  expect(codes).toEqual([124, 124, 124]);
}, 40_000);
