import AV from 'leancloud-storage';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { newRoleName } from '../../support/roles.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName } from '../../support/users.ts';

/**
 * Tests roles with the unmodified JavaScript SDK. Only its server URL differs
 * (protocol/clients.md#calls-of-the-javascript-sdk).
 */

const api = useTestApi();
beforeAll(async () => {
  const { appId, appKey, masterKey } = await api.createApp({ allowUserQuery: true });
  AV.init({ appId, appKey, masterKey, serverURL: api.url });
});
beforeEach(() => AV.User.logOut());
afterAll(async () => {
  // The SDK keeps its user in the process, which later runs other test files.
  await AV.User.logOut();
});

const signUp = () => AV.User.signUp(newName(), 'a password', {});
const code = (expected: number) => expect.objectContaining({ code: expected });
const idsOf = (objects: { id?: string }[]) => objects.map(({ id }) => id).sort();
const byId = (className: string, { id }: { id?: string }) =>
  AV.Object.createWithoutData(className, id ?? '');

/** Returns an ACL that allows everyone to read and one user to write. */
function ownedBy(user: AV.User): AV.ACL {
  const acl = new AV.ACL();
  acl.setPublicReadAccess(true);
  acl.setWriteAccess(user, true);
  return acl;
}

/** Creates a role with these members. The owner may write it. */
async function createRole(
  owner: AV.User,
  members: AV.User[],
  children: AV.Role[] = [],
): Promise<AV.Role> {
  const role = new AV.Role(newRoleName(), ownedBy(owner));
  for (const member of members) role.getUsers().add(member);
  for (const child of children) role.getRoles().add(child);
  return role.save();
}

describe('a role', () => {
  test('is saved, fetched, changed and deleted by callers that its ACL allows', async () => {
    const [outsider, owner] = [await signUp(), await signUp()];
    const role = await createRole(owner, [owner]);
    expect(role.id).toMatch(/^[0-9a-f]{24}$/);
    const fetched = await new AV.Query<AV.Role>('_Role').get(role.id ?? '');
    expect(fetched).toBeInstanceOf(AV.Role);
    expect(fetched.getName()).toBe(role.getName());
    await role.save({ level: 2 });
    await role.fetch({ includeACL: true });
    expect([role.get('level'), role.getACL()?.getWriteAccess(owner)]).toEqual([2, true]);
    await AV.User.become(outsider.getSessionToken());
    await expect(byId('_Role', role).save({ level: 3 })).rejects.toEqual(code(403));
    await expect(byId('_Role', role).destroy()).rejects.toEqual(code(403));
    await AV.User.become(owner.getSessionToken());
    await role.destroy();
    await expect(new AV.Query('_Role').get(role.id ?? '')).rejects.toEqual(code(101));
  });

  test('needs a unique name and an ACL', async () => {
    const owner = await signUp();
    const { name } = (await createRole(owner, [])).toJSON();
    await expect(new AV.Role(name, ownedBy(owner)).save()).rejects.toEqual(code(137));
    await expect(new AV.Object('_Role', { name: newRoleName() }).save()).rejects.toMatchObject({
      code: 1,
      message: /Role ACL is required\./,
    });
    const unnamed = new AV.Object('_Role', { name: '管理员' });
    unnamed.setACL(ownedBy(owner));
    await expect(unnamed.save()).rejects.toEqual(code(139));
  });

  test('is created and deleted together with others', async () => {
    const owner = await signUp();
    const roles = [1, 2].map(() => new AV.Role(newRoleName(), ownedBy(owner)));
    await AV.Object.saveAll(roles);
    await AV.Object.destroyAll(roles);
    const left = new AV.Query('_Role').containedIn('objectId', idsOf(roles));
    expect(await left.count()).toBe(0);
  });
});

