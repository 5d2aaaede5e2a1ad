import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { App, AppOptionsPatch } from '../../../shared/domain/apps/app.ts';
import { writeReplyText } from '../../../shared/domain/texts/texts.ts';
import { useTestService } from '../../support/service.ts';
import {
  changeDevices,
  changeDevicesWith,
  insertDevices,
  insertUsage,
  readDevices,
} from '../../support/tables.ts';

const service = useTestService();
const data = { alert: 'Hello' };

const requestDryRun = (app: Pick<App, 'appId'>, body: object) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/push/explain`, { admin: true, body });

async function explain(app: App, body: object) {
  const reply = await requestDryRun(app, body);
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body;
}

async function appWith(
  ios: number,
  options: AppOptionsPatch = {},
): Promise<{ app: App; tokens: string[] }> {
  const app = await service.api.createApp(options);
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, ios) };
}

/**
 * Inserts Android devices into the table. `fields` returns the members of a device by its number.
 */
const addAndroid = (app: App, count: number, vendor: string | null = null) =>
  insertDevices(
    service.db,
    app,
    Array.from({ length: count }, (_, i) => ({
      deviceType: 'android',
      installationId: randomUUID(),
      vendor,
      registrationId: vendor === null ? null : randomUUID(),
      fields: { n: i + 1 },
    })),
  );

describe('the audience', () => {
  test('is counted exactly, by connector and profile, with payload and size', async () => {
    const { app, tokens } = await appWith(7);
    await addAndroid(app, 5);
    await changeDevices(service.db, app, { valid: false }, tokens.slice(0, 1));
    const explanation = await explain(app, { data });
    expect(explanation).toMatchObject({
      devices: 11,
      connectors: {
        apns: { devices: 6, profiles: { _default: 6 }, payload: { aps: { alert: 'Hello' } } },
        channel: { devices: 5, profiles: { android: 5 }, payload: { alert: 'Hello' } },
      },
      limits: [],
      estimatedSeconds: null,
    });
    expect(explanation.connectors.apns.payloadBytes).toBe('{"aps":{"alert":"Hello"}}'.length);
    expect(explanation.connectors.apns.problem).toBeUndefined();
  });

  test('warns of members that a push ignores', async () => {
    const { app } = await appWith(1);
    const explanation = await explain(app, { data, where: {}, chanels: 'news' });
    expect(explanation.warnings).toEqual(['"chanels" is no member of a push and was ignored.']);
    expect(explanation.texts.warnings).toEqual([
      { code: 'ignored', params: { member: 'chanels' } },
    ]);
    expect(writeReplyText('details', explanation.texts.warnings[0], 'zh')).toBe(
      '推送没有成员“chanels”，已忽略。',
    );
    expect(await explain(app, { data })).not.toHaveProperty('warnings');
  });

  test('follows where, channels and lists of devices', async () => {
    const { app, tokens } = await appWith(4);
    await addAndroid(app, 9);
    expect((await explain(app, { data, where: { n: { $lte: 3 } } })).devices).toBe(3);
    expect((await explain(app, { data, channels: 'news' })).devices).toBe(0);
    const listed = { data, device_type: 'ios', device_ids: tokens.slice(0, 2) };
    const explanation = await explain(app, listed);
    expect(explanation.devices).toBe(2);
    for (const token of tokens) expect(JSON.stringify(explanation)).not.toContain(token);
  });

  test('shows a counted badge as the first number', async () => {
    const { app } = await appWith(1);
    const explanation = await explain(app, { data: { ...data, badge: 'Increment' } });
    expect(explanation.connectors.apns.payload).toEqual({ aps: { badge: 1, alert: 'Hello' } });
  });

  test('counts the devices without a profile, with the reason', async () => {
    const { app } = await appWith(3);
    await changeDevices(service.db, app, { topic: 'com.other' });
    const { connectors } = await explain(app, { data });
    expect(connectors.apns).toMatchObject({
      profiles: {},
      problem: 'no APNs profile owns the topic (3 devices)',
    });
    const big = await explain(app, { data: { alert: 'x'.repeat(4200) } });
    expect(big.connectors.apns).toMatchObject({ payload: null, payloadBytes: null });
    expect(big.connectors.apns.problem).toContain('APNs takes at most 4096');
  });
});

describe('limits that the push exceeds include', () => {
  const limitsOf = async (app: App, body: object): Promise<string> =>
    (await explain(app, { data, ...body })).limits.join('\n');

  test('the daily cap, with the remaining recipients', async () => {
    const { app } = await appWith(10, { dailyRecipientCap: 6 });
    expect(await limitsOf(app, {})).toContain('cap of 6 leaves 6');
    await insertUsage(service.db, app, { recipients: 5 });
    expect(await limitsOf(app, {})).toMatch(
      /leaves 1 on .*\. Devices that would be counted capped: 9\./,
    );
  });

  test('a body that is too large', async () => {
    const { app } = await appWith(1);
    expect(await limitsOf(app, { _padding: 'x'.repeat(4096) })).toMatch(
      /would be refused: .* under 4096/,
    );
  });

  test('pending pushes', async () => {
    const app = await service.api.createApp({}, 'development');
    const push_time = new Date(Date.now() + 3_600_000).toISOString();
    for (let i = 0; i < 10; i += 1)
      await service.api.request('POST', '/1.1/push', {
        app,
        master: true,
        body: { data, push_time },
      });
    expect(await limitsOf(app, { push_time })).toContain('10 scheduled pushes are pending');
    expect(await limitsOf(app, {})).toBe('');
  });

  test('a missing profile', async () => {
    const app = await service.api.createApp({ hybridPush: true });
    await addAndroid(app, 2, 'vendor_a');
    expect(await limitsOf(app, {})).toContain(
      'would be refused: There is no Huawei profile named _default',
    );
  });

  test('a development certificate with its limited number of devices', async () => {
    const app = await service.api.createApp();
    const client = await service.apns.authority.issueClient({
      commonName: 'Apple Push',
      userId: 'com.example.app',
    });
    const credentials = {
      auth: 'certificate',
      ...client,
      topic: 'com.example.app',
      environment: 'dev',
    };
    const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
    expect(
      (await service.api.request('PUT', path, { admin: true, body: credentials })).status,
    ).toBe(200);
    await service.addIosInstallations(app, 20_001);
    const message =
      'The profile _default of apns serves at most 20000 devices per push: dev profile disabled';
    expect(await limitsOf(app, { prod: 'dev' })).toContain(`${message} for massive push.`);
    const last = (await readDevices(service.db, app)).at(-1);
    await changeDevicesWith(service.db, app, { id: last?.id ?? 0 }, { valid: false });
    expect(await limitsOf(app, { prod: 'dev' })).toBe('');
  });

  test('flow control: its minimum, its duration, and an expiry before the end', async () => {
    const { app } = await appWith(1);
    await addAndroid(app, 2500);
    const explanation = await explain(app, { data, flow_control: 10, expiration_interval: 1 });
    expect(explanation.estimatedSeconds).toBe(3);
    expect(explanation.limits.join('\n')).toMatch(
      /flow_control 10 counts as 1000[\s\S]*before all are sent to/,
    );
  });

  test('content that no gateway accepts', async () => {
    const { app } = await appWith(1);
    expect(
      await limitsOf(app, { where: { deviceType: 'android' }, data: { title: 'x' } }),
    ).toContain('would be refused: data: Android content needs an alert.');
  });
});

describe("the database's plan", () => {
  test('warns only of a scan without an index, and quotes no condition', async () => {
    const { app } = await appWith(0);
    await addAndroid(app, 20_000);
    await service.db.query('ANALYZE installation');
    const scan = await explain(app, { data, where: { n: { $gt: 19_990.625 } } });
    expect(scan.devices).toBe(10);
    expect(scan.warning).toMatch(
      /^No index serves this condition: .* about \d{5} installations to find 10/,
    );
    expect(JSON.stringify(scan)).not.toMatch(/19990\.625|jsonb|SELECT/);
    const served = await explain(app, { data, where: { n: 7 } });
    expect(served).toMatchObject({
      devices: 1,
      plan: expect.arrayContaining([expect.any(String)]),
    });
    expect(served.plan.join('\n')).toContain('installation_fields');
    expect(served.warning).toBeUndefined();
    expect((await explain(app, { data })).warning).toBeUndefined();
  });
});

describe('nothing is sent and nothing is changed', () => {
  const tables = async (): Promise<Record<string, string>> => {
    const { rows } = await service.db.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
        WHERE schemaname = 'public' OR (schemaname = 'pgboss' AND tablename LIKE 'job%')`,
    );
    const digests: Record<string, string> = {};
    for (const { name } of rows) {
      // Background work changes these tables, and they do not belong to pushes.
      if (/channel_node|idle_walk|registration_walk|process_seen|rate_limit/.test(name)) continue;
      const found = await service.db.query<{ digest: string }>(
        `SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, '' ORDER BY t::text)),
          '') AS digest FROM ${name} t`,
      );
      digests[name] = found.rows[0]?.digest ?? '';
    }
    return digests;
  };

  beforeEach(() => service.dispatch());

  test('every row of every table is unchanged, and the gateway got no request', async () => {
    const { app, tokens } = await appWith(50);
    await addAndroid(app, 5);
    const before = await tables();
    expect(Object.keys(before)).toContain('public.notification');
    const body = {
      data: { alert: 'x', badge: 'Increment' },
      req_id: 'once',
      notification_id: 'n1',
    };
    expect((await explain(app, body)).devices).toBe(55);
    await explain(app, { ...body, push_time: new Date(Date.now() + 3_600_000).toISOString() });
    await explain(app, { data, device_type: 'ios', device_ids: tokens });
    expect(await tables()).toEqual(before);
    expect(tokens.filter((token) => service.apns.seen(token) > 0)).toEqual([]);
    // The dry run did not use up the req_id.
    const sent = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    expect(sent.status).toBe(200);
    expect(await service.untilDone(app, sent.body.objectId)).toMatchObject({ devices: 55 });
  });
});

test('a malformed push is refused as by the push call', async () => {
  const { app } = await appWith(1);
  expect((await requestDryRun(app, {})).body).toMatchObject({
    code: 1,
    error: 'data is required.',
  });
  expect((await requestDryRun(app, { data, where: { a: { $near: 1 } } })).body).toMatchObject({
    code: 102,
  });
  expect((await requestDryRun(app, { data, channels: 'no blanks' })).body).toMatchObject({
    code: 112,
  });
  expect((await requestDryRun({ appId: 'none' }, { data })).status).toBe(404);
  const path = `/console/api/apps/${app.appId}/push/explain`;
  expect(
    (await service.api.request('POST', path, { app, master: true, body: { data } })).status,
  ).toBe(401);
});
