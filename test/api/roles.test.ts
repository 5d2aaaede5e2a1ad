import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../shared/domain/app.ts';
import { startTestApi, type TestApi, type TestRequest } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { adding, changeRole, createRole, newRoleName, pointerTo, removing } from '../support/roles.ts';
import { newName, refusalOf, refused, signUp, type TestUser } from '../support/users.ts';

let database: TestDatabase;
let api: TestApi;
let app: App;
let user: TestUser;
beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
  app = await api.createApp();
  user = await signUp(api, app);
});
afterAll(async () => {
  await api.close();
  await database.drop();
});

const everybody = { '*': { read: true, write: true } };
const readOnly = { '*': { read: true } };
const post = (body: unknown, more: TestRequest = {}) =>
  api.request('POST', '/1.1/roles', { app, body, ...more });
const put = (id: string, body: unknown, query = '', more: TestRequest = {}) =>
  api.request('PUT', `/1.1/roles/${id}${query}`, { app, body, ...more });
const get = (id: string, query = '') => api.request('GET', `/1.1/roles/${id}${query}`, { app, master: true });
const users = (count: number) => adding('_User', ...Array.from({ length: count }, (_, i) => `u${i}`));

describe('a new role is refused', () => {
  const cases: [string, object, number][] = [
    ['without a name', { name: undefined }, 139],
    ['with an empty name', { name: '' }, 139],
    ['with a name that is no text', { name: 5 }, 139],
    ['with other characters in its name', { name: '管理员' }, 139],
    ['with a name of 129 characters', { name: 'x'.repeat(129) }, 139],
    ['with a part of a name', { 'name.x': 'a' }, 105],
    ['without an ACL', { ACL: undefined }, 1],
    ['with null for an ACL', { ACL: null }, 1],
    ['with an ACL that is none', { ACL: { '*': { read: false } } }, 123],
    ['with its users as a list', { users: [] }, 111],
    ['with no users', { users: null }, 111],
    ['with a relation deleted', { users: { __op: 'Delete' } }, 111],
    ['with users that are roles', { users: adding('_Role', 'x') }, 111],
    ['with roles that are users', { roles: adding('_User', 'x') }, 111],
    ['with a relation of another class', { roles: { __type: 'Relation', className: '_User' } }, 111],
    ['with ids for pointers', { users: { __op: 'AddRelation', objects: ['x'] } }, 111],
    ['with no list of pointers', { users: { __op: 'AddRelation' } }, 111],
    ['with a malformed pointer', { users: { __op: 'AddRelation', objects: [pointerTo('_User', '$')] } }, 106],
    ['with another operation on a relation', { users: { __op: 'Add', objects: [] } }, 111],
    ['with a Batch of no list', { users: { __op: 'Batch' } }, 111],
    ['with a Batch in a Batch', { users: { __op: 'Batch', ops: [{ __op: 'Batch', ops: [] }] } }, 111],
    ['with 11 operations in a Batch', { users: { __op: 'Batch', ops: Array(11).fill(users(1)) } }, 128],
    ['with 1001 users in one operation', { users: users(1001) }, 128],
    ['with a user that is not there', { users: users(1) }, 128],
    ['with a role that is not there', { roles: adding('_Role', 'nobody') }, 128],
    ['with an id', { objectId: 'mine' }, 117],
    ['with a bad member name', { $a: 1 }, 105],
    ['with 321 members', Object.fromEntries(Array.from({ length: 321 }, (_, i) => [`m${i}`, 1])), 116],
    ['beyond 256 KB', { text: 'x'.repeat(256 * 1024) }, 116],
    ['with a relation of its own', { friends: adding('_User', 'x') }, 111],
  ];
  test.each(cases)('%s', async (_, members, code) => {
    const name = newRoleName();
    const reply = await post({ name, ACL: readOnly, ...members });
    expect(refusalOf(reply)).toEqual(refused(code));
    const left = await api.request('GET', `/1.1/roles?where=${JSON.stringify({ name })}`, { app });
    expect(left.body.results).toEqual([]);
  });

  test('when it is no dictionary, or 2 MB', async () => {
    expect(refusalOf(await post('[]'))).toEqual(refused(107));
    const body = { name: newRoleName(), ACL: readOnly, text: 'x'.repeat(2 * 1024 * 1024) };
    expect(refusalOf(await post(body))).toEqual(refused(116));
  });

  test('with the words of the public service, when it has no ACL', async () => {
    expect((await post({ name: newRoleName() })).body).toEqual({ code: 1, error: 'Role ACL is required.' });
  });

  test('when another one has its name, whoever was first', async () => {
    const name = newRoleName();
    const replies = await Promise.all([1, 2, 3].map(() => post({ name, ACL: readOnly })));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 400, 400]);
    for (const reply of replies.filter(({ status }) => status === 400))
      expect(refusalOf(reply)).toEqual(refused(137));
    const elsewhere = await api.createApp();
    expect((await post({ name, ACL: readOnly }, { app: elsewhere })).status).toBe(201);
  });

  test('beyond the roles of an app, also when several come at once', async () => {
    const small = await api.createApp({ maxRoles: 2 });
    const make = (more: TestRequest = {}) =>
      post({ name: newRoleName(), ACL: readOnly }, { app: small, ...more });
    const replies = await Promise.all(Array.from({ length: 6 }, () => make()));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 201, 400, 400, 400, 400]);
    expect(refusalOf(await make({ master: true }))).toEqual(refused(154));
  });

  test('by an app key where the app keeps that for its master key', async () => {
    const closed = await api.createApp({ allowRoleCreate: false });
    const body = { name: newRoleName(), ACL: readOnly };
    expect(refusalOf(await post(body, { app: closed }))).toEqual(refused(403, 403));
    expect((await post(body, { app: closed, master: true })).status).toBe(201);
  });

  test('without keys', async () => {
    for (const path of ['/1.1/roles', '/1.1/classes/_Role'])
      expect((await api.request('POST', path, { body: {} })).status).toBe(401);
  });
});