describe('members', () => {
  test('are added, found and removed', async () => {
    const [member, owner] = [await signUp(), await signUp()];
    const role = await createRole(owner, []);
    role.getUsers().add(member);
    role.getUsers().add(owner);
    await role.save();
    expect(idsOf(await role.getUsers().query().find())).toEqual(idsOf([member, owner]));
    const first = await role.getUsers().query().equalTo('objectId', member.id).first();
    expect(first?.get('username')).toBe(member.getUsername());
    expect(await role.getUsers().query().count()).toBe(2);
    role.getUsers().remove(owner);
    await role.save();
    expect(idsOf(await role.getUsers().query().find())).toEqual(idsOf([member]));
    // The SDK sends both changes in one save as a Batch.
    role.getUsers().add(owner);
    role.getUsers().remove(member);
    await role.save();
    expect(idsOf(await role.getUsers().query().find())).toEqual(idsOf([owner]));
  });

  test('are found from a role of which the client knows only the id', async () => {
    const owner = await signUp();
    const child = await createRole(owner, []);
    const role = await createRole(owner, [owner], [child]);
    const users = await byId('_Role', role).relation('users').query().find();
    expect(users[0]).toBeInstanceOf(AV.User);
    expect(idsOf(users)).toEqual(idsOf([owner]));
    const roles = await byId('_Role', role).relation('roles').query().find();
    expect(idsOf(roles)).toEqual(idsOf([child]));
  });

  test('find their roles by getRoles and by its query', async () => {
    const [member, owner] = [await signUp(), await signUp()];
    const roles = [await createRole(owner, [member, owner]), await createRole(owner, [member])];
    expect(idsOf(await member.getRoles())).toEqual(idsOf(roles));
    expect(idsOf(await owner.getRoles())).toEqual(idsOf(roles.slice(0, 1)));
    const reverse = AV.Relation.reverseQuery('_Role', 'users', owner);
    expect(idsOf(await reverse.find())).toEqual(idsOf(roles.slice(0, 1)));
  });
});

describe('an ACL', () => {
  test('allows members of a role, also through a role above, until they leave', async () => {
    const [near, far, outsider, owner] = [
      await signUp(),
      await signUp(),
      await signUp(),
      await signUp(),
    ];
    const child = await createRole(owner, [far]);
    const role = await createRole(owner, [near], [child]);
    const acl = new AV.ACL(owner);
    acl.setRoleReadAccess(role, true);
    owner.setACL(acl);
    await owner.save();
    const seenBy = async (user: AV.User) => {
      await AV.User.become(user.getSessionToken());
      return byId('_User', owner)
        .fetch()
        .then(
          () => 200,
          (error) => error.code,
        );
    };
    expect([await seenBy(near), await seenBy(far), await seenBy(outsider)]).toEqual([
      200, 200, 403,
    ]);
    const listed = new AV.Query('_User').equalTo('objectId', owner.id);
    expect(await listed.count()).toBe(0);
    await AV.User.become(far.getSessionToken());
    expect(await listed.count()).toBe(1);
    await AV.User.become(owner.getSessionToken());
    role.getRoles().remove(child);
    await role.save();
    expect([await seenBy(near), await seenBy(far)]).toEqual([200, 403]);
  });

  test('allows members of a role to manage another role', async () => {
    const [admin, owner] = [await signUp(), await signUp()];
    const admins = await createRole(owner, [admin]);
    const acl = new AV.ACL();
    acl.setRoleReadAccess(admins, true);
    acl.setRoleWriteAccess(admins, true);
    const managed = new AV.Role(newRoleName(), acl);
    await managed.save();
    await expect(byId('_Role', managed).save({ level: 1 })).rejects.toEqual(code(403));
    await AV.User.become(admin.getSessionToken());
    managed.getUsers().add(admin);
    await managed.save();
    expect(idsOf(await admin.getRoles())).toEqual(idsOf([admins, managed]));
  });
});

testTableRow({
  name: 'JavaScript (`leancloud-storage`, npm)',
  version: npmVersion('leancloud-storage'),
  topics: ['roles'],
});
