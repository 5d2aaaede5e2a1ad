import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { TestRequest } from '../../../support/api.ts';
import { createRole, idsIn, pointerTo, type TestRole, withWhere } from '../../../support/roles.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { refusalOf, refused, signUp, type TestUser } from '../../../support/users.ts';

let app: App;
let closed: App;
let tom: TestUser;
let ann: TestUser;
let eve: TestUser;
/**
 * Roles with the members Tom and Ann, with Ann and `both`, and without members (readable with the
 * master key only).
 */
let both: TestRole;
let parent: TestRole;
let secret: TestRole;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp({ allowUserQuery: true });
  closed = await api.createApp();
  [tom, ann, eve] = [
    await signUp(api, app, { city: 'Rome' }),
    await signUp(api, app, { city: 'Bonn' }),
    await signUp(api, app, { city: 'Rome' }),
  ];
  both = await createRole(api, app, { users: [tom.id, ann.id], level: 1 });
  parent = await createRole(api, app, { users: [ann.id], roles: [both.id], level: 2 });
  secret = await createRole(api, app, { ACL: {}, users: [eve.id], roles: [both.id] });
});
const get = (path: string, more: TestRequest = {}) => api.request('GET', path, { app, ...more });
const find = async (where: object, more: TestRequest = {}) =>
  idsIn(await get(withWhere('/1.1/classes/_Role', where), more));
const user = ({ id }: TestUser) => pointerTo('_User', id);
const sorted = (...found: { id: string }[]) => found.map(({ id }) => id).sort();

describe('roles by their members', () => {
  test("are found by the query that SDKs use for a user's roles", async () => {
    expect(await find({ users: user(tom) })).toEqual(sorted(both));
    expect(await find({ users: user(ann) })).toEqual(sorted(both, parent));
    expect(await find({ users: user(eve) })).toEqual([]);
    expect(await find({ users: user(eve) }, { master: true })).toEqual(sorted(secret));
    expect(await find({ roles: pointerTo('_Role', both.id) })).toEqual(sorted(parent));
  });

  test('are found with every operator of relations', async () => {
    const all = sorted(both, parent);
    expect(await find({ users: { $in: [user(tom), user(eve), 'x'] } })).toEqual(sorted(both));
    expect(await find({ users: { $nin: [user(tom)] } })).toEqual(sorted(parent));
    expect(await find({ users: { $ne: user(tom) } })).toEqual(sorted(parent));
    expect(await find({ users: { $all: [user(tom), user(ann)] } })).toEqual(sorted(both));
    expect(await find({ users: { $all: [] } })).toEqual([]);
    expect(await find({ users: { $exists: true } })).toEqual(all);
    expect(await find({ users: { $exists: false } })).toEqual([]);
    expect(await find({ users: { $inQuery: { where: { city: 'Rome' } } } })).toEqual(sorted(both));
    expect(await find({ users: { $notInQuery: { where: { city: 'Rome' } } } })).toEqual(
      sorted(parent),
    );
    expect(await find({ $or: [{ users: user(tom) }, { level: 2 }] })).toEqual(all);
    expect(await find({ users: user(ann), level: { $gt: 1 } })).toEqual(sorted(parent));
    const inner = { className: '_Role', where: { users: user(tom) } };
    expect(await find({ roles: { $inQuery: inner } })).toEqual(sorted(parent));
  });

  test('are not found by values that cannot be members', async () => {
    for (const value of [
      null,
      'x',
      5,
      true,
      pointerTo('_Role', tom.id),
      pointerTo('_User', 'unknown'),
      [],
    ])
      expect(await find({ users: value })).toEqual([]);
    expect(await find({ users: { $gt: 5 } })).toEqual([]);
    expect(await find({ users: { $size: 2 } })).toEqual([]);
    expect(await find({ users: { $regex: 'x' } })).toEqual([]);
  });

  test('cannot be ordered or compared by their members', async () => {
    for (const query of ['order=users', 'order=-roles'])
      expect(refusalOf(await get(`/1.1/roles?${query}`))).toEqual(refused(102));
    expect(refusalOf(await get(withWhere('/1.1/roles', { 'users.x': 1 })))).toEqual(refused(105));
    expect(refusalOf(await get(withWhere('/1.1/roles', { ACL: { $exists: true } })))).toEqual(
      refused(105),
    );
  });
});

