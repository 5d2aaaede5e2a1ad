import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Needs } from '../../ops/import/needs.ts';
import { newKey } from '../../shared/domain/ids.ts';
import { draftOf } from '../../shared/domain/installation-members.ts';
import { startTestApi, type TestApi, testEnvironment } from '../support/api.ts';
import { type CliOptions, carillon } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { anInstallation, aUser, newId, publicHash } from '../support/imports.ts';

/** `carillon move-in`: a whole app of the public service in one command. */
let database: TestDatabase;
let api: TestApi;
let folder: string;
let appId: string;
const keys = () => ({ appKey: newKey(), masterKey: newKey(), hookKey: newKey() });

beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
});
afterAll(async () => {
  await api.close();
  await database.drop();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-move-in-'));
  await mkdir(join(folder, 'export'));
  appId = `${newKey()}-gzGzoHsz`;
  return () => rm(folder, { recursive: true });
});

const write = (name: string, records: object[]) =>
  writeFile(join(folder, 'export', name), records.map((record) => JSON.stringify(record)).join('\n'));

const run = (args: string[], options: CliOptions = {}) => {
  const env = { ...testEnvironment(database.url), PUBLIC_URL: api.url, ...options.env };
  return carillon(args, { cwd: folder, ...options, env });
};
const moveIn = (args: string[] = [], options: CliOptions = {}) =>
  run(['move-in', 'export', '--app-id', appId, ...args, '--json'], options);

const item = (document: { checkList: { id: string }[] }, id: string) =>
  document.checkList.find((one) => one.id === id);

describe('carillon move-in', () => {
  test('makes the app, imports all of it, and goes on when it is run again', async () => {
    const own = keys();
    const user = aUser({ username: 'tom', password: publicHash('secret', 'salt'), salt: 'salt' });
    await write('_User.jsonl', [user]);
    await write('_Installation.jsonl', [anInstallation(), anInstallation()]);
    await writeFile(join(folder, 'keys.json'), JSON.stringify(own));
    const args = ['--keys-file', 'keys.json', '--name', 'Shop', '--edition', 'international'];

    const first = await moveIn(args);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.json()).toMatchObject({
      app: { appId, name: 'Shop', isNew: true },
      dryRun: false,
      import: { classes: { _User: { imported: 1 }, _Installation: { imported: 2 } } },
    });
    expect(item(first.json(), 'keys')).toMatchObject({ state: 'done' });
    expect(first.stdout).not.toContain(own.masterKey);
    const stored = await api.request('GET', `/console/api/apps/${appId}`, { admin: true });
    expect(stored.body).toMatchObject({ ...own, edition: 'international' });
    const login = { username: 'tom', password: 'secret' };
    const session = await api.request('POST', '/1.1/login', { app: { appId, ...own }, body: login });
    expect(session.body.objectId).toBe(user.objectId);

    const installation = anInstallation();
    await write('_Installation.2.jsonl', [installation]);
    const second = await moveIn(args);
    expect(second.json()).toMatchObject({
      app: { isNew: false },
      import: {
        classes: { _User: { imported: 0, alreadyThere: 1 }, _Installation: { imported: 1, alreadyThere: 2 } },
      },
    });
    // Without the file too: the app keeps its keys.
    const third = await moveIn();
    expect(third.code).toBe(0);
    expect(item(third.json(), 'keys')).toMatchObject({ state: 'check' });
    expect(await readdir(folder)).not.toContain(`${appId}.refused.jsonl`);
  });

  test('with --dry-run checks everything and makes nothing, not even the app', async () => {
    await write('_User.jsonl', [aUser()]);
    await write('_Installation.jsonl', [anInstallation(), { objectId: newId(), deviceType: 'ios' }]);
    const { code, json } = await moveIn(['--dry-run', '--keys-file', '-'], { stdin: JSON.stringify(keys()) });
    expect(code).toBe(1);
    expect(json()).toMatchObject({
      app: { appId, name: null, isNew: true },
      dryRun: true,
      import: { classes: { _User: { imported: 1 }, _Installation: { imported: 1, refused: 1 } } },
    });
    expect((await api.request('GET', `/console/api/apps/${appId}`, { admin: true })).status).toBe(404);
  });

  test('imports roles with their members, also in a dry run of an app that is not there', async () => {
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
    const { body: app } = await api.request('GET', `/console/api/apps/${appId}`, { admin: true });
    const where = encodeURIComponent(JSON.stringify({ name: 'editors' }));
    const found = await api.request('GET', `/1.1/roles?where=${where}`, { app, master: true });
    expect(found.body.results).toMatchObject([{ objectId: role.objectId }]);
  });

  test('says what is refused, and where all of it stands', async () => {
    await write('_Installation.jsonl', [{ objectId: newId(), deviceType: 'ios' }]);
    const { code, json } = await moveIn();
    expect(code).toBe(1);
    const report = `${appId}.refused.jsonl`;
    expect(item(json(), 'refused')).toMatchObject({ state: 'todo', text: expect.stringContaining(report) });
    expect(await readFile(join(folder, report), 'utf8')).toMatch(/"line":1.*neither a deviceToken/);
  });
});

