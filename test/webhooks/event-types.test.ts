import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noticeEnding } from '../../dispatcher/background/profiles.ts';
import { noticeQuotas } from '../../dispatcher/background/quota-notices.ts';
import type { DispatcherDeps } from '../../dispatcher/deps.ts';
import { sleep } from '../../shared/clock.ts';
import type { App, AppOptionsPatch } from '../../shared/domain/apps/app.ts';
import { type EventTypeName, eventTypeNames } from '../../shared/domain/webhooks/event-types.ts';
import { enqueueMessage } from '../../shared/queue/message-jobs.ts';
import { changeMaxAgeMs } from '../../shared/ttl-cache.ts';
import { type AllVendors, startVendors } from '../support/gateways/all-vendors.ts';
import { startSmsWebhook } from '../support/servers/sms-webhook.ts';
import {
  startWebhookReceiver,
  verified,
  type WebhookReceiver,
} from '../support/servers/webhook-receiver.ts';
import { useTestService } from '../support/service.ts';
import { findDevice } from '../support/tables.ts';

const smsWebhook = await startSmsWebhook();
const service = useTestService({ env: { SMS_WEBHOOK_URL: smsWebhook.url } });
let vendors: AllVendors;
let deps: DispatcherDeps;
let receiver: WebhookReceiver;
const apps = new Map<string, string>();

beforeAll(async () => {
  vendors = await startVendors(service);
  deps = (await service.dispatch()).deps;
  receiver = await startWebhookReceiver();
});

afterAll(async () => {
  await receiver.close();
  await vendors.close();
  await smsWebhook.close();
});

const admin = (method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: object) =>
  service.api.request(method, `/console/api${path}`, { admin: true, ...(body ? { body } : {}) });

/** Subscribes a new app to all types. */
async function subscribed(app: App): Promise<App> {
  const reply = await admin('PUT', `/apps/${app.appId}/webhooks/all`, {
    url: receiver.url,
    events: eventTypeNames,
  });
  apps.set(app.appId, String(reply.body.secret));
  await sleep(changeMaxAgeMs + 50);
  return app;
}

async function anApp(options: AppOptionsPatch = {}): Promise<App> {
  const app = await service.api.createApp(options);
  await service.addApnsProfile(app);
  return subscribed(app);
}

async function send(app: App, body: object = {}): Promise<string> {
  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert: 'hello' }, prod: 'prod', ...body },
  });
  expect(reply.status).toBe(200);
  return String(reply.body.objectId);
}

const examplesFile = new URL('../../docs/webhook-examples.json', import.meta.url);
const recorded: Record<string, unknown> = {};

/** Returns an event with fixed ids and times, so that it is the same in every run. */
function stable(event: unknown, { appId }: App): unknown {
  const text = JSON.stringify(event)
    .replaceAll(appId, 'wHx47FrDSrY1GzAzkZtSHtOx')
    .replace(/"push":"\w{16}"/g, '"push":"Xk3vD9wq0TgTz1aB"')
    .replace(/"[0-9a-f]{24}"/g, '"63f2a7c1d5e8b90a4c1d2e3f"')
    .replace(/"messageId":"[^"]+"/g, '"messageId":"scm03b6c51697800000"')
    .replace(/"message":"\d+"/g, '"message":"1042"')
    .replace(/"by":"[^"]+"/g, '"by":"Li Na"')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2027-03-01T08:00:00.000Z')
    .replace(/"day":"[\d-]+"/g, '"day":"2027-03-01"');
  return JSON.parse(text);
}

const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

