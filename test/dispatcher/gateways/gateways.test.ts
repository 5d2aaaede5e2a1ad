import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  createServiceAccount,
  type FcmGateway,
  startFcmGateway,
} from '../../../ops/sandbox/fcm/server.ts';
import { startHuaweiGateway } from '../../../ops/sandbox/vendors/huawei/server.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { allowedUnits } from '../../../shared/db/tables/gateway-limits.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import { listGatewayMessages } from '../../../shared/db/tables/receipts.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { countRows, insertDevices, readDevices, readPush } from '../../support/tables.ts';

const account = createServiceAccount();
let gateway: FcmGateway;

const service = useTestService();
beforeAll(async () => {
  gateway = await startFcmGateway({ account });
  await service.dispatch();
  await service.dispatch();
});
afterAll(async () => {
  await gateway.close();
});
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
});

async function appWith(...labels: ConnectorId[]): Promise<App> {
  const app = await service.api.createApp({ hybridPush: true });
  for (const label of labels) await putFcm(app, label);
  return app;
}

async function putFcm(app: App, connector: ConnectorId, more: object = {}): Promise<void> {
  const credentials = {
    serviceAccount: account,
    endpoint: gateway.url,
    authEndpoint: gateway.url,
    ca: gateway.ca,
    ratePerSecond: 1_000_000,
    ...more,
  };
  await putProfileOf(app, connector, credentials);
}

async function putProfileOf(app: App, connector: ConnectorId, credentials: object): Promise<void> {
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  await putProfile(service.db, vault, {
    appId: app.appId,
    connector,
    name: '_default',
    credentials,
  });
}

/** Creates devices with registration ids. Returns the registration ids. */
async function addDevices(app: App, count: number, vendorName = 'fcm'): Promise<string[]> {
  const { rows } = await service.db.query<{ registration_id: string }>(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id, registration_id,
      vendor, vendor_name, fields)
     SELECT $1, encode(sha256((random()::text || i)::bytea), 'hex')::varchar(24), 'android',
            gen_random_uuid()::text, 'fcmInstance:' || encode(sha256((random()::text || i)::bytea),
            'hex'), 'vendor_g', $3, '{}'
       FROM generate_series(1, $2::int) AS i RETURNING registration_id`,
    [app.appId, count, vendorName],
  );
  return rows.map((row) => row.registration_id);
}

async function push(app: App, body: object = {}): Promise<Record<string, unknown>> {
  const whole = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: whole });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return service.untilDone(app, reply.body.objectId);
}

const totalsOf = async (app: App, { objectId }: Record<string, unknown>) => {
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/progress`;
  return (await service.api.request('GET', path, { admin: true })).body.connectors;
};

