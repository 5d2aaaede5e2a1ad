import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dayMs } from '../../shared/clock.ts';
import { insertManual } from '../../shared/db/tables/webhook-deliveries.ts';
import { endRun } from '../../shared/db/tables/webhooks.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { webhookLimits } from '../../shared/domain/webhooks/endpoint.ts';
import { countWaitingForLocks } from '../support/database.ts';
import {
  startWebhookReceiver,
  status,
  type WebhookReceiver,
} from '../support/servers/webhook-receiver.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
let app: App;
let receivers: WebhookReceiver[];

beforeAll(async () => {
  await service.dispatch({
    webhooks: {
      leaseMs: 1000,
      renewMs: 200,
      pollMs: 100,
      timing: {
        coolDownMs: 300,
        maxCooldownMs: 10 * 60_000,
        windowMs: 30_000,
        minGroups: 1,
        heavyGroup: 50,
      },
    },
  });
});

beforeEach(async () => {
  app = await service.api.createApp();
  receivers = [];
});
afterEach(async () => {
  await service.db.query('DELETE FROM webhook WHERE app_id = $1', [app.appId]);
  for (const receiver of receivers) await receiver.close();
});

/** Creates an endpoint and its receiver. */
async function subscribe(name: string): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver();
  receivers.push(receiver);
  const path = `/console/api/apps/${app.appId}/webhooks/${name}`;
  const body = { url: receiver.url, events: ['push.done'] };
  const reply = await service.api.request('PUT', path, { admin: true, body });
  expect(reply.status).toBe(201);
  return receiver;
}

/** Writes a delivery to an endpoint, created some time ago. */
async function write(name: string, ageMs = 0): Promise<void> {
  await service.db.query(
    `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, data, next_at,
       created_at)
     VALUES ($1, $2, 'push.done', $1, now(), '{}', now(), now() - $3 * interval '1 ms')`,
    [app.appId, name, ageMs],
  );
  await service.db.query('UPDATE webhook SET due_at = now() WHERE app_id = $1 AND name = $2', [
    app.appId,
    name,
  ]);
}

test('an endpoint whose run failed runs again while another run goes on', async () => {
  const held = await subscribe('held');
  held.respond = () => undefined;
  await write('held');
  await expect.poll(() => held.requests.length).toBe(1);
  const broken = await subscribe('broken');
  const { rows } = await service.db.query<{ secrets: Buffer }>(
    `SELECT secrets FROM webhook WHERE app_id = $1 AND name = 'broken'`,
    [app.appId],
  );
  const setSecrets = (secrets: Buffer) =>
    service.db.query(`UPDATE webhook SET secrets = $2 WHERE app_id = $1 AND name = 'broken'`, [
      app.appId,
      secrets,
    ]);
  await setSecrets(Buffer.from('not sealed'));
  await write('broken');
  const claims = async () => {
    const found = await service.db.query(
      `SELECT FROM webhook WHERE app_id = $1 AND name = 'broken' AND leased_by IS NOT NULL`,
      [app.appId],
    );
    return found.rowCount;
  };
  await expect.poll(claims).toBe(1);
  if (rows[0]) await setSecrets(rows[0].secrets);
  await expect.poll(() => broken.requests.length, { timeout: 10_000 }).toBe(1);
  expect(held.requests).toHaveLength(1);
});

test('deliveries that need no request do not keep the breaker open', async () => {
  const receiver = await subscribe('shaky');
  receiver.responders.push(status(500));
  await write('shaky');
  await expect.poll(() => receiver.requests.length).toBe(1);
  // As probes, they would double the cooldown to more than a minute.
  for (let i = 0; i < 9; i += 1) await write('shaky', webhookLimits.maxAgeMs + dayMs);
  await write('shaky');
  await expect.poll(() => receiver.requests.length, { timeout: 20_000 }).toBe(2);
});

describe('the end of a run with a pause', () => {
  const own = randomUUID();
  const key = () => ({ appId: app.appId, name: 'paused' });
  const lease = (dispatcher: string) =>
    service.db.query(
      `UPDATE webhook SET leased_by = $2, leased_until = now() + interval '1 hour'
        WHERE app_id = $1 AND name = 'paused'`,
      [app.appId, dispatcher],
    );
  const end = () =>
    service.db.transaction((tx) =>
      endRun(tx, key(), { dispatcher: own, isEnabled: true, pauseMs: 60_000 }),
    );

  test('does not delay a delivery by hand', async () => {
    await subscribe('paused');
    await lease(own);
    await insertManual(service.db, key(), { type: 'webhook.test', data: {} });
    expect(await end()).toBe(false);
    await service.db.query("UPDATE webhook_delivery SET state = 'delivered' WHERE app_id = $1", [
      app.appId,
    ]);
    expect(await end()).toBe(true);
  });

  test('sees a delivery by hand that is being written', async () => {
    await subscribe('paused');
    await lease(own);
    let ended: Promise<boolean> | undefined;
    await service.db.transaction(async (tx) => {
      await tx.query(`SELECT FROM webhook WHERE app_id = $1 FOR NO KEY UPDATE`, [app.appId]);
      ended = end();
      await expect.poll(() => countWaitingForLocks(service.db)).toBeGreaterThan(0);
      await insertManual(tx, key(), { type: 'webhook.test', data: {} });
    });
    expect(await ended).toBe(false);
  });

  test('ends also if another dispatcher has taken the endpoint', async () => {
    await subscribe('paused');
    await lease(randomUUID());
    expect(await end()).toBe(true);
  });
});