describe('members of a role', () => {
  const related = (role: TestRole, key: string) => ({
    $relatedTo: { object: pointerTo('_Role', role.id), key },
  });

  test('are found by $relatedTo', async () => {
    const members = async (where: object, more: TestRequest = {}) =>
      idsIn(await get(withWhere('/1.1/classes/_User', where), more));
    expect(await members(related(both, 'users'))).toEqual(sorted(tom, ann));
    expect(await members({ ...related(both, 'users'), city: 'Rome' })).toEqual(sorted(tom));
    expect(await members({ $or: [related(parent, 'users'), { objectId: eve.id }] })).toEqual(
      sorted(ann, eve),
    );
    expect(await members(related({ id: 'unknown', name: '' }, 'users'))).toEqual([]);
    expect(await find(related(parent, 'roles'))).toEqual(sorted(both));
    const strict = await get(withWhere('/1.1/users/strictlyQuery', related(both, 'users')));
    expect(idsIn(strict)).toEqual(sorted(tom, ann));
    const counted = await get(
      withWhere('/1.1/users', related(both, 'users'), { count: '1', limit: '0' }),
    );
    expect(counted.body).toEqual({ results: [], count: 2 });
  });

  test('are empty if the caller may not read the role', async () => {
    const path = withWhere('/1.1/users', related(secret, 'users'));
    expect(idsIn(await get(path))).toEqual([]);
    expect(idsIn(await eve.request('GET', path))).toEqual([]);
    expect(idsIn(await get(path, { master: true }))).toEqual(sorted(eve));
    expect(await find(related(secret, 'roles'))).toEqual([]);
    expect(await find(related(secret, 'roles'), { master: true })).toEqual(sorted(both));
  });

  test('require permission to list users', async () => {
    const own = await createRole(api, closed);
    const path = withWhere('/1.1/users', related(own, 'users'));
    expect(refusalOf(await get(path, { app: closed }))).toEqual(refused(403, 403));
    const redirected = withWhere('/1.1/roles', related(own, 'users'), {
      redirectClassNameForKey: 'users',
    });
    expect(refusalOf(await get(redirected, { app: closed }))).toEqual(refused(403, 403));
    expect((await get(path, { app: closed, master: true })).body).toEqual({ results: [] });
  });

  test("are found by clients that do not know the members' class", async () => {
    const redirect = (role: TestRole, key: string) =>
      get(withWhere('/1.1/classes/_Role', related(role, key), { redirectClassNameForKey: key }));
    const users = await redirect(both, 'users');
    expect([users.body.className, idsIn(users)]).toEqual(['_User', sorted(tom, ann)]);
    const roles = await redirect(parent, 'roles');
    expect([roles.body.className, idsIn(roles)]).toEqual(['_Role', sorted(both)]);
    // The SDK learns no class from a new role, so the condition alone must be enough.
    const byCondition = await get(withWhere('/1.1/classes/_Role', related(both, 'users')));
    expect([byCondition.status, byCondition.body]).toEqual([users.status, users.body]);
    const some = { ...related(both, 'users'), city: 'Rome' };
    const narrowed = await get(withWhere('/1.1/roles', some, { count: '1', keys: 'city' }));
    expect([narrowed.body.className, narrowed.body.count, idsIn(narrowed)]).toEqual([
      '_User',
      1,
      sorted(tom),
    ]);
    const plain = await get(withWhere('/1.1/roles', related(parent, 'roles')));
    expect(plain.body).not.toHaveProperty('className');
    for (const key of ['name', 'x', '__proto__'])
      expect(refusalOf(await get(withWhere('/1.1/roles', related(both, key))))).toEqual(
        refused(102),
      );
    for (const key of ['name', 'x', '__proto__'])
      expect(refusalOf(await get(`/1.1/roles?redirectClassNameForKey=${key}`))).toEqual(
        refused(102),
      );
  });

  test('are found within other conditions, by $select, and by a push', async () => {
    const device = { deviceType: 'ios', deviceToken: `token-of-${tom.id}`, owner: user(tom) };
    await api.request('POST', '/1.1/installations', { app, body: device });
    const where = { owner: { $inQuery: { className: '_User', where: related(both, 'users') } } };
    const explain = await api.request('POST', `/console/api/apps/${app.appId}/push/explain`, {
      admin: true,
      body: { where, data: { alert: 'hi' } },
    });
    expect(explain).toMatchObject({ status: 200, body: { devices: 1 } });
    const wrong = await api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { where: related(both, 'users'), data: { alert: 'hi' } },
    });
    expect(refusalOf(wrong)).toEqual(refused(102));
  });
});

