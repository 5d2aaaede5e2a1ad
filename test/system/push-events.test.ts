import { beforeAll, describe, expect, test } from 'vitest';
import { toPushMessage } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import { type App, effectiveOptions } from '../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { outcomeCode } from '../../shared/domain/outcome.ts';
import { parsePush } from '../../shared/domain/pushes/push.ts';
import { maxPushEvents, withPushId } from '../../shared/domain/pushes/push-events.ts';
import { useTestService } from '../support/service.ts';
import { readDevices } from '../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});

/** Creates an app with devices and the option. Returns the ids of its devices. */
async function reportingApp(devices = 3) {
  const app = await service.api.createApp({ reportOpens: true });
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, devices);
  const ids = (await readDevices(service.db, app)).map(({ objectId }) => objectId);
  return { app, ids };
}

async function push(app: App, body: JsonObject = {}): Promise<string> {
  const sent = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: sent });
  expect(reply.status).toBe(200);
  await service.untilDone(app, reply.body.objectId);
  return reply.body.objectId;
}

const report = (app: App, objectId: string | undefined, events: unknown) =>
  service.api.request('POST', '/1.1/push/events', { app, body: { objectId, events } });

async function eventsOf(app: App, push: string) {
  const record = await service.api.request('GET', `/1.1/notifications/${push}`, { app });
  const path = `/console/api/apps/${app.appId}/notifications/${push}/progress`;
  const progress = await service.api.request('GET', path, { admin: true });
  expect(progress.body.events).toEqual(record.body.events);
  return record.body.events;
}

describe('events that an app reports', () => {
  test('count once for each device, push and type', async () => {
    const { app, ids } = await reportingApp();
    const [one, two] = ids;
    const id = await push(app);
    expect(await eventsOf(app, id)).toEqual({ received: 0, opened: 0, dismissed: 0 });
    const events = [
      { push: id, type: 'received' },
      { push: id, type: 'opened', at: '2026-11-28T10:00:00+08:00' },
    ];
    const replies = await Promise.all(
      [one, one, one, two].map((device) => report(app, device, events)),
    );
    for (const reply of replies) expect(reply).toMatchObject({ status: 200, body: {} });
    await report(app, two, [
      { push: id, type: 'dismissed' },
      { push: id, type: 'dismissed' },
    ]);
    expect(await eventsOf(app, id)).toEqual({ received: 2, opened: 2, dismissed: 1 });
    // Receipts of gateways are counted apart.
    const { body } = await service.api.request('GET', `/1.1/notifications/${id}`, { app });
    expect(body).toMatchObject({ delivered: 0, clicked: 0 });
  });

  test('are taken from a device by its installationId', async () => {
    const { app } = await reportingApp(0);
    const installationId = 'a-device-of-the-test';
    const device = { deviceType: 'ios', deviceToken: 'ab'.repeat(32), installationId };
    await service.api.request('POST', '/1.1/installations', { app, body: device });
    const id = await push(app);
    const body = { installationId, events: [{ push: id, type: 'opened' }] };
    await service.api.request('POST', '/1.1/push/events', { app, body });
    expect(await eventsOf(app, id)).toMatchObject({ opened: 1 });
  });

  test('count only for devices that the push was sent to', async () => {
    const { app, ids } = await reportingApp(4);
    const [aimed = '', other = '', failed = ''] = ids;
    const id = await push(app, { where: { objectId: aimed } });
    const foreign = await reportingApp(1);
    const foreignId = await push(foreign.app);
    for (const device of ids) await report(app, device, [{ push: id, type: 'opened' }]);
    await report(app, other, [
      { push: foreignId, type: 'opened' },
      { push: 'A'.repeat(16), type: 'opened' },
    ]);
    expect(await eventsOf(app, id)).toMatchObject({ opened: 1 });
    expect(await eventsOf(foreign.app, foreignId)).toMatchObject({ opened: 0 });
    const toFailed = await push(app, { where: { objectId: failed }, data: { alert: 'x' } });
    await service.db.query(
      'UPDATE push_batch SET settled = $2 WHERE app_id = $1 AND settled IS NOT NULL',
      [app.appId, Buffer.from([outcomeCode('failed')])],
    );
    await report(app, failed, [{ push: toFailed, type: 'received' }]);
    expect(await eventsOf(app, toFailed)).toMatchObject({ received: 0 });
  });

  test('of batches that an older version wrote count too', async () => {
    const { app, ids } = await reportingApp(2);
    const id = await push(app);
    await service.db.query(
      'UPDATE push_batch SET first_recipient = NULL, last_recipient = NULL WHERE app_id = $1',
      [app.appId],
    );
    await report(app, ids[1], [{ push: id, type: 'received' }]);
    expect(await eventsOf(app, id)).toMatchObject({ received: 1 });
  });

  test('of many devices at the same time count once each', async () => {
    const { app, ids } = await reportingApp(150);
    const id = await push(app);
    const events = [{ push: id, type: 'received' }];
    const replies = await Promise.all(
      [...ids, ...ids].map((device) => report(app, device, events)),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await eventsOf(app, id)).toEqual({ received: 150, opened: 0, dismissed: 0 });
  });

  test('are refused without the option, for unknown devices, and in a wrong form', async () => {
    const { app, ids } = await reportingApp(1);
    const id = await push(app);
    const event = { push: id, type: 'opened' };
    const off = await service.api.createApp();
    const wrong: [object, RegExp][] = [
      [{ objectId: ids[0] }, /^events/],
      [{ objectId: ids[0], events: [] }, /^events/],
      [{ objectId: ids[0], events: Array(maxPushEvents + 1).fill(event) }, /^events/],
      [{ objectId: ids[0], events: [{ ...event, type: 'clicked' }] }, /^events\.0\.type/],
      [{ objectId: ids[0], events: [{ ...event, push: 'x' }] }, /^events\.0\.push/],
      [{ objectId: ids[0], events: [{ ...event, at: 'now' }] }, /^events\.0\.at/],
      [{ objectId: ids[0], events: [{ ...event, more: 1 }] }, /more/],
      [{ events: [event] }, /^installationId/],
      [{ objectId: ids[0], installationId: 'x', events: [event] }, /^installationId/],
    ];
    for (const [body, error] of wrong) {
      const reply = await service.api.request('POST', '/1.1/push/events', { app, body });
      expect(reply).toMatchObject({ status: 400, body: { error: expect.stringMatching(error) } });
    }
    expect(await report(app, 'unknown', [event])).toMatchObject({
      status: 404,
      body: { code: 101 },
    });
    expect(await report(off, ids[0], [event])).toMatchObject({ status: 400, body: { code: 119 } });
    expect(await eventsOf(app, id)).toMatchObject({ opened: 0 });
  });
});

