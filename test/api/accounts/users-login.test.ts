import { createHash, randomBytes } from 'node:crypto';
import { hashSync } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { saltedHash } from '../../../api/services/accounts/passwords/imported-hashes.ts';
import { Sessions } from '../../../api/services/accounts/sessions/sessions.ts';
import { Vault } from '../../../shared/crypto.ts';
import { Database } from '../../../shared/db/pool.ts';
import { findUser } from '../../../shared/db/tables/users/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi, testConfig } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { newName, newPhone, refusalOf, refused, signUp, type TestUser } from '../../support/users.ts';

let database: TestDatabase;
let api: TestApi;
let app: App;
let db: Database;
/** Minutes that the service's clock is ahead. */
let ahead = 0;
const clock = { now: () => Date.now() + ahead * 60_000, monotonicMs: () => performance.now() };

beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url, clock });
  app = await api.createApp();
  db = new Database({ url: database.url, applicationName: 'test' });
});
afterAll(async () => {
  await api.close();
  await db.close();
  await database.drop();
});

const login = (body: unknown) => api.request('POST', '/1.1/login', { app, body });

describe('POST /1.1/login refuses', () => {
  const bodies: [string, unknown, number][] = [
    ['nothing', {}, 200],
    ['a password alone', { password: 'p' }, 200],
    ['an empty username', { username: '', password: 'p' }, 200],
    ['an operator as username', { username: { $ne: null }, password: 'p' }, 217],
    ['a list as username', { username: ['a'], password: 'p' }, 217],
    ['true as username', { username: true, password: 'p' }, 217],
    ['an operator as address', { email: { $regex: '.' }, password: 'p' }, 125],
    ['an operator as number', { mobilePhoneNumber: { $gt: '' }, password: 'p' }, 127],
    ['a number that is none', { mobilePhoneNumber: '123', password: 'p' }, 127],
    ['no password', { username: 'a' }, 201],
    ['an empty password', { username: 'a', password: '' }, 201],
    ['an operator as password', { username: 'a', password: { $ne: '' } }, 218],
    ['a number as password', { username: 'a', password: 0 }, 218],
    ['an unknown name', { username: 'nobody at all', password: 'p' }, 211],
    ['a name with NUL', { username: 'a\u0000b', password: 'p' }, 211],
    ['half a character as name', '{"username":"\\udc00","password":"p"}', 211],
    ['an endless name', { username: 'x'.repeat(16_000), password: 'p' }, 211],
    ['a name that is a condition', { username: "' OR '1'='1", password: 'p' }, 211],
    ['an unknown address', { email: 'nobody@example.com', password: 'p' }, 211],
    ['an unknown number', { mobilePhoneNumber: '+8613900000000', password: 'p' }, 211],
    ['a number as if it were a name', { username: '+8613900000000', password: 'p' }, 211],
  ];
  test.each(bodies)('%s', async (_name, body, code) => {
    expect(refusalOf(await login(body))).toEqual(refused(code));
  });

  test('an unknown user with the words of the public service', async () => {
    const { body } = await login({ username: newName(), password: 'a password' });
    expect(body).toEqual({ code: 211, error: 'Could not find user.' });
  });

  test('a wrong password, another case, and an endless one, with the words for an unknown user where users are concealed', async () => {
    const discreet = await api.createApp({ concealUsers: true });
    const enter = (body: object) => api.request('POST', '/1.1/login', { app: discreet, body });
    const user = await signUp(api, discreet);
    const { username } = user.body;
    const unknown = await enter({ username: newName(), password: 'a password' });
    for (const password of ['A password', 'a password ', 'x'.repeat(16_000)]) {
      const wrong = await enter({ username, password });
      expect([wrong.status, wrong.body]).toEqual([unknown.status, unknown.body]);
      expect([...wrong.headers.keys()].sort()).toEqual([...unknown.headers.keys()].sort());
    }
    expect(unknown.body).toEqual({ code: 210, error: 'The username and password mismatch.' });
    expect((await enter({ username: username.toUpperCase(), password: 'a password' })).status).toBe(400);
  });

  test("another app's user", async () => {
    const user = await signUp(api, await api.createApp());
    expect(refusalOf(await login({ username: user.body.username, password: 'a password' }))).toEqual(
      refused(211),
    );
  });

  test('an unverified address where the app forbids it, at once and only with the right password', async () => {
    const strict = await api.createApp({ emailVerification: true });
    const user = await signUp(api, strict, { email: 'a@b.cn' });
    const enter = (password: string) =>
      api.request('POST', '/1.1/login', { app: strict, body: { email: 'a@b.cn', password } });
    expect((await enter('a password')).status).toBe(200);
    await api.services.apps.change(strict.appId, { options: { forbidUnverifiedEmailLogin: true } });
    expect(refusalOf(await enter('a password'))).toEqual(refused(216));
    expect(refusalOf(await enter('another one'))).toEqual(refused(210));
    await db.query('UPDATE app_user SET email_verified = true WHERE object_id = $1', [user.id]);
    expect((await enter('a password')).status).toBe(200);
  });
});

