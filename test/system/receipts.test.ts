import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Vault } from '../../shared/crypto.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { callbackUrl } from '../../shared/http/outbound-addresses.ts';
import { testConfig } from '../support/api.ts';
import { type AllVendors, startVendors } from '../support/gateways/all-vendors.ts';
import { useTestService } from '../support/service.ts';
import { changeDevicesWith, findDevice, readDevices } from '../support/tables.ts';

/** Timeout of tests that make hundreds of calls one after another on a busy machine. */
const manyCallsMs = 120_000;

let vendors: AllVendors;

const service = useTestService();
beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(async () => {
  await vendors.close();
});
afterEach(() => {
  for (const gateway of Object.values(vendors.gateways)) gateway.forget();
});

const addressFor = (app: App, connector: string) =>
  callbackUrl(service.api.url, new Vault(testConfig(service.databaseUrl).secrets), {
    appId: app.appId,
    connector,
    generation: app.options.receiptUrlGeneration,
  });

async function push(app: App): Promise<string> {
  const body = { data: { alert: 'Hello' } };
  const { body: reply } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body,
  });
  expect(await service.untilDone(app, reply.objectId)).toMatchObject({ delivered: 0, clicked: 0 });
  return reply.objectId;
}

async function counts(app: App, objectId: string) {
  const { body } = await service.api.request('GET', `/1.1/notifications/${objectId}`, { app });
  return { delivered: body.delivered, clicked: body.clicked };
}

async function idsLeft(app: App): Promise<string[]> {
  const devices = await readDevices(service.db, app);
  return devices.map(({ registrationId }) => registrationId ?? '');
}

async function post(url: string, body: string, headers: Record<string, string> = {}) {
  const reply = await fetch(url, { method: 'POST', body, headers });
  return { status: reply.status, text: await reply.text() };
}

/** Returns receipts in Honor's form, which is the simplest. */
const honorBody = (pushId: string, tokens: string[], status = 40_000_002) =>
  JSON.stringify({
    statuses: tokens.map((token) => ({ token, biTag: pushId, status, timestamp: 1 })),
  });

