import { expect, test, vi } from 'vitest';
import { AccountReader } from '../../../dispatcher/background/account-reader.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { AppCache } from '../../../shared/db/app-cache.ts';
import { Database } from '../../../shared/db/pool.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import { WebhookEvents } from '../../../shared/db/webhook-events.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { readAccounts } from '../../../shared/queue/report.ts';
import { silentLog, testConfig } from '../../support/api.ts';
import { certificateUntil } from '../../support/gateways/certificates.ts';
import { insertUsage, requestAccountRead } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
const vault = () => new Vault(testConfig(api.databaseUrl).secrets);
const deps = () => ({ db: api.db, vault: vault(), clock: systemClock });
const endsAtMs = Math.floor(Date.now() / 1000) * 1000 + 20 * 86_400_000;

const isDue = () => requestAccountRead(api.db);

test('the metrics of every process contain caps, quotas and certificate expiries', async () => {
  const app = await api.createApp({ dailyRecipientCap: 1000 });
  const small = await api.createApp({}, 'development');
  await putProfile(api.db, vault(), {
    appId: app.appId,
    connector: 'apns',
    name: 'Release',
    credentials: await certificateUntil(endsAtMs),
  });
  for (const one of [app, small]) await insertUsage(api.db, one, { recipients: 900 });
  await api.db.query(
    `INSERT INTO gateway_day (app_id, connector, profile, class, day, recipients, closed_reason)
     SELECT $1, 'vendor_b', '_default', class, (now() AT TIME ZONE 'Asia/Shanghai')::date, n, reason
       FROM (VALUES ('', 700, NULL), ('operation', 0, 'used up')) AS v (class, n, reason)`,
    [app.appId],
  );
  await new AccountReader().run(deps());
  const { body: text } = await api.request('GET', '/metrics');
  const labels = (connector: string, profile: string) =>
    `{connector="${connector}",app="${app.appId}",profile="${profile}"}`;
  const lines: string[] = text.split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      `carillon_app_cap_used_ratio{app="${app.appId}"} 0.9`,
      `carillon_app_cap_used_ratio{app="${small.appId}"} 0.09`,
      `carillon_gateway_day_recipients${labels('vendor_b', '_default')} 700`,
      `carillon_gateway_quota_used_up${labels('vendor_b', '_default')} 1`,
      `carillon_gateway_credential_expiry_timestamp_seconds${labels('apns', 'Release')} ${endsAtMs / 1000}`,
    ]),
  );
  await api.db.query('DELETE FROM gateway_day');
  await isDue();
  await new AccountReader().run(deps());
  expect((await api.request('GET', '/metrics')).body).not.toContain(
    'carillon_gateway_quota_used_up{',
  );
});

test('the operator gets one mail 30 days before a certificate expires', async () => {
  const app = await api.createApp();
  const endMs = Date.now() + 20 * 86_400_000;
  const credentials = await certificateUntil(endMs);
  await putProfile(api.db, vault(), {
    appId: app.appId,
    connector: 'apns',
    name: '_default',
    credentials,
  });
  const queue = new JobQueue(api.db, silentLog, { supervise: false });
  await queue.start();
  const at = (days: number) => ({ ...systemClock, now: () => endMs - days * 86_400_000 });
  const mails: string[] = [];
  for (const clock of [at(40), at(20), at(19), at(6), at(0.5), at(-1), at(-2)]) {
    await isDue();
    const webhooks = new WebhookEvents(api.db, new AppCache(api.db, vault(), systemClock));
    const operatorMail = 'ops@example.com';
    await new AccountReader().run({ ...deps(), clock, queue, webhooks, operatorMail });
    const path = `/console/api/apps/${app.appId}/outbox?kind=mail&to=ops@example.com`;
    const { results } = (await api.request('GET', path, { admin: true })).body;
    mails.push(`${results.length} ${results[0]?.text.includes('apns/_default')}`);
  }
  expect(mails).toEqual([
    '0 undefined',
    '1 true',
    '1 true',
    '2 true',
    '3 true',
    '4 true',
    '4 true',
  ]);
  await queue.stop();
});

