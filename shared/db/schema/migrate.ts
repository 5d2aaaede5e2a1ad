import { basename } from 'node:path';
import pg from 'pg';
import { sleep } from '../../clock.ts';
import { connectionUrl } from '../../config/database-url.ts';
import { isLockTimeout, isUndefinedTable } from '../limits/database-errors.ts';
import { migrationFolder, migrationNames, migrationTable, readMigration } from './files.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Key of the advisory lock; node-pg-migrate's own, so that earlier versions wait as well. */
const lockKey = '7241865325823964';
const lockPollMs = 500;

/** How a migration waits for the locks of its tables. */
export interface LockPatience {
  /** Longest wait in the queue of a lock: all later statements on the table wait behind it. */
  lockTimeoutMs: number;
  /** Pause after a wait that was given up, in which those statements run. */
  pauseMs: number;
  /** Attempts before the migration fails. */
  attempts: number;
}

export const defaultPatience: LockPatience = { lockTimeoutMs: 3000, pauseMs: 3000, attempts: 100 };

export interface MigrateOptions extends Partial<LockPatience> {
  /** Reports that the migrations wait: for another process that migrates, or for the lock of a table. */
  onWait?: (reason: string) => void;
  /** Folder of the migrations; tests have their own. */
  folder?: string;
}

/**
 * Runs the pending migrations, each in its own transaction, and returns their names. An advisory lock lets one process
 * migrate at a time. A migration that does not get the lock of a table within `lockTimeoutMs` is rolled back and tried
 * again. Rejects with PostgreSQL's error after the last attempt; the migrations before it stay.
 */
export function migrateTables(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  return aloneInMigrating(databaseUrl, options, async () => {
    const ran: string[] = [];
    await retryLocks(options, async () => {
      const before = await pendingMigrations(databaseUrl, options.folder);
      try {
        await runPending(databaseUrl, options);
      } finally {
        const after = new Set(await pendingMigrations(databaseUrl, options.folder));
        ran.push(...before.filter((name) => !after.has(name)));
      }
    });
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
    // Polled, since CREATE INDEX CONCURRENTLY would wait for the snapshot of a process that waits for the lock.
    for (let waits = 0; !(await takesLock(client)); waits += 1) {
      if (waits === 0) onWait?.('another process migrates the database');
      await sleep(lockPollMs);
    }
    return await work();
  } finally {
    await client.end();
  }
}

async function takesLock(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
    lockKey,
  ]);
  return rows[0]?.taken === true;
}

/** Repeats `work` while it fails because a lock was not free. */
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

async function runPending(databaseUrl: string, options: MigrateOptions): Promise<void> {
  const { lockTimeoutMs } = { ...defaultPatience, ...options };
  // Loaded here, since most starts of a service have nothing to migrate.
  const { runner } = await import('node-pg-migrate');
  // Our own connection: the library does not wait until one of its own is closed.
  const dbClient = await connect(databaseUrl, { options: `-c lock_timeout=${lockTimeoutMs}` });
  try {
    await runner({
      dir: options.folder ?? migrationFolder,
      migrationsTable: migrationTable,
      checkOrder: true,
      ignorePattern: '.*\\.(?!sql$).*',
      logger: quiet,
      dbClient,
      direction: 'up',
      singleTransaction: false,
      noLock: true,
      migrationLoaderStrategies: [{ extensions: ['.sql'], loader: loadFiles(options.folder) }],
    });
  } finally {
    await dbClient.end();
  }
}

const loadFiles = (folder?: string) => (paths: string[]) =>
  Promise.all(
    paths.map(async (path) => {
      const { up, statements, isConcurrent } = await readMigration(basename(path, '.sql'), folder);
      return {
        id: path,
        filePaths: [path],
        actions: {
          up: (pgm: Builder) => (isConcurrent ? runConcurrently(pgm, statements) : pgm.sql(up)),
          down: false as const,
        },
      };
    }),
  );

interface Builder {
  sql(text: string): void;
  noTransaction(): void;
}

/**
 * Runs statements one by one outside of a transaction. They wait for older transactions without blocking anyone, so they
 * have no time limit. An index that an earlier attempt left invalid is dropped first.
 */
function runConcurrently(pgm: Builder, statements: readonly string[]): void {
  pgm.noTransaction();
  pgm.sql('SET lock_timeout = 0');
  for (const statement of statements) {
    const index = /^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?([\w."]+) ON/i.exec(
      statement,
    )?.[1];
    if (index !== undefined) pgm.sql(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`);
    pgm.sql(statement);
  }
  pgm.sql('RESET lock_timeout');
}

/** Returns the names of the migrations of this version that the database lacks, without running them. */
export async function pendingMigrations(databaseUrl: string, folder?: string): Promise<string[]> {
  const client = await connect(databaseUrl);
  try {
    const ran = await runMigrations(client);
    return migrationNames(folder).filter((name) => !ran.has(name));
  } finally {
    await client.end();
  }
}

/** Returns the names of the migrations that a database has; none where the table is missing. */
async function runMigrations(client: pg.Client): Promise<Set<string>> {
  try {
    const { rows } = await client.query<{ name: string }>(`SELECT name FROM ${migrationTable}`);
    return new Set(rows.map(({ name }) => name));
  } catch (error) {
    if (isUndefinedTable(error)) return new Set();
    throw error;
  }
}

/** Opens a connection that belongs to no pool. `options`: settings of its session, as PostgreSQL's command line has them. */
export async function connect(databaseUrl: string, settings: { options?: string } = {}): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: connectionUrl(databaseUrl),
    application_name: 'carillon migrate',
    connectionTimeoutMillis: 5000,
    ...settings,
  });
  // The error of a lost connection reaches the next statement.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