describe('POST /1.1/login', () => {
  test('by name, address and number gives the whole user and one token, however often', async () => {
    const phone = newPhone();
    const user = await signUp(api, app, { email: `${newName()}@b.cn`, mobilePhoneNumber: phone, level: 3 });
    const claims = [
      { username: user.body.username },
      { email: user.body.email },
      { mobilePhoneNumber: phone },
      { mobilePhoneNumber: phone.slice(3) },
      { username: user.body.username },
    ];
    for (const claim of claims) {
      const { status, body } = await login({ ...claim, password: 'a password' });
      expect(status).toBe(200);
      const mobilePhone = 'mobilePhoneNumber' in claim ? { mobilePhone: phone } : {};
      expect(body).toEqual({ ...user.body, ...mobilePhone });
    }
  });

  test('heeds no session that came along', async () => {
    const user = await signUp(api, app);
    const { status } = await api.request('POST', '/1.1/login', {
      app,
      body: { username: user.body.username, password: 'a password' },
      headers: { 'X-LC-Session': '0' },
    });
    expect(status).toBe(200);
  });

  test('a token is the same under several keys, and another one once its key is gone', async () => {
    const user = await signUp(api, app);
    const credentials = { username: user.body.username, password: 'a password' };
    const old = testConfig(database.url).secrets[0]?.toString('base64') ?? '';
    const fresh = randomBytes(32).toString('base64');
    const asks = async (CARILLON_SECRET: string) => {
      const rotated = await startTestApi({ databaseUrl: database.url, env: { CARILLON_SECRET } });
      const me = await rotated.request('GET', '/1.1/users/me', {
        app,
        headers: { 'X-LC-Session': user.token },
      });
      const entered = await rotated.request('POST', '/1.1/login', { app, body: credentials });
      await rotated.close();
      return [me.body.sessionToken, entered.body.sessionToken];
    };
    expect(await asks(`${fresh},${old}`)).toEqual([user.token, user.token]);
    expect(await asks(`${old},${fresh}`)).toEqual([user.token, user.token]);
    // Its key is gone: the token is good until the next login, which gives one that can be given again.
    const sessions = new Sessions({ db, vault: new Vault([randomBytes(32)]) });
    expect((await user.me()).objectId).toBe(user.id);
    const given = async () => {
      const stored = await findUser(db, app.appId, { key: { objectId: user.id } });
      return stored && (await sessions.currentToken(db, app.appId, stored));
    };
    const tokens = await Promise.all([given(), given(), given()]);
    expect(new Set([...tokens, await given(), user.token]).size).toBe(2);
    expect((await user.request('GET', '/1.1/users/me')).body.code).toBe(211);
  });
});

