import { createHash, randomBytes } from 'node:crypto';
import { hashSync } from 'bcryptjs';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { saltedHash } from '../../../../api/services/accounts/passwords/passwords.ts';
import { Sessions } from '../../../../api/services/accounts/sessions/sessions.ts';
import { Vault } from '../../../../shared/crypto.ts';
import { findUser } from '../../../../shared/db/tables/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { startTestApi, testConfig } from '../../../support/api.ts';
import { countWaitingForLocks } from '../../../support/database.ts';
import { changeUser, readUser } from '../../../support/tables.ts';
import { useTestApi } from '../../../support/test-api.ts';
import {
  newName,
  newPhone,
  refusalOf,
  refused,
  signUp,
  type TestUser,
} from '../../../support/users.ts';

let app: App;

const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const login = (body: unknown) => api.request('POST', '/1.1/login', { app, body });

describe('POST /1.1/login refuses', () => {
  const bodies: [string, unknown, number][] = [
    ['an empty body', {}, 200],
    ['a password alone', { password: 'p' }, 200],
    ['an empty username', { username: '', password: 'p' }, 200],
    ['an operator as username', { username: { $ne: null }, password: 'p' }, 217],
    ['a list as username', { username: ['a'], password: 'p' }, 217],
    ['true as username', { username: true, password: 'p' }, 217],
    ['an operator as address', { email: { $regex: '.' }, password: 'p' }, 125],
    ['an operator as number', { mobilePhoneNumber: { $gt: '' }, password: 'p' }, 127],
    ['an invalid number', { mobilePhoneNumber: '123', password: 'p' }, 127],
    ['a missing password', { username: 'a' }, 201],
    ['an empty password', { username: 'a', password: '' }, 201],
    ['an operator as password', { username: 'a', password: { $ne: '' } }, 218],
    ['a number as password', { username: 'a', password: 0 }, 218],
    ['an unknown name', { username: 'an unknown name', password: 'p' }, 211],
    ['a name with NUL', { username: 'a\u0000b', password: 'p' }, 211],
    ['half a character as name', '{"username":"\\udc00","password":"p"}', 211],
    ['an endless name', { username: 'x'.repeat(16_000), password: 'p' }, 211],
    ['a name that is a condition', { username: "' OR '1'='1", password: 'p' }, 211],
    ['an unknown address', { email: 'unknown@example.com', password: 'p' }, 211],
    ['an unknown number', { mobilePhoneNumber: '+8613900000000', password: 'p' }, 211],
    ['a number as if it were a name', { username: '+8613900000000', password: 'p' }, 211],
  ];
  test.each(bodies)('%s', async (_name, body, code) => {
    expect(refusalOf(await login(body))).toEqual(refused(code));
  });

  test('an unknown user with the error text of LeanCloud', async () => {
    const { body } = await login({ username: newName(), password: 'a password' });
    expect(body).toEqual({ code: 211, error: 'Could not find user.' });
  });

  test('a wrong or too long password like an unknown user, if concealed', async () => {
    const concealing = await api.createApp({ concealUsers: true });
    const tryLogin = (body: object) => api.request('POST', '/1.1/login', { app: concealing, body });
    const user = await signUp(api, concealing);
    const { username } = user.body;
    const unknown = await tryLogin({ username: newName(), password: 'a password' });
    for (const password of ['A password', 'a password ', 'x'.repeat(16_000)]) {
      const wrong = await tryLogin({ username, password });
      expect([wrong.status, wrong.body]).toEqual([unknown.status, unknown.body]);
      expect([...wrong.headers.keys()].sort()).toEqual([...unknown.headers.keys()].sort());
    }
    expect(unknown.body).toEqual({ code: 210, error: 'The username and password mismatch.' });
    expect(
      (await tryLogin({ username: username.toUpperCase(), password: 'a password' })).status,
    ).toBe(400);
  });

  test("another app's user", async () => {
    const user = await signUp(api, await api.createApp());
    expect(
      refusalOf(await login({ username: user.body.username, password: 'a password' })),
    ).toEqual(refused(211));
  });

  test('an unverified address if the app requires it, after the right password', async () => {
    const strict = await api.createApp({ emailVerification: true });
    const user = await signUp(api, strict, { email: 'a@b.cn' });
    const tryLogin = (password: string) =>
      api.request('POST', '/1.1/login', { app: strict, body: { email: 'a@b.cn', password } });
    expect((await tryLogin('a password')).status).toBe(200);
    await api.services.apps.change(strict.appId, { options: { forbidUnverifiedEmailLogin: true } });
    expect(refusalOf(await tryLogin('a password'))).toEqual(refused(216));
    expect(refusalOf(await tryLogin('another one'))).toEqual(refused(210));
    await changeUser(api.db, strict, { emailVerified: true }, user.id);
    expect((await tryLogin('a password')).status).toBe(200);
  });
});

