import { expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db, url } = await openTestDatabase({ maxConnections: 1 });

test('a transaction whose connection is lost fails, and the next statement works', async () => {
  const other = new Database({ url, applicationName: 'other', maxConnections: 1 });
  const lost = db.transaction(async (tx) => {
    await other.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'test' AND datname = current_database()`,
    );
    await tx.query('SELECT 1');
  });
  await expect(lost).rejects.toThrow();
  // The pool has one connection. If the lost connection kept its place, this query would never end.
  expect((await db.query<{ n: number }>('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  await other.close();
});
