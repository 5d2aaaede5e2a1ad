import { rmSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import type { EmbeddedPostgres } from '../../ops/local/postgres/server.ts';
import { startEmbeddedPostgres } from '../../ops/local/postgres/server.ts';
import { migrate } from '../../shared/queue/migrate.ts';

/** Where the workers find the run's PostgreSQL. */
export interface TestPostgres {
  /** Address of a database for administration. */
  readonly adminUrl: string;
  /** Address of a test database, with `DATABASE` in place of its name. */
  readonly urlPattern: string;
  /** Name of the migrated database that is cloned. */
  readonly template: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    postgres: TestPostgres;
  }
}

const TEMPLATE = 'carillon_template';

/**
 * Starts one PostgreSQL for the whole run, in a temporary directory, and migrates the database that every test file
 * clones. It needs nothing that is installed, no fixed port and no fixed folder: two runs may go on at the same time.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const parentDir = await mkdtemp(join(tmpdir(), 'carillon-test-'));
  // Opened for the user who runs the server when we are root.
  await chmod(parentDir, 0o755);
  const server = await startEmbeddedPostgres({
    dataDir: join(parentDir, 'data'),
    memoryMb: 2048,
    durable: false,
    // Nobody copies this server: what a transaction makes anew, indexes above all, is not logged.
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
    adminUrl: server.urlFor('postgres'),
    urlPattern: server.urlFor('DATABASE'),
    template: TEMPLATE,
  });
  return stop;
}

async function makeTemplate(server: EmbeddedPostgres): Promise<void> {
  const admin = new Client({ connectionString: server.urlFor('postgres') });
  await admin.connect();
  try {
    await admin.query(`CREATE DATABASE ${TEMPLATE}`);
    await migrate(server.urlFor(TEMPLATE));
    // A database with connections cannot be cloned.
    await admin.query(`ALTER DATABASE ${TEMPLATE} WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`);
    await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
      TEMPLATE,
    ]);
  } finally {
    await admin.end();
  }
}

/** Cleans up where nothing may be awaited: Vitest ends within a millisecond of an interrupt, without its teardown. */
function removeAtOnce(server: EmbeddedPostgres, parentDir: string): void {
  try {
    process.kill(server.pid, 'SIGQUIT');
    // Its files are closed within this time; they are of no use to anybody.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
    rmSync(server.socketDir, { recursive: true, force: true });
    rmSync(parentDir, { recursive: true, force: true, maxRetries: 3, retryDelay: 100 });
  } catch {
    // The server ended already, or the system's own cleaning takes the rest.
  }
}
