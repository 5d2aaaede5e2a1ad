import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { changeUser, readUser } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';
import {
  newName,
  newPhone,
  newUid,
  refusalOf,
  refused,
  signUp,
  type TestUser,
} from '../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const paths = ['/1.1/users', '/1.1/classes/_User'];
const asMaster = (method: string, path: string, body?: unknown) =>
  api.request(method, path, { app, master: true, ...(body === undefined ? {} : { body }) });
const get = (path: string) => api.request('GET', path, { app });

describe('GET /1.1/users/:id', () => {
  test('refuses unknown ids with 211', async () => {
    const other = await signUp(api, await api.createApp());
    const ids = [
      '0'.repeat(24),
      'unknown',
      'a,b',
      '%00',
      '%27%20OR%201=1',
      '__proto__',
      'x'.repeat(3000),
      other.id,
    ];
    for (const path of paths)
      for (const id of ids)
        expect([id, refusalOf(await get(`${path}/${id}`))]).toEqual([id, refused(211)]);
    expect((await get(`/1.1/users/${'0'.repeat(24)}`)).body.error).toBe('Could not find user.');
  });

  test('returns the user to anyone, without password, token and accounts', async () => {
    const user = await signUp(api, app, {
      authData: undefined,
      email: `${newName()}@b.cn`,
      nick: 'é😀',
    });
    await user.put({ authData: { github: { uid: newUid(), access_token: 'SESAME' } } });
    const { sessionToken: _, ...userWithoutToken } = user.body;
    for (const path of paths) {
      const { status, body } = await get(`${path}/${user.id}`);
      expect(status).toBe(200);
      expect(body).toEqual({ ...userWithoutToken, updatedAt: expect.any(String) });
    }
    const own = await user.request('GET', `/1.1/users/${user.id}`);
    expect(own.body).toHaveProperty('authData');
    expect(own.body).not.toHaveProperty('sessionToken');
  });

  test('applies keys, refuses invalid keys, and ignores an invalid session', async () => {
    const user = await signUp(api, app, { a: { b: 1, c: 2 } });
    const path = `/1.1/users/${user.id}`;
    expect(Object.keys((await get(`${path}?keys=username,a.b,-createdAt`)).body).sort()).toEqual([
      'a',
      'objectId',
      'updatedAt',
      'username',
    ]);
    for (const keys of ['_hashed', 'a%27', 'password.$x'])
      expect(refusalOf(await get(`${path}?keys=${keys}`))).toEqual(refused(105));
    for (const keys of ['sessionToken', 'password', 'authData', 'password_hash'])
      expect(Object.keys((await get(`${path}?keys=${keys}`)).body).sort()).toEqual([
        'createdAt',
        'objectId',
        'updatedAt',
      ]);
    const headers = { 'X-LC-Session': 'x'.repeat(25) };
    expect((await api.request('GET', path, { app, headers })).status).toBe(200);
  });
});

