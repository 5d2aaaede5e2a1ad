import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../../shared/clock.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { changeMaxAgeMs } from '../../shared/ttl-cache.ts';
import {
  startWebhookReceiver,
  verified,
  type WebhookReceiver,
} from '../support/servers/webhook-receiver.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
let app: App;
let receiver: WebhookReceiver;
let secret: string;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.dispatch();
  receiver = await startWebhookReceiver();
  const reply = await service.api.request('PUT', `/console/api/apps/${app.appId}/webhooks/ledger`, {
    admin: true,
    body: {
      url: receiver.url,
      events: ['recipients.outcome', 'installation.invalid', 'push.done'],
    },
  });
  secret = String(reply.body.secret);
  await sleep(changeMaxAgeMs + 50);
});

afterAll(() => receiver.close());

interface Recipient {
  installation: string | null;
  outcome: string;
  reason?: string;
  messageId?: string;
}

/** Returns the recipients in the events of a push. */
const recipientsOf = (push: string): Recipient[] =>
  receiver
    .of('recipients.outcome')
    .map((request) => verified(secret, request).data)
    .filter((data) => data.push === push)
    .flatMap((data) => data.recipients as Recipient[]);

async function send(body: object): Promise<string> {
  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert: 'hello' }, prod: 'prod', ...body },
  });
  const objectId = String(reply.body.objectId);
  await service.untilDone(app, objectId);
  return objectId;
}

/** Waits until the events of a push contain all its recipients. Returns them. */
async function ledgerOf(push: string): Promise<Recipient[]> {
  const record = await recordOf(push);
  await expect.poll(() => recipientsOf(push).length).toBe(record.devices);
  return recipientsOf(push);
}

const recordOf = async (push: string) =>
  (await service.api.request('GET', `/1.1/tables/Notifications/${push}`, { app, master: true }))
    .body;

/** Counts recipients by outcome. */
const countsOf = (recipients: readonly Recipient[]) =>
  Object.fromEntries(
    [...Map.groupBy(recipients, ({ outcome }) => outcome)].map(([outcome, all]) => [
      outcome,
      all.length,
    ]),
  );

async function outcomesOf(push: string): Promise<Record<string, number>> {
  const { body } = await service.api.request(
    'GET',
    `/console/api/apps/${app.appId}/notifications/${push}/progress`,
    { admin: true },
  );
  return body.outcomes as Record<string, number>;
}

test('the events of a push to many contain each recipient once, in parts of 500', async () => {
  await service.addIosInstallations(app, 2345, { ledger: 1 });
  const push = await send({ where: { ledger: 1 } });
  const recipients = await ledgerOf(push);
  expect(new Set(recipients.map(({ installation }) => installation)).size).toBe(2345);
  expect(countsOf(recipients)).toEqual(await outcomesOf(push));
  const sizes = receiver
    .of('recipients.outcome')
    .map(({ event }) => event.data)
    .filter((data) => data.push === push)
    .map((data) => (data.recipients as Recipient[]).length);
  expect(Math.max(...sizes)).toBe(500);
  const { rows } = await service.db.query<{ object_id: string }>(
    `SELECT object_id FROM installation WHERE app_id = $1 AND fields @> '{"ledger":1}'`,
    [app.appId],
  );
  const stored = new Set(rows.map((row) => row.object_id));
  expect(recipients.every(({ installation }) => stored.has(installation ?? ''))).toBe(true);
});

test('the sum of outcomes equals the record, with invalid and failed devices', async () => {
  const tokens = await service.addIosInstallations(app, 60, { ledger: 2 });
  for (const token of tokens.slice(0, 7)) service.apns.badTokens.add(token);
  const push = await send({ where: { ledger: 2 } });
  const recipients = await ledgerOf(push);
  expect(countsOf(recipients)).toEqual(await outcomesOf(push));
  expect(countsOf(recipients)).toEqual({ sent: 53, invalid_token: 7 });
  const invalid = recipients.filter(({ outcome }) => outcome === 'invalid_token');
  for (const { installation, reason } of invalid) {
    expect(installation).toMatch(/^[0-9a-f]{24}$/);
    expect(reason).toBe('BadDeviceToken');
  }
});

test('an expired push reports its recipients as expired', async () => {
  await service.addIosInstallations(app, 3, { ledger: 3 });
  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: {
      data: { alert: 'late' },
      where: { ledger: 3 },
      prod: 'prod',
      flow_control: 1,
      expiration_interval: 1,
    },
  });
  const push = String(reply.body.objectId);
  await service.untilDone(app, push);
  const recipients = await ledgerOf(push);
  expect(countsOf(recipients)).toEqual(await outcomesOf(push));
});

test('recipients that end while the push is planned are reported with their reason', async () => {
  await service.addIosInstallations(app, 2, { ledger: 4 });
  const capped = { where: { ledger: 4 }, device_cap: 1 };
  expect(countsOf(await ledgerOf(await send(capped)))).toEqual({ sent: 2 });
  const push = await send(capped);
  const recipients = await ledgerOf(push);
  expect(countsOf(recipients)).toEqual(await outcomesOf(push));
  expect(countsOf(recipients)).toEqual({ capped: 2 });
  for (const { reason } of recipients) expect(reason).toEqual(expect.any(String));
});