describe('POST /1.1/login', () => {
  test('by name, address and number returns the whole user and always the same token', async () => {
    const phone = newPhone();
    const user = await signUp(api, app, {
      email: `${newName()}@b.cn`,
      mobilePhoneNumber: phone,
      level: 3,
    });
    const identifiers = [
      { username: user.body.username },
      { email: user.body.email },
      { mobilePhoneNumber: phone },
      { mobilePhoneNumber: phone.slice(3) },
      { username: user.body.username },
    ];
    for (const identifier of identifiers) {
      const { status, body } = await login({ ...identifier, password: 'a password' });
      expect(status).toBe(200);
      const mobilePhone = 'mobilePhoneNumber' in identifier ? { mobilePhone: phone } : {};
      expect(body).toEqual({ ...user.body, ...mobilePhone });
    }
  });

  test('ignores the session of the call', async () => {
    const user = await signUp(api, app);
    const { status } = await api.request('POST', '/1.1/login', {
      app,
      body: { username: user.body.username, password: 'a password' },
      headers: { 'X-LC-Session': '0' },
    });
    expect(status).toBe(200);
  });

  test('a token stays valid under several keys, until its key is removed', async () => {
    const user = await signUp(api, app);
    const credentials = { username: user.body.username, password: 'a password' };
    const old = testConfig(api.databaseUrl).secrets[0]?.toString('base64') ?? '';
    const fresh = randomBytes(32).toString('base64');
    const tokensUnder = async (CARILLON_SECRET: string) => {
      const rotated = await startTestApi({
        databaseUrl: api.databaseUrl,
        env: { CARILLON_SECRET },
      });
      const me = await rotated.request('GET', '/1.1/users/me', {
        app,
        headers: { 'X-LC-Session': user.token },
      });
      const entered = await rotated.request('POST', '/1.1/login', { app, body: credentials });
      await rotated.close();
      return [me.body.sessionToken, entered.body.sessionToken];
    };
    expect(await tokensUnder(`${fresh},${old}`)).toEqual([user.token, user.token]);
    expect(await tokensUnder(`${old},${fresh}`)).toEqual([user.token, user.token]);
    // The key was removed. The token stays valid until the next login replaces it.
    const sessions = new Sessions({ db: api.db, vault: new Vault([randomBytes(32)]) });
    expect((await user.me()).objectId).toBe(user.id);
    const readToken = async () => {
      const stored = await findUser(api.db, app.appId, { key: { objectId: user.id } });
      return stored && (await sessions.currentToken(api.db, app.appId, stored));
    };
    const tokens = await Promise.all([readToken(), readToken(), readToken()]);
    expect(new Set([...tokens, await readToken(), user.token]).size).toBe(2);
    expect((await user.request('GET', '/1.1/users/me')).body.code).toBe(211);
  });
});

