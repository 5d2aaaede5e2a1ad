import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newKey } from '../../../shared/domain/ids.ts';
import { createTestDatabase } from '../../support/database.ts';
import { anInstallation, aUser, newId, publicHash } from '../../support/import/imports.ts';
import { item, newKeys, useMoveIn } from '../../support/import/move-in.ts';

/** Tests `carillon move-in`, which moves a whole app of LeanCloud in one command. */
const fixture = useMoveIn();
const { write, run, moveIn } = fixture;

describe('carillon move-in', () => {
  test('creates the app, imports its data, and continues when it is run again', async () => {
    const own = newKeys();
    const user = aUser({ username: 'tom', password: publicHash('secret', 'salt'), salt: 'salt' });
    await write('_User.jsonl', [user]);
    await write('_Installation.jsonl', [anInstallation(), anInstallation()]);
    await writeFile(join(fixture.folder, 'keys.json'), JSON.stringify(own));
    const args = ['--keys-file', 'keys.json', '--name', 'Shop', '--edition', 'international'];

    const first = await moveIn(args);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.json()).toMatchObject({
      app: { appId: fixture.appId, name: 'Shop', isNew: true },
      dryRun: false,
      import: { classes: { _User: { imported: 1 }, _Installation: { imported: 2 } } },
    });
    expect(item(first.json(), 'keys')).toMatchObject({ state: 'done' });
    expect(first.stdout).not.toContain(own.masterKey);
    const stored = await fixture.stored();
    expect(stored.body).toMatchObject({ ...own, edition: 'international' });
    const login = { username: 'tom', password: 'secret' };
    const session = await fixture.api.request('POST', '/1.1/login', {
      app: { appId: fixture.appId, ...own },
      body: login,
    });
    expect(session.body.objectId).toBe(user.objectId);

    const installation = anInstallation();
    await write('_Installation.2.jsonl', [installation]);
    const second = await moveIn(args);
    expect(second.json()).toMatchObject({
      app: { isNew: false },
      import: {
        classes: {
          _User: { imported: 0, alreadyThere: 1 },
          _Installation: { imported: 1, alreadyThere: 2 },
        },
      },
    });
    // Works without the file too, because the app keeps its keys.
    const third = await moveIn();
    expect(third.code).toBe(0);
    expect(item(third.json(), 'keys')).toMatchObject({ state: 'check' });
    expect(await readdir(fixture.folder)).not.toContain(`${fixture.appId}.refused.jsonl`);
  });

  test('is recorded, with the remaining steps and the devices that have called', async () => {
    const own = newKeys();
    const device = anInstallation();
    await write('_User.jsonl', [aUser({ email: 'ann@example.com' })]);
    await write('_Installation.jsonl', [
      device,
      anInstallation(),
      { objectId: newId(), deviceType: 'ios' },
    ]);
    await moveIn(['--keys-file', '-'], { stdin: JSON.stringify(own) });
    const state = async () =>
      (await run(['move-in-state', '--app', fixture.appId, '--json'])).json();
    const before = await state();
    expect(before).toMatchObject({
      devices: { imported: 2, seen: 0, registered: 0 },
      users: 1,
      days: [],
      lastImport: {
        classes: { _Installation: { read: 3, imported: 2, refused: 1 } },
        refused: 1,
        isFinished: true,
      },
    });
    const codes = (of: { steps: { state: string; code: string }[] }) =>
      of.steps.map((step) => `${step.state} ${step.code}`);
    expect(codes(before)).toEqual([
      ...[
        'done imported',
        'todo refused',
        'check keys',
        'todo missingProfiles',
        'check hybridPush',
      ],
      ...['check mail', 'check noFunctions', 'todo noAddress', 'check trial', 'todo noneArrived'],
    ]);
    const app = { appId: fixture.appId, ...own };
    const call = { app, body: { city: 'Rome' } };
    const saved = await fixture.api.request('PUT', `/1.1/installations/${device.objectId}`, call);
    expect(saved.status).toBe(200);
    const after = await state();
    expect(after).toMatchObject({ devices: { seen: 1 }, days: [{ moved: 1, registered: 0 }] });
    expect(codes(after)).toContain('done arrived');
    const { stdout } = await run(['move-in-state', '--app', fixture.appId]);
    expect(stdout).toContain('[x] 1 moved devices have called this service since the import.');
  });

  test('with --dry-run checks everything and creates nothing, not even the app', async () => {
    await write('_User.jsonl', [aUser()]);
    await write('_Installation.jsonl', [
      anInstallation(),
      { objectId: newId(), deviceType: 'ios' },
    ]);
    const { code, json } = await moveIn(['--dry-run', '--keys-file', '-'], {
      stdin: JSON.stringify(newKeys()),
    });
    expect(code).toBe(1);
    expect(json()).toMatchObject({
      app: { appId: fixture.appId, name: null, isNew: true },
      dryRun: true,
      import: { classes: { _User: { imported: 1 }, _Installation: { imported: 1, refused: 1 } } },
    });
    expect((await fixture.stored()).status).toBe(404);
  });

  test('imports the last export completely after the app was deleted', async () => {
    const own = newKeys();
    const stdin = JSON.stringify(own);
    const user = { objectId: newId(), username: 'ann', salt: 'salt', email: 'ann@example.com' };
    const role = { objectId: newId(), name: 'editors', ACL: { '*': { read: true } } };
    await write('_User.jsonl', [aUser({ ...user, password: publicHash('before', 'salt') })]);
    await write('_Installation.jsonl', [anInstallation()]);
    await write('_Role.jsonl', [role]);
    await write('_Join_users__Role.jsonl', [{ owningId: role.objectId, relatedId: user.objectId }]);
    const first = await moveIn(['--keys-file', '-'], { stdin });
    expect(first.code).toBe(0);
    const changed = {
      password: publicHash('after', 'salt'),
      updatedAt: '2026-01-01T00:00:00.000Z',
    };
    await write('_User.jsonl', [aUser({ ...user, ...changed })]);
    const second = (await moveIn(['--keys-file', '-'], { stdin })).json();
    expect(second.import.classes._User).toMatchObject({
      imported: 0,
      alreadyThere: 1,
      newerInFile: 1,
    });
    expect(item(second, 'newer')).toMatchObject({ state: 'check' });

    expect((await run(['app', 'delete', fixture.appId, '--yes'])).code).toBe(0);
    const whole = (await moveIn(['--keys-file', '-'], { stdin })).json();
    expect(whole.app.isNew).toBe(true);
    expect(whole.import.classes).toEqual(first.json().import.classes);
    const login = (password: string) =>
      fixture.api.request('POST', '/1.1/login', {
        app: { appId: fixture.appId, ...own },
        body: { username: 'ann', password },
      });
    expect((await login('before')).body.code).toBe(210);
    expect((await login('after')).body.objectId).toBe(user.objectId);
  });

  test('imports roles with their members, also in a dry run', async () => {
    const user = aUser();
    const role = { objectId: newId(), name: 'editors', ACL: { '*': { read: true } } };
    await write('_User.jsonl', [user]);
    await write('_Role.jsonl', [role]);
    await write('_Join_users__Role.jsonl', [{ owningId: role.objectId, relatedId: user.objectId }]);
    const rehearsal = await moveIn(['--dry-run']);
    expect(rehearsal).toMatchObject({ code: 0 });
    expect(rehearsal.json().import.classes).toMatchObject({ _Role: { imported: 1 } });
    const { code, json } = await moveIn();
    expect(code).toBe(0);
    expect(json().import.classes).toEqual(rehearsal.json().import.classes);
    const { body: app } = await fixture.stored();
    const where = encodeURIComponent(JSON.stringify({ name: 'editors' }));
    const found = await fixture.api.request('GET', `/1.1/roles?where=${where}`, {
      app,
      master: true,
    });
    expect(found.body.results).toMatchObject([{ objectId: role.objectId }]);
  });

  test('reports refused records, and the file with all of them', async () => {
    await write('_Installation.jsonl', [{ objectId: newId(), deviceType: 'ios' }]);
    const { code, json } = await moveIn();
    expect(code).toBe(1);
    const report = `${fixture.appId}.refused.jsonl`;
    expect(item(json(), 'refused')).toMatchObject({
      state: 'todo',
      text: expect.stringContaining(report),
    });
    expect(await readFile(join(fixture.folder, report), 'utf8')).toMatch(
      /"line":1.*neither a deviceToken/,
    );
  });
});

