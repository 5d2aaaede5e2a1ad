import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database, type Handle } from '../../../shared/db/pool.ts';
import { analyzeGrownTables } from '../../../shared/db/schema/migrate.ts';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';

describe('a table that has grown since PostgreSQL last counted its rows', () => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    db = new Database({ url: database.url, applicationName: 'test' });
    // Autovacuum is off, so that only this test decides when the table is analyzed.
    await db.query('CREATE TABLE grown (id int) WITH (autovacuum_enabled = false)');
  });
  afterAll(async () => {
    await db?.close();
    await database?.drop();
  });

  /** Adds rows and reports them to the statistics immediately. */
  const add = async (connection: Handle, count: number): Promise<void> => {
    await connection.query('INSERT INTO grown SELECT generate_series(1, $1::int)', [count]);
    // This takes effect when the connection is idle, which is before its next statement.
    await connection.query('SELECT pg_stat_force_next_flush()');
  };

  /** Returns the number of rows with which PostgreSQL plans, or -1 before it has counted them. */
  const countedRows = async (): Promise<number | undefined> => {
    const { rows } = await db.query<{ reltuples: number }>(
      "SELECT reltuples FROM pg_class WHERE relname = 'grown'",
    );
    return rows[0]?.reltuples;
  };

  test('is analyzed from 25 rows on, and again when it has ten times as many', () =>
    db.withConnection(async (connection) => {
      const counted: unknown[] = [];
      for (const rows of [24, 6, 200, 100]) {
        await add(connection, rows);
        await analyzeGrownTables(db);
        counted.push(await countedRows());
      }
      expect(counted).toEqual([-1, 30, 30, 330]);
    }));

  test('is skipped in a schema of other software', () =>
    db.withConnection(async (connection) => {
      await connection.query('CREATE SCHEMA other');
      await connection.query('CREATE TABLE other.rows AS SELECT generate_series(1, 100) AS id');
      await connection.query('SELECT pg_stat_force_next_flush()');
      await connection.query('SELECT 1');
      expect(await analyzeGrownTables(db)).toBe(0);
    }));

  test('is skipped without waiting while another session analyzes it', () =>
    db.withConnection(async (connection) => {
      await add(connection, 4000);
      await db.transaction(async (other) => {
        await other.query('LOCK TABLE grown IN SHARE UPDATE EXCLUSIVE MODE');
        expect(await analyzeGrownTables(db)).toBe(1);
      });
      expect(await countedRows()).toBe(330);
      await analyzeGrownTables(db);
      expect(await countedRows()).toBe(4330);
    }));
});
