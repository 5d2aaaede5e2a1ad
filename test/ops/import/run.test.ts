import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { testEnvironment } from '../../support/api.ts';
import { bareEnvironment, carillon, launcher } from '../../support/cli.ts';
import { anInstallation, aUser, newId, useImports } from '../../support/import/imports.ts';

const world = useImports();
const { run, imported, importedByCommand, exportFile, installationAt, countOf } = world;

describe('an import that ends in the middle', () => {
  const total = 12_000;
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
    const child = spawn(process.execPath, [launcher, 'import', path, '--app', world.app.appId, '--json'], {
      env: { ...bareEnvironment(), ...testEnvironment(world.databaseUrl) },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    const ended = once(child, 'close');
    const output = text(child.stdout);
    await expect.poll(() => countOf('installation'), { interval: 5 }).toBeGreaterThan(0);
    await how(child);
    const [code] = await ended;
    // The server may still be at the last batch of a client that is gone.
    await expect.poll(async () => (await world.db.query(backends)).rows.length).toBe(0);
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

  test('by Ctrl-C reports how far it came, likewise', async () => {
    // A terminal tells the whole group, and the launcher passes it on once more.
    const { code, left, output } = await interrupted((child) =>
      process.kill(-(child.pid ?? Number.NaN), 'SIGINT'),
    );
    expect({ code, ...JSON.parse(output) }).toMatchObject({
      code: 1,
      classes: { _Installation: { imported: left, refused: 0 } },
      error: expect.stringContaining('It was stopped. Run it again'),
    });
    await expectRestOf(left);
  });

  test('by the end of its connection likewise', async () => {
    const { code, left, output } = await interrupted(() =>
      world.db.query(`SELECT pg_terminate_backend(pid) FROM (${backends}) AS b`),
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
    await mkdir(join(world.folder, 'more'));
    const report = await imported(world.folder);
    expect(report).toMatchObject({
      code: 0,
      classes: { _User: { imported: 1 }, _Installation: { imported: 3 } },
    });
    expect(
      report.skippedFiles.map(({ path }: { path: string }) => path.slice(world.folder.length + 1)).sort(),
    ).toEqual(['Post.0.jsonl', '_User_schema.json', 'more', 'notes.txt']);
  });

  test('that do not say their class are taken with --class', async () => {
    const path = await exportFile('data.json', [anInstallation()]);
    const unknown = await run([path]);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('--class');
    expect(await importedByCommand(path, '--class', '_Installation')).toMatchObject({ code: 0 });
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
    const { DATABASE_URL = '', CARILLON_SECRET = '', ...rest } = testEnvironment(world.databaseUrl);
    await writeFile(join(world.folder, 'database-url'), DATABASE_URL);
    await writeFile(join(world.folder, 'secret'), CARILLON_SECRET);
    const path = await exportFile('_User.jsonl', [aUser()]);
    const env = { ...rest, DATABASE_URL: '', CARILLON_SECRET: '', CARILLON_DATA_DIR: world.folder };
    expect((await run([path], env)).code).toBe(0);
    expect(await countOf('app_user')).toBe(1);
  });

  test('installations need no secret', async () => {
    const path = await exportFile('_Installation.jsonl', [anInstallation()]);
    expect((await run([path], { CARILLON_SECRET: '' })).code).toBe(0);
  });

  test('a call without paths is wrong usage', async () => {
    expect((await carillon(['import'], { env: testEnvironment(world.databaseUrl) })).code).toBe(2);
  });
});