describe('a push to FCM devices', () => {
  test('reaches 1,500 devices once each over two dispatchers with one access token', async () => {
    const app = await appWith('fcm');
    const tokens = await addDevices(app, 1500);
    gateway.forget();
    const record = await push(app);
    expect(record).toMatchObject({ devices: 1500, successes: 1500, fcmSuccesses: 1500 });
    expect(tokens.every((token) => gateway.delivered(token) === 1)).toBe(true);
    expect(gateway.total).toBe(1500);
    expect(gateway.violations).toEqual([]);
    expect(gateway.tokenCalls).toBe(1);
  });

  test("uses the installation's connector if it has a profile, else the other", async () => {
    const both = await appWith('fcm', 'vendor_g');
    await addDevices(both, 3, 'FCM');
    await addDevices(both, 2, 'vendor_g');
    expect(await totalsOf(both, await push(both))).toEqual({
      fcm: { sent: 3 },
      vendor_g: { sent: 2 },
    });
    const one = await appWith('vendor_g');
    await addDevices(one, 3, 'FCM');
    await addDevices(one, 2, 'vendor_g');
    expect(await totalsOf(one, await push(one))).toEqual({ vendor_g: { sent: 5 } });
  });

  test('is refused at the call if neither connector has a profile', async () => {
    const app = await appWith();
    const [token = ''] = await addDevices(app, 1);
    const body = { data: { alert: 'a' } };
    const listed = { ...body, device_type: 'android', device_ids: [token], vendor: 'fcm' };
    for (const [path, sent] of [
      ['/1.1/push', body],
      ['/1.1/push/devices', listed],
    ] as const) {
      const reply = await service.api.request('POST', path, { app, master: true, body: sent });
      expect(reply.status).toBe(400);
      expect(reply.body.error).toMatch(/no FCM( \(vendor_g\))? profile named _default/);
    }
  });

  test('deletes unregistered devices of FCM, but not those of another project', async () => {
    const app = await appWith('fcm');
    const [dead = '', foreign = ''] = await addDevices(app, 5);
    gateway.deadTokens.add(dead);
    gateway.foreignTokens.add(foreign);
    const record = await push(app);
    gateway.foreignTokens.clear();
    expect(record).toMatchObject({ successes: 3, invalidTokens: 2 });
    const left = async () =>
      (await readDevices(service.db, app)).map(({ registrationId }) => registrationId);
    await expect.poll(left).not.toContain(dead);
  });

  test('keeps all devices if the whole push seems to be of another project', async () => {
    const app = await appWith('fcm');
    const tokens = await addDevices(app, 120);
    for (const token of tokens) gateway.foreignTokens.add(token);
    const record = await push(app);
    gateway.foreignTokens.clear();
    expect(record).toMatchObject({ successes: 0, outcomes: { failed: 120 } });
    expect(record.errors).toContain('sender_id_mismatch');
    expect(await countRows(service.db, 'installation', app)).toBe(120);
  });

  test('records the message id of FCM and the number of sent messages', async () => {
    const app = await appWith('fcm');
    await addDevices(app, 2);
    const { objectId } = await push(app);
    const { id } = await readPush(service.db, app, String(objectId));
    const ofPush = { appId: app.appId, id };
    const messages = await listGatewayMessages(service.db, ofPush, { after: null, limit: 10 });
    expect(messages).toHaveLength(2);
    expect(messages[0]).toMatchObject({
      connector: 'fcm',
      messageId: expect.stringMatching(/^0:/),
      devices: 1,
    });
    const handed = () =>
      service.db
        .query(`SELECT requests, recipients FROM gateway_day WHERE app_id = $1 AND class = ''`, [
          app.appId,
        ])
        .then((result) => result.rows);
    await expect.poll(handed, { timeout: 20_000 }).toEqual([{ requests: 2, recipients: 2 }]);
  });

  test('that is silent is sent, not dropped', async () => {
    const app = await appWith('fcm');
    await addDevices(app, 1);
    expect(await push(app, { data: { silent: true, k: 1 } })).toMatchObject({ successes: 1 });
    expect(gateway.requests.at(-1)?.body.toString()).not.toContain('"notification"');
  });
});

test('a test push goes to ten devices of the vendor, and caps the others', async () => {
  const huawei = await startHuaweiGateway();
  const { appId, appSecret } = huawei.memory.app;
  const app = await appWith();
  const endpoints = { endpoint: huawei.url, authEndpoint: huawei.url, ca: huawei.ca };
  await putProfileOf(app, 'vendor_a', { appId, appSecret, ...endpoints });
  await insertDevices(
    service.db,
    app,
    Array.from({ length: 15 }, (_, i) => ({
      deviceType: 'android',
      installationId: randomUUID(),
      vendor: 'vendor_a',
      vendorName: 'HMS',
      registrationId: `IQAAAACy${String(i).padStart(40, '0')}`,
    })),
  );
  const data = { alert: 'Hello', hms: { target_user_type: 1 } };
  const record = await push(app, { data });
  expect(record).toMatchObject({ hmsSuccesses: 10, outcomes: { sent: 10, capped: 5 } });
  expect(record.errors).toContain('test pushes go to at most 10 devices');
  expect(huawei.accepted).toBe(10);
  expect(huawei.violations).toEqual([]);
  // Without the test option, the push goes to all devices.
  expect(await push(app)).toMatchObject({ hmsSuccesses: 15 });
  await huawei.close();
});

test('a gateway’s rate applies to all dispatchers, and grows after a burst', async () => {
  const app = await appWith();
  const perSecond = 1500;
  await putFcm(app, 'fcm', { ratePerSecond: perSecond });
  await addDevices(app, 620);
  const startedAtMs = systemClock.monotonicMs();
  const seen: [number, number][] = [];
  const timer = setInterval(
    () => seen.push([systemClock.monotonicMs() - startedAtMs, gateway.total]),
    20,
  );
  const records = await Promise.all([push(app), push(app)]);
  clearInterval(timer);
  for (const record of records) expect(record).toMatchObject({ successes: 620 });
  const limit = { perSecond, burst: 1000, rampMs: 60_000 };
  // Small pushes are sent without a delay. A push may be early by the length of its time slot.
  for (const [ms, total] of seen) expect(total).toBeLessThanOrEqual(allowedUnits(limit, ms + 250));
  expect(seen.at(-1)?.[0]).toBeGreaterThan(3000);
});
