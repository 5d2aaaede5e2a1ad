import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { migrationProblems } from '../../../ops/check/migration-rules.ts';
import { splitStatements } from '../../../shared/db/schema/effects.ts';
import {
  migrateTables,
  migrationFolder,
  migrationNames,
  pendingMigrations,
  readMigration,
} from '../../../shared/db/schema/migrate.ts';
import { planMigrations } from '../../../shared/db/schema/plan.ts';
import { itemNameOf } from '../../../shared/domain/admin/names.ts';
import { reachableName } from '../../../shared/domain/path.ts';
import { queueSchemaVersion } from '../../../shared/queue/jobs.ts';
import { migrate, pendingChanges } from '../../../shared/queue/migrate.ts';
import { createEmptyDatabase, createTestDatabase } from '../../support/database.ts';

/** Last migration that was written before the rules existed. */
const lastUnchecked = '0029';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-migrations-'));
  onTestFinished(() => rm(folder, { recursive: true }));
});

/** Writes a migration into the folder of the test. */
const write = (name: string, up: string) =>
  writeFile(join(folder, `${name}.sql`), `-- Up Migration\n${up}\n`);

async function emptyDatabase() {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  const client = new Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  return { url: database.url, client };
}

async function problemsOf(up: string) {
  await write('0001_test', up);
  return migrationProblems(await readMigration('0001_test', folder));
}

describe('the migration rules', () => {
  test('are kept by every migration of this version', async () => {
    const checked = migrationNames().filter((name) => name.slice(0, 4) > lastUnchecked);
    for (const name of checked)
      expect(migrationProblems(await readMigration(name, migrationFolder)), name).toEqual([]);
  });

  test('forbid two equal numbers, because older versions would run them in another order', () => {
    const numbers = migrationNames().map((name) => name.slice(0, 4));
    expect(numbers).toEqual([...new Set(numbers)]);
  });

  test.each([
    ['CREATE TABLE t (a int NOT NULL); CREATE INDEX i ON t (a); ALTER TABLE t ADD CHECK (a > 0);'],
    ['ALTER TABLE installation ADD COLUMN a text, ADD COLUMN b int NOT NULL DEFAULT 3;'],
    ['ALTER TABLE installation ADD COLUMN at timestamptz DEFAULT now();'],
    ['CREATE INDEX CONCURRENTLY i ON installation (app_id);'],
    ['ALTER TABLE installation ADD CONSTRAINT c CHECK (app_id > id::text) NOT VALID;'],
    ['ALTER TABLE installation VALIDATE CONSTRAINT c;'],
    ['ALTER TABLE installation SET (autovacuum_vacuum_scale_factor = 0.02);'],
    [
      "COMMENT ON TABLE app IS 'a; b'; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$;",
    ],
    ['CREATE INDEX i ON push_profile (name);'],
    [
      '-- Accepted: the table exists since yesterday, and no release has it.\nDROP TABLE role_user;',
    ],
  ])('accept %s', async (up) => {
    expect(await problemsOf(up)).toEqual([]);
  });

  test.each([
    ['DROP TABLE installation;', /still names it/],
    ['ALTER TABLE app DROP COLUMN name;', /still names it/],
    ['ALTER TABLE app RENAME COLUMN name TO title;', /still names it/],
    ['ALTER TABLE app ADD COLUMN a text NOT NULL;', /does not fill it/],
    ['ALTER TABLE app ALTER COLUMN name SET NOT NULL;', /may leave it out/],
    ['ALTER TABLE installation ALTER COLUMN id TYPE int;', /old type/],
    [
      'ALTER TABLE installation ADD COLUMN u uuid DEFAULT gen_random_uuid();',
      /whole table under a lock/,
    ],
    ['CREATE UNIQUE INDEX i ON installation (app_id);', /needs CONCURRENTLY/],
    ['ALTER TABLE installation ADD CONSTRAINT c CHECK (id > 0);', /NOT VALID/],
    ['ALTER TABLE installation ADD UNIQUE (id);', /under a lock/],
    ["UPDATE installation SET fields = '{}';", /a background job must write rows/],
    ['CREATE INDEX CONCURRENTLY i ON installation (id); ANALYZE installation;', /file of its own/],
    ['CLUSTER installation;', /unknown statement/],
    ['-- Accepted: yes\nDROP TABLE role_user;', /still names it/],
  ])('refuse %s', async (up, problem) => {
    expect((await problemsOf(up))[0]).toMatch(problem);
  });

  test('find statements despite comments, strings and bodies', () => {
    expect(
      splitStatements("SELECT 'a;''b' -- c;\n; DO $x$ a; $x$; /* d; */ SELECT (1, 2)"),
    ).toEqual(["SELECT 'a;''b'", 'DO $x$ a; $x$', 'SELECT (1, 2)']);
  });
});