describe('a role', () => {
  test('is made, and read in full, under both paths', async () => {
    for (const path of ['/1.1/roles', '/1.1/classes/_Role']) {
      const name = newRoleName();
      const made = await api.request('POST', path, {
        app,
        body: { name, ACL: readOnly, users: adding('_User', user.id), level: 3, __internal: 1 },
      });
      const { objectId } = made.body;
      expect(made).toMatchObject({
        status: 201,
        body: { objectId: expect.stringMatching(/^[0-9a-f]{24}$/), createdAt: expect.any(String) },
      });
      expect(Object.keys(made.body)).toHaveLength(2);
      expect(made.headers.get('location')).toBe(`http://carillon.test/1.1/roles/${objectId}`);
      const read = await api.request('GET', `${path}/${objectId}`, { app });
      expect(read).toMatchObject({ status: 200 });
      expect(read.body).toEqual({
        objectId,
        name,
        level: 3,
        createdAt: made.body.createdAt,
        updatedAt: made.body.createdAt,
        roles: { __type: 'Relation', className: '_Role' },
        users: { __type: 'Relation', className: '_User' },
      });
    }
  });

  test('comes back as a whole with fetchWhenSave, its ACL with returnACL', async () => {
    const made = await api.request('POST', '/1.1/roles?fetchWhenSave=true', {
      app,
      body: { name: newRoleName(), ACL: everybody },
    });
    expect(made.body).toMatchObject({ ACL: everybody, users: { __type: 'Relation' } });
    const changed = await put(made.body.objectId, { level: 1, users: adding('_User', user.id) }, '?new=true');
    expect(changed.body).toEqual({
      level: 1,
      users: { __type: 'Relation', className: '_User' },
      objectId: made.body.objectId,
      updatedAt: expect.any(String),
    });
    expect((await get(made.body.objectId, '?returnACL=true')).body.ACL).toEqual(everybody);
    expect((await get(made.body.objectId)).body).not.toHaveProperty('ACL');
  });

  test('may have the names that the SDKs let through', async () => {
    for (const name of ['Admin_1', 'a-b', 'team 7', 'x'.repeat(128)])
      expect((await post({ name, ACL: readOnly })).status).toBe(201);
  });

  test('of the master key without an ACL is for everybody to see and for nobody to change', async () => {
    const made = await post({ name: newRoleName() }, { master: true });
    expect(made.status).toBe(201);
    const { objectId } = made.body;
    expect((await get(objectId, '?returnACL=1')).body.ACL).toEqual(readOnly);
    expect(refusalOf(await put(objectId, { users: adding('_User', user.id) }))).toEqual(refused(403, 403));
  });

  test('that is not there is an empty dictionary; to change it is code 1, to delete it nothing', async () => {
    for (const id of ['nobody', '$', 'x'.repeat(65)]) {
      expect((await get(encodeURIComponent(id))).body).toEqual({});
      expect(refusalOf(await put(encodeURIComponent(id), { a: 1 }))).toEqual(refused(1));
      const gone = await api.request('DELETE', `/1.1/roles/${encodeURIComponent(id)}`, { app });
      expect(gone).toMatchObject({ status: 200, body: {} });
    }
  });

  test('of another app is not there', async () => {
    const { id } = await createRole(api, app);
    const other = await api.createApp();
    expect((await api.request('GET', `/1.1/roles/${id}`, { app: other, master: true })).body).toEqual({});
    expect(refusalOf(await put(id, { a: 1 }, '', { app: other, master: true }))).toEqual(refused(1));
    const stranger = await signUp(api, other);
    expect(
      refusalOf(await changeRole(api, app, { id, name: '' }, { users: adding('_User', stranger.id) })),
    ).toEqual(refused(128));
  });
});