describe('the id of a push in its messages', () => {
  const parsed = (data: JsonObject) =>
    parsePush({ data: { alert: 'a', ...data } }, 'prod', 0).pushOrder;
  const objectId = 'Zk3vQ0pWm7xYtR1b';

  /**
   * Gateways whose system opens `url` without the app. The request then has no custom members.
   */
  const opensUrl = new Set(['vendor_a', 'vendor_c', 'vendor_d', 'vendor_f']);

  /** Returns the request of a gateway as text. */
  function requestOf(connector: string, reportOpens: boolean, data: JsonObject = {}) {
    const deviceType = connector === 'apns' ? 'ios' : 'android';
    const pushOrder = withPushId(
      { ...effectiveOptions('commercial', {}), reportOpens },
      parsed({ who: 'Ann', ...data }),
    );
    const times = { createdAt: new Date(0), expiresAt: new Date(86_400_000) };
    const message = toPushMessage({ objectId, pushOrder, ...times });
    const sender = [...connectors.values()].find(({ id }) => id === connector);
    const rendering = sender?.render(message, deviceType);
    if (!rendering?.ok) throw new Error(rendering?.error);
    return sender?.preview?.(rendering.payload) ?? JSON.stringify(rendering.payload);
  }

  test.each([...connectors.keys()])('is a custom member at %s if the option is on', (connector) => {
    const id = new RegExp(`_push\\W+${objectId}`);
    expect(decodeURIComponent(requestOf(connector, true))).toMatch(id);
    expect(requestOf(connector, false)).not.toContain('_push');
    const url = 'https://example.com/orders/7';
    const withUrl = decodeURIComponent(requestOf(connector, true, { url }));
    if (opensUrl.has(connector)) expect(withUrl).not.toContain('_push');
    else expect(withUrl).toMatch(id);
  });

  test('is reserved while the option is on', async () => {
    const { app } = await reportingApp(1);
    const body = { data: { alert: 'a', _push: 'mine' } };
    const send = (of: App) =>
      service.api.request('POST', '/1.1/push', { app: of, master: true, body });
    expect(await send(app)).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^_push/) },
    });
    const path = `/console/api/apps/${app.appId}/push/explain`;
    expect(await service.api.request('POST', path, { admin: true, body })).toMatchObject({
      status: 400,
    });
    const off = await service.api.createApp();
    await service.addApnsProfile(off);
    expect((await send(off)).status).toBe(200);
  });
});