test('quotas are reported for the day of their use, also just after midnight', async () => {
  const app = await api.createApp({ dailyRecipientCap: 1000 });
  await insertUsage(api.db, app, { recipients: 1000 });
  await api.db.query(
    `INSERT INTO gateway_day (app_id, connector, profile, class, day, closed_reason)
     VALUES ($1, 'vendor_b', '_default', '', (now() AT TIME ZONE 'Asia/Shanghai')::date, 'used up')`,
    [app.appId],
  );
  await api.request('PUT', `/console/api/apps/${app.appId}/webhooks/quotas`, {
    admin: true,
    body: { url: 'https://example.com/', events: ['quota.near'] },
  });
  const { rows } = await api.db.query<{ utc: string; china: string }>(
    `SELECT (now() AT TIME ZONE 'UTC')::date::text AS utc,
            (now() AT TIME ZONE 'Asia/Shanghai')::date::text AS china`,
  );
  const queue = new JobQueue(api.db, silentLog, { supervise: false });
  const webhooks = new WebhookEvents(api.db, new AppCache(api.db, vault(), systemClock));
  // The clock of the dispatcher is ahead of the database by a day.
  const clock = { ...systemClock, now: () => Date.now() + 86_400_000 };
  await isDue();
  await new AccountReader().run({ ...deps(), clock, queue, webhooks, operatorMail: undefined });
  const path = `/console/api/apps/${app.appId}/webhooks/quotas/deliveries`;
  expect((await api.request('GET', path, { admin: true })).body.results).toHaveLength(2);
  const { rows: sent } = await api.db.query<{ day: string; quota: string }>(
    `SELECT data ->> 'quota' AS quota, data ->> 'day' AS day FROM webhook_delivery
      WHERE app_id = $1 ORDER BY 1`,
    [app.appId],
  );
  await api.db.query('DELETE FROM gateway_day');
  expect(sent).toEqual([
    { quota: 'dailyRecipientCap', day: rows[0]?.utc },
    { quota: 'gateway', day: rows[0]?.china },
  ]);
});

test('a webhook of the service gets the quotas and credentials of all apps', async () => {
  const path = '/console/api/webhooks/all';
  const body = { url: 'https://example.com/', events: ['quota.near', 'credentials.ending'] };
  await api.request('PUT', path, { admin: true, body });
  const queue = new JobQueue(api.db, silentLog, { supervise: false });
  const webhooks = new WebhookEvents(api.db, new AppCache(api.db, vault(), systemClock));
  const credentials = await certificateUntil(endsAtMs);
  const ids: string[] = [];
  for (let i = 0; i < 2; i += 1) {
    const app = await api.createApp({ dailyRecipientCap: 1000 });
    ids.push(app.appId);
    await insertUsage(api.db, app, { recipients: 1000 });
    const profile = { appId: app.appId, connector: 'apns', name: '_default' };
    await putProfile(api.db, vault(), { ...profile, credentials });
    await api.db.query(
      `INSERT INTO gateway_day (app_id, connector, profile, class, day, closed_reason)
       VALUES ($1, 'vendor_b', '_default', '', (now() AT TIME ZONE 'Asia/Shanghai')::date, 'used')`,
      [app.appId],
    );
  }
  for (let i = 0; i < 2; i += 1) {
    await isDue();
    await new AccountReader().run({ ...deps(), queue, webhooks, operatorMail: undefined });
  }
  const { results } = (await api.request('GET', `${path}/deliveries?limit=200`, { admin: true }))
    .body;
  await api.request('DELETE', path, { admin: true });
  await api.db.query('DELETE FROM gateway_day');
  const sent = (results as { app: string; type: string }[])
    .filter(({ app }) => ids.includes(app))
    .map(({ app, type }) => `${ids.indexOf(app)} ${type}`);
  expect(sent.sort()).toEqual(
    ids.flatMap((_, i) => [`${i} credentials.ending`, `${i} quota.near`, `${i} quota.near`]),
  );
});