describe('a change of a role', () => {
  test('is refused for its name, its read-only members, and without an ACL', async () => {
    const { id, name } = await createRole(api, app);
    const cases: [object, number][] = [
      [{ name: 'another' }, 117],
      [{ name: { __op: 'Delete' } }, 139],
      [{ createdAt: '2020-01-01T00:00:00.000Z' }, 117],
      [{ objectId: 'x' }, 117],
      [{ ACL: { __op: 'Delete' } }, 1],
      [{ ACL: null }, 1],
      [{ ACL: { '*': true } }, 123],
      [{ users: users(1001) }, 128],
      [{ users: users(2) }, 128],
      [{ text: 'x'.repeat(256 * 1024) }, 116],
    ];
    for (const [body, code] of cases)
      expect([body, refusalOf(await put(id, body, '', { master: true }))]).toEqual([body, refused(code)]);
    const { objectId, createdAt, updatedAt, users: shownUsers, roles } = (await get(id)).body;
    const repeated = { name, objectId, createdAt, updatedAt, users: shownUsers, roles, className: '_Role' };
    expect((await put(id, repeated, '', { master: true })).status).toBe(200);
  });

  test('does all or nothing', async () => {
    const { id } = await createRole(api, app);
    const body = { level: 1, users: adding('_User', user.id), roles: adding('_Role', 'nobody') };
    expect(refusalOf(await put(id, body, '', { master: true }))).toEqual(refused(128));
    expect((await get(id)).body).not.toHaveProperty('level');
    const where = JSON.stringify({ users: pointerTo('_User', user.id), objectId: id });
    const found = await api.request('GET', `/1.1/roles?where=${where}`, { app, master: true });
    expect(found.body.results).toEqual([]);
  });

  test('is kept out by a condition that is not met', async () => {
    const { id } = await createRole(api, app, { level: 1, ACL: everybody, users: [user.id] });
    const where = (condition: object) => `?where=${encodeURIComponent(JSON.stringify(condition))}`;
    expect(refusalOf(await put(id, { a: 1 }, where({ level: 2 })))).toEqual(refused(305));
    expect(refusalOf(await put(id, { a: 1 }, where({ ACL: 1 })))).toEqual(refused(105));
    expect((await put(id, { a: 1 }, where({ level: 1, users: pointerTo('_User', user.id) }))).status).toBe(
      200,
    );
    const remove = (condition: object) =>
      api.request('DELETE', `/1.1/roles/${id}${where(condition)}`, { app });
    expect(refusalOf(await remove({ level: 2 }))).toEqual(refused(305));
    expect((await remove({ level: 1 })).status).toBe(200);
  });

  test('adds and removes members, also in one Batch, in its order', async () => {
    const [a, b] = [await signUp(api, app), await signUp(api, app)];
    const { id } = await createRole(api, app, { users: [a.id] });
    const has = async ({ id: userId }: TestUser) => {
      const where = JSON.stringify({ users: pointerTo('_User', userId), objectId: id });
      const found = await api.request('GET', `/1.1/roles?where=${where}`, { app });
      return found.body.results.length === 1;
    };
    expect([await has(a), await has(b)]).toEqual([true, false]);
    const ops = [adding('_User', b.id), removing('_User', a.id, 'nobody')];
    expect((await put(id, { users: { __op: 'Batch', ops } }, '', { master: true })).status).toBe(200);
    expect([await has(a), await has(b)]).toEqual([false, true]);
    const again = [removing('_User', b.id), adding('_User', b.id, b.id, a.id)];
    await put(id, { users: { __op: 'Batch', ops: again } }, '', { master: true });
    expect([await has(a), await has(b)]).toEqual([true, true]);
  });

  test('takes a thousand members at once', async () => {
    const { id } = await createRole(api, app, { ACL: everybody });
    const names = Array.from({ length: 999 }, (_, i) => `x${i}`);
    const reply = await put(id, { users: removing('_User', user.id, ...names) });
    expect(reply.status).toBe(200);
  });
});

