import { describe, expect, test } from 'vitest';
import { aUser, newId, useImports } from '../../support/import/imports.ts';
import { createRole, idsIn, pointerTo } from '../../support/roles.ts';
import { signUp } from '../../support/users.ts';

const fixture = useImports();
const { imported, importedByCommand, exportFile, countOf, asMaster } = fixture;

let serial = 0;
const aRole = (more: object = {}) => ({
  objectId: newId(),
  name: `imported_${++serial}`,
  ACL: { '*': { read: true, write: false } },
  createdAt: '2019-02-23T08:00:37.609Z',
  updatedAt: '2021-07-02T07:58:53.087Z',
  users: { __type: 'Relation', className: '_User' },
  roles: { __type: 'Relation', className: '_Role' },
  ...more,
});
const link = (owning: { objectId: string }, related: { objectId: string }) => ({
  owningId: owning.objectId,
  relatedId: related.objectId,
});
const [ofUsers, ofRoles] = ['_Join:users:_Role', '_Join:roles:_Role'];
const membersOf = async ({ objectId }: { objectId: string }, key: string) => {
  const where = { $relatedTo: { object: pointerTo('_Role', objectId), key } };
  const path = key === 'users' ? '/classes/_User' : '/classes/_Role';
  return idsIn(await asMaster(`${path}?where=${encodeURIComponent(JSON.stringify(where))}`));
};
const ids = (...records: { objectId: string }[]) => records.map(({ objectId }) => objectId).sort();

/** Creates a folder with users, two nested roles and their members. */
async function exported() {
  const sessionToken = `a-session-of-the-export-${newId()}`;
  const [near, far, hidden] = [aUser(), aUser({ sessionToken }), aUser()];
  const child = aRole({ level: 3, color: 'red', ACL: { 'role:keepers': { write: true } } });
  const parent = aRole();
  await exportFile('_User.0.jsonl', [
    near,
    far,
    { ...hidden, ACL: { [`role:${parent.name}`]: { read: true } } },
  ]);
  await exportFile('_Role.0.jsonl', [child, parent], '_Role');
  await exportFile('_Join:users:_Role.0.jsonl', [link(parent, near), link(child, far)], ofUsers);
  await exportFile('_Join:roles:_Role.0.jsonl.gz', [link(parent, child)]);
  return { near, far, hidden, child, parent, sessionToken };
}