/** For each type: what makes it happen once, and its `data`. */
const causes: Record<EventTypeName, () => Promise<{ app: App; data: unknown; times?: number }>> = {
  async 'push.accepted'() {
    const app = await anApp();
    const push = await send(app, { push_time: tomorrow() });
    return {
      app,
      data: { push, isScheduled: true, createdBy: null, pushTime: expect.any(String) },
    };
  },
  async 'push.done'() {
    const app = await anApp();
    await service.addIosInstallations(app, 3);
    const push = await send(app);
    return {
      app,
      data: {
        push,
        devices: 3,
        outcomes: { sent: 3 },
        connectors: { apns: { sent: 3 } },
      },
    };
  },
  async 'push.cancelled'() {
    const app = await anApp();
    const push = await send(app, { push_time: tomorrow() });
    const cancelled = await admin('POST', `/apps/${app.appId}/notifications/${push}/cancel`);
    expect(cancelled.status).toBe(200);
    return { app, data: { push, by: expect.any(String) } };
  },
  async 'push.failed'() {
    const app = await anApp();
    await service.addIosInstallations(app, 5);
    service.apns.misbehave({ kind: 'answer', status: 403, reason: 'InvalidProviderToken' });
    const push = await send(app);
    await service.untilDone(app, push);
    service.apns.behave();
    return {
      app,
      data: {
        push,
        connector: 'apns',
        profile: '_default',
        reason: expect.stringContaining('InvalidProviderToken'),
        connectors: null,
      },
    };
  },
  async 'push.waiting_approval'() {
    const app = await anApp({ approvalAboveDevices: 1 });
    await service.addIosInstallations(app, 2);
    return { app, data: { push: await send(app), above: 1 } };
  },
  async 'recipients.outcome'() {
    const app = await subscribed(await vendors.app('vendor_b'));
    await vendors.add(app, 'vendor_b', 1);
    const push = await send(app);
    const recipient = { installation: expect.stringMatching(/^[0-9a-f]{24}$/), outcome: 'sent' };
    return {
      app,
      data: {
        push,
        connector: 'vendor_b',
        recipients: [{ ...recipient, messageId: expect.any(String) }],
      },
    };
  },
  async 'recipients.receipt'() {
    const app = await subscribed(await vendors.app('vendor_b'));
    const ids = await vendors.add(app, 'vendor_b', 2);
    const push = await send(app);
    await service.untilDone(app, push);
    const { xiaomi } = vendors.gateways;
    // The second report is a repeat.
    for (let i = 0; i < 2; i += 1) expect(await xiaomi.sendReceipt(1, ids)).toEqual([200]);
    const delivered = { installation: expect.any(String), type: 'delivered' };
    return { app, data: { push, connector: 'vendor_b', recipients: [delivered, delivered] } };
  },
  async 'recipients.opened'() {
    const app = await anApp({ reportOpens: true });
    const [deviceToken] = await service.addIosInstallations(app, 1);
    const { objectId } = await findDevice(service.db, app, { deviceToken: deviceToken ?? '' });
    const push = await send(app);
    await service.untilDone(app, push);
    // The second report is a repeat.
    for (let i = 0; i < 2; i += 1) {
      const event = { push, type: 'opened', at: '2026-11-28T10:00:00+08:00' };
      // The first time of an event in a call counts.
      const events = [event, { ...event, at: '2026-11-28T11:00:00+08:00' }];
      const body = { objectId, events };
      const reply = await service.api.request('POST', '/1.1/push/events', { app, body });
      expect(reply.status).toBe(200);
    }
    const at = '2026-11-28T02:00:00.000Z';
    return { app, data: { push, recipients: [{ installation: objectId, type: 'opened', at }] } };
  },
  async 'installation.invalid'() {
    const app = await anApp();
    const [dead] = await service.addIosInstallations(app, 5);
    const { rows } = await service.db.query<{ object_id: string }>(
      'SELECT object_id FROM installation WHERE app_id = $1 AND device_token = $2',
      [app.appId, dead],
    );
    service.apns.badTokens.add(dead ?? '');
    const push = await send(app);
    return { app, data: { push, connector: 'apns', installations: [rows[0]?.object_id] } };
  },
  async 'message.failed'() {
    const app = await anApp();
    smsWebhook.answers.push({ status: 400 });
    const id = await service.db.transaction((tx) =>
      enqueueMessage(deps, tx, app.appId, {
        kind: 'sms',
        to: '+8613800000009',
        type: 'general',
        text: 'Code 123456',
        sms: { isVoice: false, sign: 'My app', variables: {} },
      }),
    );
    expect(id).toBeUndefined();
    return {
      app,
      data: {
        message: expect.stringMatching(/^\d+$/),
        kind: 'sms',
        type: 'general',
        reason: expect.stringContaining('400'),
      },
    };
  },
  async 'breaker.opened'() {
    const app = await anApp();
    const breaker = `apns:${app.appId}:_default`;
    const { body } = await admin('GET', '/breakers');
    const own = (body.results as { id: string; appId: string }[]).find(
      ({ appId }) => appId === app.appId,
    );
    for (let i = 0; i < 2; i += 1)
      await admin('POST', `/breakers/${encodeURIComponent(own?.id ?? breaker)}/open`);
    const data = {
      breaker: own?.id,
      connector: 'apns',
      profile: '_default',
      reason: null,
      isForced: true,
    };
    return { app, data };
  },
  async 'breaker.closed'() {
    const { app, data } = await causes['breaker.opened']();
    const { breaker } = data as { breaker: string };
    for (let i = 0; i < 2; i += 1)
      await admin('POST', `/breakers/${encodeURIComponent(breaker)}/release`);
    return { app, data };
  },
  async 'credentials.ending'() {
    const app = await anApp();
    const endsAtMs = Date.now() + 3 * 86_400_000;
    const ending = { appId: app.appId, connector: 'apns', profile: '_default', endsAtMs };
    for (let i = 0; i < 2; i += 1) await noticeEnding(deps, [ending]);
    const endsAt = new Date(endsAtMs).toISOString();
    return { app, data: { connector: 'apns', profile: '_default', endsAt, days: 7 } };
  },
  async 'quota.near'() {
    const app = await anApp();
    const { appId } = app;
    const day = new Date().toISOString().slice(0, 10);
    for (const usedRatio of [0.79, 0.8, 0.95])
      await noticeQuotas(deps.webhooks, { caps: [{ appId, usedRatio, day }], quotas: [] });
    return {
      app,
      data: {
        quota: 'dailyRecipientCap',
        usedPercent: 80,
        day,
        connector: null,
        profile: null,
      },
    };
  },
  async 'freeze.started'() {
    const app = await anApp();
    await admin('PUT', `/apps/${app.appId}/freeze`, { reason: 'wrong text' });
    return { app, data: { scope: 'app', reason: 'wrong text', by: expect.any(String) } };
  },
  async 'freeze.ended'() {
    const { app, data } = await causes['freeze.started']();
    await admin('DELETE', `/apps/${app.appId}/freeze`);
    return { app, data };
  },
};

