import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { TestRequest } from '../../../support/api.ts';
import { adding, newRoleName, pointerTo } from '../../../support/roles.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { refusalOf, refused } from '../../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const readOnly = { '*': { read: true } };
const post = (body: unknown, more: TestRequest = {}) =>
  api.request('POST', '/1.1/roles', { app, body, ...more });
const users = (count: number) =>
  adding('_User', ...Array.from({ length: count }, (_, i) => `u${i}`));

describe('a new role is refused', () => {
  const cases: [string, object, number][] = [
    ['without a name', { name: undefined }, 139],
    ['with an empty name', { name: '' }, 139],
    ['with a name that is not a text', { name: 5 }, 139],
    ['with other characters in its name', { name: '管理员' }, 139],
    ['with a name of 129 characters', { name: 'x'.repeat(129) }, 139],
    ['with a part of a name', { 'name.x': 'a' }, 105],
    ['without an ACL', { ACL: undefined }, 1],
    ['with null for an ACL', { ACL: null }, 1],
    ['with an invalid ACL', { ACL: { '*': { read: 'no' } } }, 123],
    ['with its users as a list', { users: [] }, 111],
    ['with no users', { users: null }, 111],
    ['with a relation deleted', { users: { __op: 'Delete' } }, 111],
    ['with users that are roles', { users: adding('_Role', 'x') }, 111],
    ['with roles that are users', { roles: adding('_User', 'x') }, 111],
    [
      'with a relation of another class',
      { roles: { __type: 'Relation', className: '_User' } },
      111,
    ],
    ['with ids for pointers', { users: { __op: 'AddRelation', objects: ['x'] } }, 111],
    ['with no list of pointers', { users: { __op: 'AddRelation' } }, 111],
    [
      'with a malformed pointer',
      { users: { __op: 'AddRelation', objects: [pointerTo('_User', '$')] } },
      106,
    ],
    ['with another operation on a relation', { users: { __op: 'Add', objects: [] } }, 111],
    ['with a Batch of no list', { users: { __op: 'Batch' } }, 111],
    [
      'with a Batch in a Batch',
      { users: { __op: 'Batch', ops: [{ __op: 'Batch', ops: [] }] } },
      111,
    ],
    [
      'with 11 operations in a Batch',
      { users: { __op: 'Batch', ops: Array(11).fill(users(1)) } },
      128,
    ],
    ['with 1001 users in one operation', { users: users(1001) }, 128],
    ['with an id', { objectId: 'mine' }, 117],
    ['with a bad member name', { $a: 1 }, 105],
    [
      'with 321 members',
      Object.fromEntries(Array.from({ length: 321 }, (_, i) => [`m${i}`, 1])),
      116,
    ],
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

  test('if it is not a dictionary, or has 2 MB', async () => {
    expect(refusalOf(await post('[]'))).toEqual(refused(107));
    const body = { name: newRoleName(), ACL: readOnly, text: 'x'.repeat(2 * 1024 * 1024) };
    expect(refusalOf(await post(body))).toEqual(refused(116));
  });

  test('with the error text of LeanCloud if it has no ACL', async () => {
    expect((await post({ name: newRoleName() })).body).toEqual({
      code: 1,
      error: 'Role ACL is required.',
    });
  });

  test('if its name is taken, even by a concurrent call', async () => {
    const name = newRoleName();
    const replies = await Promise.all([1, 2, 3].map(() => post({ name, ACL: readOnly })));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 400, 400]);
    for (const reply of replies.filter(({ status }) => status === 400))
      expect(refusalOf(reply)).toEqual(refused(137));
    const elsewhere = await api.createApp();
    expect((await post({ name, ACL: readOnly }, { app: elsewhere })).status).toBe(201);
  });

  test("beyond the app's limit, also for concurrent calls", async () => {
    const small = await api.createApp({ maxRoles: 2 });
    const make = (more: TestRequest = {}) =>
      post({ name: newRoleName(), ACL: readOnly }, { app: small, ...more });
    const replies = await Promise.all(Array.from({ length: 6 }, () => make()));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 201, 400, 400, 400, 400]);
    expect(refusalOf(await make({ master: true }))).toEqual(refused(154));
  });

  test('with an app key if the app requires the master key', async () => {
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
