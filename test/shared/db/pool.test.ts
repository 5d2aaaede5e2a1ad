import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

describe('a scan', () => {
  const scan = () =>
    db.scan<{ i: number }>('SELECT i FROM generate_series(1, 100) AS i', [], { rows: 10, timeoutMs: 5000 });

  test('reads all pages', async () => {
    const read: number[] = [];
    for await (const page of scan()) read.push(...page.map((row) => row.i));
    expect(read).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  });

  test('that ends early returns its connection', async () => {
    for await (const page of scan()) {
      expect(page).toHaveLength(10);
      break;
    }
    // The pool has one connection: without it, this query would never end.
    expect((await db.query<{ n: number }>('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  });

  test('whose connection is lost fails, and the next one works', async () => {
    const other = new Database({ url: database.url, applicationName: 'other', maxConnections: 1 });
    const lost = async () => {
      for await (const _ of scan())
        await other.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'test' AND datname = current_database()`,
        );
    };
    await expect(lost()).rejects.toThrow();
    expect((await db.query<{ n: number }>('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    await other.close();
  });
});
