import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import type { App, AppOptionsPatch } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startEngine, type TestEngine } from '../../support/sdk/engine.ts';
import { answerWith, startFunctionHost } from '../../support/servers/function-host.ts';
import {
  enterWith,
  newName,
  newPhone,
  newUid,
  refusalOf,
  refused,
  signUp,
  TestUser,
  visibleAuthData,
} from '../../support/users.ts';

/**
 * Tests the hooks of `_User` on a real `leanengine` (protocol/functions.md#hooks): first refusals,
 * then what hooks see and change.
 */
let api: TestApi;
let app: App;
let engine: TestEngine;
let close: () => Promise<void>;

beforeAll(async () => {
  const database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
  const bare = await api.createApp({ emailVerification: true });
  engine = await startEngine(bare, { apiUrl: api.url, withHooks: true });
  app = await api.services.apps.change(bare.appId, { options: { functionsUrl: engine.url } });
  close = async () => {
    await api.close();
    await engine.close();
    await database.drop();
  };
});
afterAll(() => close());

const register = (more: object, headers: Record<string, string> = {}, to: App = app) =>
  api.request('POST', '/1.1/users', {
    app: to,
    headers,
    body: { username: newName(), password: 'a password', ...more },
  });
const login = (username: string) =>
  api.request('POST', '/1.1/login', { app, body: { username, password: 'a password' } });
const entryOf = (uid: string) => ({ uid, access_token: 'token', expires_in: 7200 });
const lastRun = (hook: string) => engine.ran.findLast((one) => one.hook === hook);
const runsOf = (hook: string, id: string) =>
  engine.ran.filter((one) => one.hook === hook && one.object?.objectId === id).length;

