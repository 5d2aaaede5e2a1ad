import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { type ConsoleCall, callerOf } from './callers.ts';

const service = useTestService();
let app: App;
let viewer: ConsoleCall;
let operator: ConsoleCall;
const token = 'c0ffee00'.repeat(8);
let objectId: string;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  viewer = await callerOf(service.api, 'viewer');
  operator = await callerOf(service.api, 'operator');
  await service.addIosInstallations(app, 3, { city: 'Berlin' });
  const body = {
    deviceType: 'ios',
    deviceToken: token,
    apnsTopic: 'com.example.app',
    city: 'Wien',
  };
  const saved = await service.api.request('POST', '/1.1/installations', { app, body });
  expect(saved.status).toBe(201);
  objectId = saved.body.objectId;
});

const base = () => `/apps/${app.appId}/installations`;
const query = (members: Record<string, string>) => `${base()}?${new URLSearchParams(members)}`;
const ids = (reply: { body: { results: { objectId: string }[] } }) =>
  reply.body.results.map((one) => one.objectId);

describe('the installations of an app', () => {
  test('have pages, newest first, and are counted', async () => {
    const first = await viewer('GET', query({ limit: '1', count: '1' }));
    expect([ids(first), first.body.count]).toEqual([[objectId], 4]);
    const rest = await viewer('GET', query({ cursor: first.body.next, count: '1' }));
    expect([rest.body.results.length, rest.body.next, rest.body.count]).toEqual([3, null, 4]);
  });

  test('are counted up to 10,000, or up to the limit of one deletion', async () => {
    const large = await service.api.createApp();
    await service.addIosInstallations(large, 10_001);
    const counts = async (count: string) => {
      const path = `/console/api/apps/${large.appId}/installations?limit=1&count=${count}`;
      const { body } = await service.api.request('GET', path, { admin: true });
      return [body.count, body.countIsLeast];
    };
    expect([await counts('0'), await counts('1'), await counts('all')]).toEqual([
      [undefined, undefined],
      [10_000, true],
      [10_001, undefined],
    ]);
  });

  test('are found by each id and by a condition', async () => {
    for (const q of [objectId, token])
      expect(ids(await viewer('GET', query({ q })))).toEqual([objectId]);
    expect(ids(await viewer('GET', query({ q: 'nothing' })))).toEqual([]);
    expect(ids(await viewer('GET', query({ where: '{"city":"Wien"}' })))).toEqual([objectId]);
    expect(
      (await viewer('GET', query({ where: '{"city":"Berlin"}', count: '1' }))).body.count,
    ).toBe(3);
    expect((await viewer('GET', query({ where: '{"$x":1}' }))).status).toBe(400);
    expect((await viewer('GET', query({ where: '{' }))).status).toBe(400);
    expect((await viewer('GET', query({ q: '\0' }))).status).toBe(400);
    expect((await viewer('GET', '/apps/nowhere/installations')).status).toBe(404);
  });

  test('are found by a registration id and an installationId, too', async () => {
    const own = await service.api.createApp();
    const body = {
      deviceType: 'android',
      vendor: 'oppo',
      installationId: 'own-installation-id',
      registrationId: 'own-registration-id',
    };
    const saved = await service.api.request('POST', '/1.1/installations', { app: own, body });
    for (const q of [body.installationId, body.registrationId])
      expect(ids(await viewer('GET', `/apps/${own.appId}/installations?q=${q}`))).toEqual([
        saved.body.objectId,
      ]);
  });

  test('show whole tokens only from the role operator on, also by conditions', async () => {
    const seen = await viewer('GET', query({ q: token }));
    expect(seen.body.results[0].deviceToken).toBe('c0ffee…');
    expect((await operator('GET', query({ q: token }))).body.results[0].deviceToken).toBe(token);
    for (const where of [
      `{"deviceToken":{"$regex":"^c"}}`,
      `{"$or":[{"device\\u0054oken":"x"}]}`,
      '{"registrationId":{"$exists":true}}',
      '{"owner":{"$inQuery":{"className":"_User","where":{"email":"a@b.test"}}}}',
    ])
      expect((await viewer('GET', query({ where }))).status, where).toBe(403);
    expect((await operator('GET', query({ where: `{"deviceToken":"${token}"}` }))).status).toBe(
      200,
    );
  });

  test('show their route, session and waiting messages', async () => {
    const { body } = await viewer('GET', `${base()}/${objectId}`);
    expect(body).toMatchObject({
      installation: { objectId, deviceToken: 'c0ffee…', city: 'Wien' },
      route: { connector: 'apns', profile: '_default' },
      isValid: true,
      isFresh: true,
      online: null,
      inbox: 0,
      invalidTokenNotice: null,
    });
    expect((await operator('GET', `${base()}/${token}`)).body.installation.deviceToken).toBe(token);
    for (const name of ['nothing', '%00'])
      expect((await viewer('GET', `${base()}/${name}`)).status).toBe(404);
  });

  test('report the outcomes of the newest pushes', async () => {
    const push = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { data: { alert: 'x' }, where: { city: 'Berlin' } },
    });
    const { body } = await viewer('GET', `${base()}/${objectId}/pushes?limit=1`);
    expect(body.results).toMatchObject([
      {
        objectId: push.body.objectId,
        isMatched: false,
        outcome: null,
        sentence: expect.stringContaining('city'),
      },
    ]);
    expect((await viewer('GET', `${base()}/${objectId}/pushes?limit=21`)).status).toBe(400);
    expect((await viewer('GET', `${base()}/nothing/pushes`)).status).toBe(404);
  });
});

