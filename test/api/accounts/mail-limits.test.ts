import { describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { mailboxOf } from '../../../shared/domain/users/user.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, refusalOf, refused, signUp } from '../../support/users.ts';

/**
 * Tests the limits of mails per mailbox and per network address
 * (protocol/codes.md#e-mail-and-password-reset).
 */
const clock = movableClock(Date.now());
const api = useTestApi({ clock, env: { TRUSTED_PROXIES: '1' } });
const day = 86_400_000;

const post = (app: App, path: string, body: object, address = '192.0.2.1', master = false) =>
  api.request('POST', `/1.1/${path}`, {
    app,
    master,
    body,
    headers: { 'X-Forwarded-For': address },
  });

async function mails(app: App): Promise<number> {
  const { rows } = await api.db.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM outbox WHERE app_id = $1 AND kind = 'mail'`,
    [app.appId],
  );
  return rows[0]?.n ?? 0;
}

describe('spellings of one mailbox', () => {
  test.each([
    ['Ann@Example.com', 'ann@example.com'],
    ['ANN@EXAMPLE.COM', 'ann@example.com'],
    ['ann@example.com.', 'ann@example.com'],
    ['ann+1@example.com', 'ann@example.com'],
    ['ann+a+b@example.com', 'ann@example.com'],
    ['ａｎｎ@example.com', 'ann@example.com'],
    ['"ann"@example.com', 'ann@example.com'],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
    ['ann@XN--BCHER-KVA.example', 'ann@xn--bcher-kva.example'],
    ['a.n.n@gmail.com', 'ann@gmail.com'],
    ['A.nn+x@GoogleMail.com', 'ann@gmail.com'],
    ['a.n.n@example.com', 'a.n.n@example.com'],
  ])('%s is %s', (spelling, mailbox) => {
    expect(mailboxOf(spelling)).toBe(mailbox);
  });

  test('share ten mails per day for sign-ups, changes, requests and operators', async () => {
    const app = await api.createApp({ emailVerification: true });
    const name = newName();
    const spellings = Array.from({ length: 30 }, (_, i) => `${name}+${i}@Example.com`);
    for (const email of spellings.slice(0, 5)) await signUp(api, app, { email });
    const user = await signUp(api, app);
    for (const email of spellings.slice(5, 20))
      expect((await user.put({ email })).status).toBe(200);
    expect(await mails(app)).toBe(10);
    const [email] = spellings;
    expect(refusalOf(await post(app, 'requestEmailVerify', { email }))).toEqual(refused(1));
    expect(refusalOf(await post(app, 'requestEmailVerify', { email }, '192.0.2.9', true))).toEqual(
      refused(1),
    );
    // Another purpose has its own ten mails. Mails of an operator count too.
    for (let i = 0; i < 10; i += 1)
      await post(app, 'requestPasswordReset', { email: spellings[i % 5] });
    const { objectId } = user.body;
    const byOperator = await api.request(
      'POST',
      `/console/api/apps/${app.appId}/users/${objectId}/send-reset`,
      {
        admin: true,
        body: {},
      },
    );
    expect(refusalOf(byOperator)).toEqual(refused(1));
    expect(await mails(app)).toBe(20);
    clock.moveMs(day);
    expect((await post(app, 'requestEmailVerify', { email })).status).toBe(200);
  });

  test('of unknown addresses count in the same way if users are concealed', async () => {
    const app = await api.createApp({ concealUsers: true });
    const answers = async (email: string) => {
      const replies = [];
      for (let i = 0; i < 11; i += 1)
        replies.push((await post(app, 'requestPasswordReset', { email })).body.code);
      return replies;
    };
    const email = `${newName()}@example.com`;
    await signUp(api, app, { email });
    const known = await answers(email);
    expect(known).toEqual([...Array(10).fill(undefined), 1]);
    expect(await answers(`${newName()}@example.com`)).toEqual(known);
    expect(await mails(app)).toBe(10);
  });
});

test('one network address can cause 500 mails per hour in total', async () => {
  const app = await api.createApp({ emailVerification: true, signUpsPerAddressPerHour: 1000 });
  const user = await signUp(api, app);
  const put = (address: string) =>
    api.request('PUT', `/1.1/users/${user.id}`, {
      app,
      headers: { 'X-LC-Session': user.token, 'X-Forwarded-For': address },
      body: { email: `${newName()}@example.com` },
    });
  expect((await put('192.0.2.7')).status).toBe(200);
  // State after 497 more mails.
  await api.db.query(`UPDATE send_budget SET n = 498 WHERE app_id = $1 AND scope = 'mailAddress'`, [
    app.appId,
  ]);
  for (let i = 0; i < 6; i += 1) expect((await put('192.0.2.7')).status).toBe(200);
  expect(await mails(app)).toBe(3);
  const body = { username: newName(), password: 'x', email: `${newName()}@example.com` };
  expect((await post(app, 'users', body, '192.0.2.7')).status).toBe(201);
  const { email } = body;
  expect(refusalOf(await post(app, 'requestEmailVerify', { email }, '192.0.2.7'))).toEqual(
    refused(1),
  );
  expect(await mails(app)).toBe(3);
  expect((await post(app, 'requestEmailVerify', { email }, '192.0.2.7', true)).status).toBe(200);
  expect((await put('192.0.2.8')).status).toBe(200);
  expect(await mails(app)).toBe(5);
  clock.moveMs(day);
  expect((await put('192.0.2.7')).status).toBe(200);
  expect(await mails(app)).toBe(6);
});
