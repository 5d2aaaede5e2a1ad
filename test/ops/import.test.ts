import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { hash as bcrypt } from 'bcryptjs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Database } from '../../shared/db/pool.ts';
import type { App } from '../../shared/domain/app.ts';
import { startTestApi, type TestApi, testEnvironment } from '../support/api.ts';
import { bareEnvironment, type CliResult, carillon, launcher } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { enterWith, newName, newPhone, newUid, signUp } from '../support/users.ts';

let database: TestDatabase;
let db: Database;
let api: TestApi;
let app: App;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'test' });
  api = await startTestApi({ databaseUrl: database.url });
});

afterAll(async () => {
  await api.close();
  await db.close();
  await database.drop();
});

beforeEach(async () => {
  app = await api.createApp({ installationValidityDays: 365 });
  folder = await mkdtemp(join(tmpdir(), 'carillon-import-'));
  return () => rm(folder, { recursive: true });
});

const heading = (className: string) => `#filetype:JSON-streaming {"type":"Class","class":"${className}"}`;
const newId = () => randomBytes(12).toString('hex');

/** Writes records, or lines as they are, as a file of the export. */
async function exportFile(name: string, records: (object | string)[], className?: string): Promise<string> {
  const lines = records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record)));
  const text = [...(className ? [heading(className)] : []), ...lines].join('\n');
  const path = join(folder, name);
  await writeFile(path, name.endsWith('.gz') ? gzipSync(text) : text);
  return path;
}

async function run(args: string[], env: Record<string, string> = {}): Promise<CliResult> {
  return carillon(['import', '--app', app.appId, ...args], {
    env: { ...testEnvironment(database.url), ...env },
    cwd: folder,
  });
}

/** The report of an import that was asked for as a document. */
async function imported(...args: string[]) {
  const { code, stdout, stderr } = await run([...args, '--json']);
  return { code, stderr, ...JSON.parse(stdout) };
}

