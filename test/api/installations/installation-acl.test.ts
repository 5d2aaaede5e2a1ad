import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { changeDevicesWith } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newUid, refusalOf, refused, signUp, type TestUser } from '../../support/users.ts';

/**
 * Tests that the ACL of an installation applies to calls with app keys
 * (protocol/installations.md#acl).
 */
const api = useTestApi();
let app: App;
let owner: TestUser;
let other: TestUser;

beforeAll(async () => {
  app = await api.createApp({ allowInstallationQuery: true, allowInstallationDelete: true });
  owner = await signUp(api, app);
  other = await signUp(api, app);
  const role = {
    name: 'admins',
    ACL: { '*': { read: true } },
    users: { __op: 'AddRelation', objects: [pointer(other)] },
  };
  expect((await call('POST', '/roles', { master: true, body: role })).status).toBe(201);
});

const pointer = ({ id }: TestUser) => ({ __type: 'Pointer', className: '_User', objectId: id });

interface Sender {
  user?: TestUser;
  master?: boolean;
  body?: unknown;
}

const call = (method: string, path: string, { user, ...more }: Sender = {}) =>
  api.request(method, `/1.1${path}`, {
    app,
    ...more,
    headers: user ? { 'X-LC-Session': user.token } : {},
  });

const paths = ['/installations', '/classes/_Installation'];

async function save(ACL?: unknown, more: object = {}) {
  const installationId = `device-${newUid()}`;
  const body = {
    deviceType: 'android',
    installationId,
    ...(ACL === undefined ? {} : { ACL }),
    ...more,
  };
  const reply = await call('POST', '/installations', { body });
  expect(reply.status).toBe(201);
  return { installationId, id: String(reply.body.objectId) };
}

const idsOf = async (sender: Sender, where: object, query = '') => {
  const path = `/installations?where=${encodeURIComponent(JSON.stringify(where))}${query}`;
  return (await call('GET', path, sender)).body.results.map(
    ({ objectId }: { objectId: string }) => objectId,
  );
};

/** ACLs, and the users who may read and write. */
const acls: [name: string, acl: () => object | undefined, read: string, write: string][] = [
  ['none', () => undefined, 'nobody owner other', 'nobody owner other'],
  ['an empty one', () => ({}), '', ''],
  ['one of the owner', () => ({ [owner.id]: { read: true, write: true } }), 'owner', 'owner'],
  [
    'one for all to read',
    () => ({ '*': { read: true }, [owner.id]: { write: true } }),
    'nobody owner other',
    'owner',
  ],
  ['one of a role', () => ({ 'role:admins': { read: true, write: true } }), 'other', 'other'],
  ['one for all to write', () => ({ '*': { write: true } }), '', 'nobody owner other'],
];
const senders = (): [string, Sender][] => [
  ['nobody', {}],
  ['owner', { user: owner }],
  ['other', { user: other }],
];

describe.each(acls)('an installation with %s', (_, acl, readers, writers) => {
  const may = (names: string, sender: string) => names.split(' ').includes(sender);

  test('is read, alone and in lists, by those whom it names', async () => {
    const { id } = await save(acl());
    for (const [name, sender] of senders()) {
      for (const path of paths) {
        const reply = await call('GET', `${path}/${id}`, sender);
        if (may(readers, name))
          expect(reply, name).toMatchObject({ status: 200, body: { objectId: id } });
        else expect(refusalOf(reply), name).toEqual(refused(403, 403));
      }
      expect(await idsOf(sender, { objectId: id }), name).toEqual(may(readers, name) ? [id] : []);
      const count = await call(
        'GET',
        `/installations?count=1&limit=0&where={"objectId":"${id}"}`,
        sender,
      );
      expect(count.body.count, name).toBe(may(readers, name) ? 1 : 0);
    }
    expect((await call('GET', `/installations/${id}`, { master: true })).body.objectId).toBe(id);
    expect(await idsOf({ master: true }, { objectId: id })).toEqual([id]);
  });

  test('is written, registered again and deleted by those whom it names', async () => {
    for (const [name, sender] of senders()) {
      const { id, installationId } = await save(acl());
      const body = { deviceType: 'android', installationId, city: name };
      const large = { ...body, text: 'x'.repeat(3000) };
      const replies = [
        await call('PUT', `/installations/${id}`, { ...sender, body: { city: name } }),
        await call(
          'PUT',
          `/classes/_Installation/${id}?where={"installationId":"${installationId}"}`,
          {
            ...sender,
            body: { city: name },
          },
        ),
        await call('POST', '/installations', { ...sender, body }),
        await call('POST', '/installations', { ...sender, body: large }),
        await call('PUT', `/installations/${newUid().slice(0, 24)}`, { ...sender, body }),
      ];
      const requests = [{ method: 'POST', path: '/1.1/installations', body }];
      const [inBatch] = (await call('POST', '/batch', { ...sender, body: { requests } })).body;
      const deletion = () => call('DELETE', `/installations/${id}`, sender);
      if (may(writers, name)) {
        for (const reply of replies) expect(reply.status, name).toBe(200);
        expect(inBatch.success, name).toBeDefined();
        expect((await deletion()).status, name).toBe(200);
      } else {
        for (const reply of [...replies, await deletion()])
          expect(refusalOf(reply), name).toEqual(refused(403, 403));
        expect(inBatch.error.code, name).toBe(403);
        const kept = await call('GET', `/installations/${id}`, { master: true });
        expect(kept.body).not.toHaveProperty('city');
      }
    }
    const { id } = await save(acl());
    expect(
      (await call('PUT', `/installations/${id}`, { master: true, body: { city: 'x' } })).status,
    ).toBe(200);
    expect((await call('DELETE', `/installations/${id}`, { master: true })).status).toBe(200);
  });

  test('is included behind a pointer for those who may read it', async () => {
    const { id } = await save(acl());
    const device = { __type: 'Pointer', className: '_Installation', objectId: id };
    const holder = await signUp(api, app, { device });
    for (const [name, sender] of senders()) {
      const { body } = await call('GET', `/users/${holder.id}?include=device`, sender);
      expect(Object.hasOwn(body.device ?? {}, 'installationId'), name).toBe(may(readers, name));
    }
  });
});