describe('PUT /1.1/users/:id', () => {
  test('refuses invalid values', async () => {
    const user = await signUp(api, app);
    const taken = await signUp(api, app, {
      email: `${newName()}@b.cn`,
      mobilePhoneNumber: newPhone(),
    });
    const before = await user.me();
    const bodies: [unknown, number][] = [
      ['{', 107],
      [[], 107],
      [{ username: '' }, 200],
      [{ username: null }, 217],
      [{ username: { __op: 'Delete' } }, 217],
      [{ username: { $ne: 1 } }, 217],
      [{ username: taken.body.username }, 202],
      [{ 'username.a': 'x' }, 105],
      [{ email: 'tom' }, 125],
      [{ email: { $ne: 1 } }, 125],
      [{ email: taken.body.email }, 203],
      [{ mobilePhoneNumber: '1' }, 127],
      [{ mobilePhoneNumber: taken.body.mobilePhoneNumber }, 214],
      [{ password: 'another' }, 1],
      [{ password: { __op: 'Delete' } }, 218],
      [{ 'password.a': 'b' }, 105],
      [{ ACL: { '*': { read: 1 } } }, 123],
      [{ ACL: [] }, 123],
      [{ ACL: { 'a b': { read: true } } }, 123],
      [{ ACL: { '*': null } }, 123],
      [{ objectId: '0'.repeat(24) }, 117],
      [{ createdAt: '2020-01-01T00:00:00.000Z' }, 117],
      [{ updatedAt: { __op: 'Delete' } }, 117],
      [{ sessionToken: 'x'.repeat(25) }, 117],
      [{ 'sessionToken.a': 1 }, 117],
      [{ emailVerified: true }, 117],
      [{ emailVerified: { __op: 'Increment' } }, 117],
      [{ mobilePhoneVerified: true }, 117],
      [{ mobilePhoneNumberVerified: true }, 117],
      [{ mobilePhone: '+8613812345678' }, 117],
      [{ 'a-b': 1 }, 105],
      [{ "a'; DROP TABLE app_user; --": 1 }, 105],
      [{ 'a.b$c': 1 }, 105],
      [{ a: { 'b.c': 1 } }, 121],
      [{ a: 'x\u0000' }, 111],
      [{ a: { __op: 'Increment', amount: 'x' } }, 111],
      [{ a: { __type: 'Nothing' } }, 111],
      [{ a: 'x'.repeat(1_100_000) }, 116],
      ['{"a":1e999}', 111],
    ];
    for (const [body, code] of bodies)
      expect([body, refusalOf(await user.put(body))]).toEqual([body, refused(code)]);
    expect(await user.me()).toEqual(before);
  });

  test('changes only what is sent, under both paths', async () => {
    const user = await signUp(api, app, { phone: '1', keep: true, list: ['a'], count: 1 });
    for (const [i, path] of paths.entries()) {
      const body = {
        phone: `2${i}`,
        'deep.inner': i,
        count: { __op: 'Increment', amount: 2 },
        list: { __op: 'AddUnique', objects: ['a', `b${i}`] },
        _hint: 1,
        __internalId: 'x',
        className: '_User',
      };
      const reply = await user.request('PUT', `${path}/${user.id}`, body);
      expect([reply.status, reply.body]).toEqual([
        200,
        { updatedAt: expect.any(String), objectId: user.id },
      ]);
    }
    const me = await user.me();
    expect(me).toEqual({
      ...user.body,
      phone: '21',
      deep: { inner: 1 },
      count: 5,
      list: ['a', 'b0', 'b1'],
      updatedAt: expect.any(String),
    });
    expect(Date.parse(String(me.updatedAt))).toBeGreaterThan(Date.parse(String(me.createdAt)));
    await user.put({ deep: { __op: 'Delete' }, keep: null });
    expect(await user.me()).toMatchObject({ keep: null });
    expect(await user.me()).not.toHaveProperty('deep');
  });

  test('returns the changed members on request', async () => {
    const user = await signUp(api, app, { a: 1, b: 2 });
    for (const query of ['?new=true', '?fetchWhenSave=true&where=']) {
      const { body } = await user.put({ a: { __op: 'Increment' } }, query);
      expect(Object.keys(body).sort()).toEqual(['a', 'objectId', 'updatedAt']);
    }
    expect((await user.put({ a: 5 }, '?new=false')).body).not.toHaveProperty('a');
  });

  test('ignores read-only members that are sent back unchanged', async () => {
    const user = await signUp(api, app, { email: `${newName()}@b.cn` });
    const { sessionToken: _, updatedAt: __, ...same } = user.body;
    expect((await user.put(same)).status).toBe(200);
  });

  test('allows a login with the changed name, which only one user can take', async () => {
    const user = await signUp(api, app);
    const username = newName();
    expect((await user.put({ username })).status).toBe(200);
    const tryLogin = (name: string) =>
      api.request('POST', '/1.1/login', { app, body: { username: name, password: 'a password' } });
    expect((await tryLogin(username)).body.objectId).toBe(user.id);
    expect((await tryLogin(user.body.username)).body.code).toBe(211);
    const users = await Promise.all(Array.from({ length: 5 }, () => signUp(api, app)));
    const wanted = newName();
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => (users[i % 5] as TestUser).put({ username: wanted })),
    );
    const winners = new Set(replies.flatMap(({ status }, i) => (status === 200 ? [i % 5] : [])));
    expect(winners.size).toBe(1);
    for (const { status, body } of replies) if (status !== 200) expect(body.code).toBe(202);
  });

  test("two users that concurrently take each other's name both keep a name", async () => {
    const pairs = await Promise.all(
      Array.from({ length: 4 }, () => Promise.all([signUp(api, app), signUp(api, app)])),
    );
    const replies = await Promise.all(
      pairs.flatMap(([one, two]) => [
        one.put({ username: two.body.username }),
        two.put({ username: one.body.username }),
      ]),
    );
    for (const reply of replies) expect(refusalOf(reply)).toEqual(refused(202));
    for (const user of pairs.flat()) expect((await user.me()).username).toBe(user.body.username);
  });

  test('marks a changed address as unverified if verifying, a number always', async () => {
    const own = await api.createApp();
    const user = await signUp(api, own, { email: 'a@b.cn', mobilePhoneNumber: newPhone() });
    const verify = () =>
      changeUser(api.db, own, { emailVerified: true, mobilePhoneVerified: true }, user.id);
    const flags = async () => {
      const { emailVerified, mobilePhoneVerified } = await user.me();
      return [emailVerified, mobilePhoneVerified];
    };
    await verify();
    await user.put({ email: 'a@b.cn', nick: 'x' });
    expect(await flags()).toEqual([true, true]);
    await user.put({ email: 'c@d.cn', mobilePhoneNumber: newPhone() });
    expect(await flags()).toEqual([null, false]);
    await api.services.apps.change(own.appId, { options: { emailVerification: true } });
    await verify();
    await user.put({ email: 'e@f.cn' });
    expect(await flags()).toEqual([false, true]);
    await user.put({ email: { __op: 'Delete' }, mobilePhoneNumber: { __op: 'Delete' } });
    expect(await flags()).toEqual([null, false]);
    expect(await user.me()).not.toHaveProperty('email');
  });

  test('applies the change only if where matches', async () => {
    const user = await signUp(api, app, { balance: 5 });
    const pay = (where: string) =>
      user.put(
        { balance: { __op: 'Increment', amount: -3 } },
        `?where=${encodeURIComponent(where)}`,
      );
    expect((await pay('{"balance":{"$gte":3}}')).status).toBe(200);
    expect(refusalOf(await pay('{"balance":{"$gte":3}}'))).toEqual(refused(305));
    expect(refusalOf(await pay('{"sessionToken":{"$gt":""}}'))).toEqual(refused(105));
    expect((await user.me()).balance).toBe(2);
  });

  test('loses no concurrent increment', async () => {
    const user = await signUp(api, app);
    await Promise.all(Array.from({ length: 30 }, () => user.put({ n: { __op: 'Increment' } })));
    expect((await user.me()).n).toBe(30);
  });

  test('with the master key changes any user, verified flags and passwords', async () => {
    const user = await signUp(api, app, {
      email: `${newName()}@b.cn`,
      mobilePhoneNumber: newPhone(),
    });
    const path = `/1.1/users/${user.id}`;
    const verified = { emailVerified: true, mobilePhoneVerified: true };
    expect((await asMaster('PUT', path, { ...verified, nick: 'x' })).status).toBe(200);
    expect(await user.me()).toMatchObject({ ...verified, nick: 'x' });
    const reply = await asMaster('PUT', path, { password: 'by the master' });
    expect(reply.body.sessionToken).toMatch(/^[a-z0-9]{25}$/);
    expect((await user.request('GET', '/1.1/users/me')).body.code).toBe(211);
    const body = { username: user.body.username, password: 'by the master' };
    const entered = await api.request('POST', '/1.1/login', { app, body });
    expect(entered.body.sessionToken).toBe(reply.body.sessionToken);
    const unknown = await asMaster('PUT', `/1.1/users/${'0'.repeat(24)}`, { a: 1 });
    expect([unknown.body.code, unknown.body.error]).toEqual([
      1,
      `Could not find object by id '${'0'.repeat(24)}' for class '_User'.`,
    ]);
    for (const body of [{ objectId: 'x' }, { sessionToken: 'x'.repeat(25) }, { createdAt: null }])
      expect((await asMaster('PUT', path, body)).body.code).toBe(117);
  });
});

