import { beforeAll, describe, expect, test } from 'vitest';
import { Passwords } from '../../../../api/services/accounts/passwords/passwords.ts';
import {
  countLoginFailure,
  deleteOldLoginLocks,
  isLoginLocked,
} from '../../../../shared/db/tables/sign-in.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { newName } from '../../../support/users.ts';

test('refuses excess calls of one app with 429 and Retry-After, but not others', async () => {
  const passwords = new Passwords({ concurrency: 1, maxWaiting: 1 });
  const known = await passwords.hash('a', 'right');
  const calls = [passwords.verify('a', 'right', known), passwords.verify('a', 'wrong', known)];
  const refusal = passwords.verify('a', 'right', known);
  await expect(refusal).rejects.toMatchObject({ code: 429, status: 429, retryAfterSeconds: 5 });
  await expect(passwords.hash('a', 'more')).rejects.toMatchObject({ code: 429 });
  expect(await passwords.verify('b', 'right', null)).toEqual({
    isMatch: false,
    needsRehash: false,
  });
  expect((await Promise.all(calls)).map(({ isMatch }) => isMatch)).toEqual([true, false]);
  await passwords.close();
});

describe('a flood of logins', () => {
  let app: App;
  const api = useTestApi();
  beforeAll(async () => {
    app = await api.createApp();
  });
  test('gets a reply to every call, without 429 or 5xx', async () => {
    const replies = await Promise.all(
      Array.from({ length: 60 }, () =>
        api.request('POST', '/1.1/login', { app, body: { username: newName(), password: 'p' } }),
      ),
    );
    expect(new Set(replies.map(({ body }) => body.code))).toEqual(new Set([211]));
  });

  test('leaves no rows after its failures have expired', async () => {
    const rule = { maxFailures: 6, windowMs: 15 * 60_000 };
    const at = (minutes: number) => new Date(Date.UTC(2030, 0, 1) + minutes * 60_000);
    const identifier = Buffer.alloc(32, 7);
    for (let i = 0; i < 7; i += 1)
      await countLoginFailure(api.db, app.appId, { identifier, now: at(i), rule });
    expect(await isLoginLocked(api.db, app.appId, { identifier, now: at(20.9) })).toBe(true);
    expect(await isLoginLocked(api.db, app.appId, { identifier, now: at(21.1) })).toBe(false);
    // The failures of the flood have expired then.
    await deleteOldLoginLocks(api.db, at(0), 1000);
    expect(await deleteOldLoginLocks(api.db, at(6), 1000)).toBe(0);
    expect(await deleteOldLoginLocks(api.db, at(6.1), 1000)).toBe(1);
  });
});
