import { connectionUrl } from '../config/database-url.ts';
import {
  aloneInMigrating,
  connect,
  defaultPatience,
  type MigrateOptions,
  migrateTables,
  pendingMigrations,
  retryLocks,
} from '../db/schema/migrate.ts';
import { queueNames } from './jobs.ts';
import { queueSchemaVersion, queueSettings } from './settings.ts';

/**
 * Migrates a database: our tables, pg-boss's schema, and the queues. Returns the names of what it ran; an empty list when all
 * was there. Several processes may run it at once. Waits for locks as `migrateTables` does.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const ran = await migrateTables(databaseUrl, options);
  const queues = await aloneInMigrating(databaseUrl, options, () =>
    retryLocks(options, () => migrateQueues(databaseUrl, options)),
  );
  return [...ran, ...queues];
}

async function migrateQueues(databaseUrl: string, options: MigrateOptions): Promise<string[]> {
  if ((await pendingQueues(databaseUrl)).length === 0) return [];
  const { lockTimeoutMs } = { ...defaultPatience, ...options };
  // Loaded here, since `npm start` keeps the modules of this file.
  const { PgBoss } = await import('pg-boss');
  const boss = new PgBoss({
    connectionString: connectionUrl(databaseUrl),
    schema: 'pgboss',
    schedule: false,
    supervise: false,
    max: 2,
    options: `-c lock_timeout=${lockTimeoutMs}`,
  });
  boss.on('error', () => undefined);
  const ran: string[] = [];
  try {
    await boss.start();
    const existing = new Set((await boss.getQueues()).map((queue) => queue.name));
    for (const name of queueNames) {
      if (existing.has(name)) continue;
      await boss.createQueue(name, { policy: 'standard', ...queueSettings });
      ran.push(`queue ${name}`);
    }
  } finally {
    await boss.stop({ graceful: false });
  }
  return ran;
}

/** Name of pg-boss's own schema in the list of pending changes. */
const queueSchema = 'the queue schema';

/** Returns the names of what `migrate` would run; empty when the database is ready. */
export async function pendingChanges(databaseUrl: string): Promise<string[]> {
  return [...(await pendingMigrations(databaseUrl)), ...(await pendingQueues(databaseUrl))];
}

/** Returns the queues that `migrate` would create. */
export async function pendingQueues(databaseUrl: string): Promise<string[]> {
  const client = await connect(databaseUrl);
  try {
    const { rows: schema } = await client.query<{ exists: boolean }>(
      `SELECT to_regclass('pgboss.version') IS NOT NULL AS exists`,
    );
    if (!schema[0]?.exists) return [queueSchema, ...queueNames.map(asChange)];
    const { rows } = await client.query<{ version: number; names: string[] }>(
      `SELECT (SELECT max(version) FROM pgboss.version)::int AS version,
              (SELECT coalesce(array_agg(name), '{}') FROM pgboss.queue) AS names`,
    );
    const { version = 0, names = [] } = rows[0] ?? {};
    const missing = queueNames.filter((name) => !names.includes(name)).map(asChange);
    return version < queueSchemaVersion ? [queueSchema, ...missing] : missing;
  } finally {
    await client.end();
  }
}

const asChange = (name: string) => `queue ${name}`;
