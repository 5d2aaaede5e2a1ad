import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { sleep } from '../../clock.ts';
import { connectionUrl } from '../../config/environment.ts';
import { isLockTimeout, isUndefinedTable } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { effectOf, splitStatements, upPart } from './effects.ts';

/** Folder of this version's migrations. */
export const migrationFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** Table with the migrations that a database already contains. */
export const migrationTable = 'carillon_migration';

/** A migration of this version. */
export interface MigrationFile {
  name: string;
  /** The part of the file that is run. */
  up: string;
  statements: string[];
  /** True if it runs outside of a transaction, because it contains CONCURRENTLY. */
  isConcurrent: boolean;
}

/** Returns the names of the migrations in a folder, in order. */
export function migrationNames(folder = migrationFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .map((name) => basename(name, '.sql'))
    .sort();
}

/** Reads a migration. */
export async function readMigration(
  name: string,
  folder = migrationFolder,
): Promise<MigrationFile> {
  const up = upPart(await readFile(join(folder, `${name}.sql`), 'utf8'));
  const statements = splitStatements(up);
  return {
    name,
    up,
    statements,
    isConcurrent: statements.some((one) => effectOf(one).isConcurrent),
  };
}

/** Key of the advisory lock. Earlier versions use the same key, so that they wait too. */
const lockKey = '7241865325823964';
const lockPollMs = 500;

/** How a migration waits for the locks of its tables. */
interface LockPatience {
  /**
   * Timeout of waiting for a lock, in ms. All later statements on the table wait behind the
   * migration.
   */
  lockTimeoutMs: number;
  /** Pause after a timeout, in which these statements run. */
  pauseMs: number;
  /** Attempts before the migration fails. */
  attempts: number;
}

export const defaultPatience: LockPatience = { lockTimeoutMs: 3000, pauseMs: 3000, attempts: 100 };

export interface MigrateOptions extends Partial<LockPatience> {
  /**
   * Called if the migrations wait for another process that migrates, or for the lock of a table.
   */
  onWait?: (reason: string) => void;
  /** Folder of the migrations. Tests use their own. */
  folder?: string;
}

/**
 * Runs the pending migrations, each in its own transaction, and returns their names. An advisory
 * lock ensures that only one process migrates. A migration that does not get the lock of a table
 * within `lockTimeoutMs` is rolled back and tried again. Rejects with PostgreSQL's error after the
 * last attempt. Earlier migrations remain.
 */
export function migrateTables(
  databaseUrl: string,
  options: MigrateOptions = {},
): Promise<string[]> {
  return aloneInMigrating(databaseUrl, options, async () => {
    const ran: string[] = [];
    await retryLocks(options, () => runPending(databaseUrl, options, (name) => ran.push(name)));
    return ran;
  });
}

/** Runs `work` while no other process migrates the database. */
export async function aloneInMigrating<T>(
  databaseUrl: string,
  { onWait }: Pick<MigrateOptions, 'onWait'>,
  work: () => Promise<T>,
): Promise<T> {
  const client = await connect(databaseUrl);
  try {
    // Polled, since CREATE INDEX CONCURRENTLY would wait for the snapshot of a process that waits
    // for the lock.
    const takeLock = () =>
      query(client).boolean('SELECT pg_try_advisory_lock($1) AS taken', [lockKey]);
    for (let waits = 0; !(await takeLock()); waits += 1) {
      if (waits === 0) onWait?.('another process migrates the database');
      await sleep(lockPollMs);
    }
    return await work();
  } finally {
    await client.end();
  }
}

/** Repeats `work` if it fails because it did not get a lock. */
export async function retryLocks<T>(options: MigrateOptions, work: () => Promise<T>): Promise<T> {
  const { attempts, pauseMs } = { ...defaultPatience, ...options };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error) || attempt >= attempts) throw error;
      options.onWait?.(`a table is in use (attempt ${attempt} of ${attempts})`);
      await sleep(pauseMs);
    }
  }
}