describe('the search', () => {
  const search = async (call: ConsoleCall, q: string, more = '') =>
    (await call('GET', `/search?q=${encodeURIComponent(q)}${more}`)).body.results;

  test('finds apps, pushes, installations and users by their ids', async () => {
    expect(await search(viewer, app.appId)).toMatchObject([{ kind: 'app', id: app.appId }]);
    expect(await search(viewer, token)).toMatchObject([
      { kind: 'installation', appId: app.appId, id: objectId },
    ]);
    const body = { username: 'searched', password: 'p', email: 'searched@example.com' };
    const user = await service.api.request('POST', '/1.1/users', { app, body });
    for (const q of ['searched', 'searched@example.com', user.body.objectId]) {
      expect(await search(operator, q)).toMatchObject([{ kind: 'user', id: user.body.objectId }]);
      expect(await search(viewer, q)).toEqual([]);
    }
    expect(await search(viewer, token, `&app=${app.appId}`)).toHaveLength(1);
    expect((await viewer('GET', '/search?q=%00')).status).toBe(400);
    expect((await viewer('GET', '/search?q=')).status).toBe(400);
  });

  test('with a token for some apps finds only these apps', async () => {
    const call = await callerOf(service.api, 'viewer', {
      apps: [(await service.api.createApp()).appId],
    });
    expect(await search(call, token)).toEqual([]);
    expect((await call('GET', `/search?q=x&app=${app.appId}`)).status).toBe(403);
  });
});

test('the paged list of apps has no keys, but the numbers of devices and pushes', async () => {
  await service.api.createApp();
  const owner = await callerOf(service.api, 'owner');
  const all: Record<string, unknown>[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await owner('GET', `/apps?view=list&limit=1${cursor}`);
    all.push(...body.results);
    if (body.next === null) break;
    cursor = `&cursor=${body.next}`;
  }
  expect(all.find(({ appId }) => appId === app.appId)).toEqual({
    appId: app.appId,
    name: 'Test app',
    edition: 'home',
    plan: 'commercial',
    createdAt: expect.any(String),
    devices: 4,
    pushes7d: expect.any(Number),
  });
  expect(JSON.stringify(all)).not.toContain(app.masterKey);
  const found = await owner('GET', `/apps?view=list&q=${app.appId}`);
  expect(found.body.results).toHaveLength(1);
  expect((await owner('GET', '/apps?view=all')).status).toBe(400);
});

