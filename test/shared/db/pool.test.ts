import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'test', maxConnections: 1 });
});
afterAll(async () => {
  await db?.close();
  await database?.drop();
});

test('a transaction whose connection is lost fails, and the next statement works', async () => {
  const other = new Database({ url: database.url, applicationName: 'other', maxConnections: 1 });
  const lost = db.transaction(async (tx) => {
    await other.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'test' AND datname = current_database()`,
    );
    await tx.query('SELECT 1');
  });
  await expect(lost).rejects.toThrow();
  // The pool has one connection: if the lost one kept its place, this query would never end.
  expect((await db.query<{ n: number }>('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  await other.close();
});
