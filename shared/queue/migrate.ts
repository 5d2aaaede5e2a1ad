import { PgBoss } from 'pg-boss';
import { connectionUrl } from '../config/database-url.ts';
import { migrateTables, pendingMigrations } from '../db/migrate.ts';
import { queueNames } from './jobs.ts';
import { queueSettings } from './settings.ts';

/**
 * Migrates a database: our tables, pg-boss's schema, and the queues. Returns the names of what it ran; an empty list when all
 * was there. Several processes may run it at once.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const ran = await migrateTables(databaseUrl);
  const boss = new PgBoss({
    connectionString: connectionUrl(databaseUrl),
    schema: 'pgboss',
    schedule: false,
    supervise: false,
    max: 2,
  });
  boss.on('error', () => undefined);
  await boss.start();
  try {
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

/** Returns the names of what `migrate` would run; empty when the database is ready. */
export async function pendingChanges(databaseUrl: string): Promise<string[]> {
  const pending = await pendingMigrations(databaseUrl);
  if (pending.length > 0) return pending;
  const boss = new PgBoss({
    connectionString: connectionUrl(databaseUrl),
    schema: 'pgboss',
    migrate: false,
    schedule: false,
    supervise: false,
    max: 1,
  });
  boss.on('error', () => undefined);
  try {
    await boss.start();
    const existing = new Set((await boss.getQueues()).map((queue) => queue.name));
    return queueNames.filter((name) => !existing.has(name)).map((name) => `queue ${name}`);
  } catch {
    return ['the queue schema'];
  } finally {
    await boss.stop({ graceful: false }).catch(() => undefined);
  }
}