describe('receipts at the callback URL of the message', () => {
  test('are refused at the URL of another generation, and messages name the new URL', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 4);
    const { xiaomi } = vendors.gateways;
    await push(app);
    expect(await xiaomi.sendReceipt(1, ids.slice(0, 2))).toEqual([200]);
    const change = { admin: true, body: { options: { receiptUrlGeneration: 1 } } };
    const changed = await service.api.request('PATCH', `/console/api/apps/${app.appId}`, change);
    expect(changed.status).toBe(200);
    expect(await xiaomi.sendReceipt(1, ids)).toEqual([404]);
    // A changed option takes effect on every process within one second.
    await expect
      .poll(async () => {
        xiaomi.forget();
        await push(app);
        return xiaomi.sendReceipt(1, ids);
      })
      .toEqual([200]);
    const old = addressFor(app, 'vendor_b');
    expect((await post(old, 'data={}')).status).toBe(404);
  });

  test('of Xiaomi count each device once, even if repeated', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 30);
    const { xiaomi } = vendors.gateways;
    const id = await push(app);
    expect(await xiaomi.sendReceipt(1, ids.slice(0, 20))).toEqual([200]);
    expect(await counts(app, id)).toEqual({ delivered: 20, clicked: 0 });
    await Promise.all([1, 1, 1, 2, 2].map((type) => xiaomi.sendReceipt(type, ids.slice(10, 20))));
    expect(await counts(app, id)).toEqual({ delivered: 20, clicked: 10 });
    // An opened message counts as delivered.
    expect(await xiaomi.sendReceipt(2, ids.slice(25))).toEqual([200]);
    await xiaomi.sendReceipt(1, ids.slice(25));
    expect(await counts(app, id)).toEqual({ delivered: 25, clicked: 15 });
  });

  test('of Meizu contain its token, or are refused', async () => {
    const app = await vendors.app('vendor_c');
    const ids = await vendors.add(app, 'vendor_c', 5);
    const { meizu } = vendors.gateways;
    const id = await push(app);
    expect(await meizu.sendReceipt(1, ids, 'another')).toEqual([401]);
    expect(await counts(app, id)).toEqual({ delivered: 0, clicked: 0 });
    expect(await meizu.sendReceipt(1, ids)).toEqual([200]);
    expect(await meizu.sendReceipt(2, ids.slice(0, 2))).toEqual([200]);
    expect(await counts(app, id)).toEqual({ delivered: 5, clicked: 2 });
  });

  test('are kept if their token is wrong, and counted after it is corrected', async () => {
    const app = await vendors.app('vendor_c');
    const ids = await vendors.add(app, 'vendor_c', 4);
    const { meizu } = vendors.gateways;
    const id = await push(app);
    const path = `/console/api/apps/${app.appId}/failed-receipts`;
    const redrive = (verb = '') =>
      service.api.request('POST', `${path}/redrive${verb}`, {
        admin: true,
        body: { connector: 'vendor_c' },
      });
    for (let i = 0; i < 2; i += 1)
      expect(await meizu.sendReceipt(1, ids, 'another')).toEqual([401]);
    const { results } = (await service.api.request('GET', path, { admin: true })).body;
    expect(results).toMatchObject([
      { connector: 'vendor_c', status: 401, reason: expect.any(String) },
    ]);
    expect((await redrive()).body).toEqual({ processed: 0, refused: 1, next: null });
    await vendors.put(app, vendors.instance('vendor_c'), { receiptToken: 'another' });
    // A changed profile takes effect on every process within one second.
    const possible = async () => (await redrive('/explain')).body;
    await expect.poll(possible).toEqual({ processed: 1, refused: 0, next: null });
    expect(await counts(app, id)).toEqual({ delivered: 0, clicked: 0 });
    expect((await redrive()).body).toEqual({ processed: 1, refused: 0, next: null });
    expect(await counts(app, id)).toEqual({ delivered: 4, clicked: 0 });
    expect((await redrive()).body).toEqual({ processed: 0, refused: 0, next: null });
  });

  test('of OPPO arrive one by one', async () => {
    const app = await vendors.app('vendor_d');
    const ids = await vendors.add(app, 'vendor_d', 12);
    const { oppo } = vendors.gateways;
    const id = await push(app);
    for (let i = 0; i < 2; i++)
      expect(new Set(await oppo.sendReceipt(ids.slice(0, 7)))).toEqual(new Set([200]));
    expect(await counts(app, id)).toEqual({ delivered: 7, clicked: 0 });
  });

  test('of vivo contain its codes: delivered, or the reason', async () => {
    const app = await vendors.app('vendor_e');
    const ids = await vendors.add(app, 'vendor_e', 8);
    const { vivo } = vendors.gateways;
    const id = await push(app);
    for (let i = 0; i < 2; i++) expect(await vivo.sendReceipt(ids.slice(0, 5), '0')).toEqual([200]);
    expect(await counts(app, id)).toEqual({ delivered: 5, clicked: 0 });
    for (const code of ['2161', '11001', '20006', '9']) await vivo.sendReceipt(ids, code);
    expect(await idsLeft(app)).toHaveLength(8);
    await vivo.sendReceipt(ids.slice(6), '2183');
    expect((await idsLeft(app)).sort()).toEqual(ids.slice(0, 6).sort());
  });

  test('of Honor and Huawei name the push by its tag, and get the expected reply', async () => {
    const app = await vendors.app('vendor_a', 'vendor_f');
    const [ofHonor, ofHuawei] = [
      await vendors.add(app, 'vendor_f', 4),
      await vendors.add(app, 'vendor_a', 3),
    ];
    const { honor, huawei } = vendors.gateways;
    await vendors.put(app, vendors.instance('vendor_a'), {
      callbackKey: 'key',
      callbackUser: 'user',
    });
    const biTag = await push(app);
    const fromHonor = ofHonor.map((token) => ({ token, biTag, status: 40_000_002 }));
    expect(await honor.sendReceipt(addressFor(app, 'vendor_f'), fromHonor)).toEqual({
      status: 200,
      body: '{"code":200,"message":"success"}',
    });
    const fromHuawei = ofHuawei.map((token) => ({ token, biTag, status: 0 }));
    const url = addressFor(app, 'vendor_a');
    // Profiles are cached for half a second.
    const sign = () => huawei.sendReceipt(url, fromHuawei, { key: 'key', user: 'user' });
    expect(await sign()).toEqual({ status: 200, body: '{"code":"0","message":"success"}' });
    expect(await counts(app, biTag)).toEqual({ delivered: 7, clicked: 0 });
    const forged = () =>
      huawei.sendReceipt(url, fromHuawei, { key: 'guessed' }).then(({ status }) => status);
    await expect.poll(forged).toBe(401);
    expect((await huawei.sendReceipt(url, fromHuawei)).status).toBe(401);
  });

  test('are shown in the list and in the progress, and added up under a custom id', async () => {
    const app = await vendors.app('vendor_f');
    const tokens = await vendors.add(app, 'vendor_f', 3);
    const url = addressFor(app, 'vendor_f');
    const ids: string[] = [];
    for (let i = 0; i < 2; i++) {
      const body = { data: { alert: 'Hello' }, notification_id: 'campaign1' };
      const { body: reply } = await service.api.request('POST', '/1.1/push', {
        app,
        master: true,
        body,
      });
      await service.untilDone(app, reply.objectId);
      ids.push(reply.objectId);
    }
    await post(url, honorBody(ids[0] ?? '', tokens));
    await post(url, honorBody(ids[1] ?? '', tokens.slice(0, 1)));
    const list = await service.api.request('GET', '/1.1/notifications', { app, master: true });
    expect(list.body.results.map((one: { delivered: number }) => one.delivered)).toEqual([1, 3]);
    expect(await counts(app, 'campaign1')).toEqual({ delivered: 4, clicked: 0 });
    const path = `/console/api/apps/${app.appId}/notifications/${ids[0]}/progress`;
    const progress = await service.api.request('GET', path, { admin: true });
    expect(progress.body).toMatchObject({ delivered: 3, clicked: 0 });
  });

  test('of thousands at the same time count each device once, in a few bits each', async () => {
    const app = await vendors.app('vendor_f');
    const tokens = await vendors.add(app, 'vendor_f', 3000);
    const id = await push(app);
    const url = addressFor(app, 'vendor_f');
    // Calls overlap and run concurrently, and each device occurs four times.
    const slices = Array.from({ length: 24 }, (_, i) => tokens.slice(i * 120, i * 120 + 240));
    const calls = [...slices, ...slices.map((slice) => [...slice].reverse())];
    const replies = await Promise.all(calls.map((slice) => post(url, honorBody(id, slice))));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await counts(app, id)).toEqual({ delivered: 3000, clicked: 0 });
    const { rows } = await service.db.query<{ n: number }>(
      'SELECT count(*) AS n FROM push_receipt WHERE app_id = $1',
      [app.appId],
    );
    expect(rows[0]?.n).toBeLessThanOrEqual(3000 / 512 + 2);
  });
});