describe('roles in other calls', () => {
  test('are listed, counted, projected and paged', async () => {
    const listed = await get('/1.1/roles?order=-level&keys=level,users&limit=1&count=1');
    expect(listed.body).toEqual({
      results: [
        {
          objectId: parent.id,
          level: 2,
          users: { __type: 'Relation', className: '_User' },
          createdAt: expect.any(String),
          updatedAt: expect.any(String),
        },
      ],
      count: 2,
    });
    const withAcl = await get(
      withWhere('/1.1/roles', { objectId: both.id }, { returnACL: 'true' }),
    );
    expect(withAcl.body.results[0].ACL).toEqual({ '*': { read: true } });
  });

  test('are included by pointers if their ACL allows it', async () => {
    const team = { open: pointerTo('_Role', both.id), secret: pointerTo('_Role', secret.id) };
    const member = await signUp(api, app, { team });
    const path = `/1.1/users/${member.id}?include=team.open,team.secret`;
    const { body } = await get(path);
    expect(body.team.open).toMatchObject({
      __type: 'Pointer',
      className: '_Role',
      name: both.name,
      level: 1,
    });
    expect(body.team.secret).toEqual(team.secret);
    expect((await get(path, { master: true })).body.team.secret.name).toBe(secret.name);
    const of = await createRole(api, app, { owner: user(tom) });
    const role = await get(`/1.1/roles/${of.id}?include=owner`);
    expect(role.body.owner).toMatchObject({ username: tom.body.username });
  });

  test('can be selected by CQL, and so can their members', async () => {
    const query = (cql: string) => get(`/1.1/cloudQuery?cql=${encodeURIComponent(cql)}`);
    const roles = await query(`select * from _Role where users = pointer('_User', '${tom.id}')`);
    expect([roles.body.className, idsIn(roles)]).toEqual(['_Role', sorted(both)]);
    const members = await query(
      `select * from _User where related to users from pointer('_Role', '${both.id}')`,
    );
    expect(idsIn(members)).toEqual(sorted(tom, ann));
  });

  test('can be scanned with the master key', async () => {
    const page = await get('/1.1/scan/classes/_Role?limit=1', { master: true });
    expect(page.body.results).toHaveLength(1);
    expect(page.body.results[0]).toMatchObject({ users: { __type: 'Relation' } });
    expect(typeof page.body.cursor).toBe('string');
    expect(refusalOf(await get('/1.1/scan/classes/_Role'))).toEqual(refused(1));
  });

  test('can be saved in batches', async () => {
    const body = { name: 'of_a_batch', ACL: { '*': { read: true, write: true } } };
    const saved = await api.request('POST', '/1.1/batch', {
      app,
      body: { requests: [{ method: 'POST', path: '/1.1/classes/_Role', body }] },
    });
    const id = saved.body[0].success.objectId;
    const requests = [
      { method: 'PUT', path: `/1.1/classes/_Role/${id}`, body: { level: 9, __internalId: id } },
    ];
    const again = await api.request('POST', '/1.1/batch/save', { app, body: { requests } });
    expect(again.body[id]).toMatchObject({ objectId: id, updatedAt: expect.any(String) });
    expect((await get(`/1.1/roles/${id}`)).body.level).toBe(9);
  });
});