describe('roles', () => {
  test('keep all their data and members, and apply in ACLs immediately', async () => {
    const { near, far, hidden, child, parent, sessionToken } = await exported();
    expect(await imported(fixture.folder)).toMatchObject({
      code: 0,
      classes: {
        _User: { imported: 3 },
        _Role: { imported: 2 },
        [ofUsers]: { read: 2, imported: 2 },
        [ofRoles]: { read: 1, imported: 1 },
      },
    });
    const { body } = await asMaster(`/roles/${child.objectId}?returnACL=true`);
    expect(body).toEqual({ ...child });
    expect((await asMaster(`/roles/${parent.objectId}?returnACL=true`)).body.ACL).toEqual({
      '*': { read: true },
    });
    expect(await membersOf(parent, 'users')).toEqual(ids(near));
    expect(await membersOf(child, 'users')).toEqual(ids(far));
    expect(await membersOf(parent, 'roles')).toEqual(ids(child));
    const seen = (headers: Record<string, string>) =>
      fixture.api.request('GET', `/1.1/users/${hidden.objectId}`, { app: fixture.app, headers });
    expect((await seen({ 'X-LC-Session': sessionToken })).status).toBe(200);
    expect((await seen({})).status).toBe(403);
  });

  test('may be imported again and in parts: existing roles stay unchanged', async () => {
    const { parent, near } = await exported();
    await imported(fixture.folder);
    const there = { imported: 0, alreadyThere: 2, refused: 0 };
    expect(await imported(fixture.folder)).toMatchObject({
      code: 0,
      classes: { _Role: there, [ofUsers]: there, [ofRoles]: { imported: 0, alreadyThere: 1 } },
    });
    const path = await exportFile('_Join_users__Role.jsonl', [
      link(parent, near),
      link(parent, near),
    ]);
    expect(await imported(path)).toMatchObject({
      classes: { [ofUsers]: { read: 2, alreadyThere: 2 } },
    });
  });

  test('are checked in a dry run, which writes nothing', async () => {
    await exported();
    const run = await importedByCommand(fixture.folder, '--dry-run');
    expect(run).toMatchObject({
      code: 0,
      classes: {
        _Role: { imported: 2 },
        [ofUsers]: { imported: 2, refused: 0 },
        [ofRoles]: { imported: 1, refused: 0 },
      },
    });
    for (const table of ['role', 'role_user', 'role_role', 'app_user'])
      expect(await countOf(table)).toBe(0);
  });

  test('without an ACL can be read by all and changed by no user', async () => {
    const role = aRole({ ACL: undefined });
    await imported(await exportFile('_Role.jsonl', [role]));
    expect((await asMaster(`/roles/${role.objectId}?returnACL=true`)).body.ACL).toEqual({
      '*': { read: true },
    });
  });

  test('that are invalid are refused with a line and a message, also in a dry run', async () => {
    const taken = await createRole(fixture.api, fixture.app);
    const sound = aRole();
    const broken: [RegExp, object][] = [
      [/^Role's name is invalid/, aRole({ name: '管理员' })],
      [/^Role's name is invalid/, aRole({ name: undefined })],
      [/^objectId is missing/, aRole({ objectId: undefined })],
      [/^Invalid ACL/, aRole({ ACL: { 'role:a/b': { read: true } } })],
      [/at most 262144 bytes/, aRole({ text: 'x'.repeat(256 * 1024) })],
      [/^createdAt is no time/, aRole({ createdAt: 'yesterday' })],
      [/member has a name that cannot be stored/, aRole({ 'a b': 1 })],
      [new RegExp(`^name belongs to ${taken.id}`), aRole({ name: taken.name })],
      [new RegExp(`^name belongs to ${sound.objectId}`), aRole({ name: sound.name })],
    ];
    const path = await exportFile('_Role.jsonl', [sound, ...broken.map(([, record]) => record)]);
    for (const args of [['--dry-run'], []]) {
      const report = await importedByCommand(path, ...args);
      expect(report).toMatchObject({
        code: 1,
        classes: { _Role: { imported: 1, refused: broken.length } },
      });
      const errors = new Map<number, string>(
        report.refusals.map(({ line, error }: { line: number; error: string }) => [line, error]),
      );
      for (const [i, [message]] of broken.entries()) expect(errors.get(i + 2)).toMatch(message);
    }
  });

  test('above the limit of the app end the import with an error', async () => {
    await fixture.api.services.apps.change(fixture.app.appId, { options: { maxRoles: 2 } });
    const path = await exportFile('_Role.jsonl', [aRole(), aRole(), aRole()]);
    for (const args of [['--dry-run'], []])
      expect(await importedByCommand(path, ...args)).toMatchObject({
        code: 1,
        error: expect.stringMatching(/more than 2 roles: raise its option maxRoles/),
      });
    expect(await countOf('role')).toBe(0);
  });
});

describe('memberships', () => {
  test('of missing objects are refused individually, also in a dry run', async () => {
    const role = await createRole(fixture.api, fixture.app);
    const user = await signUp(fixture.api, fixture.app);
    const pointers = {
      owningId: pointerTo('_Role', role.id),
      relatedId: pointerTo('_User', user.id),
    };
    const path = await exportFile('_Join%3Ausers%3A_Role.jsonl', [
      pointers,
      { owningId: 'unknown', relatedId: user.id },
      { owningId: role.id, relatedId: 'unknown' },
      { owningId: role.id },
      { owningId: 5, relatedId: user.id },
      'no json',
    ]);
    for (const args of [['--dry-run'], []]) {
      const report = await importedByCommand(path, ...args);
      expect(report).toMatchObject({
        code: 1,
        classes: { [ofUsers]: { read: 6, imported: 1, refused: 5 } },
      });
      expect(
        report.refusals
          .sort((a: { line: number }, b: { line: number }) => a.line - b.line)
          .map(({ error }: { error: string }) => error),
      ).toEqual([
        'owningId is no role of this app.',
        'relatedId is no user of this app.',
        'relatedId is missing or is no id.',
        'owningId is missing or is no id.',
        'This record is not JSON.',
      ]);
    }
    const nested = await exportFile(
      'roles.jsonl',
      [link({ objectId: role.id }, { objectId: 'x' })],
      ofRoles,
    );
    expect((await imported(nested)).refusals[0].error).toBe('relatedId is no role of this app.');
  });

  test('are imported in many batches', async () => {
    const role = await createRole(fixture.api, fixture.app);
    const users = Array.from({ length: 4500 }, () => aUser());
    await exportFile('_User.jsonl', users);
    await exportFile(
      '_Join:users:_Role.jsonl',
      users.map((user) => link({ objectId: role.id }, user)),
    );
    expect(await imported(fixture.folder)).toMatchObject({
      code: 0,
      classes: { [ofUsers]: { read: 4500, imported: 4500 } },
    });
    expect(await countOf('role_user')).toBe(4500);
  });

  test('of other classes are ignored', async () => {
    await exportFile(
      '_Join:likes:Post.jsonl',
      [link({ objectId: 'a' }, { objectId: 'b' })],
      '_Join:likes:Post',
    );
    await exportFile('_Role.jsonl', [aRole()]);
    const report = await imported(fixture.folder);
    expect(report.skippedFiles).toEqual([
      {
        path: expect.any(String),
        reason: 'holds the class _Join:likes:Post, which has no place here',
      },
    ]);
  });
});
