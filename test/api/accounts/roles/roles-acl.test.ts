import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { RoleCache } from '../../../../api/services/roles/roles.ts';
import { systemClock } from '../../../../shared/clock.ts';
import {
  findRolesOfUser,
  maxRoleDepth,
  maxRolesOfUser,
} from '../../../../shared/db/tables/roles.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import {
  adding,
  changeRole,
  createRole,
  idsIn,
  newRoleName,
  pointerTo,
  removing,
  type TestRole,
  withWhere,
} from '../../../support/roles.ts';
import { readUser } from '../../../support/tables.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { refusalOf, refused, signUp, type TestUser } from '../../../support/users.ts';

let other: TestApi;
let app: App;
/** A member of the role, and a user without roles. */
let insider: TestUser;
let outsider: TestUser;
let role: TestRole;
/** User that only members of the role may read. */
let hidden: TestUser;
const api = useTestApi();
beforeAll(async () => {
  other = await startTestApi({ databaseUrl: api.databaseUrl });
  app = await api.createApp({ allowUserQuery: true, allowInstallationQuery: true });
  [insider, outsider] = [await signUp(api, app), await signUp(api, app)];
  role = await createRole(api, app, { users: [insider.id] });
  hidden = await hiddenBy(role, 'read');
});
afterAll(async () => {
  await other.close();
});

const aclOf = ({ name }: { name: string }, ...permissions: string[]) => ({
  [`role:${name}`]: Object.fromEntries(permissions.map((permission) => [permission, true])),
});

/** Creates a user that only members of a role may access. The user cannot access itself. */
async function hiddenBy(of: { name: string }, ...permissions: string[]): Promise<TestUser> {
  const user = await signUp(api, app);
  const body = { ACL: aclOf(of, ...permissions) };
  const reply = await api.request('PUT', `/1.1/users/${user.id}`, { app, master: true, body });
  expect(reply.status).toBe(200);
  return user;
}

const statusesOf = (path: string, callers: TestUser[] = [insider, outsider]) =>
  Promise.all(callers.map(async (caller) => (await caller.request('GET', path)).status));

