import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { countWaitingForLocks } from '../../support/database.ts';
import { countRows } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, newPhone, refusalOf, refused, signUp } from '../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const post = (body: unknown, path = '/1.1/users') => api.request('POST', path, { app, body });
const user = (more: object = {}) => ({ username: newName(), password: 'a password', ...more });

describe('POST /1.1/users with a password refuses', () => {
  const bodies: [string, unknown, number][] = [
    ['an empty body', {}, 200],
    ['no JSON', '{', 107],
    ['an array', [], 107],
    ['a missing username', { password: 'p' }, 200],
    ['an empty username', { username: '', password: 'p' }, 200],
    ['a blank username', { username: ' \t', password: 'p' }, 217],
    ['an operator as username', { username: { $ne: null }, password: 'p' }, 217],
    ['an operation as username', { username: { __op: 'Delete' }, password: 'p' }, 217],
    ['a list as username', { username: ['a'], password: 'p' }, 217],
    ['a number as username', { username: 1, password: 'p' }, 217],
    ['a username with NUL', { username: 'a\u0000', password: 'p' }, 217],
    ['half a character as username', '{"username":"\\ud800","password":"p"}', 217],
    ['an endless username', { username: 'x'.repeat(100_000), password: 'p' }, 217],
    ['a missing password', { username: 'a' }, 201],
    ['an empty password', { username: 'a', password: '' }, 201],
    ['a blank password', { username: 'a', password: '  ' }, 218],
    ['an operator as password', { username: 'a', password: { $gt: '' } }, 218],
    ['a number as password', { username: 'a', password: 123456 }, 218],
    ['an endless password', { username: 'a', password: 'x'.repeat(1_000_000) }, 218],
    ['an address without an @', user({ email: 'tom' }), 125],
    ['an address with a line break', user({ email: 'a@b.cn\r\nBcc: c@d.cn' }), 125],
    ['an operator as address', user({ email: { $ne: 1 } }), 125],
    ['two addresses', user({ email: 'a@b.cn,c@d.cn' }), 125],
    ['an invalid number', user({ mobilePhoneNumber: '123' }), 127],
    ['an operator as number', user({ mobilePhoneNumber: { $ne: 1 } }), 127],
    ['a number as number', user({ mobilePhoneNumber: 13800000000 }), 127],
    ['an invalid ACL', user({ ACL: 'public' }), 123],
    ['an ACL with a permission that is null', user({ ACL: { '*': { read: null } } }), 123],
    ['an ACL with a permission that is 0', user({ ACL: { '*': { read: 0 } } }), 123],
    ['an ACL with another permission', user({ ACL: { '*': { admin: true } } }), 123],
    ['an object id', user({ objectId: '0'.repeat(24) }), 117],
    ['a session token', user({ sessionToken: 'x'.repeat(25) }), 117],
    ['a verified address', user({ email: 'v@b.cn', emailVerified: true }), 117],
    ['a verified number', user({ mobilePhoneVerified: true }), 117],
    ['a verified number by its other name', user({ mobilePhoneNumberVerified: true }), 117],
    ['a time of creation', user({ createdAt: '2020-01-01T00:00:00.000Z' }), 117],
    ['an empty authData without a name', { authData: {}, password: 'p' }, 250],
    ['an authData that is a text', user({ authData: 'x' }), 111],
    ['a member with a dash', user({ 'a-b': 1 }), 105],
    ['a member with a quote', user({ "a'b": 1 }), 105],
    ['a member with $', user({ $where: '1' }), 105],
    ['an inner member with $', user({ a: { $ne: 1 } }), 121],
    ['a text with NUL', user({ a: 'x\u0000' }), 111],
    ['an unknown operation', user({ a: { __op: 'Explode' } }), 111],
    ['a malformed pointer', user({ a: { __type: 'Pointer', className: '_User' } }), 106],
    ['an oversize member', user({ a: 'x'.repeat(1_100_000) }), 116],
    [
      'too many members',
      user(Object.fromEntries(Array.from({ length: 301 }, (_, i) => [`f${i}`, 1]))),
      116,
    ],
    [
      'deep nesting',
      `{"username":"n","password":"p","a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      107,
    ],
  ];
  test.each(bodies)('%s', async (_name, body, code) => {
    expect(refusalOf(await post(body))).toEqual(refused(code));
  });

  test('wrong keys', async () => {
    const reply = await api.request('POST', '/1.1/users', {
      body: user(),
      headers: { 'X-LC-Id': app.appId },
    });
    expect(reply.status).toBe(401);
  });

  test('a taken name, address or number', async () => {
    const phone = newPhone();
    const taken = await signUp(api, app, { email: `${newName()}@b.cn`, mobilePhoneNumber: phone });
    const cases: [object, number][] = [
      [{ username: taken.body.username }, 202],
      [{ email: taken.body.email }, 203],
      [{ mobilePhoneNumber: phone.slice(3) }, 214],
    ];
    for (const [more, code] of cases)
      expect(refusalOf(await post(user(more)))).toEqual(refused(code));
    // Apps are independent.
    const other = await api.createApp();
    await signUp(api, other, { username: taken.body.username, mobilePhoneNumber: phone });
  });
});

describe('POST /1.1/users with a password', () => {
  test('signs up: 201, Location, the whole user except the password', async () => {
    const sent = user({ email: `${newName()}@example.com`, phone: '415-392-0202', gender: null });
    const { status, headers, body } = await post(sent);
    expect(status).toBe(201);
    expect(headers.get('location')).toBe(`http://carillon.test/1.1/users/${body.objectId}`);
    const { password: _, ...visible } = sent;
    expect(body).toEqual({
      ...visible,
      emailVerified: null,
      mobilePhoneVerified: false,
      objectId: expect.stringMatching(/^[0-9a-f]{24}$/),
      sessionToken: expect.stringMatching(/^[a-z0-9]{25}$/),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: body.createdAt,
    });
  });

  test('works under the path of the SDKs, and with an invalid session', async () => {
    const reply = await api.request('POST', '/1.1/classes/_User?new=true', {
      app,
      body: { ...user(), __internalId: 'x', _private: 1, className: '_User' },
      headers: { 'X-LC-Session': 'of-somebody-long-gone-000' },
    });
    expect(reply.status).toBe(201);
    expect(Object.keys(reply.body)).not.toContain('__internalId');
    expect(Object.keys(reply.body)).not.toContain('className');
  });

  test('a number is stored in international form, Chinese by default', async () => {
    const number = newPhone();
    const { body } = await signUp(api, app, {
      mobilePhoneNumber: ` ${number.slice(3, 6)} ${number.slice(6)}`,
    });
    expect(body).toMatchObject({ mobilePhoneNumber: number, mobilePhoneVerified: false });
  });

  test('treats names that differ in case as different', async () => {
    const name = newName();
    await signUp(api, app, { username: name, email: `${name}@b.cn` });
    await signUp(api, app, { username: name.toUpperCase(), email: `${name.toUpperCase()}@b.cn` });
  });

  test('operations start from an empty value', async () => {
    const { body } = await signUp(api, app, {
      score: { __op: 'Increment', amount: 3 },
      tags: { __op: 'AddUnique', objects: ['a', 'a'] },
    });
    expect(body).toMatchObject({ score: 3, tags: ['a'] });
  });

  test("treats members named like JavaScript's prototype as ordinary members", async () => {
    const text = JSON.stringify(user({ constructor: 1, toString: 'x', hasOwnProperty: true }));
    const { status, body } = await post(`${text.slice(0, -1)},"__proto__":{"polluted":1}}`);
    expect(status).toBe(201);
    expect(body).toMatchObject({ constructor: 1, toString: 'x', hasOwnProperty: true });
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test('marks the address as unverified immediately after the option is set', async () => {
    const verifying = await api.createApp();
    const before = await signUp(api, verifying, { email: 'a@b.cn' });
    await api.services.apps.change(verifying.appId, { options: { emailVerification: true } });
    const after = await signUp(api, verifying, { email: 'c@d.cn' });
    const without = await signUp(api, verifying);
    expect([before, after, without].map(({ body }) => body.emailVerified)).toEqual([
      null,
      false,
      null,
    ]);
  });

  test('creates one user for fifty concurrent calls with one name', async () => {
    const body = user();
    const replies = await Promise.all(Array.from({ length: 50 }, () => post(body)));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter(({ body: { code } }) => code === 202)).toHaveLength(49);
  });

  test('stores neither password nor token in plain text', async () => {
    const created = await signUp(api, app, { password: 'SESAME' });
    const { rows } = await api.db.query<{ text: string; password_hash: string }>(
      'SELECT app_user::text AS text, password_hash FROM app_user WHERE object_id = $1',
      [created.id],
    );
    expect(rows[0]?.password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(rows[0]?.text).not.toMatch(/SESAME/);
    expect(rows[0]?.text).not.toContain(created.token);
    expect(rows[0]?.text).not.toContain(Buffer.from(created.token).toString('hex'));
  });

  test('users are deleted with their app', async () => {
    const removed = await api.createApp();
    await signUp(api, removed);
    await api.services.apps.delete(removed.appId);
    expect(await countRows(api.db, 'app_user', removed)).toBe(0);
  });
});

test('GET /1.1/date returns the time, even without keys', async () => {
  const time = { __type: 'Date', iso: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) };
  expect((await api.request('GET', '/1.1/date', { app })).body).toEqual(time);
  expect(await api.request('GET', '/1.1/date')).toMatchObject({ status: 200, body: time });
});

test('a sign-up while its app is deleted gets 409', async () => {
  const deleted = await api.createApp();
  const { signedUp } = await api.db.transaction(async (tx) => {
    await tx.query('DELETE FROM app WHERE app_id = $1', [deleted.appId]);
    const signedUp = api.request('POST', '/1.1/users', { app: deleted, body: user() });
    await vi.waitUntil(async () => (await countWaitingForLocks(api.db)) === 1, { timeout: 20_000 });
    return { signedUp };
  });
  expect(await signedUp).toMatchObject({ status: 409, body: { code: 409 } });
});
