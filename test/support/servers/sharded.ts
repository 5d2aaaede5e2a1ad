import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { distribute } from '../../../ops/cli/commands/service/distribution.ts';
import { migrate } from '../../../shared/queue/migrate.ts';

/** Databases of a test run on Citus servers that were set up by hand (develop/testing.md). */
export interface ShardedServers {
  /** Prefix of all database names of the run. */
  prefix: string;
  template: string;
  /** Drops the databases of the run. */
  dropAll(): Promise<void>;
}

/**
 * Creates a migrated template database that is sharded over the servers. `adminUrls` lists the
 * coordinator first, then the workers. Each URL is for a superuser and an existing database. A
 * clone of the template on every server is sharded again, because Citus connects to the database of
 * the same name.
 */
export async function prepareShardedServers(adminUrls: readonly string[]): Promise<ShardedServers> {
  const prefix = `carillon_${randomBytes(4).toString('hex')}_`;
  const template = `${prefix}template`;
  const dropAll = async () => {
    for (const url of adminUrls) await withClient(url, (client) => dropDatabases(client, prefix));
  };
  try {
    await onEach(adminUrls, `CREATE DATABASE ${template}`);
    await onEach(
      adminUrls.map((url) => databaseUrl(url, template)),
      'CREATE EXTENSION citus',
    );
    await shardTables(adminUrls, template);
    // PostgreSQL cannot clone a database that has connections, and Citus keeps a connection in each
    // database.
    await onEach(
      adminUrls,
      `ALTER DATABASE ${template} WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`,
    );
    await onEach(
      adminUrls,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${template}'`,
    );
  } catch (error) {
    await dropAll();
    throw error;
  }
  return { prefix, template, dropAll };
}

async function shardTables(
  [coordinator = '', ...workers]: readonly string[],
  template: string,
): Promise<void> {
  const url = databaseUrl(coordinator, template);
  await withClient(url, async (client) => {
    const { hostname, port } = new URL(coordinator);
    await client.query('SELECT citus_set_coordinator_host($1, $2)', [hostname, Number(port)]);
    for (const worker of workers.map((text) => new URL(text)))
      await client.query('SELECT citus_add_node($1, $2)', [worker.hostname, Number(worker.port)]);
  });
  await migrate(url);
  await distribute(url, { isPlan: false });
}

/** Returns the URL of another database on the same server. */
export function databaseUrl(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

async function dropDatabases(client: Client, prefix: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    'SELECT datname AS name FROM pg_database WHERE starts_with(datname, $1)',
    [prefix],
  );
  for (const { name } of rows) {
    await client.query(`ALTER DATABASE ${name} IS_TEMPLATE false`);
    await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
  }
}

/** Runs a statement on each server, one after the other. */
export async function onEach(urls: readonly string[], statement: string): Promise<void> {
  for (const url of urls) await withClient(url, (client) => client.query(statement));
}

async function withClient<T>(
  connectionString: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