describe('DELETE /1.1/users/:id', () => {
  test('deletes the user itself, and frees its name and accounts', async () => {
    const authData = { github: { uid: newUid(), access_token: 't' } };
    for (const path of paths) {
      const user = await signUp(api, app);
      await user.put({ authData });
      const reply = await api.request('DELETE', `${path}/${user.id}`, {
        app,
        headers: { 'X-LC-Session': user.token },
        body: {},
      });
      expect([reply.status, reply.body]).toEqual([200, {}]);
      expect((await get(`/1.1/users/${user.id}`)).body.code).toBe(211);
      expect((await user.request('DELETE', `${path}/${user.id}`)).status).toBe(403);
      await signUp(api, app, { username: user.body.username });
    }
  });

  test('with the master key deletes any user, if where matches', async () => {
    const user = await signUp(api, app, { kind: 'a' });
    const path = `/1.1/users/${user.id}`;
    expect(
      (await asMaster('DELETE', `${path}?where=${encodeURIComponent('{"kind":"b"}')}`)).body.code,
    ).toBe(305);
    expect((await asMaster('DELETE', path)).body).toEqual({});
    expect((await asMaster('DELETE', path)).body).toEqual({});
    expect((await get(path)).body.code).toBe(211);
  });
});

describe('the ACL', () => {
  test('denies access to users that it does not name, not to the master key', async () => {
    const [user, friend, other] = [
      await signUp(api, app),
      await signUp(api, app),
      await signUp(api, app),
    ];
    const path = `/1.1/users/${user.id}`;
    const acl = {
      [user.id]: { read: true, write: true },
      [friend.id]: { read: true, write: true },
    };
    expect((await user.put({ ACL: acl })).status).toBe(200);
    expect((await user.request('GET', path)).status).toBe(200);
    expect((await friend.request('GET', path)).status).toBe(200);
    expect((await other.request('GET', path)).body).toEqual({
      code: 403,
      error: "Forbidden reading by object's ACL.",
    });
    expect((await get(path)).status).toBe(403);
    expect((await asMaster('GET', path)).status).toBe(200);
    // Only the user itself can change its data, even if the ACL allows others to write.
    expect(refusalOf(await friend.request('PUT', path, { a: 1 }))).toEqual(refused(206, 403));
    await user.put({ ACL: { '*': { read: true } } });
    expect((await get(path)).status).toBe(200);
    for (const method of ['PUT', 'DELETE']) {
      const reply = await user.request(method, path, method === 'PUT' ? { a: 1 } : undefined);
      expect([reply.status, reply.body.error]).toEqual([403, "Forbidden writing by object's ACL."]);
    }
    expect(
      (await asMaster('PUT', path, { ACL: { '*': { read: true, write: true } } })).status,
    ).toBe(200);
    expect((await user.put({ a: 1 })).status).toBe(200);
  });

  test('is returned on request, and may be removed', async () => {
    const acl = { '*': { read: true, write: true } };
    const user = await signUp(api, app, { ACL: acl });
    const path = `/1.1/users/${user.id}`;
    expect((await get(path)).body).not.toHaveProperty('ACL');
    expect((await get(`${path}?returnACL=true`)).body.ACL).toEqual(acl);
    const own = { [user.id]: { read: true, write: true } };
    await user.put({
      ACL: { ...own, '*': { read: true, write: false }, 'role:x': { read: false } },
    });
    // A permission with the value false grants nothing.
    expect((await get(`${path}?returnACL=true`)).body.ACL).toEqual({
      ...own,
      '*': { read: true },
      'role:x': {},
    });
    // Without an ACL, everyone has access.
    await user.put({ ACL: { __op: 'Delete' } });
    expect((await get(`${path}?returnACL=true`)).body.ACL).toEqual(acl);
    expect((await get(path)).body).not.toHaveProperty('ACL');
  });
});

