import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type MeizuGateway, startMeizuGateway } from '../../ops/sandbox/meizu/server.ts';
import { startXiaomiGateway, type XiaomiGateway } from '../../ops/sandbox/xiaomi/server.ts';
import { Vault } from '../../shared/crypto.ts';
import { putProfile } from '../../shared/db/tables/profiles.ts';
import type { App } from '../../shared/domain/app.ts';
import { canonicalVendor } from '../../shared/domain/labels.ts';
import { meizuApp, pushIdOf } from '../connectors/fixtures/meizu.ts';
import { regId, xiaomiApp } from '../connectors/fixtures/xiaomi.ts';
import { testConfig } from '../support/api.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let xiaomi: XiaomiGateway;
let meizu: MeizuGateway;

beforeAll(async () => {
  service = await startTestService();
  xiaomi = await startXiaomiGateway(xiaomiApp);
  meizu = await startMeizuGateway(meizuApp);
  await service.dispatch();
});
afterAll(async () => {
  await service.close();
  await Promise.all([xiaomi.close(), meizu.close()]);
});
afterEach(() => {
  for (const gateway of [xiaomi, meizu]) {
    gateway.behave();
    gateway.forget();
    gateway.deadTokens.clear();
  }
});

/** An app with a profile at either gateway. */
async function appOnBoth(more: object = {}): Promise<App> {
  const app = await service.api.createApp({ hybridPush: true });
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const profiles = [
    ['vendor_b', { ...xiaomiApp, endpoint: xiaomi.url, ca: xiaomi.ca }],
    ['vendor_c', { ...meizuApp, endpoint: meizu.url, ca: meizu.ca, ...more }],
  ] as const;
  for (const [connector, credentials] of profiles)
    await putProfile(service.db, vault, { appId: app.appId, connector, name: '_default', credentials });
  return app;
}

async function add(app: App, vendor: string, addresses: string[]): Promise<string[]> {
  await service.db.query(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id, registration_id, vendor, vendor_name, fields)
     SELECT $1, encode(sha256((random()::text || address)::bytea), 'hex')::varchar(24), 'android',
            gen_random_uuid()::text, address, $2, $3, '{}' FROM unnest($4::text[]) AS address`,
    [app.appId, canonicalVendor(vendor), vendor, addresses],
  );
  return addresses;
}

const some = (form: (n: number) => string, from: number, count: number): string[] =>
  Array.from({ length: count }, (_, i) => form(from + i));

async function push(app: App, data: object): Promise<Record<string, unknown>> {
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: { data } });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return service.untilDone(app, reply.body.objectId);
}

async function devicesLeft(app: App): Promise<string[]> {
  const { rows } = await service.db.query<{ registration_id: string }>(
    'SELECT registration_id FROM installation WHERE app_id = $1',
    [app.appId],
  );
  return rows.map((row) => row.registration_id);
}

describe('a push to devices of Xiaomi and Meizu', () => {
  test('reaches each once, at home and abroad; the dead ones go where the gateway can know', async () => {
    const app = await appOnBoth({ ratePerSecond: 100_000 });
    const home = await add(app, 'mi', some(regId, 0, 1100));
    const abroad = await add(app, 'mi-intl', some(regId, 2000, 60));
    const meizus = await add(app, 'mz', some(pushIdOf, 0, 250));
    for (const address of [home[3] ?? '', abroad[3] ?? '']) xiaomi.deadTokens.add(address);
    meizu.deadTokens.add(meizus[100] ?? '');
    const record = await push(app, { alert: 'Hello', mi: { title: 'to Xiaomi' } });
    expect(record).toMatchObject({
      devices: 1410,
      miSuccesses: 1158,
      meizuSuccesses: 249,
      invalidTokens: 2,
      outcomes: { sent: 1407, invalid_token: 2, failed: 1 },
    });
    for (const address of [...home, ...abroad]) expect(xiaomi.seen(address)).toBe(1);
    for (const address of meizus) expect(meizu.seen(address)).toBe(1);
    expect([...xiaomi.violations, ...meizu.violations]).toEqual([]);
    const isMixed = xiaomi.requests.some(
      ({ tokens }) => tokens.some((one) => abroad.includes(one)) && tokens.some((one) => home.includes(one)),
    );
    expect(isMixed).toBe(false);
    await expect.poll(async () => (await devicesLeft(app)).length).toBe(1408);
    expect(await devicesLeft(app)).toContain(abroad[3]);
    const form = new URLSearchParams(xiaomi.requests[0]?.body.toString());
    expect(form.get('title')).toBe('to Xiaomi');
    expect(form.get('extra.callback')).toMatch(`/callbacks/vendor_b/${app.appId}/`);
  });

  test('that is silent reaches the apps on Xiaomi’s; Meizu’s are dropped, and the record says why', async () => {
    const app = await appOnBoth();
    await add(app, 'mi', some(regId, 0, 2));
    await add(app, 'meizu', some(pushIdOf, 0, 2));
    const record = await push(app, { alert: 'a', silent: true });
    expect(record).toMatchObject({ miSuccesses: 2, outcomes: { sent: 2, dropped: 2 } });
    expect(record.errors).toContain('vendor_c does not support silent messages');
    expect(meizu.total).toBe(0);
  });

  test('leaves Meizu evenly at its rate: more than fits into a request does not leave in one moment', async () => {
    const app = await appOnBoth({ ratePerSecond: 500 });
    await add(app, 'mz', some(pushIdOf, 0, 300));
    expect(await push(app, { alert: 'a' })).toMatchObject({ meizuSuccesses: 300 });
    expect(meizu.total).toBeGreaterThan(6);
    expect(Math.max(...meizu.requests.map(({ tokens }) => tokens.length))).toBeLessThan(100);
  });

  test('ends capped when the day is used up, and is not asked for again', async () => {
    const app = await appOnBoth();
    await add(app, 'mi', some(regId, 0, 5));
    xiaomi.misbehave({ kind: 'answer', status: 200, body: { result: 'error', code: 200001 } });
    for (const _ of [1, 2])
      expect(await push(app, { alert: 'a' })).toMatchObject({ devices: 5, outcomes: { capped: 5 } });
    expect(xiaomi.total).toBe(1);
    expect(await devicesLeft(app)).toHaveLength(5);
  });

  test('with credentials that are refused ends with a sentence, and deletes nobody', async () => {
    const app = await appOnBoth({ appSecret: 'another' });
    await add(app, 'mz', some(pushIdOf, 0, 5));
    const record = await push(app, { alert: 'a' });
    expect(record).toMatchObject({ status: 'done', outcomes: { failed: 5 } });
    expect(record.errors).toContain('Meizu refuses the signature: check appSecret.');
    expect(await devicesLeft(app)).toHaveLength(5);
  });
});
