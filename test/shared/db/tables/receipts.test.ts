import { expect, test } from 'vitest';
import { query } from '../../../../shared/db/query.ts';
import { keepFailedReceipt } from '../../../../shared/db/tables/receipts.ts';
import { openTestDatabase } from '../../../support/database.ts';

const { db } = await openTestDatabase();

test('a refused call that is stored stays stored when it is repeated at the limit', async () => {
  const appId = 'an app';
  const keep = (digest: string, reason: string) =>
    keepFailedReceipt(
      db,
      appId,
      { connector: 'fcm', digest, status: 400, reason, bytes: 1, call: Buffer.alloc(1) },
      2,
    );
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