describe('the lists of apps', () => {
  const names = [
    'beta',
    'Alpha',
    'alpha',
    'Ärger',
    '中文应用',
    '应用',
    '100% "off" & more',
    `${'zz '.repeat(33)}z`,
  ];
  const created: string[] = [];
  beforeAll(async () => {
    for (const name of names) {
      const body = { name };
      const reply = await service.api.request('POST', '/console/api/apps', { admin: true, body });
      expect(reply.status).toBe(201);
      created.push(reply.body.appId);
    }
  });
  const addPush = (appId: string) =>
    service.db.query(
      `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
        push_time, expires_at)
       VALUES ($1, gen_random_uuid(), gen_random_uuid(), 'done', '{}', 'prod', now(), now())`,
      [appId],
    );
  type Listed = { appId: string; name: string };
  /** Reads all pages of a list, with two apps per page. */
  const listAll = async (call: ConsoleCall, members: Record<string, string>): Promise<Listed[]> => {
    const all: Listed[] = [];
    let cursor: string | null = null;
    do {
      const more: Record<string, string> = cursor === null ? {} : { cursor };
      const reply = await call(
        'GET',
        `/apps?${new URLSearchParams({ limit: '2', ...members, ...more })}`,
      );
      expect(reply.status).toBe(200);
      all.push(...reply.body.results);
      cursor = reply.body.next;
    } while (cursor !== null);
    return all;
  };

  test.for<Record<string, string>>([
    { view: 'names' },
    { view: 'list', sort: 'name' },
    { view: 'names', sort: 'id' },
    { view: 'list' },
  ])('contain every app once, in the requested order: %o', async (members) => {
    const owner = await callerOf(service.api, 'owner');
    const all = await listAll(owner, { ...members, ids: created.join() });
    const isById = members.sort ? members.sort === 'id' : members.view === 'list';
    expect(all.map(({ appId }) => appId).toSorted()).toEqual(created.toSorted());
    expect(all.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    const { rows } = await service.db.query<{ app_id: string }>(
      `SELECT app_id FROM app WHERE app_id = ANY($1)
        ORDER BY ${isById ? '' : 'lower(name),'} app_id`,
      [created],
    );
    expect(all.map(({ appId }) => appId)).toEqual(rows.map((row) => row.app_id));
    if (members.view === 'names') expect(Object.keys(all[0] ?? {})).toEqual(['appId', 'name']);
  });

  test.for(['list', 'names'])(
    'begin with the newest push if sorted by activity: %s',
    async (view) => {
      const owner = await callerOf(service.api, 'owner');
      const [first = '', second = '', third = ''] = created.toReversed();
      for (const appId of [second, third, first, third]) await addPush(appId);
      const members = { view, sort: 'activity', ids: created.join() };
      const all = (await listAll(owner, members)).map(({ appId }) => appId);
      const isQuiet = (id: string) => ![first, second, third].includes(id);
      const quiet = created.filter(isQuiet).toSorted();
      expect(all).toEqual([third, first, second, ...quiet]);
      const strange = new URLSearchParams({ ...members, cursor: `${quiet[0]} -1` });
      const { status, body } = await owner('GET', `/apps?${strange}`);
      expect({ status, next: body.next }).toEqual({ status: 200, next: null });
      expect(body.results.map((found: Listed) => found.appId)).toEqual(quiet.slice(1));
      expect(Object.keys(body.results[0])).not.toContain('place');
    },
  );

  test("search by a part of a name in any case, within the token's apps", async () => {
    const owner = await callerOf(service.api, 'owner');
    const found = await listAll(owner, { view: 'names', q: 'ALPHA' });
    expect(found.map(({ name }) => name).toSorted()).toEqual(['Alpha', 'alpha']);
    expect(
      (await listAll(owner, { view: 'names', q: '应用' })).map(({ name }) => name),
    ).toHaveLength(2);
    const own = created.slice(0, 2);
    const limited = await callerOf(service.api, 'viewer', { apps: own });
    const seen = await listAll(limited, { view: 'names', ids: created.join() });
    expect(seen.map(({ appId }) => appId).toSorted()).toEqual(own.toSorted());
  });

  test.for([
    ['view', 'all'],
    ['sort', 'devices'],
    ['ids', Array.from({ length: 51 }, (_, at) => `app-${at}-id`).join()],
    ['cursor', 'x'.repeat(166)],
    ['limit', '201'],
    ['q', 'x'.repeat(101)],
  ] as const)('refuse a wrong %s by name', async ([name, value]) => {
    const members = new URLSearchParams({ view: 'names', [name]: value });
    const reply = await viewer('GET', `/apps?${members}`);
    expect(reply).toMatchObject({ status: 400, body: { error: expect.stringContaining(name) } });
  });

  test.for(['q', 'ids', 'cursor'])('answer a %s with characters that no id has', async (name) => {
    const reply = await viewer(
      'GET',
      `/apps?view=names&${name}=${encodeURIComponent('a\0b,\ud83d\ude00')}`,
    );
    expect(reply.status).toBeLessThan(500);
  });
});
