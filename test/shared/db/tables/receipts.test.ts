import { expect, test } from 'vitest';
import type { Handle } from '../../../../shared/db/pool.ts';
import { query } from '../../../../shared/db/query.ts';
import { keepFailedReceipt } from '../../../../shared/db/tables/receipts.ts';
import { openTestDatabase, runDuring } from '../../../support/database.ts';

const { db } = await openTestDatabase();

/** Stores a refused call of an app that may have two. */
const keepIn = (tx: Handle, appId: string, digest: string, reason = '') =>
  keepFailedReceipt(
    tx,
    appId,
    { connector: 'fcm', digest, status: 400, reason, bytes: 1, call: Buffer.alloc(1) },
    2,
  );

test('a refused call that is stored stays stored when it is repeated at the limit', async () => {
  const appId = 'an app';
  const keep = (digest: string, reason: string) =>
    db.transaction((tx) => keepIn(tx, appId, digest, reason));
  expect([await keep('a', 'old'), await keep('b', 'old'), await keep('c', 'old')]).toEqual([
    true,
    true,
    false,
  ]);
  expect(await keep('a', 'new')).toBe(true);
  const reasons = await query(db).column<string>(
    'SELECT reason FROM failed_receipt WHERE app_id = $1 ORDER BY digest',
    [appId],
  );
  expect(reasons).toEqual(['new', 'old']);
});

test('concurrent calls do not exceed the limit of refused calls', async () => {
  const appId = 'concurrent';
  expect(await db.transaction((tx) => keepIn(tx, appId, 'a'))).toBe(true);
  const isKept = await runDuring(
    db,
    (tx) => keepIn(tx, appId, 'b'),
    (tx) => keepIn(tx, appId, 'c'),
  );
  expect(isKept).toBe(false);
});
