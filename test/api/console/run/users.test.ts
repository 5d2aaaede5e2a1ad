import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const api = useTestApi();
let app: App;
let viewer: ConsoleCall;
let operator: ConsoleCall;
let user: { objectId: string; sessionToken: string };

const password = 'pass-word-1';
const members = {
  username: 'anna.b',
  password,
  email: 'anna@example.com',
  mobilePhoneNumber: '+8613800138000',
  nick: 'Annie',
  authData: {
    weixin: { openid: 'open-id-of-anna', access_token: 'platform-secret', expires_in: 7200 },
  },
};

beforeAll(async () => {
  app = await api.createApp();
  viewer = await callerOf(api, 'viewer');
  operator = await callerOf(api, 'operator');
  user = await signUp(members);
  await signUp({ username: 'li', password });
});

const signUp = async (body: object) =>
  (await api.request('POST', '/1.1/users', { app, master: true, body })).body;
const base = () => `/apps/${app.appId}/users`;
const query = (more: Record<string, string>) => `${base()}?${new URLSearchParams(more)}`;
const ids = (reply: { body: { results: { objectId: string }[] } }) =>
  reply.body.results.map(({ objectId }) => objectId);
const login = (word = password) =>
  api.request('POST', '/1.1/login', { app, body: { username: members.username, password: word } });
const act = (verb: string, body?: object) =>
  operator('POST', `${base()}/${user.objectId}/${verb}`, body ? { body } : {});

describe('the users of an app', () => {
  test('have pages, are counted, and are found by id, contact and condition', async () => {
    const first = await operator('GET', query({ limit: '1', count: '1' }));
    expect([first.body.results[0].username, first.body.count]).toEqual(['li', 2]);
    expect(ids(await operator('GET', query({ cursor: first.body.next })))).toEqual([user.objectId]);
    for (const q of [user.objectId, members.username, members.email, '138 0013 8000'])
      expect(ids(await operator('GET', query({ q }))), q).toEqual([user.objectId]);
    expect(ids(await operator('GET', query({ where: '{"nick":"Annie"}' })))).toEqual([
      user.objectId,
    ]);
    expect((await operator('GET', query({ where: '{"$x":1}' }))).status).toBe(400);
    expect((await operator('GET', query({ q: '\0' }))).status).toBe(400);
    expect((await operator('GET', '/apps/nowhere/users')).status).toBe(404);
  });

  test('are shown to operators without secrets, and shortened to viewers', async () => {
    const whole = await operator('GET', `${base()}/${user.objectId}`);
    expect(whole.body).toMatchObject({
      user: { username: members.username, email: members.email, nick: 'Annie' },
      identities: [{ platform: 'weixin', uid: 'open-id-of-anna' }],
      hasPassword: true,
      lock: { failures: 0, lockedUntil: null },
    });
    const seen = await viewer('GET', `${base()}/${user.objectId}`);
    expect(seen.body.user).toEqual({
      objectId: user.objectId,
      username: 'ann…',
      email: 'anna@e…',
      mobilePhoneNumber: '+86138…',
      emailVerified: whole.body.user.emailVerified,
      mobilePhoneVerified: false,
      createdAt: whole.body.user.createdAt,
      updatedAt: whole.body.user.updatedAt,
    });
    const texts = JSON.stringify([whole.body, seen.body]);
    expect(texts).not.toMatch(/platform-secret|sessionToken/);
    expect(JSON.stringify([seen.body, (await viewer('GET', base())).body])).not.toMatch(
      /Annie|anna@example|open-id/,
    );
    for (const id of ['nothing', '%00'])
      expect((await viewer('GET', `${base()}/${id}`)).status).toBe(404);
  });

  test('are not revealed to viewers by a condition or a guess', async () => {
    expect((await viewer('GET', query({ where: '{"email":"anna@example.com"}' }))).status).toBe(
      403,
    );
    for (const q of [members.username, members.email, members.mobilePhoneNumber])
      expect(ids(await viewer('GET', query({ q })))).toEqual([]);
    expect(ids(await viewer('GET', query({ q: user.objectId })))).toEqual([user.objectId]);
  });
});

describe('an operator', () => {
  test('unlocks a user', async () => {
    for (let i = 0; i < 7; i++) await login('wrong');
    expect((await login()).body.code).toBe(219);
    const { lock } = (await operator('GET', `${base()}/${user.objectId}`)).body;
    expect(lock).toEqual({ failures: 7, lockedUntil: expect.any(String) });
    expect((await act('unlock')).body).toEqual({});
    expect((await login()).status).toBe(200);
  });

  test('logs a user out immediately', async () => {
    const me = () =>
      api.request('GET', '/1.1/users/me', { app, headers: { 'X-LC-Session': user.sessionToken } });
    expect((await me()).status).toBe(200);
    await act('logout');
    expect((await me()).status).not.toBe(200);
    user.sessionToken = (await login()).body.sessionToken;
    expect((await me()).status).toBe(200);
  });

  test('marks contacts as verified, and mails a link', async () => {
    expect((await act('verify', { contact: 'x' })).status).toBe(400);
    await act('verify', { contact: 'mobilePhoneNumber' });
    await act('verify');
    const { body } = await operator('GET', `${base()}/${user.objectId}`);
    expect(body.user).toMatchObject({
      emailVerified: true,
      mobilePhoneVerified: true,
      nick: 'Annie',
    });
    expect((await login()).status).toBe(200);
    await act('send-reset');
    const outbox = await api.request('GET', `/console/api/apps/${app.appId}/outbox`, {
      admin: true,
    });
    expect(outbox.body.results[0]).toMatchObject({ to: members.email, type: 'resetPassword' });
    const replies = [];
    for (let i = 0; i < 10; i++) replies.push((await act('send-reset')).status);
    expect(replies.at(-1)).toBe(400);
    const other = (await operator('GET', query({ q: 'li' }))).body.results[0].objectId;
    expect((await operator('POST', `${base()}/${other}/verify`)).body.code).toBe(204);
    expect((await operator('POST', `${base()}/${other}/send-reset`)).body.code).toBe(204);
  });

  test('changes and deletes a user', async () => {
    const path = `${base()}/${user.objectId}`;
    expect(
      (await operator('PUT', path, { body: { nick: 'A', password: 'new-1' } })).body.user.nick,
    ).toBe('A');
    expect((await login('new-1')).status).toBe(200);
    const [entry] = (await api.request('GET', '/console/api/audit?limit=1', { admin: true })).body
      .results;
    expect(entry).toMatchObject({
      before: { nick: 'Annie' },
      after: { nick: 'A', password: '•••' },
    });
    expect((await operator('PUT', path, { body: { username: 'li' } })).body.code).toBe(202);
    expect((await viewer('DELETE', path)).status).toBe(403);
    expect((await operator('DELETE', path)).body).toEqual({});
    for (const [method, rest] of [
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/logout'],
      ['POST', '/verify'],
    ] as const)
      expect((await operator(method, path + rest, { body: {} })).status, method + rest).toBe(404);
  });
});
