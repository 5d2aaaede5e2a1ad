import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type OppoGateway, startOppoGateway } from '../../ops/sandbox/oppo/server.ts';
import { startVivoGateway, type VivoGateway } from '../../ops/sandbox/vivo/server.ts';
import { Vault } from '../../shared/crypto.ts';
import { putProfile } from '../../shared/db/tables/profiles.ts';
import type { App } from '../../shared/domain/app.ts';
import { canonicalVendor } from '../../shared/domain/labels.ts';
import { oppoId } from '../connectors/fixtures/oppo.ts';
import { vivoId } from '../connectors/fixtures/vivo.ts';
import { testConfig } from '../support/api.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let oppo: OppoGateway;
let vivo: VivoGateway;

beforeAll(async () => {
  service = await startTestService();
  oppo = await startOppoGateway();
  vivo = await startVivoGateway();
  await service.dispatch();
});
afterAll(async () => {
  await service.close();
  await Promise.all([oppo.close(), vivo.close()]);
});
afterEach(() => {
  for (const gateway of [oppo, vivo]) {
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
    ['vendor_d', { ...oppo.memory.app, endpoint: oppo.url, ca: oppo.ca, ratePerSecond: 100_000 }],
    ['vendor_e', { ...vivo.memory.app, endpoint: vivo.url, ca: vivo.ca, ratePerSecond: 100_000, ...more }],
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

const some = (form: (n: number) => string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => form(i));

async function push(app: App, data: object, more: object = {}): Promise<Record<string, unknown>> {
  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data, ...more },
  });
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

describe('a push to devices of OPPO and vivo', () => {
  test('reaches each once, in few requests; the dead ones go', async () => {
    const app = await appOnBoth();
    const oppos = await add(app, 'OPPO', some(oppoId, 1100));
    const vivos = await add(app, 'vivo', some(vivoId, 1100));
    oppo.deadTokens.add(oppos[3] ?? '');
    vivo.deadTokens.add(vivos[1099] ?? '');
    const record = await push(app, {
      alert: 'Hello',
      oppo: { title: 'to OPPO' },
      vivo: { title: 'to vivo' },
    });
    expect(record).toMatchObject({
      devices: 2200,
      oppoSuccesses: 1099,
      vivoSuccesses: 1099,
      invalidTokens: 2,
      outcomes: { sent: 2198, invalid_token: 2 },
    });
    for (const address of oppos) expect(oppo.seen(address)).toBe(1);
    for (const address of vivos) expect(vivo.seen(address)).toBe(1);
    expect([...oppo.violations, ...vivo.violations]).toEqual([]);
    await expect.poll(async () => (await devicesLeft(app)).length).toBe(2198);
    const messages = oppo.requests.flatMap(({ body }) =>
      JSON.parse(new URLSearchParams(body.toString()).get('messages') ?? '[]'),
    );
    expect(messages[0]?.notification).toMatchObject({
      title: 'to OPPO',
      call_back_url: expect.stringContaining(`/callbacks/vendor_d/${app.appId}/`),
    });
    const [saved] = vivo.requests.filter(({ path }) => path === '/message/saveListPayload');
    expect(JSON.parse(saved?.body.toString() ?? '')).toMatchObject({ title: 'to vivo' });
    expect([oppo.tokenCalls, vivo.tokenCalls]).toEqual([1, 1]);
  });

  test('that is silent is dropped, and the record says why', async () => {
    const app = await appOnBoth();
    await add(app, 'oppo', some(oppoId, 2));
    await add(app, 'vivo', some(vivoId, 2));
    const record = await push(app, { alert: 'a', silent: true });
    expect(record).toMatchObject({ outcomes: { dropped: 4 } });
    expect(record.errors).toContain('vendor_d does not support silent messages');
    expect(record.errors).toContain('vendor_e does not support silent messages');
    expect(oppo.total + vivo.total).toBe(0);
  });

  test('ends capped when a class is used up for the day, and only that class', async () => {
    const app = await appOnBoth();
    await add(app, 'vivo', some(vivoId, 5));
    vivo.misbehave({ kind: 'answer', status: 200, body: { result: 10070 } });
    for (const _ of [1, 2])
      expect(await push(app, { alert: 'a' })).toMatchObject({ devices: 5, outcomes: { capped: 5 } });
    expect(vivo.total).toBe(1);
    vivo.behave();
    expect(await push(app, { alert: 'a', vivo: { classification: 1 } })).toMatchObject({
      outcomes: { sent: 5 },
    });
    expect(await devicesLeft(app)).toHaveLength(5);
  });

  test('that vivo takes in the morning only ends expired where its time ends before', async () => {
    const app = await appOnBoth();
    await add(app, 'vivo', some(vivoId, 5));
    vivo.misbehave({ kind: 'answer', status: 200, body: { result: 10071 } });
    const record = await push(app, { alert: 'a' }, { expiration_interval: 2 });
    expect(record).toMatchObject({ status: 'done', outcomes: { expired: 5 } });
    expect(await devicesLeft(app)).toHaveLength(5);
  });

  test('as a test goes to 20 devices at most', async () => {
    const app = await appOnBoth();
    const addresses = await add(app, 'vivo', some(vivoId, 21));
    for (const address of addresses) vivo.memory.testDevices.add(address);
    const record = await push(app, { alert: 'a', vivo: { pushMode: 1 } });
    expect(record).toMatchObject({ devices: 21, outcomes: { sent: 20 } });
    expect(vivo.accepted).toBe(20);
  });

  test('with credentials that are refused ends with a sentence, and deletes nobody', async () => {
    const app = await appOnBoth({ appSecret: 'another' });
    await add(app, 'vivo', some(vivoId, 5));
    const record = await push(app, { alert: 'a' });
    expect(record).toMatchObject({ status: 'done', outcomes: { failed: 5 } });
    expect(record.errors).toContain(
      'The credentials are refused by vivo: check appId, appKey and appSecret.',
    );
    expect(await devicesLeft(app)).toHaveLength(5);
  });
});
