import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findFiles } from '../../../ops/import/files.ts';
import { importFiles } from '../../../ops/import/import.ts';
import { Tally } from '../../../ops/import/report.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import { testEnvironment } from '../../support/api.ts';
import { carillonProcess } from '../../support/cli.ts';
import { anInstallation, aUser, newId, useImports } from '../../support/import/imports.ts';
import { newUid } from '../../support/users.ts';

const fixture = useImports();
const { run, imported, importedByCommand, exportFile, installationAt, countOf } = fixture;

describe('records that cannot be imported', () => {
  test('are refused with a line and a message without values', async () => {
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
      [/channels must be a list of texts/, anInstallation({ channels: secret })],
      [/badge must be a whole number/, anInstallation({ badge: secret })],
      [/valid must be true or false/, anInstallation({ valid: secret })],
      [/note: A text holds a character/, anInstallation({ note: `${secret}\0` })],
      [/note: A text holds a character/, anInstallation({ note: `${secret}\uD800` })],
      [/note: .*inside a value/, anInstallation({ note: { __op: 'Increment', amount: 1 } })],
      [
        /owner: Malformed pointer/,
        anInstallation({ owner: { __type: 'Pointer', className: secret } }),
      ],
      [/name that cannot be stored/, anInstallation({ 'a.b$': secret })],
      [
        /nested too deeply/,
        `{"objectId":"${newId()}","deviceType":"ios","note":${'['.repeat(2000)}1${']'.repeat(2000)}}`,
      ],
      [
        /note.0: this number cannot be kept/,
        `{"objectId":"${newId()}","deviceType":"ios","note":[1e400]}`,
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
    expect(report.refusals.map(({ line }: { line: number }) => line)).toEqual(
      lines.map((_, i) => i + 1),
    );
    lines.forEach(([message], i) => {
      expect(report.refusals[i].error).toMatch(message);
    });
    const plain = await run([path]);
    expect(plain.stdout).toContain(`${path}:1: This record is not JSON.`);
    expect(JSON.stringify(report) + plain.stdout + plain.stderr).not.toContain(secret);
    expect(await installationAt(good.objectId)).toMatchObject({ deviceToken: good.deviceToken });
  });

  test('of users are refused in the same way, without any trace in the app', async () => {
    const uid = newUid();
    const users: [RegExp, object][] = [
      [/Invalid username/, { username: ' ' }],
      [/username must be a text/, { username: { $gt: '' } }],
      [/email address was invalid/, { email: 'tom' }],
      [/emailVerified must be true or false/, { emailVerified: 'yes' }],
      [/authData must be a dictionary/, { authData: 'weixin' }],
      [/authData.weixin: Linked id missing/, { authData: { weixin: { access_token: 'SESAME' } } }],
      [
        /authData.weixin: The id in authData must be a text/,
        { authData: { weixin: { openid: 7 } } },
      ],
      [/Invalid ACL/, { ACL: { '*': { read: 'SESAME' } } }],
      [/password is no hash/, { password: 'SESAME', authData: { weibo: { uid } } }],
      [/sessionToken is no token/, { sessionToken: 'SESAME' }],
    ];
    const path = await exportFile(
      '_User.jsonl',
      users.map(([, member]) => aUser(member)),
    );
    const report = await imported(path);
    expect(report).toMatchObject({
      code: 1,
      classes: { _User: { imported: 0, refused: users.length } },
    });
    users.forEach(([message], i) => {
      expect(report.refusals[i].error).toMatch(message);
    });
    expect(JSON.stringify(report)).not.toContain('SESAME');
    expect([await countOf('app_user'), await countOf('user_identity')]).toEqual([0, 0]);
  });

  test('are listed up to a hundred in the report, and all in --refused', async () => {
    const path = await exportFile(
      '_User.jsonl',
      Array.from({ length: 250 }, () => ({ username: 'x' })),
    );
    const all = join(fixture.folder, 'refused.jsonl');
    const report = await importedByCommand(path, '--refused', all);
    expect(report.refusals).toHaveLength(100);
    expect(report.refusalsNotListed).toBe(150);
    const lines = (await readFile(all, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).line)).toEqual(
      Array.from({ length: 250 }, (_, i) => i + 1),
    );
    expect((await stat(all)).mode & 0o777).toBe(0o600);
  });

  test('do not keep an import from being stopped', async () => {
    const path = await exportFile('_Installation.jsonl', Array(1000).fill('x'));
    const db = new Database({ url: fixture.databaseUrl, applicationName: 'test' });
    const stopped = importFiles({
      db,
      clock: systemClock,
      appId: fixture.app.appId,
      ...(await findFiles([path], undefined)),
      tally: new Tally(),
      isDry: true,
      idleBefore: '',
      maxRoles: 1,
      vault: undefined,
      stop: AbortSignal.abort(),
      onProgress: () => undefined,
    });
    await expect(stopped).rejects.toThrow('It was stopped.');
    await db.close();
  });

  test('a line of 100 MB does not exhaust the memory', async () => {
    const path = join(fixture.folder, '_Installation.jsonl');
    const file = createWriteStream(path);
    file.write('{"note":"');
    for (let i = 0; i < 100; i += 1)
      if (!file.write(Buffer.alloc(1024 * 1024, 'x'))) await once(file, 'drain');
    file.end(`"}\n${JSON.stringify(anInstallation())}\n`);
    await once(file, 'close');
    const { code, stdout } = await carillonProcess(
      ['import', path, '--app', fixture.app.appId, '--json'],
      {
        env: testEnvironment(fixture.databaseUrl),
        nodeArgs: ['--max-old-space-size=64'],
      },
    );
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 1,
      classes: { _Installation: { read: 2, imported: 1, refused: 1 } },
      refusals: [{ line: 1, error: 'This record is longer than 4 MB.' }],
    });
  });

  test('a damaged archive is imported up to the damage, which is reported', async () => {
    const records = Array.from({ length: 8000 }, () => anInstallation());
    const path = await exportFile('_Installation.jsonl.gz', records);
    const whole = await readFile(path);
    await writeFile(path, whole.subarray(0, Math.round(whole.length * 0.7)));
    const report = await imported(path);
    expect(report).toMatchObject({ code: 1, error: expect.stringContaining('is damaged') });
    expect(report.classes._Installation.imported).toBeGreaterThan(0);
    expect(report.classes._Installation.imported).toBe(report.classes._Installation.read);
    expect(await countOf('installation')).toBe(report.classes._Installation.imported);
    await writeFile(path, whole);
    const { code, classes } = await imported(path);
    expect(code).toBe(0);
    expect(classes._Installation.imported + classes._Installation.alreadyThere).toBe(8000);
    expect(await countOf('installation')).toBe(8000);
  });
});
