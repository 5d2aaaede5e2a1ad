import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestRequest } from '../../support/api.ts';
import { answerWith, startFunctionHost } from '../../support/servers/function-host.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, signUp } from '../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const path = '/1.1/installations';
let serial = 0;
const newDevice = () => ({ deviceType: 'android', installationId: `batch-${++serial}` });
const batch = (requests: unknown, more: TestRequest = {}) =>
  api.request('POST', '/1.1/batch', { app, body: { requests }, ...more });
const save = (requests: unknown, more: TestRequest = {}) =>
  api.request('POST', '/1.1/batch/save', { app, body: { requests }, ...more });
const post = (body: object, at = path) => ({ method: 'POST', path: at, body });
const put = (id: string, body: object) => ({ method: 'PUT', path: `${path}/${id}`, body });
async function create(more: object = {}): Promise<string> {
  return (await api.request('POST', path, { app, body: { ...newDevice(), ...more } })).body
    .objectId;
}
const get = async (id: string) => (await api.request('GET', `${path}/${id}`, { app })).body;
const error = (code: number) => ({ error: { code, error: expect.any(String) } });
const time = expect.stringMatching(/^\d{4}-.*Z$/);
const id24 = expect.stringMatching(/^[0-9a-f]{24}$/);

describe('POST /1.1/batch', () => {
  test('answers each request at its index, like a single call', async () => {
    const id = await create({ n: 1 });
    const { status, body, headers } = await batch([
      post(newDevice()),
      put(id, { n: { __op: 'Increment', amount: 1 } }),
      { method: 'PUT', path: `${path}/${id}`, body: { n: 5 }, params: { fetchWhenSave: true } },
      { method: 'GET', path: `/1.1/classes/_Installation/${id}`, params: { keys: 'n' } },
      { method: 'GET', path: `${path}/nowhere` },
      { path: `/1.1/date` },
      put('nowhere', { a: 1 }),
      put(id, { objectId: 'x' }),
      { method: 'GET', path: '/1.1/notifications?limit=1' },
    ]);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(body).toEqual([
      { success: { objectId: id24, createdAt: time } },
      { success: { objectId: id, updatedAt: time } },
      { success: { objectId: id, updatedAt: time, n: 5 } },
      { success: { objectId: id, n: 5, createdAt: time, updatedAt: time } },
      { success: null },
      { success: { __type: 'Date', iso: time } },
      error(1),
      error(117),
      error(403),
    ]);
  });

  test('accepts an object as the condition of a list', async () => {
    const id = await create({ flag: 'list' });
    const requests = [
      { method: 'GET', path, params: { where: { flag: 'list' }, limit: 1, count: 1 } },
      { method: 'GET', path: `${path}?where=${encodeURIComponent('{"flag":"none"}')}` },
    ];
    const { body } = await batch(requests, { master: true });
    expect(body).toEqual([
      { success: { results: [expect.objectContaining({ objectId: id })], count: 1 } },
      { success: { results: [] } },
    ]);
    expect((await batch(requests)).body).toEqual([error(403), error(403)]);
  });

  test('deletes several objects of one path', async () => {
    const ids = [await create(), await create()];
    const requests = [{ method: 'DELETE', path: `${path}/${ids.join(',')}`, body: {} }];
    expect((await batch(requests)).body).toEqual([error(403)]);
    expect((await batch(requests, { master: true })).body).toEqual([{ success: {} }]);
    expect(await get(ids[0] ?? '')).toEqual({});
  });

  test('deletes several users of one path, by their session or the master key', async () => {
    const [one, two] = [await signUp(api, app), await signUp(api, app)];
    const requests = [{ method: 'DELETE', path: `/1.1/classes/_User/${one.id},${two.id}` }];
    const bySession = { headers: { 'X-LC-Session': one.token } };
    expect((await batch(requests, bySession)).body).toEqual([error(206)]);
    expect(await one.me()).toMatchObject({ objectId: one.id });
    expect((await batch(requests, { master: true })).body).toEqual([{ success: {} }]);
    for (const user of [one, two]) expect((await user.me()).code).toBe(211);
  });

  test('calls functions, with replies and errors at their index', async () => {
    const host = await startFunctionHost();
    const own = await api.createApp({ functionsUrl: host.url });
    host.answers.set('/1.1/functions/adds', answerWith(200, { result: { n: 3 } }));
    host.answers.set('/1.1/call/refuses', answerWith(422, { code: 4711, error: 'not today' }));
    host.answers.set('/1.1/functions/odd', answerWith(200, '<p>', { 'content-type': 'text/html' }));
    const { status, body } = await batch(
      [
        post({ a: 1 }, '/1.1/functions/adds'),
        post({}, '/1.1/call/refuses'),
        post({}, '/1.1/functions/odd'),
        post({}, '/1.1/functions/__before_save_for__User'),
        { method: 'GET', path: '/1.1/functions/_ops/metadatas' },
        post({ x: 'x'.repeat(8) }, '/1.1/functions/constructor'),
      ],
      { app: own, headers: { 'X-LC-Prod': '0' } },
    );
    expect(status).toBe(200);
    expect(body).toEqual([
      { success: { result: { n: 3 } } },
      { error: { code: 4711, error: 'not today' } },
      error(502),
      error(401),
      error(401),
      error(1),
    ]);
    expect(host.requests.map(({ path: asked }) => asked).sort()).toEqual([
      '/1.1/call/refuses',
      '/1.1/functions/adds',
      '/1.1/functions/odd',
    ]);
    for (const { headers } of host.requests)
      expect(headers).toMatchObject({
        'x-lc-id': own.appId,
        'x-lc-key': own.appKey,
        'x-lc-prod': '0',
      });
    const adds = host.requests.find(({ path: asked }) => asked.endsWith('adds'));
    expect(adds?.headers['content-length']).toBe('7');
    await host.close();
  });

  const bad: [string, unknown, number][] = [
    ['a number', 5, 107],
    ['a missing path', { method: 'GET' }, 1],
    ['a path that is a number', { method: 'GET', path: 5 }, 1],
    ['a method that is a number', { method: 5, path }, 1],
    ['a method of another world', { method: 'CONNECT', path }, 404],
    ['a path without a route', { method: 'GET', path: '/1.1/nothing' }, 404],
    ['a path outside', { method: 'GET', path: 'http://127.0.0.1/1.1/date' }, 404],
    ['the health page', { method: 'GET', path: '/healthz' }, 404],
    ['the admin API', { method: 'GET', path: '/console/api/apps' }, 404],
    ['the admin API by a detour', { method: 'GET', path: '/1.1/../console/api/apps' }, 1],
    ['a page of a mail', { method: 'GET', path: '/1.1/verifyEmail/x' }, 404],
    ['a batch', { method: 'POST', path: '/1.1/batch', body: { requests: [] } }, 1],
    ['a batch to save', { method: 'POST', path: '/1.1/batch/save', body: { requests: [] } }, 1],
    ['a body that is a list', { method: 'POST', path, body: [] }, 107],
    ['params that are a list', { method: 'GET', path, params: [1] }, 107],
    ['a path with a broken escape', { method: 'GET', path: `${path}/%E0%A4%A` }, -1],
  ];
  test.each(bad)('returns an error for the item: %s', async (_name, item, code) => {
    const { status, body } = await batch([item, { path: '/1.1/date' }], { master: true });
    expect(status).toBe(200);
    expect(body).toEqual([
      code === -1 ? expect.anything() : error(code),
      { success: expect.anything() },
    ]);
  });

  test('refuses anything except a list (107), long lists (116), wrong keys (401)', async () => {
    const codeOf = async (requests: unknown) => (await batch(requests)).body.code;
    expect(await codeOf({})).toBe(107);
    expect(await codeOf(undefined)).toBe(107);
    expect(await codeOf(Array.from({ length: 1001 }, () => ({ path: '/1.1/date' })))).toBe(116);
    const foreign = { ...app, appKey: 'wrong' };
    expect(await batch([], { app: foreign })).toMatchObject({ status: 401 });
    expect(await batch([])).toMatchObject({ status: 200, body: [] });
  });

  test('uses only the keys and the session of the outer call', async () => {
    const [one, other] = [await signUp(api, app), await signUp(api, app)];
    const requests = [
      { method: 'PUT', path: `/1.1/users/${one.id}`, body: { a: 1 } },
      {
        method: 'PUT',
        path: `/1.1/classes/_User/${other.id}`,
        body: { a: 1 },
        headers: { 'X-LC-Session': other.token },
      },
      { method: 'GET', path: '/1.1/users/me' },
      { method: 'GET', path: '/1.1/scheduledPushMessages' },
    ];
    const own = await batch(requests, { headers: { 'X-LC-Session': one.token } });
    expect(own.body).toEqual([
      { success: { objectId: one.id, updatedAt: time } },
      error(206),
      { success: expect.objectContaining({ objectId: one.id, sessionToken: one.token }) },
      error(403),
    ]);
    expect((await batch(requests)).body).toEqual([error(206), error(206), error(211), error(403)]);
    const master = await batch(requests, { master: true });
    expect(master.body.slice(0, 2)).toEqual([
      { success: { objectId: one.id, updatedAt: time } },
      { success: { objectId: other.id, updatedAt: time } },
    ]);
  });

  test('refuses items after an item that ends the session', async () => {
    const user = await signUp(api, app);
    const { body } = await batch(
      [
        { method: 'PUT', path: `/1.1/users/${user.id}/refreshSessionToken` },
        { method: 'PUT', path: `/1.1/users/${user.id}`, body: { a: 1 } },
      ],
      { headers: { 'X-LC-Session': user.token } },
    );
    expect(body).toEqual([{ success: expect.objectContaining({ objectId: user.id }) }, error(206)]);
  });

  test('counts each push in a batch towards the rate', async () => {
    const slow = await api.createApp({ pushCallsPerMinute: 10 });
    const push = post({ data: { alert: 'hi' }, where: { unknown: true } }, '/1.1/push');
    const { body } = await batch(
      Array.from({ length: 12 }, () => push),
      { app: slow, master: true },
    );
    const codes = body.map((item: { error?: { code: number } }) => item.error?.code ?? 0).sort();
    expect(codes).toEqual([...Array(10).fill(0), 429, 429]);
    expect(
      await api.request('POST', '/1.1/push', { app: slow, master: true, body: push.body }),
    ).toMatchObject({
      status: 429,
    });
    expect((await batch([push], { app: slow })).body).toEqual([error(403)]);
  });

  test('limits the body of an item like a single call', async () => {
    const push = post({ data: { alert: 'x'.repeat(4096) } }, '/1.1/push');
    expect((await batch([push], { master: true })).body).toEqual([error(116)]);
  });

  test('keeps the order of writes to one object, and of reads and writes', async () => {
    const id = await create({ log: [] });
    const many = Array.from({ length: 60 }, (_, n) =>
      put(id, { log: { __op: 'Add', objects: [n] } }),
    );
    await batch(many);
    expect((await get(id)).log).toEqual(Array.from({ length: 60 }, (_, n) => n));
    const device = newDevice();
    const { body } = await batch(
      [
        post({ ...device, step: 1 }),
        post({ ...device, step: 2 }),
        { method: 'GET', path, params: { where: { installationId: device.installationId } } },
        { method: 'POST', path, body: { ...device, step: 3 } },
      ],
      { master: true },
    );
    expect(body[2].success.results).toEqual([expect.objectContaining({ step: 2 })]);
    expect((await get(body[0].success.objectId)).step).toBe(3);
  });

  test('accepts more calls than can run in parallel', async () => {
    const { body } = await batch(Array.from({ length: 120 }, () => post(newDevice())));
    const ids = body.map((item: { success: { objectId: string } }) => item.success.objectId);
    expect(new Set(ids).size).toBe(120);
  });

  test('is accepted in the text form of old browsers', async () => {
    const reply = await api.request('POST', '/1.1/batch', {
      headers: { 'Content-Type': 'text/plain' },
      body: JSON.stringify({
        _ApplicationId: app.appId,
        _ApplicationKey: app.appKey,
        requests: [{ path: '/1.1/date' }],
      }),
    });
    expect(reply.body).toEqual([{ success: expect.objectContaining({ __type: 'Date' }) }]);
  });

  test('writes refusals in the language of the caller', async () => {
    const { body } = await batch([post({ username: newName(), password: 'x' }, '/1.1/login')], {
      headers: { 'Accept-Language': 'zh-CN' },
    });
    expect(body[0].error.error).toMatch(/\p{Script=Han}/u);
  });
});