const asMaster = (path: string) => api.request('GET', `/1.1${path}`, { app, master: true });
const installationAt = async (id: string) => (await asMaster(`/installations/${id}`)).body;
const countOf = async (table: string): Promise<number> => {
  const { rows } = await db.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM ${table} WHERE app_id = $1`,
    [app.appId],
  );
  return rows[0]?.n ?? -1;
};

const anInstallation = (more: object = {}) => ({
  objectId: newId(),
  deviceType: 'ios',
  deviceToken: randomBytes(32).toString('hex'),
  createdAt: '2025-07-02T07:58:45.609Z',
  updatedAt: new Date().toISOString(),
  ...more,
});
const aUser = (more: object = {}) => ({
  objectId: newId(),
  username: newName(),
  createdAt: '2019-02-23T08:00:37.609Z',
  updatedAt: '2021-07-02T07:58:53.087Z',
  ...more,
});

/** As the public service's documentation tells it: not by our own code. */
function publicHash(password: string, salt: string): string {
  let digest = createHash('sha512')
    .update(salt + password)
    .digest();
  for (let i = 0; i < 512; i += 1) digest = createHash('sha512').update(digest).digest();
  return digest.toString('base64');
}

describe('installations', () => {
  test('keep their ids, times, channels and every typed value, as the REST API gives them', async () => {
    const custom = {
      city: 'São\tPaulo \\N "{x}" \n 你好',
      level: 7.25,
      flags: [true, null, { a: [] }],
      seenAt: { __type: 'Date', iso: '2025-01-31T12:00:00.000Z' },
      owner: { __type: 'Pointer', className: '_User', objectId: newId() },
      place: { __type: 'GeoPoint', latitude: 31.5, longitude: -121 },
      bytes: { __type: 'Bytes', base64: 'aGVsbG8=' },
      constructor: 'a name',
      nothing: null,
    };
    const ios = anInstallation({
      ...custom,
      channels: ['news', '新闻', ''],
      apnsTopic: 'com.example.app',
      apnsTeamId: 'TEAM',
      timeZone: 'Asia/Shanghai',
      badge: 3,
      valid: false,
    });
    const android = anInstallation({
      deviceType: 'android',
      deviceToken: undefined,
      installationId: newId(),
      vendor: 'HMS',
      registrationId: 'r:1',
      deviceProfile: 'Beta',
      channels: [],
    });
    await exportFile('_Installation.0.jsonl', [ios, android], '_Installation');
    expect(await imported(folder)).toMatchObject({
      code: 0,
      stderr: '',
      dryRun: false,
      classes: { _Installation: { read: 2, imported: 2, alreadyThere: 0, refused: 0 } },
      refusals: [],
    });
    expect(await installationAt(ios.objectId)).toEqual(ios);
    const { deviceToken: _, ...sent } = android;
    expect(await installationAt(android.objectId)).toEqual({ ...sent, valid: true });
  });

  test('are found by where and channel, and go on registering themselves under their ids', async () => {
    const one = anInstallation({ channels: ['news'], level: 9 });
    await imported(await exportFile('_Installation.jsonl', [one]));
    const where = encodeURIComponent(JSON.stringify({ level: { $gt: 8 }, channels: 'news' }));
    const { body } = await asMaster(`/installations?where=${where}`);
    expect(body.results).toEqual([{ ...one, valid: true }]);
    const { deviceType, deviceToken } = one;
    const again = await api.request('POST', '/1.1/installations', { app, body: { deviceType, deviceToken } });
    expect(again.body.objectId).toBe(one.objectId);
  });

  test('a second run changes nothing and says what was there', async () => {
    const records = Array.from({ length: 50 }, (_, i) => anInstallation({ level: i }));
    const path = await exportFile('_Installation.jsonl.gz', [...records, records[0] ?? {}]);
    expect((await imported(path)).classes._Installation).toMatchObject({ imported: 50, alreadyThere: 1 });
    const rows = () => db.query('SELECT * FROM installation WHERE app_id = $1 ORDER BY id', [app.appId]);
    const before = await rows();
    const renewed = { ...records[1], level: 'other', updatedAt: new Date(Date.now() + 5000).toISOString() };
    await exportFile('_Installation.jsonl.gz', [...records.slice(2), renewed]);
    expect(await imported(path)).toMatchObject({
      code: 0,
      classes: {
        _Installation: { read: 49, imported: 0, alreadyThere: 49, newerInFile: 1, refused: 0 },
      },
    });
    expect((await rows()).rows).toEqual(before.rows);
  });

  test('what another object has already is refused, in the app and within the file, with a dry run too', async () => {
    const live = await api.request('POST', '/1.1/installations', {
      app,
      body: { deviceType: 'android', installationId: newId(), deviceToken: newId() },
    });
    const there = await installationAt(live.body.objectId);
    const first = anInstallation();
    const path = await exportFile('_Installation.jsonl', [
      first,
      anInstallation({ deviceToken: there.deviceToken }),
      anInstallation({ installationId: there.installationId }),
      anInstallation({ deviceToken: first.deviceToken }),
      first,
    ]);
    const expected = {
      code: 1,
      classes: { _Installation: { read: 5, imported: 1, alreadyThere: 1, refused: 3 } },
      refusals: expect.arrayContaining([
        expect.objectContaining({ line: 2, error: `deviceToken belongs to ${there.objectId} already.` }),
        expect.objectContaining({ line: 3, error: `installationId belongs to ${there.objectId} already.` }),
        expect.objectContaining({ line: 4, error: `deviceToken belongs to ${first.objectId} already.` }),
      ]),
    };
    expect(await imported(path, '--dry-run')).toMatchObject({ ...expected, dryRun: true });
    expect(await countOf('installation')).toBe(1);
    expect(await imported(path)).toMatchObject({ ...expected, dryRun: false });
    expect(await countOf('installation')).toBe(2);
    expect(await installationAt(there.objectId)).toEqual(there);
  });

  test('those that the app takes for idle are counted', async () => {
    const path = await exportFile('_Installation.jsonl', [
      anInstallation({ updatedAt: '2020-01-01T00:00:00.000Z' }),
      anInstallation(),
    ]);
    const { code, stdout } = await run([path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/1 installations were last seen more than 365 days ago/);
  });
});

describe('records that cannot be imported', () => {
  test('are refused with a line and a sentence that quotes no value; the others are imported', async () => {
    const secret = 'SESAME';
    const good = anInstallation();
    const lines: [RegExp, object | string][] = [
      [/not JSON/, `{"deviceToken":"${secret}`],
      [/not JSON/, `{"deviceToken":"${secret}\0"}`],
      [/no JSON dictionary/, `["${secret}"]`],
      [/not JSON/, '\0\0\0'],
      [/objectId is missing/, { deviceType: 'ios', deviceToken: secret }],
      [/objectId is missing/, anInstallation({ objectId: `../${secret}` })],
      [/deviceType must be one of/, anInstallation({ deviceType: secret })],
      [/Invalid device token/, anInstallation({ deviceToken: [secret] })],
      [/Invalid device token/, anInstallation({ deviceToken: `${secret} `.repeat(100) })],
      [/Invalid channel/, anInstallation({ channels: [`${secret} !`] })],
      [/channels must be an array/, anInstallation({ channels: secret })],
      [/badge must be a whole number/, anInstallation({ badge: secret })],
      [/valid must be a boolean/, anInstallation({ valid: secret })],
      [/note: A text holds a character/, anInstallation({ note: `${secret}\0` })],
      [/note: A text holds a character/, anInstallation({ note: `${secret}\uD800` })],
      [/note: .*inside a value/, anInstallation({ note: { __op: 'Increment', amount: 1 } })],
      [/owner: Malformed pointer/, anInstallation({ owner: { __type: 'Pointer', className: secret } })],
      [/name that cannot be stored/, anInstallation({ 'a.b$': secret })],
      [
        /nested too deeply/,
        `{"objectId":"${newId()}","deviceType":"ios","note":${'['.repeat(2000)}1${']'.repeat(2000)}}`,
      ],
      [/createdAt is no time/, anInstallation({ createdAt: secret })],
      [/neither a deviceToken nor/, anInstallation({ deviceToken: undefined })],
      [/at most 131072 bytes/, anInstallation({ note: secret.repeat(30_000) })],
      [/longer than 4 MB/, anInstallation({ note: secret.repeat(800_000) })],
    ];
    const path = await exportFile('_Installation.jsonl', [...lines.map(([, line]) => line), good]);
    const report = await imported(path);
    expect(report).toMatchObject({
      code: 1,
      classes: { _Installation: { read: lines.length + 1, imported: 1, refused: lines.length } },
    });
    expect(report.refusals.map(({ line }: { line: number }) => line)).toEqual(lines.map((_, i) => i + 1));
    lines.forEach(([sentence], i) => {
      expect(report.refusals[i].error).toMatch(sentence);
    });
    const plain = await run([path]);
    expect(plain.stdout).toContain(`${path}:1: This record is not JSON.`);
    expect(JSON.stringify(report) + plain.stdout + plain.stderr).not.toContain(secret);
    expect(await installationAt(good.objectId)).toMatchObject({ deviceToken: good.deviceToken });
  });

  test('of users likewise, and a refused one has no part in the app', async () => {
    const uid = newUid();
    const users: [RegExp, object][] = [
      [/Invalid username/, { username: ' ' }],
      [/username must be a text/, { username: { $gt: '' } }],
      [/email address was invalid/, { email: 'nobody' }],
      [/phone number was invalid/, { mobilePhoneNumber: '12' }],
      [/emailVerified must be true or false/, { emailVerified: 'yes' }],
      [/authData must be a dictionary/, { authData: 'weixin' }],
      [/authData.weixin: Linked id missing/, { authData: { weixin: { access_token: 'SESAME' } } }],
      [/authData.weixin: The id in authData must be a text/, { authData: { weixin: { openid: 7 } } }],
      [/Invalid ACL/, { ACL: { '*': { read: 'SESAME' } } }],
      [/password is no hash/, { password: 'SESAME', authData: { weibo: { uid } } }],
      [/sessionToken is no token/, { sessionToken: 'SESAME' }],
    ];
    const path = await exportFile(
      '_User.jsonl',
      users.map(([, member]) => aUser(member)),
    );
    const report = await imported(path);
    expect(report).toMatchObject({ code: 1, classes: { _User: { imported: 0, refused: users.length } } });
    users.forEach(([sentence], i) => {
      expect(report.refusals[i].error).toMatch(sentence);
    });
    expect(JSON.stringify(report)).not.toContain('SESAME');
    expect([await countOf('app_user'), await countOf('user_identity')]).toEqual([0, 0]);
  });

  test('the report lists a hundred; all of them go to the file that is asked for', async () => {
    const path = await exportFile(
      '_User.jsonl',
      Array.from({ length: 250 }, () => ({ username: 'x' })),
    );
    const all = join(folder, 'refused.jsonl');
    const report = await imported(path, '--refused', all);
    expect(report.refusals).toHaveLength(100);
    expect(report.refusalsNotListed).toBe(150);
    const lines = (await readFile(all, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).line)).toEqual(Array.from({ length: 250 }, (_, i) => i + 1));
    expect((await stat(all)).mode & 0o777).toBe(0o600);
  });

  test('a line of 100 MB does not fill the memory', async () => {
    const path = join(folder, '_Installation.jsonl');
    const file = createWriteStream(path);
    file.write('{"note":"');
    for (let i = 0; i < 100; i += 1)
      if (!file.write(Buffer.alloc(1024 * 1024, 'x'))) await once(file, 'drain');
    file.end(`"}\n${JSON.stringify(anInstallation())}\n`);
    await once(file, 'close');
    const { code, stdout } = await carillon(['import', path, '--app', app.appId, '--json'], {
      env: testEnvironment(database.url),
      nodeArgs: ['--max-old-space-size=64'],
    });
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 1,
      classes: { _Installation: { read: 2, imported: 1, refused: 1 } },
      refusals: [{ line: 1, error: 'This record is longer than 4 MB.' }],
    });
  });

  test('a damaged archive is imported up to the damage, and says so', async () => {
    const records = Array.from({ length: 8000 }, () => anInstallation());
    const path = await exportFile('_Installation.jsonl.gz', records);
    const whole = await readFile(path);
    await writeFile(path, whole.subarray(0, Math.round(whole.length * 0.7)));
    const report = await imported(path);
    expect(report).toMatchObject({ code: 1, error: expect.stringContaining('is damaged') });
    expect(report.classes._Installation.imported).toBeGreaterThan(0);
    expect(await countOf('installation')).toBe(report.classes._Installation.imported);
    await writeFile(path, whole);
    const { code, classes } = await imported(path);
    expect(code).toBe(0);
    expect(classes._Installation.imported + classes._Installation.alreadyThere).toBe(8000);
    expect(await countOf('installation')).toBe(8000);
  });
});

