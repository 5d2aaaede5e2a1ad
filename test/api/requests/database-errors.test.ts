import { expect, test } from 'vitest';
import { toRefusal } from '../../../api/middleware/errors.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db } = await openTestDatabase();

test.each([
  ['a deadlock', '40P01', 'unavailable'],
  ['too many connections', '53300', 'unavailable'],
  ['a row whose app was deleted', '23503', 'conflict'],
  ['a number out of range', '22003', 'incorrectType'],
  ['a statement that takes too long', '57014', 'timedOut'],
  ['a table that is missing', '42P01', 'misconfigured'],
  ['a fault of this service', '42601', 'internal'],
])('%s (%s) is the refusal %s', async (_what, code, kind) => {
  const failing = db.query(`DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '${code}'; END $$`);
  const error = await failing.catch((thrown: unknown) => thrown);
  expect(toRefusal(error).kind).toBe(kind);
});