async function codeFor(to: string): Promise<string> {
  const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(to)}`;
  return (await api.request('GET', path, { admin: true })).body.results[0].code;
}

describe('a hook refuses', () => {
  const message = 'Cloud Code validation failed. Error detail : no such nickname';

  test('a new user, for every way of sign-up: 142 with its message, and no user', async () => {
    const username = newName();
    const reply = await register({ username, nickname: 'refused' });
    expect(reply).toMatchObject({ status: 400, body: { code: 142, error: message } });
    const authData = { github: entryOf(newUid()) };
    const third = await api.request('POST', '/1.1/users', {
      app,
      body: { authData, nickname: 'refused' },
    });
    expect(third).toMatchObject({ status: 400, body: { code: 142, error: message } });
    const where = encodeURIComponent(JSON.stringify({ nickname: 'refused' }));
    const found = await api.request('GET', `/1.1/users?where=${where}`, { app, master: true });
    expect(found.body.results).toEqual([]);
  });

  test('a change and the deletion of a user: the user stays', async () => {
    const user = await signUp(api, app, { nickname: 'kept' });
    expect((await user.put({ nickname: 'refused', more: 1 })).body).toMatchObject({
      code: 142,
      error: message,
    });
    const kept = await user.request('DELETE', `/1.1/users/${user.id}`);
    expect(kept).toMatchObject({ status: 400, body: { code: 142 } });
    expect(kept.body.error).toContain('this one stays');
    const me = await user.me();
    expect(me).toMatchObject({ nickname: 'kept' });
    expect(me.more).toBeUndefined();
  });

  test('a login, with 401 and without a session', async () => {
    const user = await signUp(api, app, { nickname: 'barred' });
    const reply = await login(user.body.username);
    expect(refusalOf(reply)).toEqual(refused(401, 401));
    expect(reply.body.error).toContain('barred');
    expect(JSON.stringify(reply.body)).not.toContain(user.token);
    const authData = { github: entryOf(newUid()) };
    expect((await user.put({ authData })).status).toBe(200);
    const again = await api.request('POST', '/1.1/users', { app, body: { authData } });
    expect(refusalOf(again)).toEqual(refused(401, 401));
  });

  test('platform accounts, at sign-up and when they are linked', async () => {
    const authData = { forbidden: entryOf(newUid()) };
    expect(refusalOf(await api.request('POST', '/1.1/users', { app, body: { authData } }))).toEqual(
      refused(142),
    );
    const user = await signUp(api, app);
    expect(refusalOf(await user.put({ authData }))).toEqual(refused(142));
    expect((await user.me()).authData).toBeUndefined();
  });

  test('invalid changes of a hook to a user', async () => {
    const reply = await register({ nickname: 'odd' });
    expect(refusalOf(reply)).toEqual(refused(142));
    expect(reply.body.error).toContain('phone number');
  });
});

describe('a hook that takes too long', () => {
  test('returns 141, and no user is created', async () => {
    const reply = await register({ nickname: 'slow' });
    expect(refusalOf(reply)).toEqual(refused(141));
    expect(reply.body.error).toContain('beforeSave');
  });

  test('delays a login by three seconds if its host never answers, and no other call', async () => {
    const host = await startFunctionHost();
    host.answers.set(
      '/1.1/functions/_ops/metadatas',
      answerWith(200, { result: ['__on_login__User'] }),
    );
    host.answers.set('/1.1/functions/_User/onLogin', (request) => void request.resume());
    const stuck = await api.createApp({ functionsUrl: host.url });
    const username = newName();
    await register({ username }, {}, stuck);
    const body = { username, password: 'a password' };
    expect(refusalOf(await api.request('POST', '/1.1/login', { app: stuck, body }))).toEqual(
      refused(141),
    );
    await host.close();
  });
});

describe('an unreachable host', () => {
  const on = async (options: AppOptionsPatch) => register({}, {}, await api.createApp(options));

  test('fails calls with hooks: 503, unless it has no list of names at all', async () => {
    const host = await startFunctionHost();
    const list = '/1.1/functions/_ops/metadatas';
    for (const answer of [
      answerWith(500, {}),
      answerWith(401, {}),
      answerWith(200, 'no JSON'),
      answerWith(302, {}),
    ]) {
      host.answers.set(list, answer);
      expect(refusalOf(await on({ functionsUrl: host.url }))).toEqual(refused(503, 503));
    }
    host.answers.set(list, answerWith(404, {}));
    expect((await on({ functionsUrl: host.url })).status).toBe(201);
    await host.close();
    expect(refusalOf(await on({ functionsUrl: host.url }))).toEqual(refused(503, 503));
  });

  test('gets one request for its names for many calls, with the hook key only', async () => {
    const host = await startFunctionHost();
    host.answers.set('/1.1/functions/_ops/metadatas', answerWith(200, { result: [] }));
    const quiet = await api.createApp({ functionsUrl: host.url });
    const replies = await Promise.all([1, 2, 3, 4].map(() => register({}, {}, quiet)));
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(host.requests.map(({ path }) => path)).toEqual(['/1.1/functions/_ops/metadatas']);
    const headers = host.requests[0]?.headers ?? {};
    expect(headers).toMatchObject({ 'x-lc-id': quiet.appId, 'x-lc-hook-key': quiet.hookKey });
    expect(JSON.stringify(headers)).not.toContain(quiet.masterKey);
    // The signature that engines read gives no access here.
    const sent = String(headers['x-lc-sign']);
    for (const sign of [sent, sent.replace('hooks-', ''), sent.replace(',master', '')]) {
      const asHost = { 'X-LC-Id': quiet.appId, 'X-LC-Sign': sign };
      expect((await api.request('GET', '/1.1/users', { headers: asHost })).status).toBe(401);
    }
    await host.close();
  });

  test('gets the master key if the app has the option for engines that compare it', async () => {
    const host = await startFunctionHost();
    host.answers.set('/1.1/functions/_ops/metadatas', answerWith(200, { result: [] }));
    const open = await api.createApp({ functionsUrl: host.url, functionsMasterKey: true });
    expect((await register({}, {}, open)).status).toBe(201);
    const keys = { 'x-lc-key': `${open.masterKey},master`, 'x-lc-hook-key': open.hookKey };
    expect(host.requests[0]?.headers).toMatchObject(keys);
    expect(host.requests[0]?.headers['x-lc-sign']).toBeUndefined();
    await host.close();
  });

  test('with a staging header does not bypass the hooks of production', async () => {
    expect(refusalOf(await register({ nickname: 'refused' }, { 'X-LC-Prod': '0' }))).toEqual(
      refused(142),
    );
  });
});

describe('hooks see and change', () => {
  test('a user before and after its creation, without a password', async () => {
    const username = newName();
    const reply = await register({ username, nickname: 'new' });
    expect(reply).toMatchObject({
      status: 201,
      body: { greeting: `Hello ${username}`, nickname: 'new' },
    });
    expect(lastRun('beforeSave')?.object).toMatchObject({ username, nickname: 'new' });
    const { object } = await engine.waitFor('afterSave', reply.body.objectId);
    expect(object).toMatchObject({ username, greeting: `Hello ${username}` });
    expect(JSON.stringify(engine.ran)).not.toContain('a password');
    expect(JSON.stringify(engine.ran)).not.toContain(reply.body.sessionToken);
  });

  test('a third-party account', async () => {
    const uid = newUid();
    const user = await enterWith(api, app, { renamed: entryOf(uid) });
    // The reply returns what the client sent and the hook kept.
    expect(user.body.authData).toEqual({ renamed: entryOf(`host-${uid}`) });
    expect(lastRun('onAuthData')?.authData).toEqual({ renamed: entryOf(uid) });
    expect((await enterWith(api, app, { renamed: entryOf(uid) })).id).toBe(user.id);
    const { object } = await engine.waitFor('onLogin', user.id);
    // Only the hook that checks tokens receives them.
    expect(object?.authData).toEqual(visibleAuthData({ renamed: entryOf(`host-${uid}`) }));
    const others = engine.ran.filter(({ hook }) => hook !== 'onAuthData');
    expect(JSON.stringify(others)).not.toContain('access_token');
  });

  test('a change and a deletion, with the caller and the changed members', async () => {
    const user = await signUp(api, app);
    await user.put({ colour: 'red', 'deep.inner': 1 });
    expect(lastRun('beforeUpdate')).toMatchObject({ keys: ['colour', 'deep'], by: user.id });
    expect(lastRun('beforeUpdate')?.object).toMatchObject({ objectId: user.id, colour: 'red' });
    const after = await engine.waitFor('afterUpdate', user.id);
    expect(after).toMatchObject({
      keys: ['colour', 'deep'],
      object: { colour: 'red', deep: { inner: 1 } },
    });
    expect((await user.request('DELETE', `/1.1/users/${user.id}`)).status).toBe(200);
    await engine.waitFor('beforeDelete', user.id);
    expect((await engine.waitFor('afterDelete', user.id)).object).toMatchObject({ colour: 'red' });
  });

  test('a login by password and by phone, once each', async () => {
    const user = await signUp(api, app);
    expect(runsOf('onLogin', user.id)).toBe(0);
    expect((await login(user.body.username)).status).toBe(200);
    expect(runsOf('onLogin', user.id)).toBe(1);
    expect(lastRun('onLogin')?.object).toMatchObject({ username: user.body.username });
  });

  test('a verified number, and a user created by its number', async () => {
    const mobilePhoneNumber = newPhone();
    await api.request('POST', '/1.1/requestSmsCode', { app, body: { mobilePhoneNumber } });
    const smsCode = await codeFor(mobilePhoneNumber);
    const created = await api.request('POST', '/1.1/usersByMobilePhone', {
      app,
      body: { mobilePhoneNumber, smsCode },
    });
    expect(created).toMatchObject({
      status: 201,
      body: { greeting: `Hello ${mobilePhoneNumber}` },
    });
    await engine.waitFor('afterSave', created.body.objectId);

    const number = newPhone();
    const user = await signUp(api, app, { mobilePhoneNumber: number });
    await api.request('POST', '/1.1/requestMobilePhoneVerify', {
      app,
      body: { mobilePhoneNumber: number },
    });
    const code = await codeFor(number);
    const path = `/1.1/verifyMobilePhone/${code}`;
    expect((await user.request('POST', path, { mobilePhoneNumber: number })).status).toBe(200);
    const { object } = await engine.waitFor('onVerified/sms', user.id);
    expect(object).toMatchObject({ mobilePhoneVerified: true });
  });

  test('a verified e-mail address', async () => {
    const email = `${newName()}@example.com`;
    const user = await signUp(api, app, { email });
    const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(email)}`;
    const [{ link }] = (await api.request('GET', path, { admin: true })).body.results;
    const { pathname } = new URL(link);
    expect((await api.request('GET', pathname)).status).toBe(200);
    expect((await engine.waitFor('onVerified/email', user.id)).object).toMatchObject({
      emailVerified: true,
    });
  });
});