test.each(eventTypeNames)('%s is sent once when it happens', async (type) => {
  const { app, data } = await causes[type]();
  const events = () =>
    receiver
      .of(type)
      .filter(({ event }) => event.app === app.appId)
      .map((request) => verified(apps.get(app.appId) ?? '', request));
  await expect.poll(() => events().length).toBe(1);
  expect(events()[0]?.data).toEqual(data);
  recorded[type] = stable(events()[0], app);
  // No second event is waiting.
  const { rows } = await service.db.query<{ n: number }>(
    'SELECT count(*) AS n FROM webhook_delivery WHERE app_id = $1 AND type = $2',
    [app.appId, type],
  );
  expect(rows[0]?.n).toBe(1);
});

test('the examples of the reference are the recorded events', async () => {
  const text = `${JSON.stringify(recorded, null, 2)}\n`;
  if (process.env.UPDATE_EXAMPLES === '1') await writeFile(examplesFile, text);
  expect(recorded, 'UPDATE_EXAMPLES=1 writes docs/webhook-examples.json').toEqual(
    JSON.parse(await readFile(examplesFile, 'utf8')),
  );
});

test('push.failed of a push that cannot be sent at all has the text of the reason', async () => {
  const app = await anApp();
  await service.addIosInstallations(app, 1);
  const place = '{"__type":"GeoPoint","latitude":1e400,"longitude":0}';
  await service.db.query('UPDATE installation SET fields = $2 WHERE app_id = $1', [
    app.appId,
    `{"place":${place}}`,
  ]);
  const center = { __type: 'GeoPoint', latitude: 1, longitude: 1 };
  const push = await send(app, { where: { place: { $nearSphere: center, $maxDistance: 1 } } });
  const events = () => receiver.of('push.failed').filter(({ event }) => event.app === app.appId);
  await expect.poll(() => events().length).toBe(1);
  expect(events()[0]?.event.data).toEqual({
    push,
    connector: null,
    profile: null,
    reason: 'the database cannot evaluate the condition of the push',
    connectors: {},
  });
});

test('a freeze of the service is sent to the endpoints of all apps', async () => {
  const app = await anApp();
  await admin('PUT', '/freeze', { reason: 'maintenance' });
  await admin('DELETE', '/freeze');
  const own = (type: string) =>
    receiver
      .of(type)
      .map((request) => request.event)
      .filter((event) => event.app === null && event.data.reason === 'maintenance');
  await expect.poll(() => own('freeze.ended').length).toBe(apps.size);
  await expect.poll(() => own('freeze.started').length).toBe(apps.size);
  expect(own('freeze.started')[0]).toMatchObject({ data: { scope: 'service' } });
  expect(app.appId).not.toBe('');
});
