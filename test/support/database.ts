import { randomBytes } from 'node:crypto';
import { afterAll, inject, vi } from 'vitest';
import { Database, type DatabaseOptions, type Handle } from '../../shared/db/pool.ts';
// Declares the type of `inject('postgres')`.
import type {} from './global-setup.ts';
import { onEach } from './servers/sharded.ts';

/** Database of a test file. */
export interface TestDatabase {
  readonly url: string;
  /** Drops the database, even if it has open connections. */
  drop(): Promise<void>;
}

/**
 * Creates a migrated database by cloning the template. Call it in `beforeAll` of a test file. A
 * database that is not dropped exists until the end of the run.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { adminUrls, template } = inject('postgres');
  // FILE_COPY is faster than the default strategy, which copies through the log.
  return await create('test', adminUrls, ` TEMPLATE ${template} STRATEGY FILE_COPY`);
}

/** Creates a database with connections for the tests of a file. Both are closed after the tests. */
export async function openTestDatabase(
  options: Partial<DatabaseOptions> = {},
): Promise<{ db: Database; url: string }> {
  const { url, drop } = await createTestDatabase();
  const db = new Database({ url, applicationName: 'test', ...options });
  afterAll(async () => {
    await db.close();
    await drop();
  });
  return { db, url };
}

/**
 * True if the databases are sharded over several servers (develop/testing.md). Then tests of
 * features that do not support this are skipped.
 */
export const areDatabasesSharded = (): boolean => inject('postgres').adminUrls.length > 1;

/** Creates a database without tables. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return create('empty', inject('postgres').adminUrls.slice(0, 1), '');
}

async function create(
  kind: string,
  adminUrls: readonly string[],
  options: string,
): Promise<TestDatabase> {
  const { urlPattern, prefix } = inject('postgres');
  const name = `${prefix}${kind}_${randomBytes(8).toString('hex')}`;
  await onEach(adminUrls, `CREATE DATABASE ${name}${options}`);
  return {
    url: urlPattern.replace('DATABASE', name),
    drop: () => onEach(adminUrls, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/**
 * Counts the connections to the database of `db`, on all its servers, that wait for a lock. Call it
 * outside a transaction, because a transaction sees only one moment.
 */
export async function countWaitingForLocks(db: Handle): Promise<number> {
  const waiting = `SELECT count(*)::int AS n FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  const { rows } = await db.query<{ n: number }>(
    areDatabasesSharded()
      ? `SELECT sum(result::int)::int AS n FROM run_command_on_all_nodes($$${waiting}$$)`
      : waiting,
  );
  return rows[0]?.n ?? 0;
}

/**
 * Runs `first` in a transaction, and `second` in another one that begins before the first one ends:
 * it has then ended, or waits for a lock. Returns the result of `second`.
 */
export async function runDuring<T>(
  db: Database,
  first: (tx: Handle) => Promise<unknown>,
  second: (tx: Handle) => Promise<T>,
): Promise<T> {
  const { result } = await db.transaction(async (tx) => {
    await first(tx);
    const result = db.transaction(second);
    const isWaiting = async () => (await countWaitingForLocks(db)) === 1;
    await Promise.race([result, vi.waitUntil(isWaiting, { timeout: 20_000 })]);
    return { result };
  });
  return result;
}