test('one protected installation makes a whole deletion fail', async () => {
  const [open, closed] = [await save(), await save({})];
  const reply = await call('DELETE', `/installations/${open.id},${closed.id}`);
  expect(refusalOf(reply)).toEqual(refused(403, 403));
  expect((await call('GET', `/installations/${open.id}`)).body.objectId).toBe(open.id);
});

test('an ACL is returned only with returnACL, exactly as it was sent', async () => {
  const acl = { '*': { read: true, write: true }, 'role:admins': { write: true } };
  const { id } = await save(acl);
  for (const master of [true, false]) {
    const read = (query: string) => call('GET', `/installations/${id}${query}`, { master });
    expect((await read('')).body).not.toHaveProperty('ACL');
    expect((await read('?returnACL=true')).body.ACL).toEqual(acl);
    const list = (query: string) =>
      call('GET', `/installations?where={"objectId":"${id}"}${query}`, { master });
    expect((await list('')).body.results[0]).not.toHaveProperty('ACL');
    expect((await list('&returnACL=1')).body.results[0].ACL).toEqual(acl);
  }
  const none = await save();
  expect((await call('GET', `/installations/${none.id}?returnACL=true`)).body).not.toHaveProperty(
    'ACL',
  );
  expect(
    (await call('PUT', `/installations/${id}`, { body: { ACL: { __op: 'Delete' } } })).status,
  ).toBe(200);
  expect((await call('GET', `/installations/${id}?returnACL=true`)).body).not.toHaveProperty('ACL');
});

test.each([
  5,
  'x',
  true,
  [],
  { '*': true },
  { '*': { read: 1 } },
  { '*': { execute: true } },
  { 'a b': { read: true } },
  { 'role:': { read: true } },
])('an ACL of the form %j is 123, in a registration and in a change', async (ACL) => {
  const { id, installationId } = await save();
  const body = { deviceType: 'android', installationId, ACL };
  const replies = [
    await call('POST', '/installations', { body: { ...body, installationId: newUid() } }),
    await call('POST', '/installations', { body }),
    await call('PUT', `/installations/${id}`, { body: { ACL } }),
    await call('PUT', `/installations/${id}`, { master: true, body: { ACL } }),
  ];
  for (const reply of replies) expect(refusalOf(reply)).toEqual(refused(123));
});

test('an invalid ACL from an earlier version is ignored, and can be replaced', async () => {
  const { id } = await save();
  await changeDevicesWith(api.db, app, { objectId: id }, { fields: { ACL: 5 } });
  expect((await call('GET', `/installations/${id}`)).body.objectId).toBe(id);
  expect(await idsOf({}, { objectId: id })).toEqual([id]);
  expect((await call('PUT', `/installations/${id}`, { body: { city: 'x' } })).status).toBe(200);
  expect((await call('PUT', `/installations/${id}`, { body: { ACL: {} } })).status).toBe(200);
  expect(refusalOf(await call('GET', `/installations/${id}`))).toEqual(refused(403, 403));
});

test('conditions and orders cannot name the ACL', async () => {
  for (const query of ['where={"ACL":{"$exists":true}}', 'order=ACL', 'where={"ACL.*.read":true}'])
    expect(refusalOf(await call('GET', `/installations?${query}`)), query).toEqual(refused(105));
});