describe('an ACL entry for a role applies', () => {
  test('when a user is read by its id', async () => {
    expect(await statusesOf(`/1.1/users/${hidden.id}`)).toEqual([200, 403]);
    expect(await statusesOf(`/1.1/classes/_User/${hidden.id}`)).toEqual([200, 403]);
    expect((await api.request('GET', `/1.1/users/${hidden.id}`, { app })).status).toBe(403);
  });

  test('in lists, counts and sub-queries', async () => {
    const where = { objectId: hidden.id };
    const device = await api.request('POST', '/1.1/installations', {
      app,
      body: {
        deviceType: 'ios',
        deviceToken: `t${hidden.id}`,
        owner: pointerTo('_User', hidden.id),
      },
    });
    const owner = { $inQuery: { className: '_User', where: { username: hidden.body.username } } };
    for (const [caller, ids] of [
      [insider, [hidden.id]],
      [outsider, []],
    ] as const) {
      const listed = await caller.request('GET', withWhere('/1.1/users', where, { count: '1' }));
      expect([idsIn(listed), listed.body.count]).toEqual([ids, ids.length]);
      const strict = await caller.request('GET', withWhere('/1.1/users/strictlyQuery', where));
      expect(idsIn(strict)).toEqual(ids);
      const devices = await caller.request('GET', withWhere('/1.1/installations', { owner }));
      expect(idsIn(devices)).toEqual(ids.map(() => device.body.objectId));
    }
  });

  test('in CQL', async () => {
    const cql = encodeURIComponent(`select * from _User where objectId = '${hidden.id}'`);
    expect(idsIn(await insider.request('GET', `/1.1/cloudQuery?cql=${cql}`))).toEqual([hidden.id]);
    expect(idsIn(await outsider.request('GET', `/1.1/cloudQuery?cql=${cql}`))).toEqual([]);
  });

  test('to objects that pointers include', async () => {
    const boss = pointerTo('_User', hidden.id);
    const user = await signUp(api, app, { boss });
    const path = `/1.1/users/${user.id}?include=boss`;
    expect((await insider.request('GET', path)).body.boss).toMatchObject({
      username: hidden.body.username,
    });
    expect((await outsider.request('GET', path)).body.boss).toEqual(boss);
  });

  test('in batches', async () => {
    const body = { requests: [{ method: 'GET', path: `/1.1/users/${hidden.id}` }] };
    expect((await insider.request('POST', '/1.1/batch', body)).body[0].success.objectId).toBe(
      hidden.id,
    );
    expect((await outsider.request('POST', '/1.1/batch', body)).body[0].error.code).toBe(403);
  });

  test('when a user changes or deletes itself', async () => {
    const writer = await hiddenBy(role, 'read', 'write');
    expect(refusalOf(await writer.put({ a: 1 }))).toEqual(refused(403, 403));
    expect(refusalOf(await writer.request('DELETE', `/1.1/users/${writer.id}`))).toEqual(
      refused(403, 403),
    );
    await changeRole(api, app, role, { users: adding('_User', writer.id) });
    expect((await writer.put({ a: 1 })).status).toBe(200);
    const condition = encodeURIComponent(JSON.stringify({ a: 1 }));
    expect((await writer.put({ a: 2 }, `?where=${condition}`)).status).toBe(200);
    expect((await writer.request('DELETE', `/1.1/users/${writer.id}`)).status).toBe(200);
  });

  test('to roles themselves: reading, changing, adding members and deleting', async () => {
    const guarded = await createRole(api, app, { ACL: aclOf(role, 'read', 'write') });
    const path = `/1.1/roles/${guarded.id}`;
    const body = { users: adding('_User', outsider.id) };
    expect(refusalOf(await outsider.request('GET', path))).toEqual(refused(403, 403));
    expect(refusalOf(await outsider.request('PUT', path, body))).toEqual(refused(403, 403));
    expect(refusalOf(await outsider.request('DELETE', path))).toEqual(refused(403, 403));
    expect(refusalOf(await api.request('PUT', path, { app, body }))).toEqual(refused(403, 403));
    const where = { name: guarded.name };
    expect(idsIn(await outsider.request('GET', withWhere('/1.1/classes/_Role', where)))).toEqual(
      [],
    );
    expect(idsIn(await insider.request('GET', withWhere('/1.1/classes/_Role', where)))).toEqual([
      guarded.id,
    ]);
    expect((await insider.request('PUT', path, body)).status).toBe(200);
    expect((await insider.request('DELETE', path)).status).toBe(200);
  });

  test('with spaces and dashes in the name', async () => {
    const name = `team-7 of ${newRoleName()}`;
    await createRole(api, app, { name, users: [insider.id] });
    const user = await hiddenBy({ name }, 'read');
    expect(await statusesOf(`/1.1/users/${user.id}`)).toEqual([200, 403]);
  });

  test('not to names that no role can have', async () => {
    for (const name of ['role:', 'role:a/b', `role:${'x'.repeat(129)}`, 'role:*', 'roles:a', 'a b'])
      expect(refusalOf(await insider.put({ ACL: { [name]: { read: true } } }))).toEqual(
        refused(123),
      );
  });

  test('not to roles of another app or to a user named like a role', async () => {
    const elsewhere = await api.createApp();
    const outsider = await signUp(api, elsewhere);
    await createRole(api, elsewhere, { name: role.name, users: [outsider.id] });
    const reply = await api.request('GET', `/1.1/users/${hidden.id}`, {
      app,
      headers: { 'X-LC-Session': outsider.token },
    });
    expect(reply.status).toBe(403);
  });
});