describe('a session', () => {
  test('that ends while a call waits for the user makes the call fail', async () => {
    const user = await signUp(api, app);
    const { calls } = await api.db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM app_user WHERE app_id = $1 AND object_id = $2 FOR UPDATE', [
        app.appId,
        user.id,
      ]);
      const started = [
        user.put({ a: 1 }),
        user.request('PUT', `/1.1/users/${user.id}/refreshSessionToken`),
        user.request('DELETE', `/1.1/users/${user.id}`),
      ];
      await vi.waitUntil(async () => (await countWaitingForLocks(api.db)) === started.length, {
        timeout: 20_000,
      });
      await tx.query(
        'UPDATE app_user SET session_hash = sha256(session_hash) WHERE object_id = $1',
        [user.id],
      );
      return { calls: started };
    });
    for (const reply of await Promise.all(calls))
      expect(refusalOf(reply)).toEqual(refused(206, 403));
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

  test('that is missing, invalid or replaced is 403 on every process', async () => {
    const second = await startTestApi({ databaseUrl: api.databaseUrl });
    const user = await signUp(api, app);
    const other = await signUp(api, app);
    const stale = user.token;
    // Both processes have used the token.
    for (const one of [api, second])
      expect(
        (await one.request('GET', '/1.1/users/me', { app, headers: { 'X-LC-Session': stale } }))
          .status,
      ).toBe(200);
    expect((await user.request('PUT', `/1.1/users/${user.id}/refreshSessionToken`)).status).toBe(
      200,
    );
    const tokens = [
      undefined,
      stale,
      'x'.repeat(25),
      "' OR '1'='1",
      '[object Object]',
      other.token,
      'x'.repeat(9000),
    ];
    for (const one of [api, second])
      for (const token of tokens)
        for (const [method, path, body] of restricted(user.id)) {
          const headers: Record<string, string> =
            token === undefined ? {} : { 'X-LC-Session': token };
          const reply = await one.request(method, path, {
            app,
            headers,
            ...(method === 'PUT' ? { body } : {}),
          });
          expect([method, path, token, refusalOf(reply)]).toEqual([
            method,
            path,
            token,
            refused(206, 403),
          ]);
        }
    await second.close();
  });

  test("is accepted under every name of clients, and from old browsers' bodies", async () => {
    const user = await signUp(api, app);
    for (const name of ['X-LC-Session', 'X-AVOSCloud-Session-Token', 'X-Uluru-Session-Token']) {
      const { body } = await api.request('GET', '/1.1/users/me', {
        app,
        headers: { [name]: user.token },
      });
      expect(body.objectId).toBe(user.id);
    }
    const query = await api.request('GET', `/1.1/users/me?session_token=${user.token}`, { app });
    expect(query.body).toEqual(await user.me());
    const keys = {
      _ApplicationId: app.appId,
      _ApplicationKey: app.appKey,
      _SessionToken: user.token,
    };
    const text = (body: object) => ({
      headers: { 'Content-Type': 'text/plain' },
      body: JSON.stringify({ ...keys, ...body }),
    });
    const put = await api.request(
      'POST',
      `/1.1/users/${user.id}`,
      text({ _method: 'PUT', form: 'text' }),
    );
    expect(put.status).toBe(200);
    expect((await user.me()).form).toBe('text');
  });

  test('that is invalid is 400 with code 211 at GET /users/me', async () => {
    const paths = [
      '',
      '?session_token=',
      '?session_token[$ne]=1',
      '?session_token=a&session_token=b',
    ];
    for (const path of paths)
      expect(refusalOf(await api.request('GET', `/1.1/users/me${path}`, { app }))).toEqual(
        refused(211),
      );
    for (const token of ['0', 'x'.repeat(25)])
      expect(
        refusalOf(
          await api.request('GET', '/1.1/users/me', { app, headers: { 'X-LC-Session': token } }),
        ),
      ).toEqual(refused(211));
  });

  test("is invalid in another app, and with that app's keys", async () => {
    const user = await signUp(api, app);
    const other = await api.createApp();
    const headers = { 'X-LC-Session': user.token };
    expect((await api.request('GET', '/1.1/users/me', { app: other, headers })).body.code).toBe(
      211,
    );
    const reply = await api.request('PUT', `/1.1/users/${user.id}`, {
      app: other,
      master: true,
      headers,
      body: { a: 1 },
    });
    expect(reply.status).toBe(400);
  });

  test('GET /users/me returns the same as the login', async () => {
    const user = await signUp(api, app);
    expect(await user.me()).toEqual(user.body);
  });

  test('is replaced by refreshSessionToken, also with the master key', async () => {
    const user = await signUp(api, app);
    const { status, body } = await user.request(
      'PUT',
      `/1.1/users/${user.id}/refreshSessionToken`,
      'null',
    );
    expect(status).toBe(200);
    expect(body).toEqual({
      ...user.body,
      sessionToken: expect.any(String),
      updatedAt: expect.any(String),
    });
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
      refusalOf(
        await api.request('PUT', '/1.1/users/unknown/refreshSessionToken', { app, master: true }),
      ),
    ).toEqual(refused(211));
  });
});