describe('is refused before it creates anything', () => {
  const untouched = async () => expect((await fixture.stored()).status).toBe(404);

  test('without an id, or with a malformed one: 2', async () => {
    const missing = await run(['move-in', 'export', '--json']);
    expect(missing).toMatchObject({ code: 2 });
    expect(missing.json().error).toContain('--app-id');
    fixture.appId = 'a shop';
    const wrong = await moveIn();
    expect(wrong.code).toBe(2);
    expect(wrong.json().error).toMatch(/^--app-id must be /);
  });

  test('with a folder that is missing or has no export: 1', async () => {
    const empty = await moveIn();
    expect(empty.code).toBe(1);
    expect(empty.json().error).toContain('There is no file of _User');
    await rm(join(fixture.folder, 'export'), { recursive: true });
    expect((await moveIn()).json().error).toContain('export cannot be read (ENOENT)');
    await untouched();
  });

  test('without a database, or for users without the secret: 1', async () => {
    await write('_User.jsonl', [aUser()]);
    for (const variable of ['DATABASE_URL', 'CARILLON_SECRET']) {
      const { code, json } = await moveIn([], { env: { [variable]: '' } });
      expect(code).toBe(1);
      expect(json().error).toContain(variable);
    }
    await untouched();
  });

  test('with keys that differ from those of the app: 1, and names them', async () => {
    await write('_Installation.jsonl', [anInstallation()]);
    const own = newKeys();
    const stdin = JSON.stringify(own);
    expect((await moveIn(['--keys-file', '-'], { stdin })).code).toBe(0);
    const other = JSON.stringify({ ...own, masterKey: newKey() });
    const { code, json } = await moveIn(['--keys-file', '-'], { stdin: other });
    expect(code).toBe(1);
    expect(json().error).toBe(
      `App ${fixture.appId} is there with another masterKey than the file has: nothing was imported.`,
    );
  });

  test('if the service and the database differ: 1, with a message', async () => {
    await write('_Installation.jsonl', [anInstallation()]);
    const other = await createTestDatabase();
    const { code, json } = await moveIn([], { env: { DATABASE_URL: other.url } });
    expect(code).toBe(1);
    expect(json().error).toContain('There is no such app in this database');
    await other.drop();
  });
});