describe('calls that are not receipts of the app', () => {
  test('an unknown URL is a plain 404, and a known URL answers probes', async () => {
    const app = await vendors.app('vendor_f');
    const other = await vendors.app('vendor_f');
    const right = addressFor(app, 'vendor_f');
    const secret = right.split('/').at(-1) ?? '';
    const base = `${service.api.url}/callbacks`;
    const wrong = [
      `${base}/vendor_f/${other.appId}/${secret}`,
      `${base}/vendor_a/${app.appId}/${secret}`,
      `${base}/vendor_f/${app.appId}/${secret.slice(1)}x`,
      `${base}/vendor_f/${app.appId}/${secret}x`,
      `${base}/vendor_f/${app.appId.toUpperCase()}0/${secret}`,
      addressFor({ ...app, appId: 'unknown' }, 'vendor_f'),
      // A gateway without receipts, and an invalid name.
      addressFor(app, 'apns'),
      addressFor(app, 'constructor'),
    ];
    const nowhere = await post(`${base}/vendor_f`, '{}');
    for (const url of wrong) {
      expect(await post(url, honorBody('x', []))).toEqual(nowhere);
      expect((await fetch(url)).status).toBe(404);
    }
    expect(nowhere.status).toBe(404);
    for (const method of ['GET', 'HEAD']) expect((await fetch(right, { method })).status).toBe(200);
    expect((await fetch(right, { method: 'DELETE' })).status).toBe(405);
  });

  test('other apps, unknown pushes and unknown devices count nothing', async () => {
    const [app, other] = [await vendors.app('vendor_f'), await vendors.app('vendor_f')];
    const tokens = await vendors.add(app, 'vendor_f', 2);
    const theirs = await vendors.add(other, 'vendor_f', 2);
    const [id, foreign] = [await push(app), await push(other)];
    const url = addressFor(app, 'vendor_f');
    for (const body of [
      honorBody(foreign, theirs),
      honorBody(foreign, tokens),
      honorBody(id, theirs),
      honorBody('A'.repeat(16), tokens),
      honorBody('', tokens),
      honorBody(id, ['unknown', `unknown\u0000`, '\ud800', 'x'.repeat(5000)]),
    ])
      expect((await post(url, body)).status).toBe(200);
    expect(await counts(app, id)).toEqual({ delivered: 0, clicked: 0 });
    expect(await counts(other, foreign)).toEqual({ delivered: 0, clicked: 0 });
  });

  test('invalid calls are refused without a 5xx, and long bodies are not read', {
    timeout: manyCallsMs,
  }, async () => {
    const app = await vendors.app();
    const texts = [
      '',
      '[]',
      'null',
      '{',
      '{"statuses":5}',
      'data=%',
      'cb=5&access_token=',
      '\u0000',
      '[[[[',
      '%ff',
    ];
    const types = [
      'application/json',
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data',
      '',
    ];
    for (const connector of [
      'vendor_a',
      'vendor_b',
      'vendor_c',
      'vendor_d',
      'vendor_e',
      'vendor_f',
    ])
      for (const text of texts)
        for (const type of types) {
          const { status } = await post(addressFor(app, connector), text, { 'content-type': type });
          expect(status, `${connector} ${text} ${type}`).toBeLessThan(500);
        }
    const long = 'x'.repeat(2 * 1024 * 1024 + 1);
    expect((await post(addressFor(app, 'vendor_f'), long)).status).toBe(413);
    const many = Array.from({ length: 30_000 }, (_, i) => i.toString(36)).join(',');
    const crowd = JSON.stringify([
      { eventType: 'push_arrive', registrationIds: many, param: 'A'.repeat(16) },
    ]);
    expect((await post(addressFor(app, 'vendor_d'), crowd)).status).toBe(413);
  });
});