describe('a deletion', () => {
  test('of a role or a user takes its memberships with it', async () => {
    const member = await signUp(api, app);
    const child = await createRole(api, app, { users: [member.id, user.id] });
    const parent = await createRole(api, app, { roles: [child.id], users: [member.id] });
    const rolesWith = async (where: object) =>
      (
        await api.request('GET', `/1.1/roles?where=${encodeURIComponent(JSON.stringify(where))}`, { app })
      ).body.results.map(({ objectId }: { objectId: string }) => objectId);
    const ofMember = { users: pointerTo('_User', member.id) };
    expect((await rolesWith(ofMember)).sort()).toEqual([child.id, parent.id].sort());
    expect((await member.request('DELETE', `/1.1/users/${member.id}`)).status).toBe(200);
    expect(await rolesWith(ofMember)).toEqual([]);
    expect(await rolesWith({ roles: pointerTo('_Role', child.id) })).toEqual([parent.id]);
    const gone = await api.request('DELETE', `/1.1/classes/_Role/${child.id}`, { app, master: true });
    expect(gone.status).toBe(200);
    expect(await rolesWith({ roles: pointerTo('_Role', child.id) })).toEqual([]);
    expect(await rolesWith({ users: pointerTo('_User', user.id), objectId: child.id })).toEqual([]);
  });

  test('takes several ids, as many as a hundred', async () => {
    const [a, b] = [await createRole(api, app), await createRole(api, app)];
    const remove = (ids: string[]) =>
      api.request('DELETE', `/1.1/roles/${ids.join()}`, { app, master: true });
    const tooMany = Array.from({ length: 101 }, (_, i) => `r${i}`);
    expect(refusalOf(await remove(tooMany))).toEqual(refused(116));
    expect((await remove([a.id, 'nobody', b.id])).status).toBe(200);
    for (const { id } of [a, b]) expect((await get(id)).body).toEqual({});
  });

  test('of an app takes its roles', async () => {
    const doomed = await api.createApp();
    const member = await signUp(api, doomed, { username: newName() });
    await createRole(api, doomed, { users: [member.id] });
    const gone = await api.request('DELETE', `/console/api/apps/${doomed.appId}`, { admin: true });
    expect(gone.status).toBeLessThan(300);
  });
});
