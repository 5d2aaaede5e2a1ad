import { PgBoss } from 'pg-boss';
import { connectionUrl } from '../config/environment.ts';
import type { Handle } from '../db/pool.ts';
import {
  aloneInMigrating,
  connect,
  defaultPatience,
  type MigrateOptions,
  migrateTables,
  pendingMigrations,
  retryLocks,
} from '../db/schema/migrate.ts';
import { queueNames, queueSchemaVersion, queueSettings } from './jobs.ts';

/**
 * Migrates a database: our tables, pg-boss's schema and the queues. Returns the names of the
 * changes that it made. Several processes may run it at the same time. Waits for locks like
 * `migrateTables`.
 */
export async function migrate(
  databaseUrl: string,
  options: MigrateOptions = {},
): Promise<string[]> {
  const ran = await migrateTables(databaseUrl, options);
  const queues = await aloneInMigrating(databaseUrl, options, () =>
    retryLocks(options, () => migrateQueues(databaseUrl, options)),
  );
  return [...ran, ...queues];
}

function openBoss(options: ConstructorParameters<typeof PgBoss>[0] & object): PgBoss {
  const boss = new PgBoss({ schema: 'pgboss', schedule: false, supervise: false, ...options });
  boss.on('error', () => undefined);
  return boss;
}

async function migrateQueues(databaseUrl: string, options: MigrateOptions): Promise<string[]> {
  if ((await pendingQueues(databaseUrl)).length === 0) return [];
  const { lockTimeoutMs } = { ...defaultPatience, ...options };
  const boss = openBoss({
    connectionString: connectionUrl(databaseUrl),
    max: 2,
    options: `-c lock_timeout=${lockTimeoutMs}`,
  });
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

/** Queue schema of a database: the version of pg-boss's tables, and the names of its queues. */
export interface QueueSchema {
  version: number;
  names: string[];
}

/** Reads the queue schema of a database. Returns undefined without pg-boss's tables. */
export async function readQueueSchema(db: Pick<Handle, 'query'>): Promise<QueueSchema | undefined> {
  const boss = openBoss({ db: { executeSql: (text, values) => db.query(text, values) } });
  if (!(await boss.isInstalled())) return undefined;
  const [version, queues] = [await boss.schemaVersion(), await boss.getQueues()];
  return { version: version ?? 0, names: queues.map(({ name }) => name) };
}

/** Queue schema that processes require to start. */
export const queueNeeds = {
  read: readQueueSchema,
  schemaVersion: queueSchemaVersion,
  names: queueNames,
} as const;

/** Name of pg-boss's schema in the list of pending changes. */
const queueSchema = 'the queue schema';

/** Returns the names of the changes that `migrate` would make. Empty if the database is ready. */
export async function pendingChanges(databaseUrl: string): Promise<string[]> {
  return [...(await pendingMigrations(databaseUrl)), ...(await pendingQueues(databaseUrl))];
}

/** Returns the queues that `migrate` would create. */
export async function pendingQueues(databaseUrl: string): Promise<string[]> {
  const client = await connect(databaseUrl);
  try {
    const { version, names } = (await readQueueSchema(client)) ?? { version: 0, names: [] };
    const missing = queueNames
      .filter((name) => !names.includes(name))
      .map((name) => `queue ${name}`);
    return version < queueSchemaVersion ? [queueSchema, ...missing] : missing;
  } finally {
    await client.end();
  }
}