describe('a migration', () => {
  test('gives up a lock that others wait for, and succeeds when the table is free', async () => {
    const { url, client } = await emptyDatabase();
    await client.query('CREATE TABLE busy (a int)');
    await write('0001_first', 'CREATE TABLE first (a int);');
    await write('0002_column', 'ALTER TABLE busy ADD COLUMN b int;');
    await client.query('BEGIN');
    await client.query('SELECT * FROM busy');
    const reasons: string[] = [];
    const release = async (reason: string) => {
      reasons.push(reason);
      await client.query('COMMIT');
    };
    const ran = await migrateTables(url, {
      folder,
      lockTimeoutMs: 20,
      pauseMs: 50,
      onWait: (reason) => void release(reason),
    });
    expect(ran).toEqual(['0001_first', '0002_column']);
    expect(reasons[0]).toBe('a table is in use (attempt 1 of 100)');
  });

  test('fails after the last attempt, while earlier migrations stay', async () => {
    const { url, client } = await emptyDatabase();
    await client.query('CREATE TABLE busy (a int)');
    await write('0001_first', 'CREATE TABLE first (a int);');
    await write('0002_column', 'ALTER TABLE busy ADD COLUMN b int;');
    await client.query('BEGIN');
    await client.query('SELECT * FROM busy');
    const options = { folder, lockTimeoutMs: 20, pauseMs: 1, attempts: 2 };
    await expect(migrateTables(url, options)).rejects.toThrow(/lock timeout/);
    expect(await pendingMigrations(url, folder)).toEqual(['0002_column']);
  });

  test('builds an index without blocking writers, and again after a failed attempt', async () => {
    const { url, client } = await emptyDatabase();
    await client.query('CREATE TABLE busy (a int); INSERT INTO busy VALUES (1), (1)');
    await write('0001_index', 'CREATE UNIQUE INDEX CONCURRENTLY busy_a ON busy (a);');
    await expect(migrateTables(url, { folder })).rejects.toThrow(/could not create unique index/);
    await client.query('DELETE FROM busy');
    expect(await migrateTables(url, { folder })).toEqual(['0001_index']);
    const { rows } = await client.query(
      `SELECT indisvalid FROM pg_index WHERE indexrelid = 'busy_a'::regclass`,
    );
    expect(rows).toEqual([{ indisvalid: true }]);
  });

  test('runs once if two processes start at the same time', async () => {
    const { url } = await emptyDatabase();
    await write('0001_first', 'CREATE TABLE first (a int);');
    await write('0002_index', 'CREATE INDEX CONCURRENTLY first_a ON first (a);');
    const both = await Promise.all([
      migrateTables(url, { folder }),
      migrateTables(url, { folder }),
    ]);
    expect(both.flat()).toEqual(['0001_first', '0002_index']);
  });

  test('is refused if a later one has run, and is never applied partly', async () => {
    const { url, client } = await emptyDatabase();
    await write('0002_table', 'CREATE TABLE two (a int);');
    expect(await migrateTables(url, { folder })).toEqual(['0002_table']);
    await write('0001_table', 'CREATE TABLE one (a int);');
    await expect(migrateTables(url, { folder })).rejects.toThrow(
      /0001_table has not run, and 0002_table/,
    );
    await rm(join(folder, '0001_table.sql'));
    await write('0003_table', 'CREATE TABLE three (a int);\nCREATE TABLE two (a int);');
    await expect(migrateTables(url, { folder })).rejects.toThrow(/"two" already exists/);
    const { rows } = await client.query(
      "SELECT to_regclass('one') AS one, to_regclass('three') AS three",
    );
    expect(rows).toEqual([{ one: null, three: null }]);
    expect(await pendingMigrations(url, folder)).toEqual(['0003_table']);
  });

  test('has a plan, which runs nothing', async () => {
    const { url, client } = await emptyDatabase();
    await client.query('CREATE TABLE busy AS SELECT generate_series(1, 5000) AS a; ANALYZE busy');
    await write(
      '0001_column',
      'CREATE TABLE t (a int); CREATE INDEX i ON t (a); ALTER TABLE busy ADD COLUMN b int;',
    );
    await write('0002_index', 'CREATE INDEX CONCURRENTLY busy_a ON busy (a);');
    const [column, index] = await planMigrations(url, folder);
    expect(column?.statements.map(({ lock, cost, rows }) => ({ lock, cost, rows }))).toEqual([
      { lock: 'none', cost: 'catalogue' },
      { lock: 'none', cost: 'catalogue' },
      { lock: 'ACCESS EXCLUSIVE', cost: 'catalogue', rows: 5000 },
    ]);
    expect(index).toMatchObject({
      isConcurrent: true,
      statements: [{ table: 'busy', lock: 'SHARE UPDATE EXCLUSIVE', cost: 'scan', rows: 5000 }],
    });
    expect(await pendingMigrations(url, folder)).toEqual(['0001_column', '0002_index']);
  });

  test('excludes lists of thousands of members from ANALYZE', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const client = new Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query(
      `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, badges, moved,
        attempt, has_job)
       SELECT 'app', i, 'apns', '_default', ARRAY[i], ARRAY[i], ARRAY[i], 0, true
         FROM generate_series(1, 100) AS i`,
    );
    await client.query('ANALYZE push_batch');
    const { rows } = await client.query(
      `SELECT array_agg(attname::text) AS names FROM pg_stats WHERE tablename = 'push_batch'`,
    );
    expect(rows[0].names).toContain('push_id');
    for (const list of ['recipients', 'badges', 'moved']) expect(rows[0].names).not.toContain(list);
  });

  test('renames items whose names cannot be in a path to unique names', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const client = new Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const names = [
      '.',
      '..',
      'a/b',
      'a／b',
      'a/b／c',
      'a／b/c',
      'a\\b',
      '%2e%2E',
      '100%',
      'a..b',
      `${'x'.repeat(99)}/`,
    ];
    await client.query(`INSERT INTO app (app_id, name, edition, plan, secrets, options)
      VALUES ('a', 'A', 'home', 'commercial', '', '{}'),
        ('b', 'B', 'home', 'commercial', '', '{}')`);
    for (const [table, columns, values] of [
      ['saved_item', 'kind, content, updated_by', "'audience', '{}', 'x'"],
      ['sms_template', 'text', "'x'"],
      ['sms_signature', 'is_approved', 'true'],
    ]) {
      await client.query(
        `INSERT INTO ${table} (app_id, name, ${columns}) SELECT app, name, ${values}
          FROM unnest(ARRAY['a', 'b']) AS app, unnest($1::text[]) AS name`,
        [names],
      );
    }
    const { statements } = await readMigration('0066_reachable_names', migrationFolder);
    for (const statement of [...statements, ...statements]) await client.query(statement);
    for (const table of ['saved_item', 'sms_template', 'sms_signature']) {
      const { rows } = await client.query(`SELECT name FROM ${table} WHERE app_id = 'a'`);
      const renamed = rows.map(({ name }) => name);
      expect(new Set(renamed).size).toBe(names.length);
      expect(renamed.map(itemNameOf)).toEqual(renamed);
      for (const name of ['.', '..', 'a\\b', '%2e%2E', `${'x'.repeat(99)}/`].map(reachableName))
        expect(renamed).toContain(name);
      for (const name of ['a／b', '100%', 'a..b']) expect(renamed).toContain(name);
    }
  });

  test('removes a balance of SMS that no operator set, as far as the audit shows it', async () => {
    const { client, url } = await emptyDatabase();
    await migrateTables(url);
    const insert = (appId: string, createdAt: string, options: object) =>
      client.query(
        `INSERT INTO app (app_id, name, edition, plan, secrets, options, created_at)
         VALUES ($1, 'App', 'home', 'commercial', '', $2, $3)`,
        [appId, JSON.stringify(options), createdAt],
      );
    const record = (appId: string, at: string, after: object) =>
      client.query(
        `INSERT INTO audit (at, app_id, actor_name, actor_role, address, request_id, action, target,
           after) VALUES ($1, $2, 'admin', 'owner', '', '', 'app.update', $2, $3)`,
        [at, appId, JSON.stringify(after)],
      );
    await insert('older', '2026-01-01', { smsBalance: 3 });
    await insert('charged', '2026-03-01', { smsBalance: 4, generalSms: true });
    await insert('set', '2026-03-01', { smsBalance: 5 });
    await insert('unset', '2026-03-01', { generalSms: true });
    await record('charged', '2026-02-01', { options: { generalSms: true } });
    await record('set', '2026-03-02', { options: { smsBalance: 100 } });
    const { up } = await readMigration('0093_sms_balance_unset', migrationFolder);
    await client.query(up);
    const { rows } = await client.query('SELECT app_id, options FROM app ORDER BY app_id');
    expect(Object.fromEntries(rows.map(({ app_id, options }) => [app_id, options]))).toEqual({
      charged: { generalSms: true },
      older: { smsBalance: 3 },
      set: { smsBalance: 5 },
      unset: { generalSms: true },
    });
  });

  test('results in the schema that the processes require', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    expect(await pendingChanges(database.url)).toEqual([]);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query('SELECT version FROM pgboss.version')).rows).toEqual([
      { version: queueSchemaVersion },
    ]);
    await client.query(
      `DELETE FROM carillon_migration; DELETE FROM pgboss.queue WHERE name = 'plan'`,
    );
    expect(await pendingChanges(database.url)).toEqual([...migrationNames(), 'queue plan']);
    await expect(migrate(database.url)).rejects.toThrow();
  });
});
