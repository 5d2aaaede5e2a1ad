import { randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import type { Handle } from '../../../../shared/db/pool.ts';
import { query } from '../../../../shared/db/query.ts';
import {
  countTokensLocked,
  deleteToken,
  insertLoginCode,
  insertSession,
  insertToken,
  savePerson,
  spendLoginCode,
} from '../../../../shared/db/tables/console.ts';
import { countWaitingForLocks, openTestDatabase, runDuring } from '../../../support/database.ts';

const { db } = await openTestDatabase({ settings: { deadlock_timeout: '10ms' } });
const now = new Date();
const adminMark = Buffer.alloc(32);

const insertSomeToken = (tx: Handle, name: string) =>
  insertToken(tx, {
    name,
    role: 'viewer',
    apps: null,
    createdBy: 'b',
    createdAt: new Date(0),
    expiresAt: null,
    digest: randomBytes(32),
  });

const logIn = (tx: Handle, tokenId: number | null) =>
  insertSession(tx, {
    digest: randomBytes(32),
    adminMark,
    tokenId,
    address: '',
    agent: '',
    now,
    endsAt: null,
  });

const createCode = (tx: Handle, tokenId: number | null, digest = randomBytes(32)) =>
  insertLoginCode(tx, { digest, adminMark, tokenId, expiresAt: new Date(Date.now() + 60_000) });

const logInPerson = (tx: Handle, subject: string) =>
  savePerson(tx, {
    subject,
    name: subject,
    mail: null,
    role: 'viewer',
    apps: null,
    digest: randomBytes(32),
    now,
  });

test('a call that creates a token counts the token of a concurrent call', async () => {
  const counted = await runDuring(
    db,
    async (tx) => {
      expect(await countTokensLocked(tx)).toBe(0);
      await insertSomeToken(tx, 'a');
    },
    countTokensLocked,
  );
  expect(counted).toBe(1);
});

test.each([
  ['sessions of a token', 20, 'console_session', logIn],
  ['login codes of a token', 10, 'console_login_code', createCode],
])('concurrent calls do not exceed the limit of %s', async (_of, limit, table, add) => {
  const { id } = await insertSomeToken(db, table);
  for (const tokenId of [id, null]) {
    for (let n = 1; n < limit; n += 1) await db.transaction<unknown>((tx) => add(tx, tokenId));
    await runDuring<unknown>(
      db,
      (tx) => add(tx, tokenId),
      (tx) => add(tx, tokenId),
    );
    const stored = await query(db).number(
      `SELECT count(*) FROM ${table} WHERE token_id IS NOT DISTINCT FROM $1`,
      [tokenId],
    );
    expect(stored).toBe(limit);
  }
});

test('concurrent logins do not exceed the limit of people', async () => {
  await db.query(
    `INSERT INTO console_token (digest, name, role, created_by, created_at, used_at, subject)
     SELECT n::text::bytea, n, 'viewer', 'b', now(), now() - interval '1 day', n
       FROM generate_series(1, 999) AS n`,
  );
  await runDuring(
    db,
    (tx) => logInPerson(tx, 'a person'),
    (tx) => logInPerson(tx, 'another person'),
  );
  const people = await query(db).number(
    'SELECT count(*) FROM console_token WHERE subject IS NOT NULL',
  );
  expect(people).toBe(1000);
});

test.each([
  ['session', logIn, undefined],
  ['login code', createCode, false],
])('a token that is deleted at the same time gets no %s', async (_of, add, none) => {
  const { id } = await insertSomeToken(db, 'deleted');
  const added = await runDuring<unknown>(
    db,
    (tx) => deleteToken(tx, id),
    (tx) => add(tx, id),
  );
  expect(added).toBe(none);
});

test('a token can be deleted while its login code is used', async () => {
  const { id } = await insertSomeToken(db, 'used');
  const digest = randomBytes(32);
  await createCode(db, id, digest);
  const { used } = await db.transaction(async (tx) => {
    await tx.query('SELECT FROM console_token WHERE id = $1 FOR UPDATE', [id]);
    const used = db.transaction(async (other) => {
      const spent = await spendLoginCode(other, digest, { marks: [adminMark], now });
      return spent && logIn(other, spent.tokenId);
    });
    used.catch(() => undefined);
    await vi.waitUntil(async () => (await countWaitingForLocks(db)) === 1, { timeout: 20_000 });
    expect(await deleteToken(tx, id)).toMatchObject({ id });
    return { used };
  });
  expect(await used).toBeUndefined();
});
