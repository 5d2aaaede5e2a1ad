import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { countTokensLocked, insertToken } from '../../../../shared/db/tables/console.ts';
import { openTestDatabase, runDuring } from '../../../support/database.ts';

const { db } = await openTestDatabase();

test('a call that creates a token counts the token of a concurrent call', async () => {
  const counted = await runDuring(
    db,
    async (tx) => {
      expect(await countTokensLocked(tx)).toBe(0);
      await insertToken(tx, {
        name: 'a',
        role: 'viewer',
        apps: null,
        createdBy: 'b',
        createdAt: new Date(0),
        expiresAt: null,
        digest: randomBytes(32),
      });
    },
    countTokensLocked,
  );
  expect(counted).toBe(1);
});
