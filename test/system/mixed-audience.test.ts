import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDevices, type SimulatedDevices } from '../../ops/sandbox/devices/devices.ts';
import { currentEnvironment } from '../../shared/config/config.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import {
  type ConnectorId,
  connectorIds,
  dataKeyOwners,
  isConnectorId,
  profileConnectorIds,
  successField,
} from '../../shared/domain/labels.ts';
import { type AllVendors, startVendors } from '../support/gateways/all-vendors.ts';
import { useTestService } from '../support/service.ts';
import { countRows, insertDevices } from '../support/tables.ts';

/** Devices per channel, more than a batch of a thousand. */
const share = Math.floor(
  Number(currentEnvironment().MIXED_DEVICES ?? 20_000) / connectorIds.length,
);
const devices = share * connectorIds.length;
/** Connected devices on the device channel. The messages of the others wait. */
const connected = Math.min(share, 200);

/**
 * Returns the text for the devices of a channel. Texts differ, so that a mix-up fails the test.
 * Both FCM connectors have the same text.
 */
const alertOf = (id: ConnectorId): string => {
  const place = connectorIds.indexOf(id === 'fcm' ? 'vendor_g' : id);
  return `Your parcel is waiting at gate ${'ABCDEFGHIJKLMNOP'.charAt(place)}`;
};

const data = {
  alert: 'Your parcel is waiting',
  title: 'Good news',
  order: 'A-4711',
  ios: { alert: alertOf('apns') },
  android: { alert: alertOf('channel') },
  // Wire keys of the vendors: `hms`, `mi`, …
  ...Object.fromEntries(
    [...dataKeyOwners].flatMap(([key, owner]) =>
      isConnectorId(owner) && key !== owner ? [[key, { alert: alertOf(owner) }]] : [],
    ),
  ),
  // vivo delivers messages of the system class at any hour.
  vivo: { alert: alertOf('vendor_e'), classification: 1, category: 'ORDER' },
};

let vendors: AllVendors;
let simulated: SimulatedDevices | undefined;
const received = new Map<string, unknown[]>();

const service = useTestService();
beforeAll(async () => {
  vendors = await startVendors(service, { keptRequests: devices });
  await service.dispatch();
  await service.dispatch();
});
afterAll(async () => {
  await simulated?.close();
  await vendors.close();
});

/** Adds devices without a vendor. Returns their installation ids. */
async function addChannelDevices(app: App, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await insertDevices(
    service.db,
    app,
    ids.map((installationId) => ({ deviceType: 'android', installationId })),
  );
  return ids;
}

test(`a push to ${devices} devices through all channels reaches each once with its own text`, {
  timeout: 300_000,
}, async () => {
  const app = await service.api.createApp({ hybridPush: true });
  const tokensOf = new Map<ConnectorId, string[]>();
  expect(vendors.instances.map(({ connector }) => connector)).toEqual(profileConnectorIds);
  for (const instance of vendors.instances) {
    await vendors.put(app, instance);
    tokensOf.set(instance.connector, await vendors.add(app, instance.connector, share));
  }
  const own = await addChannelDevices(app, share);
  simulated = await connectDevices({
    apiUrl: service.api.url,
    appId: app.appId,
    installationIds: own.slice(0, connected),
    onMessage: (id, content) => received.set(id, [...(received.get(id) ?? []), content.alert]),
  });

  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data },
  });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  const { objectId } = reply.body;
  const record = await service.untilDone(app, objectId, 240_000);
  expect(record).toMatchObject({
    status: 'done',
    devices,
    errors: '',
    outcomes: { sent: devices },
  });

  // Totals per channel have their wire names in the record and their connector ids in the progress.
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/progress`;
  const progress = (await service.api.request('GET', path, { admin: true })).body;
  for (const connector of connectorIds)
    expect(progress.connectors[connector]).toEqual({ sent: share });
  for (const { connector } of vendors.instances)
    expect(record[successField(connector)]).toBe(
      successField(connector) === 'fcmSuccesses' ? 2 * share : share,
    );

  for (const instance of vendors.instances) {
    expect(instance.violations(), instance.title).toEqual([]);
    expect(instance.summary(), instance.title).toMatchObject({ accepted: share, devices: share });
    const tokens = tokensOf.get(instance.connector) ?? [];
    expect(tokens.filter((token) => instance.seen(token) !== 1)).toEqual([]);
    const sent = instance.requests();
    expect(sent.reduce((sum, { devices: named }) => sum + named, 0)).toBe(share);
    // A call with `taskId` refers to a message that an earlier call saved. Only the earlier call
    // contains the text.
    for (const { body } of sent)
      if (!/"taskId":/.test(body.toString('utf8'))) expectText(instance.connector, body);
  }

  await simulated.acked(connected);
  expect(simulated.counters).toMatchObject({ received: connected, repeated: 0 });
  for (const id of own.slice(0, connected)) expect(received.get(id)).toEqual([alertOf('channel')]);
  const acknowledged = async () =>
    (await service.api.request('GET', `/1.1/notifications/${objectId}`, { app })).body.lcSuccesses;
  await expect.poll(acknowledged, { timeout: 10_000 }).toBe(connected);
  expect(await countRows(service.db, 'channel_inbox', app)).toBe(share - connected);
});

/**
 * Checks that a body, JSON or a form, contains the text of this channel and of no other channel.
 */
function expectText(connector: ConnectorId, body: Buffer): void {
  const sent = body.toString('utf8');
  const text = sent.startsWith('{') ? sent : new URLSearchParams(sent).toString();
  const plain = decodeURIComponent(text.replaceAll('+', ' '));
  for (const alert of new Set(connectorIds.map(alertOf)))
    expect(plain.includes(alert), `${connector}: ${alert}`).toBe(alert === alertOf(connector));
  expect(plain).toContain('Good news');
  expect(plain).toContain('A-4711');
}