describe('a session', () => {
  test('that ends while a call waits for the user lets the call do nothing', async () => {
    const user = await signUp(api, app);
    // Not within the transaction below, which would see the same activity for ever.
    const waiting = async () => {
      const { rows } = await db.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows[0]?.n;
    };
    const { calls } = await db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM app_user WHERE object_id = $1 FOR UPDATE', [user.id]);
      const begun = [
        user.put({ a: 1 }),
        user.request('PUT', `/1.1/users/${user.id}/refreshSessionToken`),
        user.request('DELETE', `/1.1/users/${user.id}`),
      ];
      await vi.waitUntil(async () => (await waiting()) === begun.length, { timeout: 20_000 });
      await tx.query('UPDATE app_user SET session_hash = sha256(session_hash) WHERE object_id = $1', [
        user.id,
      ]);
      return { calls: begun };
    });
    for (const reply of await Promise.all(calls)) expect(refusalOf(reply)).toEqual(refused(206, 403));
    const { body } = await api.request('GET', `/1.1/users/${user.id}`, { app });
    expect(body).not.toHaveProperty('a');
  });

  const restricted = (id: string): [string, string, object][] => [
    ['PUT', `/1.1/users/${id}`, { a: 1 }],
    ['PUT', `/1.1/classes/_User/${id}`, { a: 1 }],
    ['PUT', `/1.1/users/${id}/refreshSessionToken`, {}],
    ['PUT', `/1.1/users/${id}/updatePassword`, { old_password: 'a password', new_password: 'b' }],
    ['DELETE', `/1.1/users/${id}`, {}],
    ['DELETE', `/1.1/classes/_User/${id}`, {}],
  ];

  test('that is missing, made up or replaced is 403 where a user is needed, on every process at once', async () => {
    const second = await startTestApi({ databaseUrl: database.url });
    const user = await signUp(api, app);
    const stranger = await signUp(api, app);
    const stale = user.token;
    // Both processes have seen the token.
    for (const one of [api, second])
      expect(
        (await one.request('GET', '/1.1/users/me', { app, headers: { 'X-LC-Session': stale } })).status,
      ).toBe(200);
    expect((await user.request('PUT', `/1.1/users/${user.id}/refreshSessionToken`)).status).toBe(200);
    const tokens = [
      undefined,
      stale,
      'x'.repeat(25),
      "' OR '1'='1",
      '[object Object]',
      stranger.token,
      'x'.repeat(9000),
    ];
    for (const one of [api, second])
      for (const token of tokens)
        for (const [method, path, body] of restricted(user.id)) {
          const headers: Record<string, string> = token === undefined ? {} : { 'X-LC-Session': token };
          const reply = await one.request(method, path, {
            app,
            headers,
            ...(method === 'PUT' ? { body } : {}),
          });
          expect([method, path, token, refusalOf(reply)]).toEqual([method, path, token, refused(206, 403)]);
        }
    await second.close();
  });

  test('is taken under every name that clients use, and from the body of old browsers', async () => {
    const user = await signUp(api, app);
    for (const name of ['X-LC-Session', 'X-AVOSCloud-Session-Token', 'X-Uluru-Session-Token']) {
      const { body } = await api.request('GET', '/1.1/users/me', { app, headers: { [name]: user.token } });
      expect(body.objectId).toBe(user.id);
    }
    const query = await api.request('GET', `/1.1/users/me?session_token=${user.token}`, { app });
    expect(query.body).toEqual(await user.me());
    const keys = { _ApplicationId: app.appId, _ApplicationKey: app.appKey, _SessionToken: user.token };
    const text = (body: object) => ({
      headers: { 'Content-Type': 'text/plain' },
      body: JSON.stringify({ ...keys, ...body }),
    });
    const put = await api.request('POST', `/1.1/users/${user.id}`, text({ _method: 'PUT', form: 'text' }));
    expect(put.status).toBe(200);
    expect((await user.me()).form).toBe('text');
  });

  test('that is none is 400 with code 211 at GET /users/me', async () => {
    const paths = ['', '?session_token=', '?session_token[$ne]=1', '?session_token=a&session_token=b'];
    for (const path of paths)
      expect(refusalOf(await api.request('GET', `/1.1/users/me${path}`, { app }))).toEqual(refused(211));
    for (const token of ['0', 'x'.repeat(25)])
      expect(
        refusalOf(await api.request('GET', '/1.1/users/me', { app, headers: { 'X-LC-Session': token } })),
      ).toEqual(refused(211));
  });

  test("means nothing to another app, nor do that app's keys", async () => {
    const user = await signUp(api, app);
    const other = await api.createApp();
    const headers = { 'X-LC-Session': user.token };
    expect((await api.request('GET', '/1.1/users/me', { app: other, headers })).body.code).toBe(211);
    const reply = await api.request('PUT', `/1.1/users/${user.id}`, {
      app: other,
      master: true,
      headers,
      body: { a: 1 },
    });
    expect(reply.status).toBe(400);
  });

  test('GET /users/me shows what login shows', async () => {
    const user = await signUp(api, app);
    expect(await user.me()).toEqual(user.body);
  });

  test('is replaced by refreshSessionToken, also by the master key', async () => {
    const user = await signUp(api, app);
    const { status, body } = await user.request('PUT', `/1.1/users/${user.id}/refreshSessionToken`, 'null');
    expect(status).toBe(200);
    expect(body).toEqual({ ...user.body, sessionToken: expect.any(String), updatedAt: expect.any(String) });
    expect(body.sessionToken).not.toBe(user.token);
    user.token = body.sessionToken;
    expect((await user.me()).objectId).toBe(user.id);
    const path = `/1.1/users/${user.id}/refreshSessionToken`;
    const byMaster = await api.request('PUT', path, { app, master: true });
    expect(byMaster.status).toBe(200);
    expect((await user.request('GET', '/1.1/users/me')).body.code).toBe(211);
    const entered = await login({ username: user.body.username, password: 'a password' });
    expect(entered.body.sessionToken).toBe(byMaster.body.sessionToken);
    expect(
      refusalOf(await api.request('PUT', '/1.1/users/unknown/refreshSessionToken', { app, master: true })),
    ).toEqual(refused(211));
  });
});