test('waiting calls of an app share transactions; excess calls must retry', {
  timeout: manyCallsMs,
}, async () => {
  const app = await vendors.app('vendor_f');
  const tokens = await vendors.add(app, 'vendor_f', 200);
  const id = await push(app);
  const url = addressFor(app, 'vendor_f');
  const crowd = honorBody(id, [...tokens, ...Array.from({ length: 800 }, (_, i) => `unknown${i}`)]);
  const replies: Promise<number>[] = [];
  const refused = await service.db.transaction(async (tx) => {
    await tx.query('SELECT FROM notification WHERE app_id = $1 FOR UPDATE', [app.appId]);
    // No row can be written now. 4 calls run, 50 transactions with two calls each wait, and the
    // others are refused.
    const calls = Array.from({ length: 130 }, () => post(url, crowd).then(({ status }) => status));
    const small = tokens.map((token) =>
      post(url, honorBody(id, [token])).then(({ status }) => status),
    );
    replies.push(...calls, ...small);
    const early: number[] = [];
    for (const reply of replies) void reply.then((status) => early.push(status));
    await expect.poll(() => early.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(26);
    return [...early];
  });
  expect(new Set(refused)).toEqual(new Set([429]));
  const all = await Promise.all(replies);
  expect(all.filter((status) => status === 200).length).toBeGreaterThanOrEqual(104);
  expect(all.every((status) => status === 200 || status === 429)).toBe(true);
  expect(await counts(app, id)).toEqual({ delivered: 200, clicked: 0 });
});

describe('receipts that report an invalid token', () => {
  const invalidTokenType = 16;

  test('delete its installation after the push has a success, and no other', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 6);
    const { xiaomi } = vendors.gateways;
    const id = await push(app);
    const { objectId: deletedId } = await findDevice(service.db, app, { registrationId: ids[0] });
    await xiaomi.sendReceipt(invalidTokenType, ids.slice(0, 2));
    // The push has no success yet, so the cause may be the app and not the devices.
    expect(await idsLeft(app)).toHaveLength(6);
    await xiaomi.sendReceipt(1, ids.slice(2, 3));
    expect((await idsLeft(app)).sort()).toEqual(ids.slice(2).sort());
    await xiaomi.sendReceipt(invalidTokenType, ids.slice(3, 4));
    expect((await idsLeft(app)).sort()).toEqual([ids[2], ids[4], ids[5]].sort());
    expect(await counts(app, id)).toEqual({ delivered: 1, clicked: 0 });
    const path = `/console/api/apps/${app.appId}/notifications/${id}/devices/${deletedId}`;
    const why = (await service.api.request('GET', path, { admin: true })).body;
    expect(why).toMatchObject({
      outcome: 'sent',
      sentence: expect.stringMatching(/accepted by.*was deleted since/),
    });
    const record = await service.api.request('GET', `/1.1/notifications/${id}`, { app });
    expect(record.body).toMatchObject({ errors: '', outcomes: { sent: 6 } });
  });

  test('keep an installation that was saved since, and do nothing for other codes', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 6);
    const { xiaomi } = vendors.gateways;
    await push(app);
    await xiaomi.sendReceipt(1, ids.slice(0, 1));
    const touch = (id = '') =>
      changeDevicesWith(service.db, app, { registrationId: id }, { updatedAt: new Date() });
    await touch(ids[1]);
    await xiaomi.sendReceipt(invalidTokenType, [ids[1] ?? '']);
    for (const type of [32, 64, 128]) await xiaomi.sendReceipt(type, ids);
    await xiaomi.sendReceipt(1, ids.slice(2, 3), 'Disable');
    expect(await idsLeft(app)).toHaveLength(6);
  });

  test('keep an installation that was saved before the first success', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 3);
    const { xiaomi } = vendors.gateways;
    await push(app);
    await xiaomi.sendReceipt(invalidTokenType, ids.slice(0, 2));
    await changeDevicesWith(service.db, app, { registrationId: ids[0] }, { updatedAt: new Date() });
    await xiaomi.sendReceipt(1, ids.slice(2));
    expect((await idsLeft(app)).sort()).toEqual([ids[0], ids[2]].sort());
  });

  test('delete at most as many devices as the push reached, and the rest on request', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 30);
    const { xiaomi } = vendors.gateways;
    const id = await push(app);
    await xiaomi.sendReceipt(1, ids.slice(0, 3));
    await xiaomi.sendReceipt(invalidTokenType, ids.slice(3, 25));
    expect(await idsLeft(app)).toHaveLength(30);
    await xiaomi.sendReceipt(1, ids.slice(25, 29));
    expect(await idsLeft(app)).toHaveLength(30);
    const path = `/console/api/apps/${app.appId}/notifications/${id}/delete-invalid`;
    expect((await service.api.request('POST', path, { admin: true })).body).toEqual({
      deleted: 22,
    });
    expect((await idsLeft(app)).sort()).toEqual([...ids.slice(0, 3), ...ids.slice(25)].sort());
  });

  test('delete as many devices as the push reached by receipts that came one by one', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 30);
    const { xiaomi } = vendors.gateways;
    await push(app);
    for (const one of ids.slice(0, 12)) await xiaomi.sendReceipt(1, [one]);
    await xiaomi.sendReceipt(invalidTokenType, ids.slice(12, 22));
    expect((await idsLeft(app)).sort()).toEqual([...ids.slice(0, 12), ...ids.slice(22)].sort());
    await xiaomi.sendReceipt(invalidTokenType, ids.slice(22, 25));
    expect(await idsLeft(app)).toHaveLength(20);
  });

  test('count devices that were deleted before', async () => {
    const app = await vendors.app('vendor_b');
    const ids = await vendors.add(app, 'vendor_b', 30);
    const { xiaomi } = vendors.gateways;
    await push(app);
    await xiaomi.sendReceipt(1, ids.slice(0, 3));
    for (const one of ids.slice(3, 25)) await xiaomi.sendReceipt(invalidTokenType, [one]);
    expect((await idsLeft(app)).sort()).toEqual([...ids.slice(0, 3), ...ids.slice(6)].sort());
  });

  test('delete at the second push if the gateway only advises it', async () => {
    const app = await vendors.app('vendor_a');
    const tokens = await vendors.add(app, 'vendor_a', 3);
    const [deletedId = '', returned = '', alive = ''] = tokens;
    const { huawei } = vendors.gateways;
    const sendReceipts = async (biTag: string, statuses: [string, number][]) => {
      const receipts = statuses.map(([token, status]) => ({ token, biTag, status }));
      expect((await huawei.sendReceipt(addressFor(app, 'vendor_a'), receipts)).status).toBe(200);
    };
    const first = await push(app);
    for (let i = 0; i < 3; i++)
      await sendReceipts(first, [
        [deletedId, 2],
        [returned, 5],
        [alive, 0],
      ]);
    expect(await idsLeft(app)).toHaveLength(3);
    await sendReceipts(await push(app), [[returned, 0]]);
    await sendReceipts(await push(app), [
      [deletedId, 2],
      [returned, 5],
      [alive, 0],
    ]);
    expect((await idsLeft(app)).sort()).toEqual([returned, alive].sort());
  });
});