async function runPending(
  databaseUrl: string,
  options: MigrateOptions,
  onRan: (name: string) => void,
): Promise<void> {
  const { lockTimeoutMs, folder } = { ...defaultPatience, ...options };
  const client = await connect(databaseUrl, { options: `-c lock_timeout=${lockTimeoutMs}` });
  try {
    await client.query(
      `CREATE TABLE IF NOT EXISTS ${migrationTable}
         (id serial PRIMARY KEY, name varchar(255) NOT NULL, run_on timestamp NOT NULL)`,
    );
    const ran = await runMigrations(client);
    const pending = migrationNames(folder).filter((name) => !ran.has(name));
    const [first = ''] = pending;
    const later = migrationNames(folder).find(
      (name) => first !== '' && name > first && ran.has(name),
    );
    if (later !== undefined)
      throw new Error(`migration ${first} has not run, and ${later} after it has`);
    for (const name of pending) {
      await runOne(client, await readMigration(name, folder));
      onRan(name);
    }
  } finally {
    await client.end();
  }
}

async function runOne(
  client: pg.Client,
  { name, up, statements, isConcurrent }: MigrationFile,
): Promise<void> {
  const record = () =>
    client.query(`INSERT INTO ${migrationTable} (name, run_on) VALUES ($1, now())`, [name]);
  if (isConcurrent) {
    await runConcurrently(client, statements);
    await record();
    return;
  }
  await client.query('BEGIN');
  try {
    await client.query(up);
    await record();
    await client.query('COMMIT');
  } catch (error) {
    // If the connection is lost, its transaction has ended.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * Runs statements one by one outside of a transaction. They wait for older transactions without
 * blocking other statements, so they have no timeout. Drops an index first that an earlier attempt
 * left invalid.
 */
async function runConcurrently(client: pg.Client, statements: readonly string[]): Promise<void> {
  await client.query('SET lock_timeout = 0');
  for (const statement of statements) {
    const index = /^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?([\w."]+) ON/i.exec(
      statement,
    )?.[1];
    if (index !== undefined) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`);
    await client.query(statement);
  }
  await client.query('RESET lock_timeout');
}

/** Returns the names of this version's migrations that the database lacks. Runs nothing. */
export async function pendingMigrations(databaseUrl: string, folder?: string): Promise<string[]> {
  const client = await connect(databaseUrl);
  try {
    const ran = await runMigrations(client);
    return migrationNames(folder).filter((name) => !ran.has(name));
  } finally {
    await client.end();
  }
}

/** Returns the names of the migrations that a database contains. Empty if the table is missing. */
async function runMigrations(client: pg.Client): Promise<Set<string>> {
  try {
    return new Set(await query(client).column<string>(`SELECT name FROM ${migrationTable}`));
  } catch (error) {
    if (isUndefinedTable(error)) return new Set();
    throw error;
  }
}

/**
 * Opens a connection outside of any pool. `options` are settings of its session, in the syntax of
 * PostgreSQL's command line.
 */
export async function connect(
  databaseUrl: string,
  settings: { options?: string } = {},
): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: connectionUrl(databaseUrl),
    application_name: 'carillon migrate',
    connectionTimeoutMillis: 5000,
    ...settings,
  });
  // The next statement reports the error of a lost connection.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Minimum rows of a table to analyze. For smaller tables a wrong plan costs little. */
const minRows = 25;
/**
 * A table is analyzed if it has grown by this factor since its last statistics. Autovacuum analyzes
 * after smaller growth.
 */
const growth = 10;
/** Maximum tables of one call. PostgreSQL reads a sample of each, which limits the time. */
const tablesAtOnce = 10;

/**
 * Analyzes our tables and pg-boss's tables that have at least 25 rows, and have grown tenfold since
 * PostgreSQL last counted them or were never counted. Returns their number. Without current
 * statistics all indexes look equally good for a condition of one row, and prepared statements keep
 * a plan that reads all rows of an app or a queue
 * (develop/decisions.md#why-new-tables-are-analyzed-at-once). Skips tables that are being analyzed,
 * and tables of another owner.
 */
export async function analyzeGrownTables(db: Handle): Promise<number> {
  // `reltuples` is -1 before the first ANALYZE.
  const tables = await query(db).column<string>(
    `SELECT format('%I.%I', s.schemaname, s.relname) AS name
       FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
      WHERE s.schemaname IN (current_schema(), 'pgboss') AND pg_has_role(c.relowner, 'USAGE')
        AND s.n_live_tup >= $1 AND s.n_live_tup >= $2 * c.reltuples
      ORDER BY s.n_live_tup LIMIT $3`,
    [minRows, growth, tablesAtOnce],
  );
  for (const table of tables) await db.query(`ANALYZE (SKIP_LOCKED) ${table}`);
  return tables.length;
}