describe('PUT /1.1/users/:id/updatePassword', () => {
  const change = (user: TestUser, body: unknown) =>
    user.request('PUT', `/1.1/users/${user.id}/updatePassword`, body);

  test('refuses without the old password, and what is none', async () => {
    const user = await signUp(api, app);
    const cases: [object, number][] = [
      [{}, 201],
      [{ old_password: 'a password' }, 201],
      [{ new_password: 'b' }, 201],
      [{ old_password: 'wrong', new_password: 'b' }, 210],
      [{ old_password: { $ne: 1 }, new_password: 'b' }, 218],
      [{ old_password: 'a password', new_password: { $ne: 1 } }, 218],
      [{ old_password: 'a password', new_password: '   ' }, 218],
    ];
    for (const [body, code] of cases) expect(refusalOf(await change(user, body))).toEqual(refused(code));
    expect((await login({ username: user.body.username, password: 'a password' })).status).toBe(200);
  });

  test('needs the session of the user, not even the master key replaces it', async () => {
    const user = await signUp(api, app);
    const body = { old_password: 'a password', new_password: 'b' };
    const path = `/1.1/users/${user.id}/updatePassword`;
    expect(refusalOf(await api.request('PUT', path, { app, master: true, body }))).toEqual(refused(206, 403));
  });

  test('changes password and token; without the option the token stays, at once', async () => {
    const own = await api.createApp();
    const user = await signUp(api, own);
    const first = await change(user, { old_password: 'a password', new_password: 'second' });
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      updatedAt: expect.any(String),
      objectId: user.id,
      sessionToken: expect.stringMatching(/^[a-z0-9]{25}$/),
    });
    expect(first.body.sessionToken).not.toBe(user.token);
    expect((await user.request('GET', '/1.1/users/me')).body.code).toBe(211);
    user.token = first.body.sessionToken;
    await api.services.apps.change(own.appId, { options: { reloginAfterPasswordChange: false } });
    const second = await change(user, { old_password: 'second', new_password: 'third' });
    expect(second.body.sessionToken).toBe(user.token);
    const enter = (password: string) =>
      api.request('POST', '/1.1/login', { app: own, body: { username: user.body.username, password } });
    expect([(await enter('second')).status, (await enter('third')).status]).toEqual([400, 200]);
  });

  test('of two at the same time one wins', async () => {
    const user = await signUp(api, app);
    const replies = await Promise.all(
      ['b', 'c'].map((password) => change(user, { old_password: 'a password', new_password: password })),
    );
    expect(replies.map(({ status }) => status).sort()).not.toEqual([200, 200]);
  });
});