describe('roles within roles', () => {
  test('give their members the roles above them, not those below', async () => {
    const [top, low] = [await signUp(api, app), await signUp(api, app)];
    const child = await createRole(api, app, { users: [low.id] });
    const parent = await createRole(api, app, { users: [top.id], roles: [child.id] });
    const [ofParent, ofChild] = [await hiddenBy(parent, 'read'), await hiddenBy(child, 'read')];
    expect(await statusesOf(`/1.1/users/${ofParent.id}`, [top, low])).toEqual([200, 200]);
    expect(await statusesOf(`/1.1/users/${ofChild.id}`, [top, low])).toEqual([403, 200]);
    await changeRole(api, app, parent, { roles: removing('_Role', child.id) });
    expect(await statusesOf(`/1.1/users/${ofParent.id}`, [top, low])).toEqual([200, 403]);
  });

  test('may contain each other in a cycle', async () => {
    const member = await signUp(api, app);
    const a = await createRole(api, app, { users: [member.id] });
    const b = await createRole(api, app, { roles: [a.id] });
    const c = await createRole(api, app, { roles: [b.id] });
    await changeRole(api, app, a, { roles: adding('_Role', c.id, a.id) });
    for (const one of [a, b, c]) {
      const user = await hiddenBy(one, 'read');
      expect(await statusesOf(`/1.1/users/${user.id}`, [member, outsider])).toEqual([200, 403]);
    }
  });

  test('are followed for up to ten levels', async () => {
    const member = await signUp(api, app);
    const chain = [await createRole(api, app, { users: [member.id] })];
    for (let depth = 1; depth <= maxRoleDepth + 1; depth += 1)
      chain.push(await createRole(api, app, { roles: [chain.at(-1)?.id ?? ''] }));
    const [last, beyond] = chain.slice(-2);
    if (!last || !beyond) throw new Error('there is no chain');
    const [seen, unseen] = [await hiddenBy(last, 'read'), await hiddenBy(beyond, 'read')];
    expect(await statusesOf(`/1.1/users/${seen.id}`, [member])).toEqual([200]);
    expect(await statusesOf(`/1.1/users/${unseen.id}`, [member])).toEqual([403]);
  });

  test('are followed for up to a thousand roles, direct ones first', async () => {
    const full = await api.createApp();
    const member = await signUp(api, full);
    const own = await createRole(api, full, { name: 'zzz', users: [member.id] });
    await api.db.query(
      `INSERT INTO role (app_id, object_id, name, acl)
       SELECT $1, 'r' || i, 'r' || i, '{}' FROM generate_series(1, $2::int) AS i`,
      [full.appId, maxRolesOfUser + 50],
    );
    await api.db.query(
      `INSERT INTO role_role (app_id, role_id, child_id) SELECT $1, parent.id, child.id
        FROM role parent, role child
        WHERE parent.app_id = $1 AND child.app_id = $1
          AND (child.name = 'zzz' OR child.id % 20 = 0)`,
      [full.appId],
    );
    const { id: userId } = await readUser(api.db, full, member.id);
    const names = await findRolesOfUser(api.db, full.appId, userId);
    expect([names.length, names[0]]).toEqual([maxRolesOfUser, own.name]);
  });
});

describe('the role cache of a process', () => {
  /** Waits until another process, whose cache is older, answers with this status. */
  const untilOther = (caller: TestUser, status: number) =>
    vi.waitFor(
      async () => {
        const reply = await other.request('GET', `/1.1/users/${hidden.id}`, {
          app,
          headers: { 'X-LC-Session': caller.token },
        });
        expect(reply.status).toBe(status);
      },
      { timeout: 20_000, interval: 50 },
    );

  test('follows changes of other processes, and its own changes immediately', async () => {
    const user = await signUp(api, app);
    await untilOther(user, 403);
    await changeRole(api, app, role, { users: adding('_User', user.id) });
    expect(await statusesOf(`/1.1/users/${hidden.id}`, [user])).toEqual([200]);
    await untilOther(user, 200);
    await changeRole(api, app, role, { users: removing('_User', user.id) });
    expect(await statusesOf(`/1.1/users/${hidden.id}`, [user])).toEqual([403]);
    await untilOther(user, 403);
  });

  test('is at most half a second old, by its own clock', async () => {
    let nowMs = 0;
    const directory = new RoleCache(api.db, { now: () => Date.now(), monotonicMs: () => nowMs });
    const young = await api.createApp();
    const member = await signUp(api, young);
    const { id: userId } = await readUser(api.db, young, member.id);
    const known = () => directory.rolesOf(young.appId, userId);
    expect(await known()).toEqual([]);
    const first = await createRole(api, young, { users: [member.id] });
    expect(await known()).toEqual([]);
    nowMs += 500;
    expect(await known()).toEqual([first.name]);
    const second = await createRole(api, young, { users: [member.id] });
    nowMs += 499;
    expect(await known()).toEqual([first.name]);
    nowMs += 1;
    expect(await known()).toEqual([first.name, second.name]);
  });

  test('has a limited number of users', async () => {
    const directory = new RoleCache(api.db, systemClock, 3);
    for (let id = 1; id <= 10; id += 1) {
      await directory.rolesOf(app.appId, id);
      expect(directory.size).toBeLessThanOrEqual(3);
    }
  });
});