describe('the check list', () => {
  const devices = () => [
    anInstallation({ apnsTopic: 'com.example.app' }),
    anInstallation({ deviceProfile: 'pad' }),
    ...[1, 2].map((n) =>
      anInstallation({
        deviceType: 'android',
        deviceToken: undefined,
        installationId: newId(),
        vendor: 'HMS',
        registrationId: `r${n}-${newId()}`,
      }),
    ),
    anInstallation({ deviceType: 'android', deviceToken: undefined, installationId: newId() }),
  ];

  test('names gateways without a profile, and what users need', async () => {
    const authData = { lc_apple: { uid: newId() }, weixin: { openid: newId() } };
    await write('_User.jsonl', [
      aUser({ authData }),
      aUser({ email: `${newId()}@example.com`, emailVerified: true }),
      aUser({ mobilePhoneNumber: '+8613800000000' }),
    ]);
    await write('_Installation.jsonl', devices());
    await write('Post.jsonl', [{ objectId: newId() }]);
    const document = (await moveIn()).json();
    expect(document.checkList).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: 'keys', state: 'todo' }),
        expect.objectContaining({ id: 'elsewhere', state: 'check' }),
        {
          id: 'profile apns',
          state: 'todo',
          text: 'APNs: 1 installation needs a profile.',
          advice: `carillon profile put ${appId} apns <file> --topic com.example.app; carillon profile help apns`,
        },
        expect.objectContaining({ id: 'profile apns/pad', state: 'todo' }),
        expect.objectContaining({
          id: 'profile vendor_a',
          state: 'todo',
          text: 'Huawei: 2 installations need a profile.',
        }),
        expect.objectContaining({ id: 'hybridPush', state: 'todo' }),
        expect.objectContaining({ id: 'platforms', text: expect.stringContaining('lc_apple (1 user)') }),
        expect.objectContaining({
          id: 'uncheckedPlatforms',
          text: expect.stringContaining('weixin (1 user)'),
        }),
        expect.objectContaining({ id: 'mail', text: expect.stringContaining('1 of them verified') }),
        expect.objectContaining({ id: 'sms' }),
        expect.objectContaining({ id: 'functions', state: 'check' }),
        expect.objectContaining({ id: 'address', state: 'todo' }),
        expect.objectContaining({ id: 'clients' }),
      ]),
    );
  });

  test('sees what was done meanwhile', async () => {
    await write('_User.jsonl', [aUser({ authData: { weixin: { openid: newId() } } })]);
    await write('_Installation.jsonl', devices().slice(2));
    await moveIn();
    const huawei = JSON.stringify({ appId: '1', appSecret: 'secret' });
    expect((await run(['profile', 'put', appId, 'huawei', '-'], { stdin: huawei })).code).toBe(0);
    const platforms = JSON.stringify({ weixin: { appid: 'wx1', secret: 's' } });
    const pairs = ['hybridPush=true', 'functionsUrl=https://functions.example', `authPlatforms=${platforms}`];
    expect((await run(['app', 'set', appId, ...pairs])).stderr).toBe('');
    const document = (await moveIn([], { env: { PUBLIC_URL: api.url } })).json();
    for (const id of ['profile vendor_a', 'functions', 'platforms'])
      expect(item(document, id)).toMatchObject({ state: 'done' });
    expect(item(document, 'hybridPush')).toBeUndefined();
  });

  test('is read by people', async () => {
    await write('_Installation.jsonl', devices());
    const { code, stdout } = await run(['move-in', 'export', '--app-id', appId, '--name', 'Shop']);
    expect(code).toBe(0);
    expect(stdout).toContain(`App Shop (${appId}) was made.`);
    expect(stdout).toMatch(/^_Installation +5 +5 +0 +0$/m);
    expect(stdout).toMatch(/^\[ \] Huawei: 2 installations need a profile\.\n {6}carillon profile put /m);
    expect(stdout).toMatch(/^\[\?\] /m);
  });
});