describe('PUT /1.1/users/:id/updatePassword', () => {
  const change = (user: TestUser, body: unknown) =>
    user.request('PUT', `/1.1/users/${user.id}/updatePassword`, body);

  test('refuses missing and invalid passwords', async () => {
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
    for (const [body, code] of cases)
      expect(refusalOf(await change(user, body))).toEqual(refused(code));
    expect((await login({ username: user.body.username, password: 'a password' })).status).toBe(
      200,
    );
  });

  test('requires the session of the user, even with the master key', async () => {
    const user = await signUp(api, app);
    const body = { old_password: 'a password', new_password: 'b' };
    const path = `/1.1/users/${user.id}/updatePassword`;
    expect(refusalOf(await api.request('PUT', path, { app, master: true, body }))).toEqual(
      refused(206, 403),
    );
  });

  test('changes password and token; with the option, the token stays', async () => {
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
    const tryLogin = (password: string) =>
      api.request('POST', '/1.1/login', {
        app: own,
        body: { username: user.body.username, password },
      });
    expect([(await tryLogin('second')).status, (await tryLogin('third')).status]).toEqual([
      400, 200,
    ]);
  });

  test('succeeds for one of two concurrent calls', async () => {
    const user = await signUp(api, app);
    const replies = await Promise.all(
      ['b', 'c'].map((password) =>
        change(user, { old_password: 'a password', new_password: password }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).not.toEqual([200, 200]);
  });
});

describe('an imported hash', () => {
  const importUser = async (hash: string) => {
    const user = await signUp(api, app, { password: 'not yet known' });
    await changeUser(api.db, app, { passwordHash: hash }, user.id);
    return user;
  };
  const stored = async (id: string) => (await readUser(api.db, app, id)).passwordHash;

  /** Hashes a password as the documentation of LeanCloud specifies. */
  function ofLeanCloud(password: string, salt: string): string {
    let digest = createHash('sha512')
      .update(salt + password)
      .digest();
    for (let i = 0; i < 512; i += 1) digest = createHash('sha512').update(digest).digest();
    return saltedHash({ password: digest.toString('base64'), salt });
  }

  const hashes: [string, string][] = [
    ['bcrypt', hashSync('pässword', 4)],
    ['bcrypt of PHP', hashSync('pässword', 4).replace('$2b$', '$2y$')],
    ['LeanCloud', ofLeanCloud('pässword', 'h60d8x797d3oa0naxybxxv9bn7xpt2yiowz68mpiwou7gwr2')],
  ];
  test.each(hashes)('of %s works once and is replaced', async (_kind, hash) => {
    const user = await importUser(hash);
    const { username } = user.body;
    expect(refusalOf(await login({ username, password: 'password' }))).toEqual(refused(210));
    expect(await stored(user.id)).toBe(hash);
    const replies = await Promise.all(
      [1, 2, 3].map(() => login({ username, password: 'pässword' })),
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await stored(user.id)).toMatch(/^\$argon2id\$/);
    expect((await login({ username, password: 'pässword' })).status).toBe(200);
  });

  test('of unknown form never matches, and causes no error', async () => {
    for (const hash of [
      '',
      'x',
      '$2b$99$bad',
      '$1$md5crypt$abc',
      `$2b$31$${'a'.repeat(53)}`,
      '$argon2id$v=19$broken',
    ]) {
      const { username } = (await importUser(hash)).body;
      expect(refusalOf(await login({ username, password: 'x' }))).toEqual(refused(210));
    }
  });
});
