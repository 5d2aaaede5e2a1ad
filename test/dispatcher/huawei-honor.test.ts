import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type HonorGateway, startHonorGateway } from '../../ops/sandbox/honor/server.ts';
import type { SandboxGateway } from '../../ops/sandbox/http/server.ts';
import { type HuaweiGateway, startHuaweiGateway } from '../../ops/sandbox/huawei/server.ts';
import { Vault } from '../../shared/crypto.ts';
import { putProfile } from '../../shared/db/tables/profiles.ts';
import type { App } from '../../shared/domain/app.ts';
import { testConfig } from '../support/api.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let huawei: HuaweiGateway;
let honor: HonorGateway;

beforeAll(async () => {
  service = await startTestService();
  huawei = await startHuaweiGateway();
  honor = await startHonorGateway();
  await service.dispatch();
});
afterAll(async () => {
  await service.close();
  await Promise.all([huawei.close(), honor.close()]);
});
afterEach(() => {
  for (const gateway of [huawei, honor]) {
    gateway.behave();
    gateway.forget();
    gateway.deadTokens.clear();
  }
  honor.memory.failTokens.clear();
});

const near = ({ ca, url }: SandboxGateway) => ({ endpoint: url, authEndpoint: url, ca });

/** An app with a profile at either gateway. */
async function appOnBoth(): Promise<App> {
  const app = await service.api.createApp({ hybridPush: true });
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const { appId, appSecret, serviceAccount } = huawei.memory.app;
  const profiles = [
    ['vendor_a', { appId, appSecret, serviceAccount, ...near(huawei) }],
    ['vendor_f', { ...honor.memory.app, badgeClass: 'com.e.Main', ...near(honor) }],
  ] as const;
  for (const [connector, credentials] of profiles)
    await putProfile(service.db, vault, { appId: app.appId, connector, name: '_default', credentials });
  return app;
}

/** Devices whose registration ids begin so; gives those. */
async function add(app: App, vendor: string, prefix: string, count: number): Promise<string[]> {
  const { rows } = await service.db.query<{ registration_id: string }>(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id, registration_id, vendor, vendor_name, fields)
     SELECT $1, encode(sha256((random()::text || i)::bytea), 'hex')::varchar(24), 'android', gen_random_uuid()::text,
            $3 || encode(sha256((random()::text || i)::bytea), 'hex'), $2, $2, '{}'
       FROM generate_series(1, $4::int) AS i RETURNING registration_id`,
    [app.appId, vendor, prefix, count],
  );
  return rows.map((row) => row.registration_id);
}

async function begin(app: App, data: object = { alert: 'Hello' }): Promise<string> {
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: { data } });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body.objectId;
}
const push = async (app: App, data?: object) => service.untilDone(app, await begin(app, data));

async function devicesLeft(app: App): Promise<number> {
  const { rows } = await service.db.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM installation WHERE app_id = $1',
    [app.appId],
  );
  return rows[0]?.n ?? 0;
}

describe('a push to devices of Huawei and Honor', () => {
  test('reaches each once over v1, v3 and Honor, with one access token each; the dead ones go', async () => {
    const app = await appOnBoth();
    const older = await add(app, 'vendor_a', 'IQAA', 1200);
    const newer = await add(app, 'vendor_a', 'MAMz', 100);
    const honors = await add(app, 'vendor_f', 'BAEB', 300);
    const dead = [...older.slice(0, 3), ...newer.slice(0, 2)];
    for (const token of dead) huawei.deadTokens.add(token);
    honor.deadTokens.add(honors[0] ?? '');
    const record = await push(app, { alert: 'Hello', badge: 3 });
    expect(record).toMatchObject({
      devices: 1600,
      hmsSuccesses: 1295,
      honorSuccesses: 299,
      invalidTokens: 6,
    });
    for (const token of [...older, ...newer]) expect(huawei.seen(token)).toBe(1);
    for (const token of honors) expect(honor.seen(token)).toBe(1);
    expect([huawei.tokenCalls, honor.tokenCalls]).toEqual([1, 1]);
    expect([...huawei.violations, ...honor.violations]).toEqual([]);
    const body = JSON.parse(honor.requests[0]?.body.toString() ?? '');
    expect(body.android.notification.badge).toEqual({ setNum: 3, badgeClass: 'com.e.Main' });
    expect(await devicesLeft(app)).toBe(1594);
  });

  test('hands a silent message to the apps of both', async () => {
    const app = await appOnBoth();
    await add(app, 'vendor_a', 'IQAA', 2);
    await add(app, 'vendor_f', 'BAEB', 2);
    expect(await push(app, { silent: true, k: 1 })).toMatchObject({ devices: 4, successes: 4 });
    const [{ message }, { data }] = [huawei, honor].map(({ requests }) =>
      JSON.parse(requests[0]?.body.toString() ?? ''),
    );
    for (const text of [message.data, data]) expect(JSON.parse(text)).toEqual({ silent: true, k: 1 });
  });

  test('deletes nobody when every token of a gateway is called dead', async () => {
    const app = await appOnBoth();
    for (const token of await add(app, 'vendor_a', 'IQAA', 50)) huawei.deadTokens.add(token);
    await add(app, 'vendor_f', 'BAEB', 5);
    expect(await push(app)).toMatchObject({ honorSuccesses: 5, invalidTokens: 50 });
    expect(await devicesLeft(app)).toBe(55);
  });

  test('stops at the gateway whose configuration is wrong, with a sentence, and nowhere else', async () => {
    const app = await appOnBoth();
    await add(app, 'vendor_a', 'IQAA', 1500);
    await add(app, 'vendor_f', 'BAEB', 5);
    const body = { code: '80300002', msg: 'No permission to send message to these tmIDs.', requestId: '' };
    huawei.misbehave({ kind: 'answer', status: 200, body });
    const record = await push(app);
    expect(record).toMatchObject({ devices: 1505, successes: 5, honorSuccesses: 5 });
    expect(JSON.stringify(record.errors ?? record.status)).toContain('AppGallery Connect');
    expect(await devicesLeft(app)).toBe(1505);
  });

  test('tries those again that Honor failed this time, and only those', async () => {
    const app = await appOnBoth();
    const tokens = await add(app, 'vendor_f', 'BAEB', 20);
    const failing = tokens.slice(0, 2);
    for (const token of failing) honor.memory.failTokens.add(token);
    const id = await begin(app);
    await honor.waitFor(1);
    honor.memory.failTokens.clear();
    expect(await service.untilDone(app, id)).toMatchObject({ honorSuccesses: 20 });
    for (const token of tokens) {
      expect(honor.delivered(token)).toBe(1);
      expect(honor.seen(token)).toBe(failing.includes(token) ? 2 : 1);
    }
  });
});
