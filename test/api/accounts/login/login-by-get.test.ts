import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi } from '../../../../api/start.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { testConfig } from '../../../support/api.ts';
import { changeUser } from '../../../support/tables.ts';
import { useTestApi } from '../../../support/test-api.ts';
import {
  newName,
  newPhone,
  refusalOf,
  refused,
  signUp,
  type TestUser,
} from '../../../support/users.ts';

/** Tests the login with its members in the query (protocol/users.md#login-by-get). */
const api = useTestApi();
const password = 'pass+word & 密码=1';
const email = 'get@example.com';
const mobilePhoneNumber = newPhone();
let app: App;
let user: TestUser;

beforeAll(async () => {
  app = await api.createApp();
  user = await signUp(api, app, { password, email, mobilePhoneNumber });
});

const queryOf = (members: Record<string, string>) => String(new URLSearchParams(members));
const get = (query: string, method = 'GET') => api.request(method, `/1.1/login?${query}`, { app });

describe('GET /1.1/login', () => {
  test('answers like POST, for each kind of user name', async () => {
    const names = { username: user.body.username, email, mobilePhoneNumber };
    for (const [name, value] of Object.entries(names)) {
      const members = { [name]: value, password };
      const posted = await api.request('POST', '/1.1/login', { app, body: members });
      const reply = await get(queryOf(members));
      expect(reply, name).toMatchObject({ status: 200, body: posted.body });
      expect(reply.headers.get('cache-control')).toBe('no-store');
      expect(posted.headers.get('cache-control')).toBe('no-store');
    }
  });

  test('logs in with a code', async () => {
    await changeUser(api.db, app, { mobilePhoneVerified: true }, user.id);
    await api.request('POST', '/1.1/requestLoginSmsCode', { app, body: { mobilePhoneNumber } });
    const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(mobilePhoneNumber)}`;
    const [{ code }] = (await api.request('GET', path, { admin: true })).body.results;
    expect((await get(queryOf({ mobilePhoneNumber, smsCode: code }))).body.objectId).toBe(user.id);
    expect(refusalOf(await get(queryOf({ mobilePhoneNumber, smsCode: code })))).toEqual(
      refused(603),
    );
  });

  test.each([
    ['', 200],
    ['username=', 200],
    [`username=${newName()}&password=x`, 211],
    ['username=a', 201],
    ['username=a&password=', 201],
    ['username=a&username=b&password=x', 217],
    ['username=a&password=x&password=y', 218],
    ['username[$ne]=a&password=x', 200],
    ['mobilePhoneNumber=1&password=x', 127],
  ])('refuses like POST: %s is %i', async (query, code) => {
    expect(refusalOf(await get(query))).toEqual(refused(code));
  });

  test('refuses a wrong password, and counts it towards the lock', async () => {
    const { body } = await signUp(api, app, { password });
    const wrong = queryOf({ username: body.username, password: 'wrong' });
    for (let i = 0; i < 6; i += 1) expect(refusalOf(await get(wrong))).toEqual(refused(210));
    expect(refusalOf(await get(wrong))).toEqual(refused(219));
  });

  test('needs keys, works in a batch, and is refused for HEAD', async () => {
    const query = queryOf({ username: user.body.username, password });
    expect((await api.request('GET', `/1.1/login?${query}`)).status).toBe(401);
    const requests = [{ method: 'GET', path: `/1.1/login?${query}` }];
    const batch = await api.request('POST', '/1.1/batch', { app, body: { requests } });
    expect(batch.body[0].success.objectId).toBe(user.id);
    expect(await get(query, 'HEAD')).toMatchObject({ status: 200, body: '' });
    expect((await api.request('HEAD', `/1.1/login?${query}`)).status).toBe(401);
  });
});

describe('the log of the service', () => {
  let lines = '';
  let url: string;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const sink = new Writable({
      write(chunk, _, done) {
        lines += chunk;
        done();
      },
    });
    const running = await startApi(testConfig(api.databaseUrl), pino({ level: 'trace' }, sink));
    url = `http://127.0.0.1:${running.port}`;
    close = () => running.stack.close();
  });
  afterAll(() => close());

  test('contains no query, whatever the reply is', async () => {
    const secret = 'SecretOfTheQuery';
    const headers = { 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey };
    const { username } = user.body;
    const queries = [
      queryOf({ username, password: secret }),
      queryOf({ username: secret, password: secret }),
      queryOf({ mobilePhoneNumber, smsCode: secret }),
      queryOf({ session_token: secret }),
    ];
    for (const query of queries)
      for (const path of [
        '/1.1/login',
        '/1.1/users/me',
        '/1.1/users',
        '/1.1/nothing',
        '/1.1/login/x',
      ])
        await fetch(`${url}${path}?${query}`, { headers });
    await fetch(`${url}/1.1/login?${queryOf({ username, password })}`, { headers });
    expect(lines).toContain('"route":"/1.1/login"');
    for (const text of [secret, encodeURIComponent(password), password, username, 'session_token'])
      expect(lines).not.toContain(text);
  });
});
