import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { TestRequest } from '../../../support/api.ts';
import {
  adding,
  changeRole,
  createRole,
  newRoleName,
  pointerTo,
  removing,
} from '../../../support/roles.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { newName, refusalOf, refused, signUp, type TestUser } from '../../../support/users.ts';

let app: App;
let user: TestUser;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
  user = await signUp(api, app);
});
const everybody = { '*': { read: true, write: true } };
const readOnly = { '*': { read: true } };
const post = (body: unknown, more: TestRequest = {}) =>
  api.request('POST', '/1.1/roles', { app, body, ...more });
const put = (id: string, body: unknown, query = '', more: TestRequest = {}) =>
  api.request('PUT', `/1.1/roles/${id}${query}`, { app, body, ...more });
const get = (id: string, query = '') =>
  api.request('GET', `/1.1/roles/${id}${query}`, { app, master: true });
const users = (count: number) =>
  adding('_User', ...Array.from({ length: count }, (_, i) => `u${i}`));

describe('a role', () => {
  test('is created, and is returned in full under both paths', async () => {
    for (const path of ['/1.1/roles', '/1.1/classes/_Role']) {
      const name = newRoleName();
      const created = await api.request('POST', path, {
        app,
        body: { name, ACL: readOnly, users: adding('_User', user.id), level: 3, __internal: 1 },
      });
      const { objectId } = created.body;
      expect(created).toMatchObject({
        status: 201,
        body: { objectId: expect.stringMatching(/^[0-9a-f]{24}$/), createdAt: expect.any(String) },
      });
      expect(Object.keys(created.body)).toHaveLength(2);
      expect(created.headers.get('location')).toBe(`http://carillon.test/1.1/roles/${objectId}`);
      const read = await api.request('GET', `${path}/${objectId}`, { app });
      expect(read).toMatchObject({ status: 200 });
      expect(read.body).toEqual({
        objectId,
        name,
        level: 3,
        createdAt: created.body.createdAt,
        updatedAt: created.body.createdAt,
        roles: { __type: 'Relation', className: '_Role' },
        users: { __type: 'Relation', className: '_User' },
      });
    }
  });

  test('is returned in full with fetchWhenSave, its ACL with returnACL', async () => {
    const created = await api.request('POST', '/1.1/roles?fetchWhenSave=true', {
      app,
      body: { name: newRoleName(), ACL: everybody },
    });
    expect(created.body).toMatchObject({ ACL: everybody, users: { __type: 'Relation' } });
    const changed = await put(
      created.body.objectId,
      { level: 1, users: adding('_User', user.id) },
      '?new=true',
    );
    expect(changed.body).toEqual({
      level: 1,
      users: { __type: 'Relation', className: '_User' },
      objectId: created.body.objectId,
      updatedAt: expect.any(String),
    });
    expect((await get(created.body.objectId, '?returnACL=true')).body.ACL).toEqual(everybody);
    expect((await get(created.body.objectId)).body).not.toHaveProperty('ACL');
  });

  test('may have the names that the SDKs accept', async () => {
    for (const name of ['Admin_1', 'a-b', 'team 7', 'x'.repeat(128)])
      expect((await post({ name, ACL: readOnly })).status).toBe(201);
  });

  test('of the master key without an ACL is readable by all, writable by none', async () => {
    const created = await post({ name: newRoleName() }, { master: true });
    expect(created.status).toBe(201);
    const { objectId } = created.body;
    expect((await get(objectId, '?returnACL=1')).body.ACL).toEqual(readOnly);
    expect(refusalOf(await put(objectId, { users: adding('_User', user.id) }))).toEqual(
      refused(403, 403),
    );
  });

  test('that does not exist reads as {}, changes with code 1, deletes silently', async () => {
    for (const id of ['unknown', '$', 'x'.repeat(65)]) {
      expect((await get(encodeURIComponent(id))).body).toEqual({});
      expect(refusalOf(await put(encodeURIComponent(id), { a: 1 }))).toEqual(refused(1));
      const removed = await api.request('DELETE', `/1.1/roles/${encodeURIComponent(id)}`, { app });
      expect(removed).toMatchObject({ status: 200, body: {} });
    }
  });

  test('of another app does not exist', async () => {
    const { id } = await createRole(api, app);
    const other = await api.createApp();
    expect(
      (await api.request('GET', `/1.1/roles/${id}`, { app: other, master: true })).body,
    ).toEqual({});
    expect(refusalOf(await put(id, { a: 1 }, '', { app: other, master: true }))).toEqual(
      refused(1),
    );
    const outsider = await signUp(api, other);
    expect(
      refusalOf(
        await changeRole(api, app, { id, name: '' }, { users: adding('_User', outsider.id) }),
      ),
    ).toMatchObject({ status: 200 });
    const members = (found: App) =>
      api.db.query(
        'SELECT 1 FROM role_user WHERE app_id = $1 AND role_id = (SELECT id FROM role WHERE object_id = $2)',
        [found.appId, id],
      );
    for (const one of [app, other]) expect((await members(one)).rows).toEqual([]);
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
      [{ text: 'x'.repeat(256 * 1024) }, 116],
    ];
    for (const [body, code] of cases)
      expect([body, refusalOf(await put(id, body, '', { master: true }))]).toEqual([
        body,
        refused(code),
      ]);
    const { objectId, createdAt, updatedAt, users: shownUsers, roles } = (await get(id)).body;
    const repeated = {
      name,
      objectId,
      createdAt,
      updatedAt,
      users: shownUsers,
      roles,
      className: '_Role',
    };
    expect((await put(id, repeated, '', { master: true })).status).toBe(200);
  });

  test('is applied completely or not at all', async () => {
    const { id } = await createRole(api, app);
    const body = { level: 1, users: adding('_User', user.id), roles: users(1001) };
    expect((await put(id, body, '', { master: true })).status).toBe(400);
    expect((await get(id)).body).not.toHaveProperty('level');
    const where = JSON.stringify({ users: pointerTo('_User', user.id), objectId: id });
    const found = await api.request('GET', `/1.1/roles?where=${where}`, { app, master: true });
    expect(found.body.results).toEqual([]);
  });

  test('ignores members that do not exist, such as a deleted user', async () => {
    const removed = await signUp(api, app);
    await removed.request('DELETE', `/1.1/users/${removed.id}`);
    const objects = [pointerTo('_User', user.id), pointerTo('_User', removed.id)];
    const body = { users: { __op: 'AddRelation', objects }, roles: adding('_Role', 'unknown') };
    const { id } = await createRole(api, app);
    const made = { ...body, name: newName(), ACL: {} };
    const created = await api.request('POST', '/1.1/roles', { app, master: true, body: made });
    expect(created.status).toBe(201);
    expect((await put(id, body, '', { master: true })).status).toBe(200);
    for (const roleId of [id, created.body.objectId])
      for (const [key, count] of [
        ['users', 1],
        ['roles', 0],
      ] as const) {
        const where = JSON.stringify({ $relatedTo: { object: pointerTo('_Role', roleId), key } });
        const query = `where=${where}&redirectClassNameForKey=${key}`;
        const found = await api.request('GET', `/1.1/roles?${query}`, { app, master: true });
        expect([key, found.body.results.length]).toEqual([key, count]);
      }
  });

  test('fails if its condition is not met', async () => {
    const { id } = await createRole(api, app, { level: 1, ACL: everybody, users: [user.id] });
    const where = (condition: object) => `?where=${encodeURIComponent(JSON.stringify(condition))}`;
    expect(refusalOf(await put(id, { a: 1 }, where({ level: 2 })))).toEqual(refused(305));
    expect(refusalOf(await put(id, { a: 1 }, where({ ACL: 1 })))).toEqual(refused(105));
    expect(
      (await put(id, { a: 1 }, where({ level: 1, users: pointerTo('_User', user.id) }))).status,
    ).toBe(200);
    const remove = (condition: object) =>
      api.request('DELETE', `/1.1/roles/${id}${where(condition)}`, { app });
    expect(refusalOf(await remove({ level: 2 }))).toEqual(refused(305));
    expect((await remove({ level: 1 })).status).toBe(200);
  });

  test('adds and removes members, also in one Batch, in order', async () => {
    const [a, b] = [await signUp(api, app), await signUp(api, app)];
    const { id } = await createRole(api, app, { users: [a.id] });
    const has = async ({ id: userId }: TestUser) => {
      const where = JSON.stringify({ users: pointerTo('_User', userId), objectId: id });
      const found = await api.request('GET', `/1.1/roles?where=${where}`, { app });
      return found.body.results.length === 1;
    };
    expect([await has(a), await has(b)]).toEqual([true, false]);
    const ops = [adding('_User', b.id), removing('_User', a.id, 'unknown')];
    expect((await put(id, { users: { __op: 'Batch', ops } }, '', { master: true })).status).toBe(
      200,
    );
    expect([await has(a), await has(b)]).toEqual([false, true]);
    const again = [removing('_User', b.id), adding('_User', b.id, b.id, a.id)];
    await put(id, { users: { __op: 'Batch', ops: again } }, '', { master: true });
    expect([await has(a), await has(b)]).toEqual([true, true]);
  });

  test('accepts a thousand members at once', async () => {
    const { id } = await createRole(api, app, { ACL: everybody });
    const names = Array.from({ length: 999 }, (_, i) => `x${i}`);
    const reply = await put(id, { users: removing('_User', user.id, ...names) });
    expect(reply.status).toBe(200);
  });
});

