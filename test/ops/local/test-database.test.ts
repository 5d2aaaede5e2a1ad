import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

describe('createTestDatabase', () => {
  const databases: TestDatabase[] = [];
  beforeAll(async () => {
    databases.push(
      ...(await Promise.all([createTestDatabase(), createTestDatabase(), createTestDatabase()])),
    );
  });
  afterAll(() => Promise.all(databases.map((database) => database.drop())));

  test('creates a separate migrated database for every caller', async () => {
    expect(new Set(databases.map((database) => database.url)).size).toBe(3);
    for (const { url } of databases) {
      const client = new Client({ connectionString: url });
      await client.connect();
      const tables = await client.query(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = 'public'",
      );
      await client.end();
      expect(tables.rowCount).toBeGreaterThan(0);
    }
  });
});