describe('users', () => {
  test('keep everything, log in with the passwords of the export once and for all, and with their accounts', async () => {
    const [salt, openid, phone] = [randomBytes(24).toString('hex'), newUid(), newPhone()];
    const custom = {
      email: `${newName()}@example.com`,
      nickname: '小明',
      born: { __type: 'Date', iso: '1990-01-01T00:00:00.000Z' },
    };
    const salted = aUser({
      ...custom,
      emailVerified: true,
      mobilePhoneNumber: phone.slice(3),
      mobilePhoneVerified: true,
      password: publicHash('open sesame', salt),
      salt,
      ACL: { '*': { read: true, write: false }, 'role:admin': { write: true } },
      authData: {
        weixin: { openid, expires_in: 7200, unionid: 'u1', platform: 'weixin' },
        _weixin_unionid: { uid: 'u1' },
        qq: null,
      },
    });
    const bcrypted = aUser({ password: await bcrypt('another one', 4) });
    const path = await exportFile('_User.0.jsonl', [salted, bcrypted], '_User');
    expect(await imported(path)).toMatchObject({ code: 0, classes: { _User: { imported: 2 } } });

    const { body } = await asMaster(`/users/${salted.objectId}`);
    expect(body).toMatchObject({
      objectId: salted.objectId,
      createdAt: salted.createdAt,
      updatedAt: salted.updatedAt,
      username: salted.username,
      ...custom,
      emailVerified: true,
      mobilePhoneNumber: phone,
      mobilePhoneVerified: true,
    });
    for (const name of ['password', 'salt', 'sessionToken']) expect(body).not.toHaveProperty(name);
    const login = (username: string, password: string) =>
      api.request('POST', '/1.1/login', { app, body: { username, password } });
    expect((await login(salted.username, 'wrong')).status).toBe(400);
    for (const [user, password] of [
      [salted, 'open sesame'],
      [bcrypted, 'another one'],
    ] as const) {
      expect((await login(user.username, password)).body.objectId).toBe(user.objectId);
      const { rows } = await db.query<{ password_hash: string }>(
        'SELECT password_hash FROM app_user WHERE app_id = $1 AND object_id = $2',
        [app.appId, user.objectId],
      );
      expect(rows[0]?.password_hash).toMatch(/^\$argon2id\$/);
      expect((await login(user.username, password)).status).toBe(200);
    }
    const byWeixin = await enterWith(api, app, { weixin: { openid, access_token: 'new' } });
    expect(byWeixin.id).toBe(salted.objectId);
    const byUnion = await enterWith(api, app, {
      weixin_mini: { uid: newUid(), access_token: 'new', unionid: 'u1', platform: 'weixin' },
    });
    expect(byUnion.id).toBe(salted.objectId);
  });

  test('the session of the export goes on, is given out at the next login, and ends when it is replaced', async () => {
    const token = randomBytes(16).toString('hex').slice(0, 25);
    const salt = 'salt';
    const user = aUser({ sessionToken: token, password: publicHash('a password', salt), salt });
    await imported(await exportFile('_User.jsonl', [user]));
    const me = (session: string) =>
      api.request('GET', '/1.1/users/me', { app, headers: { 'X-LC-Session': session } });
    expect((await me(token)).body).toMatchObject({ objectId: user.objectId });
    const { username } = user;
    const login = await api.request('POST', '/1.1/login', {
      app,
      body: { username, password: 'a password' },
    });
    expect(login.body.sessionToken).toBe(token);
    expect((await me(token)).status).toBe(200);
    const { rows } = await db.query<{ row: string }>(
      'SELECT app_user::text AS row FROM app_user WHERE app_id = $1',
      [app.appId],
    );
    expect(rows[0]?.row).not.toContain(Buffer.from(token).toString('hex'));
    const refreshed = await api.request('PUT', `/1.1/users/${user.objectId}/refreshSessionToken`, {
      app,
      headers: { 'X-LC-Session': token },
    });
    expect(refreshed.status).toBe(200);
    expect(refreshed.body.sessionToken).not.toBe(token);
    expect((await me(token)).status).toBe(400);
    expect((await me(refreshed.body.sessionToken)).status).toBe(200);
  });

  test('what another user has is refused, in the app and within the file, with a dry run too', async () => {
    const uid = newUid();
    const there = await signUp(api, app, {
      email: `${newName()}@example.com`,
      mobilePhoneNumber: newPhone(),
    });
    const linked = await enterWith(api, app, { weibo: { uid, access_token: 't' } });
    const [fileUid, sessionToken] = [newUid(), randomBytes(20).toString('hex')];
    const first = aUser({ authData: { weibo: { uid: fileUid } }, sessionToken });
    const conflicts: [string, object][] = [
      [`username belongs to ${there.id}`, { username: there.body.username }],
      [`email belongs to ${there.id}`, { email: there.body.email }],
      [`mobilePhoneNumber belongs to ${there.id}`, { mobilePhoneNumber: there.body.mobilePhoneNumber }],
      [`authData.weibo belongs to ${linked.id}`, { authData: { weibo: { uid } } }],
      [`authData.weibo belongs to ${first.objectId}`, { authData: { weibo: { uid: fileUid } } }],
      [`sessionToken belongs to ${first.objectId}`, { sessionToken }],
    ];
    const path = await exportFile('_User.jsonl', [first, ...conflicts.map(([, member]) => aUser(member))]);
    for (const args of [['--dry-run'], []]) {
      const report = await imported(path, ...args);
      expect(report).toMatchObject({
        code: 1,
        classes: { _User: { imported: 1, refused: conflicts.length } },
      });
      const byLine = new Map(
        report.refusals.map((one: { line: number; error: string }) => [one.line, one.error]),
      );
      conflicts.forEach(([sentence], i) => {
        expect(byLine.get(i + 2)).toBe(`${sentence} already.`);
      });
      expect(await countOf('app_user')).toBe(args.length > 0 ? 2 : 3);
    }
    expect(await countOf('user_identity')).toBe(2);
  });

  test('who is refused for one account does not keep out who shares another with it', async () => {
    const [taken, shared] = [newUid(), newUid()];
    const there = await enterWith(api, app, { weibo: { uid: taken, access_token: 't' } });
    const out = aUser({ username: 'the same', authData: { weibo: { uid: taken }, qq: { openid: shared } } });
    const next = aUser({ username: 'the same', authData: { qq: { openid: shared } } });
    const path = await exportFile('_User.jsonl', [out, next]);
    for (const args of [['--dry-run'], []])
      expect(await imported(path, ...args)).toMatchObject({
        classes: { _User: { imported: 1, refused: 1 } },
        refusals: [{ line: 1, error: `authData.weibo belongs to ${there.id} already.` }],
      });
    expect((await enterWith(api, app, { qq: { openid: shared, access_token: 't' } })).id).toBe(next.objectId);
    expect((await imported(path)).classes._User).toMatchObject({ imported: 0, alreadyThere: 1, refused: 1 });
  });
});