describe('a deletion', () => {
  test('of a role or a user deletes its memberships', async () => {
    const member = await signUp(api, app);
    const child = await createRole(api, app, { users: [member.id, user.id] });
    const parent = await createRole(api, app, { roles: [child.id], users: [member.id] });
    const rolesWith = async (where: object) =>
      (
        await api.request('GET', `/1.1/roles?where=${encodeURIComponent(JSON.stringify(where))}`, {
          app,
        })
      ).body.results.map(({ objectId }: { objectId: string }) => objectId);
    const ofMember = { users: pointerTo('_User', member.id) };
    expect((await rolesWith(ofMember)).sort()).toEqual([child.id, parent.id].sort());
    expect((await member.request('DELETE', `/1.1/users/${member.id}`)).status).toBe(200);
    expect(await rolesWith(ofMember)).toEqual([]);
    expect(await rolesWith({ roles: pointerTo('_Role', child.id) })).toEqual([parent.id]);
    const removed = await api.request('DELETE', `/1.1/classes/_Role/${child.id}`, {
      app,
      master: true,
    });
    expect(removed.status).toBe(200);
    expect(await rolesWith({ roles: pointerTo('_Role', child.id) })).toEqual([]);
    expect(await rolesWith({ users: pointerTo('_User', user.id), objectId: child.id })).toEqual([]);
  });

  test('accepts up to a hundred ids', async () => {
    const [a, b] = [await createRole(api, app), await createRole(api, app)];
    const remove = (ids: string[]) =>
      api.request('DELETE', `/1.1/roles/${ids.join()}`, { app, master: true });
    const tooMany = Array.from({ length: 101 }, (_, i) => `r${i}`);
    expect(refusalOf(await remove(tooMany))).toEqual(refused(116));
    expect((await remove([a.id, 'unknown', b.id])).status).toBe(200);
    for (const { id } of [a, b]) expect((await get(id)).body).toEqual({});
  });

  test('of roles and members does not fail during concurrent changes', async () => {
    const members = await Promise.all(Array.from({ length: 6 }, () => signUp(api, app)));
    const ids = members.map(({ id }) => id);
    for (let round = 0; round < 3; round += 1) {
      const [left, right] = [ids.slice(0, 3), ids.slice(3)];
      const roles = await Promise.all([1, 2, 3, 4].map(() => createRole(api, app, { users: ids })));
      const swapping = (users: string[]) => ({
        __op: 'Batch',
        ops: [removing('_User', ...users), adding('_User', ...users)],
      });
      const replies = await Promise.all([
        ...roles.slice(0, 2).map((role) => changeRole(api, app, role, { users: swapping(left) })),
        ...roles.slice(0, 2).map((role) => changeRole(api, app, role, { users: swapping(right) })),
        ...roles
          .slice(2)
          .map(({ id }) => api.request('DELETE', `/1.1/roles/${id}`, { app, master: true })),
        ...members.map((member) => member.put({ round })),
      ]);
      expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
      await Promise.all(
        roles
          .slice(0, 2)
          .map(({ id }) => api.request('DELETE', `/1.1/roles/${id}`, { app, master: true })),
      );
    }
    const roles = await Promise.all([1, 2, 3].map(() => createRole(api, app, { users: ids })));
    const removed = await Promise.all([
      ...members.map((member) => member.request('DELETE', `/1.1/users/${member.id}`)),
      ...roles.map(({ id }) => api.request('DELETE', `/1.1/roles/${id}`, { app, master: true })),
    ]);
    expect(removed.map(({ status }) => status)).toEqual(removed.map(() => 200));
  });

  test('of an app deletes its roles', async () => {
    const doomed = await api.createApp();
    const member = await signUp(api, doomed, { username: newName() });
    await createRole(api, doomed, { users: [member.id] });
    const removed = await api.request('DELETE', `/console/api/apps/${doomed.appId}`, {
      admin: true,
      body: { appId: doomed.appId },
    });
    expect(removed.status).toBeLessThan(300);
  });
});
