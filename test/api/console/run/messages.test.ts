import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const api = useTestApi();
let app: App;
let owner: ConsoleCall;
let operator: ConsoleCall;
const email = 'anna@example.com';

beforeAll(async () => {
  app = await api.createApp();
  owner = await callerOf(api, 'owner');
  operator = await callerOf(api, 'operator');
  await api.request('POST', '/1.1/users', {
    app,
    body: { username: 'anna', password: 'p', email },
  });
  for (let i = 0; i < 3; i++)
    await api.request('POST', '/1.1/requestPasswordReset', { app, body: { email } });
  await api.request('POST', '/1.1/requestSmsCode', {
    app,
    master: true,
    body: { mobilePhoneNumber: '+8613800138000' },
  });
});

const base = () => `/apps/${app.appId}`;
const list = async (call: ConsoleCall, query = '') =>
  (await call('GET', `${base()}/outbox${query}`)).body;
const set = (id: string, state: string, more = '') =>
  api.db.query(
    `UPDATE outbox SET state = $3, reason = 'refused', attempts = 4 ${more} WHERE app_id = $1
      AND id = $2`,
    [app.appId, id, state],
  );
const retry = (id: string) => operator('POST', `${base()}/outbox/${id}/retry`);

describe('the outbox', () => {
  test('has pages with the state of each message; only owners see the texts', async () => {
    expect((await list(owner)).results).toHaveLength(4);
    expect((await list(owner)).next).toBeUndefined();
    const first = await list(operator, '?limit=3');
    expect(first.results[0]).toEqual({
      id: expect.any(String),
      kind: 'sms',
      to: '+8613800138000',
      type: 'general',
      state: 'waiting',
      attempts: 0,
      reason: null,
      providerId: null,
      delivery: null,
      deliveryReason: null,
      deliveredAt: null,
      createdAt: expect.any(String),
      expiresAt: expect.any(String),
    });
    const rest = await list(operator, `?cursor=${first.next}`);
    expect([rest.results.length, rest.next]).toEqual([1, null]);
    expect((await list(owner, '?limit=1')).results[0]).toMatchObject({ code: expect.any(String) });
    for (const query of ['?state=lost', '?limit=201', '?cursor=x'])
      expect((await operator('GET', `${base()}/outbox${query}`)).status, query).toBe(400);
    expect((await (await callerOf(api, 'sender'))('GET', `${base()}/outbox`)).status).toBe(403);
  });

  test('lists a message that no key decrypts without its text', async () => {
    const other = await api.createApp();
    await api.request('POST', '/1.1/requestSmsCode', {
      app: other,
      master: true,
      body: { mobilePhoneNumber: '+8613800138002' },
    });
    await api.db.query(`UPDATE outbox SET body = 'damaged' WHERE app_id = $1`, [other.appId]);
    const path = `/apps/${other.appId}/outbox`;
    const [message] = (await owner('GET', path)).body.results ?? [];
    expect(message).toMatchObject({ to: '+8613800138002', type: 'general', text: '' });
    expect((await owner('GET', `${path}?limit=1`)).body.results[0].text).toBeUndefined();
  });

  test('sends a failed message again, once', async () => {
    const [sms, mail] = (await list(operator)).results;
    expect((await retry(mail.id)).status).toBe(409);
    await set(mail.id, 'failed', ", expires_at = now() - interval '1 hour'");
    expect((await list(operator, '?state=failed')).results).toMatchObject([
      { id: mail.id, reason: 'refused' },
    ]);
    expect((await retry(mail.id)).body).toEqual({});
    const [again] = (await list(operator, '?kind=mail&limit=1')).results;
    expect(again).toMatchObject({ id: mail.id, state: 'waiting', attempts: 0, reason: null });
    expect(Date.parse(again.expiresAt)).toBeGreaterThan(Date.now());
    const { rows } = await api.db.query<{ n: number }>(
      `SELECT count(*) AS n FROM pgboss.job WHERE name = 'message'
        AND (data ->> 'messageId')::bigint = $1`,
      [mail.id],
    );
    expect(rows[0]?.n).toBe(2);
    expect((await retry(mail.id)).status).toBe(409);
    await set(sms.id, 'failed', ", expires_at = now() - interval '1 hour'");
    expect((await retry(sms.id)).body.error).toBe('The code has expired.');
    for (const id of ['0', 'x', '999999999']) expect((await retry(id)).status).toBe(404);
  });
});

test('sends failed messages again together, except expired codes', async () => {
  const other = await api.createApp();
  const to = `/apps/${other.appId}/outbox`;
  await api.request('POST', '/1.1/users', {
    app: other,
    body: { username: 'b', password: 'p', email },
  });
  for (let i = 0; i < 2; i++)
    await api.request('POST', '/1.1/requestPasswordReset', { app: other, body: { email } });
  const mobilePhoneNumber = '+8613800138001';
  await api.request('POST', '/1.1/requestSmsCode', {
    app: other,
    master: true,
    body: { mobilePhoneNumber },
  });
  await api.db.query(
    `UPDATE outbox SET state = 'failed',
            reason = CASE WHEN kind = 'sms' THEN 'expired' ELSE 'refused' END,
              expires_at = now() - interval '1 hour' WHERE app_id = $1`,
    [other.appId],
  );
  // A dry run neither waits for locks nor takes any, which a redrive would skip.
  const dryRun = await api.db.transaction(async (tx) => {
    await tx.query('SELECT FROM outbox WHERE app_id = $1 FOR UPDATE', [other.appId]);
    return operator('POST', `${to}/redrive/explain`, { body: {} });
  });
  expect(dryRun.body).toMatchObject({
    messages: 2,
    expired: 1,
    unreadable: 0,
    causes: [{ kind: 'mail', reason: 'refused', n: 2 }],
    next: null,
  });
  const none = await operator('POST', `${to}/redrive`, {
    body: { reason: 'refused', kind: 'sms' },
  });
  expect(none.body.messages).toBe(0);
  const done = { messages: 2, expired: 0, unreadable: 0, next: null };
  expect((await operator('POST', `${to}/redrive`, { body: { kind: 'mail' } })).body).toEqual(done);
  const { results } = (await operator('GET', `${to}?limit=10`)).body;
  expect(results.map(({ kind, state }: Record<string, string>) => `${kind} ${state}`)).toEqual([
    'sms failed',
    'mail waiting',
    'mail waiting',
  ]);
  const rest = await operator('POST', `${to}/redrive`, { body: {} });
  expect(rest.body).toMatchObject({ messages: 0, expired: 1 });
  expect((await operator('POST', `${to}/redrive`, { body: { state: 'sent' } })).status).toBe(400);
});

test('the state of SMS has balance, budgets and suspended countries', async () => {
  await api.db.query(
    `INSERT INTO sms_breaker (app_id, prefix, opened_at, open_until)
     VALUES ($1, '+99', now(), now() + interval '1 hour'),
       ($1, '+98', now(), now() - interval '1 hour')`,
    [app.appId],
  );
  const { body } = await operator('GET', `${base()}/sms-state`);
  expect(body).toMatchObject({
    balance: null,
    free: { used: 0, limit: 100 },
    day: { used: 1, limit: 100_000 },
    suspended: [{ prefix: '+99' }],
    conversion: [{ prefix: '+86', sent: 1, used: 0 }],
  });
  expect((await operator('GET', '/apps/nowhere/sms-state')).status).toBe(404);
});