describe('a hook that creates another object of its class', () => {
  test('is refused with a message, delays no other app, and creates no user', async () => {
    const host = await startFunctionHost();
    const looping = await api.createApp({ functionsUrl: host.url });
    host.answers.set(
      '/1.1/functions/_ops/metadatas',
      answerWith(200, { result: ['__before_save_for__User'] }),
    );
    host.answers.set('/1.1/functions/_User/beforeSave', (request, response) => {
      const hookKey = String(request.headers['x-lc-hook-key']);
      void register({}, { 'X-LC-Hook-Key': hookKey }, looping).then((inner) =>
        answerWith(inner.status === 201 ? 200 : 400, inner.body)(request, response),
      );
    });
    const reply = await register({}, {}, looping);
    expect(refusalOf(reply)).toEqual(refused(142));
    expect(reply.body.error).toContain('does beforeSave of _User call itself?');
    const runs = host.requests.filter(({ path }) => path.endsWith('beforeSave')).length;
    expect(runs).toBe(33);
    const users = await api.request('GET', '/1.1/users?count=1&limit=0', {
      app: looping,
      master: true,
    });
    expect(users.body.count).toBe(0);
    host.answers.set('/1.1/functions/_User/beforeSave', answerWith(200, {}));
    const afterwards = await register({}, { 'X-LC-Hook-Key': looping.hookKey }, looping);
    expect(afterwards.status).toBe(201);
    await host.close();
  });
});

