import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { testEnvironment } from '../../support/api.ts';
import { bareEnvironment, carillon, carillonProcess, launcher } from '../../support/cli.ts';
import { anInstallation, aUser, newId, useImports } from '../../support/import/imports.ts';

const fixture = useImports();
const { run, imported, importedByCommand, exportFile, installationAt, countOf } = fixture;

describe('an interrupted import', () => {
  const total = 20_000;
  let records: ReturnType<typeof anInstallation>[];
  let path: string;

  beforeEach(async () => {
    records = Array.from({ length: total }, (_, i) => anInstallation({ level: i }));
    path = await exportFile('_Installation.jsonl', records);
  });

  const backends =
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'carillon import' AND datname = current_database()";

  /** Starts an import and interrupts it as soon as it has written rows. */
  async function interrupted(how: (child: ChildProcess) => unknown) {
    const child = spawn(
      process.execPath,
      [launcher, 'import', path, '--app', fixture.app.appId, '--json'],
      {
        env: { ...bareEnvironment(), ...testEnvironment(fixture.databaseUrl) },
        stdio: ['ignore', 'pipe', 'ignore'],
        detached: true,
      },
    );
    const ended = once(child, 'close');
    const output = text(child.stdout);
    await expect.poll(() => countOf('installation'), { interval: 5 }).toBeGreaterThan(0);
    await how(child);
    const [code] = await ended;
    // The server may still process the last batch of the client that exited.
    await expect.poll(async () => (await fixture.db.query(backends)).rows.length).toBe(0);
    return { code, output: await output, left: await countOf('installation') };
  }

  async function expectRestOf(left: number) {
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(total);
    expect(left % 2000).toBe(0);
    expect(await imported(path)).toMatchObject({
      code: 0,
      classes: {
        _Installation: { read: total, imported: total - left, alreadyThere: left, refused: 0 },
      },
    });
    expect(await countOf('installation')).toBe(total);
    const last = records.at(-1);
    expect(await installationAt(String(last?.objectId))).toEqual({ ...last, valid: true });
  }

  test('by SIGKILL has whole batches and continues when it is run again', async () => {
    // Kills the launcher and its child process.
    const { left, output } = await interrupted((child) =>
      process.kill(-(child.pid ?? Number.NaN), 'SIGKILL'),
    );
    expect(output).toBe('');
    await expectRestOf(left);
  });

  test('by Ctrl-C reports its progress and continues when it is run again', async () => {
    // A terminal signals the whole process group, and the launcher forwards the signal.
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

  test('by a lost connection continues when it is run again', async () => {
    const { code, left, output } = await interrupted(() =>
      fixture.db.query(`SELECT pg_terminate_backend(pid) FROM (${backends}) AS b`),
    );
    expect(code).toBe(1);
    expect(JSON.parse(output).error).toContain('The connection to the database was lost');
    await expectRestOf(left);
  });
});

describe('a repeated import', () => {
  const total = 2000;

  /** Returns how many rows of a table statements have read by index so far. */
  async function rowsRead(table: string): Promise<number> {
    const { rows } = await fixture.db.query<{ n: number }>(
      'SELECT idx_tup_fetch::int AS n FROM pg_stat_user_tables WHERE relname = $1',
      [table],
    );
    return rows[0]?.n ?? 0;
  }

  test.each([
    ['_User', 'app_user', aUser],
    ['_Installation', 'installation', anInstallation],
  ])(
    'of %s reads each row a few times if its app is newer than the statistics',
    async (name, table, make) => {
      const other = await exportFile(`${name}.other.jsonl`, [make(), make()], name);
      await imported(other);
      await fixture.db.query(`ANALYZE ${table}`);
      await fixture.db.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
      const app = await fixture.api.createApp();
      const path = await exportFile(
        `${name}.jsonl`,
        Array.from({ length: total }, () => make()),
        name,
      );
      const run = (...args: string[]) =>
        carillon(['import', path, '--app', app.appId, '--json', ...args], {
          env: testEnvironment(fixture.databaseUrl),
        });
      expect((await run()).code).toBe(0);
      for (const args of [['--dry-run'], []]) {
        const before = await rowsRead(table);
        const { json } = await run(...args);
        expect(json().classes[name]).toMatchObject({ read: total, alreadyThere: total });
        expect((await rowsRead(table)) - before).toBeLessThan(20 * total);
      }
    },
  );
});

describe('the files', () => {
  test('of a folder are recognized by heading and name, users first', async () => {
    await exportFile('data.0.jsonl', [aUser()], '_User');
    await exportFile('_Installation_all.json', [
      JSON.stringify([anInstallation(), anInstallation()]),
    ]);
    await exportFile('_Installation.1.json', [
      JSON.stringify({ results: [anInstallation()] }, null, 2),
    ]);
    await exportFile('Post.0.jsonl', [{ objectId: newId() }], 'Post');
    await exportFile('_User_schema.json', ['{}']);
    await exportFile('notes.txt', ['hello']);
    await mkdir(join(fixture.folder, 'more'));
    await symlink('nowhere', join(fixture.folder, '_Role.jsonl'));
    const report = await imported(fixture.folder);
    expect(report).toMatchObject({
      code: 0,
      classes: { _User: { imported: 1 }, _Installation: { imported: 3 } },
    });
    expect(
      report.skippedFiles
        .map(({ path }: { path: string }) => path.slice(fixture.folder.length + 1))
        .sort(),
    ).toEqual(['Post.0.jsonl', '_Role.jsonl', '_User_schema.json', 'more', 'notes.txt']);
  });

  test('without a class are imported with --class', async () => {
    const path = await exportFile('data.json', [anInstallation()]);
    const unknown = await run([path]);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('--class');
    expect(await importedByCommand(path, '--class', '_Installation')).toMatchObject({ code: 0 });
    expect((await run([path, '--class', 'Post'])).code).toBe(2);
  });
});

test('an import into a full disk says so', async () => {
  const path = await exportFile('_Installation.jsonl', [anInstallation()]);
  await fixture.db.query(`CREATE FUNCTION fill_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE 'disk full' USING ERRCODE = '53100'; END $$`);
  await fixture.db.query(
    'CREATE TRIGGER full_disk BEFORE INSERT ON installation EXECUTE FUNCTION fill_disk()',
  );
  const result = await run([path]);
  await fixture.db.query('DROP FUNCTION fill_disk CASCADE');
  expect(result.code).toBe(1);
  expect(result.stdout + result.stderr).toContain('The disk of the database is full.');
});

describe('an import that cannot start', () => {
  test.each<[string, number, string, Record<string, string>, string[]]>([
    ['no database', 1, 'There is no database', { DATABASE_URL: '' }, []],
    ['no database', 1, 'cannot be reached', { DATABASE_URL: 'postgresql://x@127.0.0.1:9/x' }, []],
    ['no secret for users', 1, 'Users need CARILLON_SECRET', { CARILLON_SECRET: '' }, []],
    [
      'another secret',
      1,
      'CARILLON_SECRET is not the one',
      { CARILLON_SECRET: randomBytes(32).toString('base64') },
      [],
    ],
    ['no such app', 1, 'There is no such app', {}, ['--app', 'unknown']],
    ['no such file', 1, 'cannot be read (ENOENT)', {}, ['nothing.jsonl']],
    ['an unwritable list of refusals', 1, 'cannot be written', {}, ['--refused', 'no/such/folder']],
  ])('%s ends with a message', async (_case, code, message, env, args) => {
    const path = await exportFile('_User.jsonl', [aUser()]);
    const result = await run([path, ...args], env);
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
    expect(result.stderr).toContain(message);
    expect(await countOf('app_user')).toBe(0);
  });

  test('leaves a file alone that it would both import and empty', async () => {
    const path = await exportFile('_User.jsonl', [aUser()]);
    const before = await readFile(path, 'utf8');
    const result = await run([path, '--dry-run', '--refused', path]);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toContain('--refused names a file that is imported');
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  test('finds a running service in this folder, with its secret, like `migrate`', async () => {
    const {
      DATABASE_URL = '',
      CARILLON_SECRET = '',
      ...rest
    } = testEnvironment(fixture.databaseUrl);
    await writeFile(join(fixture.folder, 'database-url'), DATABASE_URL);
    await writeFile(join(fixture.folder, 'secret'), CARILLON_SECRET);
    const path = await exportFile('_User.jsonl', [aUser()]);
    const env = {
      ...rest,
      DATABASE_URL: '',
      CARILLON_SECRET: '',
      CARILLON_DATA_DIR: fixture.folder,
    };
    expect((await run([path], env)).code).toBe(0);
    expect(await countOf('app_user')).toBe(1);
  });

  test('needs no secret for installations', async () => {
    const path = await exportFile('_Installation.jsonl', [anInstallation()]);
    expect((await run([path], { CARILLON_SECRET: '' })).code).toBe(0);
  });

  test('without paths is wrong usage', async () => {
    expect(
      (await carillonProcess(['import'], { env: testEnvironment(fixture.databaseUrl) })).code,
    ).toBe(2);
  });
});
