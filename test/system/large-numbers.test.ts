import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadRoutes } from '../../api/route-loader.ts';
import { connectDevices } from '../../ops/sandbox/devices/devices.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { type AllVendors, startVendors } from '../support/gateways/all-vendors.ts';
import { createRole, withWhere } from '../support/roles.ts';
import { useTestService } from '../support/service.ts';
import { signUp } from '../support/users.ts';

/** Integers that a double cannot represent. `JSON.parse` reads both as 7091800003790954000. */
const [large, neighbour] = [7091800003790954036n, 7091800003790954037n];

let vendors: AllVendors;
const service = useTestService();
beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(() => vendors.close());

const request = (method: string, path: string, app: App, body?: unknown) =>
  service.api.request(method, path, { app, master: true, ...(body === undefined ? {} : { body }) });

test('numbers of a push reach every gateway and channel device with all digits', async () => {
  const app = await vendors.app();
  for (const { connector } of vendors.instances) await vendors.add(app, connector, 1);
  const own = randomUUID();
  const device = { deviceType: 'android', installationId: own };
  expect((await request('POST', '/1.1/installations', app, device)).status).toBe(201);
  const received: unknown[] = [];
  const devices = await connectDevices({
    apiUrl: service.api.url,
    appId: app.appId,
    installationIds: [own],
    onMessage: (_, content) => void received.push(content),
  });
  const data = { alert: 'Hello', title: 'News', order: large, nested: { ids: [neighbour] } };
  const { status, body } = await request('POST', '/1.1/push', app, { data });
  expect([status, body]).toEqual([200, expect.objectContaining({ objectId: expect.any(String) })]);
  await service.untilDone(app, body.objectId);
  for (const { connector, requests } of vendors.instances) {
    const sent = requests().map((one) =>
      decodeURIComponent(one.body.toString('utf8').replaceAll('+', ' ')),
    );
    for (const number of [large, neighbour])
      expect([connector, sent.some((text) => text.includes(String(number)))]).toEqual([
        connector,
        true,
      ]);
  }
  await devices.acked(1);
  expect(received).toEqual([
    expect.objectContaining({ order: large, nested: { ids: [neighbour] } }),
  ]);
  const record = await request('GET', `/1.1/notifications/${body.objectId}`, app);
  expect(record.body.msg).toMatchObject({ order: large, nested: { ids: [neighbour] } });
  await devices.close();
});

describe('numbers of stored objects keep all digits', () => {
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp({ allowUserQuery: true });
  });

  const create: Record<string, () => Promise<string>> = {
    '/1.1/installations': async () => {
      const body = {
        deviceType: 'android',
        installationId: randomUUID(),
        big: large,
        list: [large],
      };
      return (await request('POST', '/1.1/installations', app, body)).body.objectId;
    },
    '/1.1/users': async () => (await signUp(service.api, app, { big: large, list: [large] })).id,
    '/1.1/roles': async () =>
      (await createRole(service.api, app, { big: large, list: [large] })).id,
  };

  test.each(Object.keys(create))('%s', async (path) => {
    const id = await create[path]?.();
    const one = `${path}/${id}`;
    const stored = async () => (await request('GET', one, app)).body;
    expect(await stored()).toMatchObject({ big: large, list: [large] });
    const change = {
      big: { __op: 'Increment', amount: 1 },
      list: { __op: 'AddUnique', objects: [large, neighbour] },
      'inner.n': neighbour,
    };
    expect((await request('PUT', one, app, change)).status).toBe(200);
    expect(await stored()).toMatchObject({
      big: neighbour,
      list: [large, neighbour],
      inner: { n: neighbour },
    });
    const inBatch = { requests: [{ method: 'PUT', path: one, body: { big: large } }] };
    expect((await request('POST', '/1.1/batch', app, inBatch)).status).toBe(200);
    expect(await stored()).toMatchObject({ big: large });
  });

  const matching: [string, object, number][] = [
    ['the number', { big: large }, 1],
    ['its neighbour', { big: neighbour }, 0],
    ['$in', { big: { $in: [neighbour, large] } }, 1],
    ['$ne', { big: { $ne: large } }, 0],
    ['$gt the number', { big: { $gt: large } }, 0],
    ['$gte the number', { big: { $gte: large } }, 1],
    ['$lt its neighbour', { big: { $lt: neighbour } }, 1],
    ['an object', { inner: { n: neighbour } }, 1],
    ['another object', { inner: { n: large } }, 0],
    ['$all', { list: { $all: [large, neighbour] } }, 1],
  ];
  test.each(matching)('and a condition finds exactly %s', async (_, where, count) => {
    for (const path of Object.keys(create)) {
      const { body } = await request('GET', withWhere(path, where, { count: '1' }), app);
      expect([path, body.count]).toEqual([path, count]);
    }
    const audience = { admin: true, body: { where } };
    const counted = await service.api.request(
      'POST',
      `/console/api/apps/${app.appId}/audience`,
      audience,
    );
    expect(counted.body).toMatchObject({ devices: count });
    for (const target of [where, JSON.stringify(where)]) {
      const body = { where: target, data: { alert: 'Hello' } };
      const push = await request('POST', '/1.1/push', app, body);
      expect(await service.untilDone(app, push.body.objectId)).toMatchObject({ devices: count });
    }
  });

  test.each([
    [`select count(*) from _Installation where big = ${large}`, undefined, 1],
    [`select count(*) from _Installation where big = ${neighbour}`, undefined, 0],
    ['select count(*) from _Installation where big = ?', `[${large}]`, 1],
    ['select count(*) from _Installation where big = ?', `[${neighbour}]`, 0],
  ])('and CQL finds exactly the number: %s', async (cql, pvalues, count) => {
    const query = new URLSearchParams({ cql, ...(pvalues === undefined ? {} : { pvalues }) });
    const { status, body } = await request('GET', `/1.1/cloudQuery?${query}`, app);
    expect([status, body.count]).toEqual([200, count]);
  });
});

test.each([
  [
    'push-templates',
    { body: { data: { alert: 'Hello', order: large }, where: { big: neighbour } } },
  ],
  ['audiences', { where: { big: large } }],
])('saved %s keep all digits', async (kind, content) => {
  const app = await service.api.createApp();
  const path = `/console/api/apps/${app.appId}/${kind}`;
  await service.api.request('PUT', `${path}/one`, { admin: true, body: content });
  const { body } = await service.api.request('GET', path, { admin: true });
  expect(body.results).toEqual([expect.objectContaining(content)]);
});

test('every JSON route refuses numbers that it cannot represent, by path', async () => {
  const routes = (await loadRoutes()).filter(({ body, hasRawBody }) => body && !hasRawBody);
  expect(routes.length).toBeGreaterThan(50);
  for (const { method, operation, paths, auth } of routes) {
    const app = await service.api.createApp();
    const path = (paths[0] ?? '').replace(':appId', app.appId).replace(/:\w+/g, 'x');
    const credentials = auth === 'admin' ? { admin: true } : { app, master: true };
    for (const [text, at] of [
      ['{"a":{"b":[0,1e400]}}', 'a.b.1'],
      ['{"a":[9007199254740993.5]}', 'a.0'],
      ['{"a":{"b":1e-400}}', 'a.b'],
    ]) {
      const { status, body } = await service.api.request(method, path, {
        ...credentials,
        body: text,
      });
      const refusal = [operation, status, body?.error];
      expect(refusal).toEqual([
        operation,
        400,
        expect.stringMatching(`^${at}: this number cannot be kept`),
      ]);
    }
  }
});