describe('is refused before anything is made', () => {
  const untouched = async () =>
    expect((await api.request('GET', `/console/api/apps/${appId}`, { admin: true })).status).toBe(404);

  test('without an id, or with one that is none: 2', async () => {
    const missing = await run(['move-in', 'export', '--json']);
    expect(missing).toMatchObject({ code: 2 });
    expect(missing.json().error).toContain('--app-id');
    appId = 'a shop';
    const wrong = await moveIn();
    expect(wrong.code).toBe(2);
    expect(wrong.json().error).toMatch(/^--app-id must be /);
  });

  test('with a folder that is not there or holds no export: 1', async () => {
    const empty = await moveIn();
    expect(empty.code).toBe(1);
    expect(empty.json().error).toContain('There is no file of _User');
    await rm(join(folder, 'export'), { recursive: true });
    expect((await moveIn()).json().error).toContain('export cannot be read (ENOENT)');
    await untouched();
  });

  test('with other keys than the app has: 1, and names them', async () => {
    await write('_Installation.jsonl', [anInstallation()]);
    const own = keys();
    const stdin = JSON.stringify(own);
    expect((await moveIn(['--keys-file', '-'], { stdin })).code).toBe(0);
    const other = JSON.stringify({ ...own, masterKey: newKey() });
    const { code, json } = await moveIn(['--keys-file', '-'], { stdin: other });
    expect(code).toBe(1);
    expect(json().error).toBe(
      `App ${appId} is there with another masterKey than the file has: nothing was imported.`,
    );
  });

  test('where the service is another one than that of the database: 1, and says so', async () => {
    await write('_Installation.jsonl', [anInstallation()]);
    const other = await createTestDatabase();
    const { code, json } = await moveIn([], { env: { DATABASE_URL: other.url } });
    expect(code).toBe(1);
    expect(json().error).toContain('There is no such app in this database');
    await other.drop();
  });
});

test('names of gateways, platforms and topics are kept up to a hundred of each', () => {
  const needs = new Needs();
  const draft = (more: object) => draftOf(new Map(Object.entries({ deviceType: 'ios', ...more })), false);
  for (let i = 0; i < 200; i += 1) {
    needs.addInstallation(draft({ deviceProfile: `profile${i}`, pgwTopic: `topic${i}` }));
    needs.addUser({
      username: 'tom',
      email: null,
      emailVerified: null,
      mobilePhoneNumber: null,
      mobilePhoneVerified: false,
      authData: { [`platform${i}`]: { uid: '1' } },
      acl: null,
      fields: {},
    });
  }
  needs.addInstallation(draft({ deviceProfile: 'profile1' }));
  expect([needs.gateways.length, needs.platforms.length, needs.topics.length]).toEqual([100, 100, 100]);
  expect(needs.gateways[0]).toEqual({ connector: 'apns', profile: 'profile1', installations: 2 });
  expect(needs.users.all).toBe(200);
});
