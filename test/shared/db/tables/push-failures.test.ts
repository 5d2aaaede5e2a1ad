import { expect, test, vi } from 'vitest';
import type { Handle } from '../../../../shared/db/pool.ts';
import { query } from '../../../../shared/db/query.ts';
import { claimFailures } from '../../../../shared/db/tables/push-failures.ts';
import { deleteSurplusFailures } from '../../../../shared/db/tables/pushes.ts';
import { countWaitingForLocks, openTestDatabase } from '../../../support/database.ts';

const { db } = await openTestDatabase({ settings: { deadlock_timeout: '10ms' } });

/** Inserts a finished push with two failures. The one with the lower id is stored last. */
async function aPush(appId: string): Promise<number> {
  const id = await query(db).number(
    `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time,
       expires_at, created_at, finished_at)
     VALUES ($1, 'a push', 'a push', 'done', '{}', 'prod', now(), now(), now(), now()) RETURNING id`,
    [appId],
  );
  await db.query(
    `INSERT INTO push_failure (app_id, push_id, connector, installation, outcome, status, reason)
     SELECT $1, $2, 'fcm', i, 'failed', 400, 'x' FROM unnest(ARRAY[2, 1]) AS i`,
    [appId, id],
  );
  return id;
}

/** Runs `other` in a transaction that waits for the lock of `first`. Then locks `second`. */
async function lockAround<T>(
  values: unknown[],
  [first, second]: [string, string],
  other: (tx: Handle) => Promise<T>,
): Promise<T> {
  const { result } = await db.transaction(async (tx) => {
    await tx.query(first, values);
    const result = db.transaction(other);
    result.catch(() => undefined);
    await vi.waitUntil(async () => (await countWaitingForLocks(db)) === 1, { timeout: 20_000 });
    await tx.query(second, values);
    return { result };
  });
  return result;
}

const lockFailure = (installation: number) =>
  `SELECT FROM push_failure WHERE app_id = $1 AND push_id = $2 AND installation = ${installation}
     FOR UPDATE`;

test('a redrive locks in the order in which an old push is deleted', async () => {
  const appId = 'deleted';
  const id = await aPush(appId);
  const claimed = await lockAround(
    [appId, id],
    [
      'SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR UPDATE',
      'DELETE FROM push_failure WHERE app_id = $1 AND push_id = $2',
    ],
    (tx) => claimFailures(tx, { appId, id: id + 1, failedId: id }, [1, 2]),
  );
  expect(claimed).toEqual([]);
});

test('the deletion of surplus failures locks them in the order of a redrive', async () => {
  const appId = 'surplus';
  const id = await aPush(appId);
  await db.query('INSERT INTO failure_count (app_id, push_id, n) VALUES ($1, $2, 2)', [appId, id]);
  // The table is read in the order in which the rows are stored.
  await db.query('ANALYZE push_failure');
  const deleted = await lockAround([appId, id], [lockFailure(1), lockFailure(2)], (tx) =>
    deleteSurplusFailures(tx, { keptPerApp: 0 }),
  );
  expect(deleted).toBe(2);
});