describe('the own session token', () => {
  test('is included only for exactly this session', async () => {
    const [user, other] = [await signUp(api, app), await signUp(api, app)];
    for (const path of [`/1.1/users/${user.id}`, `/1.1/classes/_User/${user.id}`])
      for (const include of ['sessionToken', 'owner, sessionToken']) {
        const query = `${path}?include=${encodeURIComponent(include)}`;
        expect((await user.request('GET', query)).body.sessionToken).toBe(user.token);
        expect((await user.request('GET', `${query}&keys=username`)).body).toMatchObject({
          sessionToken: user.token,
        });
        for (const reply of [
          await other.request('GET', query),
          await api.request('GET', query, { app }),
          await api.request('GET', query, { app, master: true }),
          await user.request('GET', path),
        ]) {
          expect(reply.status).toBe(200);
          expect(reply.body).not.toHaveProperty('sessionToken');
        }
      }
    const old = user.token;
    user.token = (
      await user.request('PUT', `/1.1/users/${user.id}/refreshSessionToken`, {})
    ).body.sessionToken;
    const path = `/1.1/users/${user.id}?include=sessionToken`;
    expect((await user.request('GET', path)).body.sessionToken).toBe(user.token);
    const stale = await api.request('GET', path, { app, headers: { 'X-LC-Session': old } });
    expect(JSON.stringify(stale.body)).not.toContain(user.token);
  });
});

