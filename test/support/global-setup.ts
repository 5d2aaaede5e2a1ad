import { rmSync } from 'node:fs';
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../ops/local/postgres/server.ts';
import { migrate } from '../../shared/queue/migrate.ts';
import { databaseUrl, prepareShardedServers } from './servers/sharded.ts';

/** Access of the test workers to the PostgreSQL of the run. */
export interface TestPostgres {
  /** Admin URLs: a single URL, or the coordinator followed by its workers. */
  readonly adminUrls: readonly string[];
  /** URL of a test database, with `DATABASE` as a placeholder for its name. */
  readonly urlPattern: string;
  /** Name of the migrated template database. */
  readonly template: string;
  /** Prefix of all database names. */
  readonly prefix: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    postgres: TestPostgres;
  }
}

const TEMPLATE = 'carillon_template';

/**
 * Starts one PostgreSQL for the whole run in a temporary directory. Migrates the template database
 * that every test file clones. It needs no installed programs, fixed port or fixed folder, so runs
 * can be concurrent.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = process.env.CARILLON_TEST_CITUS;
  if (servers) return await setUpSharded(project, servers.split(','));
  const parentDir = await mkdtemp(join(await chooseDataDir(), 'carillon-test-'));
  // If root runs the tests, the user who runs the server must be able to enter the folder.
  await chmod(parentDir, 0o755);
  const server = await startEmbeddedPostgres({
    dataDir: join(parentDir, 'data'),
    memoryMb: 2048,
    durable: false,
    // Without replication, new tables and indexes inside a transaction need no log.
    settings: { wal_level: 'minimal', max_wal_senders: '0', wal_compression: 'off' },
  });
  const abandon = () => removeAtOnce(server, parentDir);
  process.once('exit', abandon);
  const stop = async () => {
    process.off('exit', abandon);
    await server.stop('immediate');
    await rm(parentDir, { recursive: true, force: true });
  };
  try {
    await makeTemplate(server);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('postgres', {
    adminUrls: [server.urlFor('postgres')],
    urlPattern: server.urlFor('DATABASE'),
    template: TEMPLATE,
    prefix: '',
  });
  return stop;
}

/**
 * Free bytes that a file system in memory must have. A run uses 0.2 GB, and the log at most 0.5 GB.
 */
const MIN_MEMORY_BYTES = 2 * 1024 ** 3;

/**
 * Returns the folder of the data: in memory if there is enough memory, otherwise among temporary
 * files. Each test file creates and drops a database with 600 files. On ext4, this becomes slow
 * because the inodes of deleted files are searched for minutes.
 */
async function chooseDataDir(): Promise<string> {
  const memoryDir = '/dev/shm';
  const found = await statfs(memoryDir).catch(() => undefined);
  const isTmpfs = found?.type === 0x01021994;
  return isTmpfs && found.bavail * found.bsize >= MIN_MEMORY_BYTES ? memoryDir : tmpdir();
}

/** Runs the tests on a Citus coordinator and workers (develop/testing.md). */
async function setUpSharded(
  project: TestProject,
  adminUrls: readonly string[],
): Promise<() => Promise<void>> {
  const { prefix, template, dropAll } = await prepareShardedServers(adminUrls);
  const urlPattern = databaseUrl(adminUrls[0] ?? '', 'DATABASE');
  project.provide('postgres', { adminUrls, urlPattern, template, prefix });
  return dropAll;
}

async function makeTemplate(server: EmbeddedPostgres): Promise<void> {
  const admin = new Client({ connectionString: server.urlFor('postgres') });
  await admin.connect();
  try {
    await admin.query(`CREATE DATABASE ${TEMPLATE}`);
    await migrate(server.urlFor(TEMPLATE));
    // PostgreSQL cannot clone a database that has connections.
    await admin.query(`ALTER DATABASE ${TEMPLATE} WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`);
    await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
      TEMPLATE,
    ]);
  } finally {
    await admin.end();
  }
}

/**
 * Cleans up synchronously, because Vitest exits immediately after an interrupt and skips the
 * teardown.
 */
function removeAtOnce(server: EmbeddedPostgres, parentDir: string): void {
  try {
    process.kill(server.pid, 'SIGQUIT');
    // Gives the server time to exit.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
    rmSync(server.socketDir, { recursive: true, force: true });
    rmSync(parentDir, { recursive: true, force: true, maxRetries: 3, retryDelay: 100 });
  } catch {
    // The server has already exited, or the system removes its remaining temporary files.
  }
}