test.each(['credentials.ending', 'quota.near'])(
  'a failing notice of %s does not stop those of other apps, and the metrics',
  async (type) => {
    const webhooks = new WebhookEvents(api.db, new AppCache(api.db, vault(), systemClock));
    const queue = new JobQueue(api.db, silentLog, { supervise: false });
    const credentials = await certificateUntil(endsAtMs);
    const emit = vi.spyOn(webhooks, 'emitAlone');
    const [failing, other] = [await api.createApp(), await api.createApp()];
    for (const [i, { appId }] of [failing, other].entries()) {
      await insertUsage(api.db, { appId }, { recipients: 1_000_000_000 - i });
      await putProfile(api.db, vault(), {
        appId,
        connector: 'apns',
        name: '_default',
        credentials,
      });
    }
    const told: string[] = [];
    emit.mockImplementation(async (event) => {
      if (event.type !== type) return;
      if (event.appId === failing.appId) throw new Error('the event is refused');
      told.push(event.appId);
    });
    await isDue();
    const reading = new AccountReader().run({
      ...deps(),
      queue,
      webhooks,
      operatorMail: undefined,
    });
    await expect(reading).rejects.toThrow('the event is refused');
    expect(told).toContain(other.appId);
    expect((await readAccounts(api.db))?.credentials).toContainEqual(
      expect.objectContaining({ appId: other.appId }),
    );
  },
);

test('one dispatcher reads at a time, and the number of labels is limited', async () => {
  await isDue();
  await api.db.query(
    `INSERT INTO gateway_day (app_id, connector, profile, class, day, recipients)
     SELECT 'x' || i, 'fcm', '_default', '', (now() AT TIME ZONE 'Asia/Shanghai')::date, i
       FROM generate_series(1, 150) AS i`,
  );
  const readers = Array.from({ length: 4 }, () => new AccountReader());
  await Promise.all(readers.map((reader) => reader.run(deps())));
  const first = await readAccounts(api.db);
  expect(first?.quotas).toHaveLength(100);
  expect(first?.quotas[0]).toMatchObject({ appId: 'x150', recipients: 150 });
  await api.db.query('DELETE FROM gateway_day');
  await readers[0]?.run(deps());
  expect((await readAccounts(api.db))?.quotas).toHaveLength(100);
});

test('a certificate is read again after the database failed', async () => {
  const app = await api.createApp();
  const profile = { appId: app.appId, connector: 'apns', name: '_default' };
  await putProfile(api.db, vault(), { ...profile, credentials: await certificateUntil(endsAtMs) });
  const url = api.databaseUrl;
  const impatient = new Database({ url, applicationName: 'test', statementTimeoutMs: 300 });
  const reader = new AccountReader();
  await isDue();
  await api.db.transaction(async (tx) => {
    await tx.query('LOCK TABLE profile_rotation IN ACCESS EXCLUSIVE MODE');
    await expect(reader.run({ ...deps(), db: impatient })).rejects.toThrow('statement timeout');
  });
  await impatient.close();
  await isDue();
  await reader.run(deps());
  const read = (await readAccounts(api.db))?.credentials.filter((one) => one.appId === app.appId);
  expect(read).toMatchObject([{ connector: 'apns', endsAtMs }]);
});

test('a certificate is read again after its profile is replaced', async () => {
  const app = await api.createApp();
  const reader = new AccountReader();
  for (const end of [endsAtMs, endsAtMs + 86_400_000]) {
    const credentials = await certificateUntil(end);
    await putProfile(api.db, vault(), {
      appId: app.appId,
      connector: 'apns',
      name: '_default',
      credentials,
    });
    await isDue();
    await reader.run(deps());
    const accounts = await readAccounts(api.db);
    const ends = accounts?.credentials.filter(({ appId }) => appId === app.appId);
    expect(ends).toEqual([
      { appId: app.appId, connector: 'apns', profile: '_default', endsAtMs: end },
    ]);
  }
});
