import { type Effect, effectOf } from './effects.ts';
import { connect, pendingMigrations, readMigration } from './migrate.ts';

/** What one statement of a pending migration does. */
export interface PlannedStatement {
  statement: string;
  /** Table that the statement locks. Absent if the table is new. */
  table?: string;
  lock: Effect['lock'];
  cost: Effect['cost'];
  /** Rows of the table, as estimated by PostgreSQL, and its size in bytes. */
  rows?: number;
  bytes?: number;
}

/** A pending migration. */
export interface PlannedMigration {
  name: string;
  /** True if it runs outside of a transaction. Reads and writes continue meanwhile. */
  isConcurrent: boolean;
  statements: PlannedStatement[];
}

/** Returns the pending migrations with their locks and the sizes of their tables. Runs nothing. */
export async function planMigrations(
  databaseUrl: string,
  folder?: string,
): Promise<PlannedMigration[]> {
  const pending = await pendingMigrations(databaseUrl, folder);
  const migrations = await Promise.all(pending.map((name) => readMigration(name, folder)));
  const sizes = await readSizes(databaseUrl);
  return migrations.map(({ name, isConcurrent, statements }) => {
    const created = new Set<string>();
    return {
      name,
      isConcurrent,
      statements: statements.map((text) => planned(text, created, sizes)),
    };
  });
}

interface Size {
  rows: number;
  bytes: number;
}

function planned(
  statement: string,
  created: Set<string>,
  sizes: ReadonlyMap<string, Size>,
): PlannedStatement {
  const { table, lock, cost, creates } = effectOf(statement);
  if (creates !== undefined) created.add(creates);
  // A table that the same transaction has created blocks no one.
  if (table === undefined || created.has(table))
    return { statement, lock: 'none', cost: 'catalogue' };
  return { statement, table, lock, cost, ...sizes.get(table) };
}

async function readSizes(databaseUrl: string): Promise<Map<string, Size>> {
  const client = await connect(databaseUrl);
  try {
    const { rows } = await client.query<{ name: string; rows: number; bytes: number }>(
      `SELECT relname AS name, greatest(reltuples, 0)::float8 AS rows,
        pg_table_size(oid)::float8 AS bytes
         FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`,
    );
    return new Map(rows.map(({ name, ...size }) => [name, size]));
  } finally {
    await client.end();
  }
}
