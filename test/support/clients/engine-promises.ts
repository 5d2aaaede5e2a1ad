import { afterAll, beforeAll, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestApi } from '../api.ts';
import type { EngineHost } from '../servers/engine-hosts.ts';
import {
  enterWith,
  newName,
  newPhone,
  newUid,
  refusalOf,
  refused,
  signUp,
  type TestUser,
} from '../users.ts';

const stale = 'staletokenstaletokenstale';

/** Differences between engines. */
interface EngineManners {
  /** Member `seenBy` that `beforeSave` adds. */
  readonly name: string;
  /** Starts the function host of the app that `app` returns. */
  start(options: { app: () => App; apiUrl: string }): Promise<EngineHost>;
  readonly needsMasterKey?: boolean;
  /** Refusals of an unknown function, and of a function that fails without an error of its own. */
  readonly unknown: { readonly status: number; readonly code: number };
  readonly crashed: { readonly status: number; readonly code: number };
}

/**
 * Tests functions and hooks on a host (protocol/functions.md#answers-of-a-host): each hook of
 * `_User`, the user that the hook gets, and that no session is passed on.
 */
export function testEngine(
  api: TestApi,
  { name, start, unknown, crashed, ...manners }: EngineManners,
): void {
  let app: App;
  let host: EngineHost;
  /** User that is logged in at the client. */
  let current: TestUser;

  beforeAll(async () => {
    app = await api.createApp({
      functionsMasterKey: manners.needsMasterKey ?? false,
      emailVerification: true,
    });
    host = await start({ app: () => app, apiUrl: api.url });
    app = await api.services.apps.change(app.appId, { options: { functionsUrl: host.url } });
    current = await signUp(api, app);
  });
  afterAll(() => host?.close());

  const send = (path: string, body: object, token?: string, method = 'POST') =>
    api.request(method, `/1.1/${path}`, {
      app,
      ...(method === 'GET' ? {} : { body }),
      headers: token === undefined ? {} : { 'X-LC-Session': token },
    });
  const register = (more: object, token?: string) =>
    send('users', { username: newName(), password: 'a password', ...more }, token);
  const runOf = (hook: string, id: string) =>
    host.waitFor(`functions/${hook}`, ({ message }) => message.object?.objectId === id);
  const outbox = async (to: string) => {
    const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(to)}`;
    return (await api.request('GET', path, { admin: true })).body.results[0];
  };

  test.each(['functions', 'call'])('answers, even with an error, for /%s', async (encoding) => {
    const ok = await send(`${encoding}/hello`, { name: 'x' });
    expect(ok).toMatchObject({ status: 200, body: { result: { hello: 'x' } } });
    expect(ok.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const failed = await send(`${encoding}/fails`, {});
    expect(failed.status).toBeGreaterThanOrEqual(400);
    expect(failed.body).toEqual({ code: 4711, error: 'This function fails.' });
    const missing = await send(`${encoding}/unknown`, {});
    // The Java engine writes its code as a text.
    expect([missing.status, Number(missing.body.code)]).toEqual([unknown.status, unknown.code]);
    expect(refusalOf(await send(`${encoding}/crashes`, {}))).toEqual(
      refused(crashed.code, crashed.status),
    );
  });

  test('answers inside a batch, with a number as the code of an error', async () => {
    const requests = ['hello', 'fails', 'unknown', 'crashes'].map((one) => ({
      method: 'POST',
      path: `/1.1/functions/${one}`,
      body: {},
    }));
    const { body } = await send('batch', { requests });
    expect(body[0]).toEqual({ success: { result: { hello: null } } });
    expect(body[1]).toEqual({ error: { code: 4711, error: 'This function fails.' } });
    expect(body[2].error.code).toBe(unknown.code);
    expect(body[3].error.code).toBe(crashed.code);
  });

  test('lists its functions', async () => {
    const list = await api.request('GET', '/1.1/functions/_ops/metadatas', { app, master: true });
    expect(list.body.result).toContain('hello');
  });

  test('gets a valid session, and no invalid session', async () => {
    for (const [token, isSent] of [
      [current.token, true],
      [stale, false],
      [undefined, false],
    ] as const) {
      const before = host.runs.length;
      expect(await send('functions/hello', {}, token)).toMatchObject({ status: 200 });
      expect(host.runs.at(before)).toMatchObject({ path: 'functions/hello', hasSession: isSent });
    }
  });

  test('runs beforeSave and afterSave, and knows who is logged in', async () => {
    for (const [token, user] of [
      [current.token, { objectId: current.id }],
      [stale, null],
      [undefined, null],
    ] as const) {
      const created = await register({ settings: {}, tags: [] }, token);
      expect(created).toMatchObject({
        status: 201,
        body: { seenBy: name, settings: {}, tags: [] },
      });
      const { username } = created.body;
      const before = await host.waitFor(
        'functions/_User/beforeSave',
        ({ message }) => message.object?.username === username,
      );
      const after = await runOf('_User/afterSave', created.body.objectId);
      for (const run of [before, after]) {
        expect(run.hasSession).toBe(false);
        expect(run.message.user).toEqual(user);
      }
      const stored = await api.request('GET', `/1.1/users/${created.body.objectId}`, {
        app,
        master: true,
      });
      for (const member of ['__before', '__after', '__sign', '_updatedKeys'])
        expect(stored.body).not.toHaveProperty(member);
    }
  });

  test('refuses with its own text', async () => {
    const reply = await register({ nickname: 'refused' }, stale);
    expect(reply).toMatchObject({
      status: 400,
      body: { code: 142, error: 'Cloud Code validation failed. Error detail : no such nickname' },
    });
  });

  test('runs the hooks of a change by the user or the master key', async () => {
    const user = await signUp(api, app);
    expect((await user.put({ city: 'Chengdu' })).status).toBe(200);
    for (const hook of ['beforeUpdate', 'afterUpdate']) {
      const { message, hasSession } = await runOf(`_User/${hook}`, user.id);
      expect(message).toMatchObject({
        user: { objectId: user.id },
        object: { _updatedKeys: ['city'] },
      });
      expect(hasSession).toBe(false);
    }
    const byMaster = await api.request('PUT', `/1.1/users/${user.id}`, {
      app,
      master: true,
      headers: { 'X-LC-Session': stale },
      body: { city: 'Xi’an' },
    });
    expect(byMaster.status).toBe(200);
  });

  test('runs beforeDelete and afterDelete of a user that deletes itself', async () => {
    const user = await signUp(api, app);
    expect((await user.request('DELETE', `/1.1/users/${user.id}`)).status).toBe(200);
    for (const hook of ['beforeDelete', 'afterDelete']) {
      const { message } = await runOf(`_User/${hook}`, user.id);
      expect(message.user).toEqual({ objectId: user.id });
    }
  });

  test('runs onLogin and onAuthData', async () => {
    const user = await signUp(api, app);
    const body = { username: user.body.username, password: 'a password' };
    expect((await send('login', body, stale)).status).toBe(200);
    expect((await runOf('_User/onLogin', user.id)).message.user).toBeNull();
    const uid = newUid();
    await enterWith(api, app, { github: { uid, access_token: 'token' } });
    const linked = await host.waitFor(
      'functions/_User/onAuthData',
      ({ message }) => message.authData?.github?.uid === uid,
    );
    expect(linked.message.user).toBeNull();
    const other = newUid();
    expect(
      (await user.put({ authData: { github: { uid: other, access_token: 't' } } })).status,
    ).toBe(200);
    const own = await host.waitFor(
      'functions/_User/onAuthData',
      ({ message }) => message.authData?.github?.uid === other,
    );
    expect(own.message.user).toEqual({ objectId: user.id });
  });

  test('runs onVerified for a number and for an address', async () => {
    const phone = newPhone();
    const email = `${newName()}@example.com`;
    const user = await signUp(api, app, { mobilePhoneNumber: phone, email });
    await fetch(`${api.url}${new URL((await outbox(email)).link).pathname}`);
    const byMail = await runOf('onVerified/email', user.id);
    expect(byMail.message).toMatchObject({ object: { emailVerified: true }, user: null });
    expect((await send('requestMobilePhoneVerify', { mobilePhoneNumber: phone })).status).toBe(200);
    const { code } = await outbox(phone);
    const verified = await user.request('POST', `/1.1/verifyMobilePhone/${code}`, {
      mobilePhoneNumber: phone,
    });
    expect(verified.status).toBe(200);
    const byCode = await runOf('onVerified/sms', user.id);
    expect(byCode.message).toMatchObject({
      user: { objectId: user.id },
      object: { mobilePhoneVerified: true },
    });
  });
}