describe('the lock', () => {
  const wrong = (username: string) => login({ username, password: 'wrong' });
  const right = (username: string) => login({ username, password: 'a password' });
  const codes = async (count: number, attempt: () => Promise<{ body: { code?: number } }>) => {
    const found: (number | undefined)[] = [];
    for (let i = 0; i < count; i += 1) found.push((await attempt()).body.code);
    return found;
  };
  const six = [210, 210, 210, 210, 210, 210];
  const sixOfNobody = six.map(() => 211);

  test('comes with the seventh failure, for users and for names that nobody has', async () => {
    const user = await signUp(api, app);
    const names: [string, number[]][] = [
      [user.body.username, six],
      [newName(), sixOfNobody],
      ['x'.repeat(10_000), sixOfNobody],
    ];
    for (const [name, failures] of names) {
      expect(await codes(8, () => wrong(name))).toEqual([...failures, 219, 219]);
      expect(refusalOf(await right(name))).toEqual(refused(219));
    }
  });

  test('is not there after six, however many right ones lie between', async () => {
    const { username } = (await signUp(api, app)).body;
    expect(await codes(6, () => wrong(username))).toEqual(six);
    expect((await right(username)).status).toBe(200);
    expect(await codes(1, () => wrong(username))).toEqual([219]);
  });

  test('ends 15 minutes after the last failure; what is refused meanwhile does not prolong it', async () => {
    const { username } = (await signUp(api, app)).body;
    await codes(7, () => wrong(username));
    ahead += 14;
    expect(await codes(2, () => wrong(username))).toEqual([219, 219]);
    expect((await right(username)).body.code).toBe(219);
    ahead += 1.1;
    expect((await right(username)).status).toBe(200);
    expect(await codes(6, () => wrong(username))).toEqual(six);
  });

  test('counts the failures of 15 minutes, whenever they began', async () => {
    const { username } = (await signUp(api, app)).body;
    expect(await codes(4, () => wrong(username))).toEqual(six.slice(2));
    ahead += 10;
    expect(await codes(2, () => wrong(username))).toEqual([210, 210]);
    ahead += 6;
    // The first four are too old by now.
    expect(await codes(4, () => wrong(username))).toEqual(six.slice(2));
    expect(await codes(1, () => wrong(username))).toEqual([219]);
  });

  test('is one for all ways of writing a number, and is no other than that of the app', async () => {
    const phone = newPhone();
    await signUp(api, app, { mobilePhoneNumber: phone });
    const spellings = [phone, phone.slice(3), `+86 ${phone.slice(3)}`];
    const attempt = (i: number) => login({ mobilePhoneNumber: spellings[i % 3], password: 'wrong' });
    for (let i = 0; i < 7; i += 1) await attempt(i);
    expect((await login({ mobilePhoneNumber: phone, password: 'a password' })).body.code).toBe(219);
    const other = await api.createApp();
    await signUp(api, other, { mobilePhoneNumber: phone });
    const elsewhere = { app: other, body: { mobilePhoneNumber: phone, password: 'a password' } };
    expect((await api.request('POST', '/1.1/login', elsewhere)).status).toBe(200);
  });

  test('lets fifty guesses at the same time be seven', async () => {
    const { username } = (await signUp(api, app)).body;
    const replies = await Promise.all(Array.from({ length: 50 }, () => wrong(username)));
    const count = (code: number) => replies.filter(({ body }) => body.code === code).length;
    expect([count(210), count(219)]).toEqual([6, 44]);
    const after = await right(username);
    expect(after.body.code).toBe(219);
  });

  test('holds for the master key too, and nothing lifts it but time', async () => {
    const user = await signUp(api, app);
    const { username } = user.body;
    await codes(7, () => wrong(username));
    const asMaster = (method: string, path: string, body: object) =>
      api.request(method, `/1.1/${path}`, { app, master: true, body });
    const enter = { username, password: 'another one' };
    expect((await asMaster('PUT', `users/${user.id}`, { password: enter.password })).status).toBe(200);
    expect((await asMaster('PUT', `users/${user.id}/refreshSessionToken`, {})).status).toBe(200);
    expect(refusalOf(await asMaster('POST', 'login', enter))).toEqual(refused(219));
    ahead += 15.1;
    expect((await asMaster('POST', 'login', enter)).status).toBe(200);
  });

  test('does not come from right ones at the same time', async () => {
    const { username } = (await signUp(api, app)).body;
    const replies = await Promise.all(Array.from({ length: 20 }, () => right(username)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('counts the failures of one user together, by whatever name, and each other name by itself', async () => {
    const [email, phone] = [`${newName()}@example.com`, newPhone()];
    const user = await signUp(api, app, { email, mobilePhoneNumber: phone });
    const claims = [{ username: user.body.username }, { email }, { mobilePhoneNumber: phone }];
    const guess = (claim: object) => login({ ...claim, password: 'wrong' });
    const found: (number | undefined)[] = [];
    for (const claim of [...claims, ...claims, ...claims]) found.push((await guess(claim)).body.code);
    expect(found).toEqual([...six, 219, 219, 219]);
    for (const claim of claims)
      expect((await login({ ...claim, password: 'a password' })).body.code).toBe(219);
    const change = { old_password: 'a password', new_password: 'b' };
    const changed = await user.request('PUT', `/1.1/users/${user.id}/updatePassword`, change);
    expect(changed.body.code).toBe(219);
    const name = newName();
    expect(await codes(6, () => wrong(name))).toEqual(sixOfNobody);
    expect(await codes(1, () => login({ email: name, password: 'wrong' }))).toEqual([211]);
    expect(await codes(1, () => wrong(`${name.toUpperCase()} `))).toEqual([219]);
  });

  test('lets twenty guesses at the same time by all names of a user be seven', async () => {
    const [email, phone] = [`${newName()}@example.com`, newPhone()];
    const { username } = (await signUp(api, app, { email, mobilePhoneNumber: phone })).body;
    const claims = [{ username }, { email }, { mobilePhoneNumber: phone }, { mobilePhoneNumber: phone }];
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => login({ ...claims[i % 4], password: 'wrong' })),
    );
    const count = (code: number) => replies.filter(({ body }) => body.code === code).length;
    expect([count(210), count(219)]).toEqual([6, 14]);
  });

  test('guards the old password as well', async () => {
    const user = await signUp(api, app);
    const guess = (old_password: string) =>
      user.request('PUT', `/1.1/users/${user.id}/updatePassword`, { old_password, new_password: 'b' });
    expect(await codes(7, () => guess('wrong'))).toEqual([...six, 219]);
    expect((await guess('a password')).body.code).toBe(219);
  });

  test('keeps no name, address or number', async () => {
    await wrong('SESAME-of-the-lock');
    const { rows } = await db.query<{ text: string }>('SELECT login_lock::text AS text FROM login_lock');
    expect(rows.map(({ text }) => text).join()).not.toMatch(/SESAME/);
  });
});

describe('an imported hash', () => {
  const bring = async (hash: string) => {
    const user = await signUp(api, app, { password: 'not yet known' });
    await db.query('UPDATE app_user SET password_hash = $2 WHERE object_id = $1', [user.id, hash]);
    return user;
  };
  const stored = async (id: string) =>
    (
      await db.query<{ password_hash: string }>('SELECT password_hash FROM app_user WHERE object_id = $1', [
        id,
      ])
    ).rows[0]?.password_hash;

  /** As the public service's documentation tells to check one. */
  function ofPublicService(password: string, salt: string): string {
    let digest = createHash('sha512')
      .update(salt + password)
      .digest();
    for (let i = 0; i < 512; i += 1) digest = createHash('sha512').update(digest).digest();
    return saltedHash({ password: digest.toString('base64'), salt });
  }

  const hashes: [string, string][] = [
    ['bcrypt', hashSync('pässword', 4)],
    ['bcrypt of PHP', hashSync('pässword', 4).replace('$2b$', '$2y$')],
    ['the public service', ofPublicService('pässword', 'h60d8x797d3oa0naxybxxv9bn7xpt2yiowz68mpiwou7gwr2')],
  ];
  test.each(hashes)('of %s lets in once and is replaced', async (_kind, hash) => {
    const user = await bring(hash);
    const { username } = user.body;
    expect(refusalOf(await login({ username, password: 'password' }))).toEqual(refused(210));
    expect(await stored(user.id)).toBe(hash);
    const replies = await Promise.all([1, 2, 3].map(() => login({ username, password: 'pässword' })));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await stored(user.id)).toMatch(/^\$argon2id\$/);
    expect((await login({ username, password: 'pässword' })).status).toBe(200);
  });

  test('of no known form lets nobody in, and breaks nothing', async () => {
    for (const hash of [
      '',
      'x',
      '$2b$99$bad',
      '$1$md5crypt$abc',
      `$2b$31$${'a'.repeat(53)}`,
      '$argon2id$v=19$broken',
    ]) {
      const { username } = (await bring(hash)).body;
      expect(refusalOf(await login({ username, password: 'x' }))).toEqual(refused(210));
    }
  });
});