describe('POST /1.1/batch/save', () => {
  test('returns results by the internal id, and stores no control members', async () => {
    const device = newDevice();
    const first = await save([
      { ...post({ ...device, __internalId: 'uuid-1', __children: [] }), new: true },
    ]);
    expect(first).toMatchObject({
      status: 200,
      body: { 'uuid-1': { objectId: id24, createdAt: time } },
    });
    const { objectId } = first.body['uuid-1'];
    // The Swift SDK repeats a POST with its object id, and the Objective-C SDK sends PUT. Both
    // replies are keyed by that id.
    const again = await save([
      post({ ...device, objectId, n: 1, __internalId: objectId }),
      put(objectId, { n: { __op: 'Increment', amount: 2 }, __internalId: objectId }),
    ]);
    expect(again.body).toEqual({ [objectId]: { objectId, createdAt: time, updatedAt: time } });
    const stored = await get(objectId);
    expect(stored.n).toBe(3);
    expect(Object.keys(stored).filter((name) => name.startsWith('_'))).toEqual([]);
  });

  test('accepts pointers to children that the same batch creates, at any index', async () => {
    const [parent, child] = [newDevice(), newDevice()];
    const { body } = await save([
      post({
        ...parent,
        __internalId: 'p',
        __children: [{ className: '_Installation', cid: 'c', key: 'twin' }],
      }),
      post({ ...child, __internalId: 'c' }),
    ]);
    expect(await get(body.p.objectId)).toMatchObject({
      twin: { __type: 'Pointer', className: '_Installation', objectId: body.c.objectId },
    });
  });

  test('if one object fails, saves the others and none of its remaining parts', async () => {
    const [id, other] = [await create(), await create()];
    const { status, body } = await save([
      { method: 'DELETE', path, body: { __internalId: 'unfit' } },
      put(id, { objectId: 'x', __internalId: id }),
      post({ ...newDevice(), __internalId: 'a' }),
      put(id, { late: true, __internalId: id }),
      put(other, { n: 1 }),
      post({ ...newDevice(), channels: ['a b'] }),
      post({
        ...newDevice(),
        __internalId: 'b',
        __children: [{ className: '_Installation', cid: id, key: 'k' }],
      }),
    ]);
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        unfit: error(1),
        [id]: error(117),
        a: { objectId: id24, createdAt: time },
        [other]: { objectId: other, updatedAt: time },
        5: error(112),
        b: error(117),
      },
    });
    expect(await get(id)).not.toHaveProperty('late');
    expect((await get(other)).n).toBe(1);
  });

  test('returns the first refusal for the whole batch if nothing was saved', async () => {
    const id = await create();
    const { status, body } = await save([
      put(id, { objectId: 'x', __internalId: id }),
      put(id, { late: true, __internalId: id }),
      post({ channels: ['a b'], __internalId: 'a' }),
    ]);
    expect({ status, body }).toEqual({
      status: 400,
      body: { code: 117, error: expect.any(String) },
    });
    expect(await get(id)).not.toHaveProperty('late');
  });

  test.each([
    ['a ring of children', [child('a', 'b'), child('b', 'a')], 1],
    ['a child that is not there', [child('a', 'b')], 111],
    ['a child without a key', [post({ __children: [{ cid: 'x' }] })], 111],
    ['a read', [{ method: 'GET', path }], 1],
    ['a dictionary instead of a list', { a: 1 }, 107],
    ['a batch', [post({ requests: [] }, '/1.1/batch')], 1],
  ])('refuses %s', async (_name, requests, code) => {
    expect(await save(requests)).toMatchObject({ status: 400, body: { code } });
  });

  test('accepts members named like those of Object', async () => {
    const reply = await save([
      JSON.parse(
        `{"method":"POST","path":"${path}","body":{"deviceType":"android","installationId":"proto","__internalId":"__proto__"}}`,
      ),
    ]);
    expect(Object.hasOwn(reply.body, '__proto__')).toBe(true);
  });
});

function child(internalId: string, cid: string) {
  const children = [{ className: '_Installation', cid, key: 'twin' }];
  return {
    method: 'POST',
    path,
    body: { ...newDevice(), __internalId: internalId, __children: children },
  };
}