test('a suspicion about a token is confirmed by another push in the same call', async () => {
  const app = await vendors.app('vendor_a');
  const [deletedId = '', suspected = '', alive = ''] = await vendors.add(app, 'vendor_a', 3);
  const [first, second] = [await push(app), await push(app)];
  const statuses = [
    { token: deletedId, biTag: first, status: 2 },
    { token: deletedId, biTag: second, status: 2 },
    { token: suspected, biTag: second, status: 2 },
    { token: suspected, biTag: second, status: 2 },
    { token: alive, biTag: first, status: 0 },
    { token: alive, biTag: second, status: 0 },
  ];
  await vendors.gateways.huawei.sendReceipt(addressFor(app, 'vendor_a'), statuses);
  expect((await idsLeft(app)).sort()).toEqual([suspected, alive].sort());
});

test('counts are deleted with their record', async () => {
  const app = await vendors.app('vendor_f');
  const tokens = await vendors.add(app, 'vendor_f', 2);
  const id = await push(app);
  await post(addressFor(app, 'vendor_f'), honorBody(id, tokens));
  const { deleteOldPushes: deleteOldNotifications } = await import(
    '../../shared/db/tables/pushes.ts'
  );
  const tables = ['push_receipt', 'push_receipt_total'];
  const rows = async () =>
    Promise.all(
      tables.map(async (table) => {
        const found = await service.db.query(`SELECT FROM ${table} WHERE app_id = $1`, [app.appId]);
        return found.rowCount;
      }),
    );
  expect(await rows()).toEqual([1, 1]);
  await deleteOldNotifications(service.db, new Date(Date.now() + 60_000), 10_000);
  expect(await rows()).toEqual([0, 0]);
});