describe('__ignore_hooks', () => {
  const quiet = { __ignore_hooks: ['beforeSave', 'afterSave'], nickname: 'refused' };

  test('has no effect with the app key alone', async () => {
    expect(refusalOf(await register(quiet))).toEqual(refused(142));
  });

  test('works with the hook key and the master key', async () => {
    const byHost = await register(quiet, { 'X-LC-Hook-Key': app.hookKey });
    expect(byHost.status).toBe(201);
    expect(byHost.body.greeting).toBeUndefined();
    expect(byHost.body).not.toHaveProperty('__ignore_hooks');
    const body = { username: newName(), password: 'a password', ...quiet };
    expect((await api.request('POST', '/1.1/users', { app, master: true, body })).status).toBe(201);
  });

  test('works in the body of a DELETE, which needs no body', async () => {
    const user = await signUp(api, app, { nickname: 'kept' });
    const path = `/1.1/classes/_User/${user.id}`;
    const body = { __ignore_hooks: ['beforeDelete', 'afterDelete'] };
    expect(refusalOf(await user.request('DELETE', path, body))).toEqual(refused(142));
    expect(refusalOf(await user.request('DELETE', path, '{'))).toEqual(refused(107));
    const quietly = await api.request('DELETE', path, { app, master: true, body });
    expect(quietly).toMatchObject({ status: 200, body: {} });
    expect(refusalOf(await user.request('GET', path))).toEqual(refused(211));
    expect(runsOf('afterDelete', user.id)).toBe(0);
  });

  test('ends the recursion of hooks when the SDK writes in afterSave', async () => {
    const reply = await register({ nickname: 'written' });
    const user = new TestUser(api, app, reply.body);
    await expect.poll(async () => (await user.me()).writtenBack).toBe(true);
    expect(runsOf('afterSave', user.id)).toBe(1);
    expect(runsOf('afterUpdate', user.id)).toBe(0);
  });
});

testTableRow({
  name: 'Node function engine (`leanengine`, npm)',
  version: npmVersion('leanengine'),
  topics: ['hooks of `_User`'],
});
