import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { connectionUrl } from '../config/database-url.ts';

const directory = fileURLToPath(new URL('./migrations', import.meta.url));
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const settings = {
  dir: directory,
  migrationsTable: 'carillon_migration',
  checkOrder: true,
  ignorePattern: '.*\\.(?!sql$).*',
  logger: quiet,
} as const;

/**
 * Runs the pending migrations and returns their names. Processes that start at the same time wait for each other
 * (advisory lock).
 */
export async function migrateTables(databaseUrl: string): Promise<string[]> {
  const ran = await runner({
    ...settings,
    databaseUrl: connectionUrl(databaseUrl),
    direction: 'up',
    singleTransaction: true,
  });
  return ran.map((migration) => migration.name);
}

/** Returns the names of the pending migrations without running them. */
export async function pendingMigrations(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({
    connectionString: connectionUrl(databaseUrl),
    connectionTimeoutMillis: 5000,
  });
  await client.connect();
  try {
    const pending = await runner({
      ...settings,
      dbClient: client,
      direction: 'up',
      dryRun: true,
      noLock: true,
    });
    return pending.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}