describe('an import that ends in the middle', () => {
  const total = 20_000;
  let records: ReturnType<typeof anInstallation>[];
  let path: string;

  beforeEach(async () => {
    records = Array.from({ length: total }, (_, i) => anInstallation({ level: i }));
    path = await exportFile('_Installation.jsonl', records);
  });

  const backends =
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'carillon import' AND datname = current_database()";

  /** Starts one and does this to it as soon as it has written something. */
  async function interrupted(how: (child: ChildProcess) => unknown) {
    const child = spawn(process.execPath, [launcher, 'import', path, '--app', app.appId, '--json'], {
      env: { ...bareEnvironment(), ...testEnvironment(database.url) },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    const ended = once(child, 'close');
    const output = text(child.stdout);
    await expect.poll(() => countOf('installation'), { interval: 5 }).toBeGreaterThan(0);
    await how(child);
    const [code] = await ended;
    // The server may still be at the last batch of a client that is gone.
    await expect.poll(async () => (await db.query(backends)).rows.length).toBe(0);
    return { code, output: await output, left: await countOf('installation') };
  }

  async function expectRestOf(left: number) {
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(total);
    expect(left % 2000).toBe(0);
    expect(await imported(path)).toMatchObject({
      code: 0,
      classes: { _Installation: { read: total, imported: total - left, alreadyThere: left, refused: 0 } },
    });
    expect(await countOf('installation')).toBe(total);
    const last = records.at(-1);
    expect(await installationAt(String(last?.objectId))).toEqual({ ...last, valid: true });
  }

  test('by SIGKILL leaves whole batches behind and goes on when it is run again', async () => {
    // The launcher, and the process it hands over to.
    const { left, output } = await interrupted((child) =>
      process.kill(-(child.pid ?? Number.NaN), 'SIGKILL'),
    );
    expect(output).toBe('');
    await expectRestOf(left);
  });

  test('by SIGTERM reports how far it came, likewise', async () => {
    const { code, left, output } = await interrupted((child) => child.kill('SIGTERM'));
    expect({ code, ...JSON.parse(output) }).toMatchObject({
      code: 1,
      classes: { _Installation: { imported: left, refused: 0 } },
      error: expect.stringContaining('It was stopped. Run it again'),
    });
    await expectRestOf(left);
  });

  test('by the end of its connection likewise', async () => {
    const { code, left, output } = await interrupted(() =>
      db.query(`SELECT pg_terminate_backend(pid) FROM (${backends}) AS b`),
    );
    expect(code).toBe(1);
    expect(JSON.parse(output).error).toContain('The connection to the database was lost');
    await expectRestOf(left);
  });
});

describe('the files', () => {
  test('of a folder are taken by heading and name, users first; others are left out with a reason', async () => {
    await exportFile('data.0.jsonl', [aUser()], '_User');
    await exportFile('_Installation_all.json', [JSON.stringify([anInstallation(), anInstallation()])]);
    await exportFile('_Installation.1.json', [JSON.stringify({ results: [anInstallation()] }, null, 2)]);
    await exportFile('Post.0.jsonl', [{ objectId: newId() }], 'Post');
    await exportFile('_User_schema.json', ['{}']);
    await exportFile('notes.txt', ['hello']);
    await mkdir(join(folder, 'more'));
    const report = await imported(folder);
    expect(report).toMatchObject({
      code: 0,
      classes: { _User: { imported: 1 }, _Installation: { imported: 3 } },
    });
    expect(
      report.skippedFiles.map(({ path }: { path: string }) => path.slice(folder.length + 1)).sort(),
    ).toEqual(['Post.0.jsonl', '_User_schema.json', 'more', 'notes.txt']);
  });

  test('that do not say their class are taken with --class', async () => {
    const path = await exportFile('data.json', [anInstallation()]);
    const unknown = await run([path]);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('--class');
    expect(await imported(path, '--class', '_Installation')).toMatchObject({ code: 0 });
    expect((await run([path, '--class', 'Post'])).code).toBe(2);
  });
});

describe('what keeps an import from starting', () => {
  test.each<[string, number, string, Record<string, string>, string[]]>([
    ['no database', 1, 'There is no database', { DATABASE_URL: '' }, []],
    ['nobody there', 1, 'cannot be reached', { DATABASE_URL: 'postgresql://x@127.0.0.1:9/x' }, []],
    ['no secret for users', 1, 'Users need CARILLON_SECRET', { CARILLON_SECRET: '' }, []],
    [
      'another secret',
      1,
      'CARILLON_SECRET is not the one',
      { CARILLON_SECRET: randomBytes(32).toString('base64') },
      [],
    ],
    ['no such app', 1, 'There is no such app', {}, ['--app', 'nobody']],
    ['no such file', 1, 'cannot be read (ENOENT)', {}, ['nothing.jsonl']],
    ['an unwritable list of refusals', 1, 'cannot be written', {}, ['--refused', 'no/such/folder']],
  ])('%s ends with a sentence', async (_case, code, sentence, env, args) => {
    const path = await exportFile('_User.jsonl', [aUser()]);
    const result = await run([path, ...args], env);
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
    expect(result.stderr).toContain(sentence);
    expect(await countOf('app_user')).toBe(0);
  });

  test('a service that runs in this folder is found, with its secret, as `migrate` finds it', async () => {
    const { DATABASE_URL = '', CARILLON_SECRET = '', ...rest } = testEnvironment(database.url);
    await writeFile(join(folder, 'database-url'), DATABASE_URL);
    await writeFile(join(folder, 'secret'), CARILLON_SECRET);
    const path = await exportFile('_User.jsonl', [aUser()]);
    const env = { ...rest, DATABASE_URL: '', CARILLON_SECRET: '', CARILLON_DATA_DIR: folder };
    expect((await run([path], env)).code).toBe(0);
    expect(await countOf('app_user')).toBe(1);
  });

  test('installations need no secret', async () => {
    const path = await exportFile('_Installation.jsonl', [anInstallation()]);
    expect((await run([path], { CARILLON_SECRET: '' })).code).toBe(0);
  });

  test('a call without paths is wrong usage', async () => {
    expect((await carillon(['import'], { env: testEnvironment(database.url) })).code).toBe(2);
  });
});
