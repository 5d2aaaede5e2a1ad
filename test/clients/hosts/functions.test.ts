import AV from 'leancloud-storage';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startEngine, type TestEngine } from '../../support/sdk/engine.ts';
import { refusalOf, refused, signUp } from '../../support/users.ts';

/**
 * Tests both ends that apps use: the JavaScript SDK calls and `leanengine` runs the functions.
 * Carillon is in between.
 */
let api: TestApi;
let app: App;
let engine: TestEngine;
let close: () => Promise<void>;

beforeAll(async () => {
  const database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
  app = await api.createApp();
  engine = await startEngine(app, { apiUrl: api.url });
  app = await api.services.apps.change(app.appId, { options: { functionsUrl: engine.url } });
  const { appId, appKey, masterKey } = app;
  AV.init({ appId, appKey, masterKey, serverURL: api.url });
  close = async () => {
    await engine.close();
    await api.close();
    await database.drop();
  };
});
afterAll(() => close());

const call = (name: string, request: Parameters<TestApi['request']>[2] = {}) =>
  api.request('POST', `/1.1/functions/${name}`, { app, body: {}, ...request });

test("a function's errors and an unknown name are reported to the caller", async () => {
  expect(await call('refuses')).toMatchObject({
    status: 422,
    body: { code: 4711, error: 'not today' },
  });
  expect(await call('crashes')).toMatchObject({ status: 500, body: { code: 1 } });
  expect(await call('nothing')).toMatchObject({
    status: 404,
    body: { code: 1, error: "No such cloud function 'nothing'" },
  });
  await expect(AV.Cloud.run('refuses', {})).rejects.toMatchObject({ code: 4711 });
});

test('a function that never ends is 124 with HTTP 503', async () => {
  expect(refusalOf(await call('hangs'))).toEqual(refused(124, 503));
});

test('an invalid session gives no user, and a valid session gives the caller', async () => {
  const headers = { 'X-LC-Session': 'abcdefghijklmnopqrstuvwxy' };
  expect(await call('whoami', { headers })).toMatchObject({
    status: 200,
    body: { result: { user: null } },
  });
  const user = await signUp(api, app);
  const reply = await user.request('POST', '/1.1/functions/whoami', {});
  expect(reply.body.result).toEqual({
    user: user.id,
    address: '127.0.0.1',
    isMaster: false,
    stage: 1,
  });
});

test('internal functions and the list of names need the master key or the hook key', async () => {
  expect(refusalOf(await call('hidden'))).toEqual(refused(401, 401));
  expect((await call('hidden', { master: true })).body).toEqual({ result: 'seen' });
  expect((await call('hidden', { headers: { 'X-LC-Hook-Key': app.hookKey } })).body).toEqual({
    result: 'seen',
  });
  const list = await api.request('GET', '/1.1/functions/_ops/metadatas', { app, master: true });
  expect(list.body.result).toEqual(expect.arrayContaining(['echo', 'hidden']));
});

test('the SDK runs a function with plain arguments, by its signed requests', async () => {
  const sent = { text: 'text', list: [1, { a: null }] };
  expect(await AV.Cloud.run('echo', sent)).toEqual(sent);
  expect(await AV.Cloud.run('echo', {})).toEqual({});
  expect(await AV.Cloud.run('whoami', {}, { useMasterKey: true })).toMatchObject({
    isMaster: true,
  });
  AV.setProduction(false);
  expect(await AV.Cloud.run('whoami', {})).toMatchObject({ stage: 0 });
  AV.setProduction(true);
});

test('the SDK sends and gets objects by rpc: single, several, and nested', async () => {
  const thing = AV.Object.createWithoutData('Thing', 'xyz');
  thing.set('colour', 'blue');
  const described = { isObject: true, className: 'Thing', id: 'xyz', isDate: true };
  expect(await AV.Cloud.rpc('describe', { thing, when: new Date() })).toMatchObject(described);
  const isThing = (value: unknown) => {
    expect(value).toBeInstanceOf(AV.Object);
    const object = value as AV.Object;
    expect([object.id, object.get('colour'), object.get('when')]).toEqual([
      'abc',
      'red',
      new Date('2026-01-02T03:04:05.678Z'),
    ]);
  };
  isThing(await AV.Cloud.rpc('things', {}));
  const many: unknown[] = await AV.Cloud.rpc('things', { many: true });
  expect(many).toHaveLength(2);
  many.forEach(isThing);
  const { inner } = await AV.Cloud.rpc('things', { nested: true });
  isThing(inner);
});

test('objects reach the caller in their encoding: Object outside, Pointer inside', async () => {
  const rpc = (body: object) => api.request('POST', '/1.1/call/things', { app, body });
  const whole = { className: 'Thing', objectId: 'abc', colour: 'red' };
  const when = { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' };
  expect((await rpc({})).body.result).toMatchObject({ ...whole, __type: 'Object', when });
  expect((await rpc({ many: true })).body.result[1]).toMatchObject({
    ...whole,
    __type: 'Object',
    when,
  });
  expect((await rpc({ nested: true })).body.result).toMatchObject({
    n: 1,
    inner: { ...whole, __type: 'Pointer' },
  });
});

testTableRow({
  name: 'JavaScript (`leancloud-storage`, npm)',
  version: npmVersion('leancloud-storage'),
  topics: ['functions', 'rpc'],
});
testTableRow({
  name: 'Node function engine (`leanengine`, npm)',
  version: npmVersion('leanengine'),
  topics: ['functions', 'rpc', 'errors'],
});