describe('the own password in a save', () => {
  const save = (user: TestUser, body: object) => user.put(body, '?new=true');

  test('changes nothing, and the session stays', async () => {
    const user = await signUp(api, app);
    const before = await readUser(api.db, app, user.id);
    const reply = await save(user, { password: 'a password', nick: 'x' });
    expect([reply.status, reply.body]).toEqual([
      200,
      { nick: 'x', objectId: user.id, updatedAt: expect.any(String) },
    ]);
    expect((await user.me()).sessionToken).toBe(user.token);
    expect((await readUser(api.db, app, user.id)).passwordHash).toBe(before.passwordHash);
  });

  test('cannot be used to guess it: seven wrong passwords lock the account', async () => {
    const user = await signUp(api, app);
    const codes: unknown[] = [];
    for (let i = 0; i < 8; i += 1)
      codes.push((await save(user, { password: `guess ${i}` })).body.code);
    expect(codes).toEqual([1, 1, 1, 1, 1, 1, 219, 219]);
    expect((await save(user, { password: 'a password' })).body.code).toBe(219);
    const body = { username: user.body.username, password: 'a password' };
    expect((await api.request('POST', '/1.1/login', { app, body })).body.code).toBe(219);
  });
});

describe('GET /1.1/users', () => {
  let own: App;
  let users: TestUser[];
  const list = async (
    query: Record<string, unknown>,
    { master = true, path = '/1.1/users', headers = {} } = {},
  ) => {
    const text = Object.entries(query).map(
      ([name, value]) =>
        `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`,
    );
    return api.request('GET', `${path}?${text.join('&')}`, { app: own, master, headers });
  };
  const names = async (query: Record<string, unknown>) =>
    (await list(query)).body.results.map((user: { username: string }) => user.username);

  beforeAll(async () => {
    own = await api.createApp();
    users = [];
    for (const [i, name] of ['ann', 'bob', 'cid', 'dan'].entries())
      users.push(
        await signUp(api, own, {
          username: name,
          level: i,
          tags: [name[0], 'all'],
          ...(i < 2 ? { email: `${name}@b.cn`, mobilePhoneNumber: `1381234567${i}` } : {}),
        }),
      );
    await users[0]?.put({ authData: { github: { uid: 'ann', access_token: 'SESAME' } } });
  });

  test('is forbidden without the master key until the option is set', async () => {
    for (const path of [...paths, '/1.1/users/strictlyQuery']) {
      const reply = await list({}, { master: false, path });
      expect([reply.status, reply.body]).toEqual([
        403,
        { code: 403, error: 'Forbidden to find by class permissions.' },
      ]);
    }
    await api.services.apps.change(own.appId, { options: { allowUserQuery: true } });
    for (const path of [...paths, '/1.1/users/strictlyQuery']) {
      const { status, body } = await list({}, { master: false, path });
      expect([status, body.results.length]).toEqual([200, 4]);
      expect(JSON.stringify(body)).not.toMatch(/SESAME|authData|sessionToken|password/);
    }
    await api.services.apps.change(own.appId, { options: { allowUserQuery: false } });
    expect((await list({}, { master: false })).status).toBe(403);
  });

  test('refuses conditions and orders on hidden members at any depth', async () => {
    const hidden = [
      'password',
      'sessionToken',
      'authData',
      'authData.github.uid',
      'ACL',
      '_hashed_password',
      'password_hash$',
      '_session_hash',
    ];
    for (const name of hidden) {
      const tests = [
        { [name]: 'x' },
        { [name]: { $regex: '^a' } },
        { [name]: { $exists: true } },
        { [name]: { $ne: null } },
      ];
      for (const test of tests)
        for (const where of [test, { $or: [{ level: 1 }, { $and: [test] }] }, [test]])
          expect([where, refusalOf(await list({ where }))]).toEqual([where, refused(105)]);
      for (const order of [name, `-${name}`, `level,${name}`])
        expect([order, refusalOf(await list({ order }))]).toEqual([order, refused(105)]);
    }
  });

  test('refuses invalid conditions', async () => {
    for (const where of [
      '{',
      '5',
      '"x"',
      '{"$where":"1"}',
      '{"level":{"$explode":1}}',
      '{"$or":[]}',
    ])
      expect([where, refusalOf(await list({ where }))]).toEqual([where, refused(102)]);
  });

  test('finds by columns and custom members, with order, count and pages', async () => {
    const cases: [Record<string, unknown>, string[]][] = [
      [{}, ['ann', 'bob', 'cid', 'dan']],
      [{ order: '-username' }, ['dan', 'cid', 'bob', 'ann']],
      [{ order: '-level', limit: '2', skip: '1' }, ['cid', 'bob']],
      [{ where: { username: 'bob' } }, ['bob']],
      [{ where: { username: { $regex: '^[ab]' } } }, ['ann', 'bob']],
      [{ where: { email: 'ann@b.cn' } }, ['ann']],
      [{ where: { email: { $exists: false } } }, ['cid', 'dan']],
      [{ where: { mobilePhoneNumber: '13812345671' } }, ['bob']],
      [{ where: { mobilePhoneNumber: '+8613812345671' } }, ['bob']],
      [{ where: { level: { $gt: 1 } } }, ['cid', 'dan']],
      [{ where: { tags: 'c' } }, ['cid']],
      [{ where: { objectId: { $in: [users[3]?.id, users[1]?.id] } } }, ['bob', 'dan']],
      [{ where: { mobilePhoneVerified: true } }, []],
      [
        {
          where: { createdAt: { $lte: { __type: 'Date', iso: String(users[0]?.body.createdAt) } } },
        },
        ['ann'],
      ],
      [{ where: { constructor: 'x' } }, []],
    ];
    for (const [query, found] of cases) expect([query, await names(query)]).toEqual([query, found]);
    expect((await list({ limit: '0', count: '1' })).body).toEqual({ results: [], count: 4 });
    expect((await list({ where: { level: 1 }, count: '1' })).body).toMatchObject({ count: 1 });
    const [firstUser] = (await list({ keys: 'username', limit: '1' })).body.results;
    expect(Object.keys(firstUser).sort()).toEqual([
      'createdAt',
      'objectId',
      'updatedAt',
      'username',
    ]);
  });

  test('shows accounts to the master key, and tokens and passwords to no one', async () => {
    const { body } = await list({});
    expect(body.results[0].authData.github.uid).toBe('ann');
    for (const user of users) expect(JSON.stringify(body)).not.toContain(user.token);
    expect(JSON.stringify(body)).not.toMatch(/sessionToken|password|argon2/);
  });

  test('shows other users only if their ACL allows it', async () => {
    await api.services.apps.change(own.appId, { options: { allowUserQuery: true } });
    const [ann, bob] = users as [TestUser, TestUser];
    await ann.put({ ACL: { [ann.id]: { read: true, write: true } } });
    const seenBy = async (headers: Record<string, string>) =>
      (await list({ count: '1', where: { level: { $lt: 2 } } }, { master: false, headers })).body;
    expect(await seenBy({})).toMatchObject({ count: 1, results: [{ username: 'bob' }] });
    expect((await seenBy({ 'X-LC-Session': bob.token })).count).toBe(1);
    expect((await seenBy({ 'X-LC-Session': ann.token })).count).toBe(2);
    expect((await list({ where: { level: { $lt: 2 } }, count: '1' })).body.count).toBe(2);
    await api.services.apps.change(own.appId, { options: { allowUserQuery: false } });
  });

  test('with strictlyQuery finds addresses and numbers only as a whole', async () => {
    const strict = (query: Record<string, unknown>) =>
      list(query, { path: '/1.1/users/strictlyQuery' });
    const found = await strict({ where: { $or: [{ email: 'bob@b.cn' }, { level: { $gt: 2 } }] } });
    expect(found.body.results.map((user: { username: string }) => user.username)).toEqual([
      'bob',
      'dan',
    ]);
    const loose = [
      { $regex: 'b' },
      { $gt: 'a' },
      { $ne: 'x' },
      { $in: ['bob@b.cn'] },
      { $exists: true },
      null,
    ];
    for (const name of ['email', 'mobilePhoneNumber'])
      for (const test of loose)
        for (const where of [{ [name]: test }, { $or: [{ level: 1 }, { [name]: test }] }])
          expect([where, refusalOf(await strict({ where }))]).toEqual([where, refused(102)]);
    expect(refusalOf(await strict({ order: 'email' }))).toEqual(refused(102));
  });
});
