import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AttemptResult, Sender } from '../../connectors/contract/connector.ts';
import { xiaomi } from '../../connectors/vendors/xiaomi/index.ts';
import { RecallSender } from '../../dispatcher/sending/recall-sender.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { type ConnectorId, profileConnectorIds } from '../../shared/domain/labels.ts';
import { type AllVendors, startVendors } from '../support/gateways/all-vendors.ts';
import { aMessage, recipients, sendAll } from '../support/gateways/apns.ts';
import { useTestService } from '../support/service.ts';
import { countRows, insertDevices } from '../support/tables.ts';

const service = useTestService();
let vendors: AllVendors;

beforeAll(async () => {
  vendors = await startVendors(service, { keptRequests: 1000 });
  await service.dispatch();
});
afterAll(() => vendors.close());

/** vivo delivers messages of the system class at any hour. */
const vivo = { classification: 1, category: 'ORDER' };
const data = { alert: 'Everything costs 1', vivo };
const replacement = { data: { alert: 'Everything costs 2', vivo } };

async function send(app: App, body: object = { data }): Promise<string> {
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  const { objectId } = reply.body;
  await service.untilDone(app, objectId);
  return objectId;
}

const recall = (app: App, push: string, body: object = {}) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/notifications/${push}/recall`, {
    admin: true,
    body,
  });

const bodyOf = (connector: ConnectorId): string =>
  vendors.instance(connector).requests().at(-1)?.body.toString() ?? '';

async function audienceOf(...connectors: ConnectorId[]): Promise<App> {
  const app = await vendors.app(...connectors);
  for (const connector of connectors) await vendors.add(app, connector, 3);
  return app;
}

const addHarmony = (app: App, tokens: string[]) =>
  insertDevices(
    service.db,
    app,
    tokens.map((registrationId) => ({ deviceType: 'harmony', registrationId })),
  );

test('a recall removes messages where gateways can, and replaces them elsewhere', async () => {
  const app = await audienceOf(...profileConnectorIds);
  const push = await send(app);
  const sent = new Map(
    profileConnectorIds.map((id) => [id, vendors.instance(id).summary().requests]),
  );
  const expected = {
    connectors: Object.fromEntries(
      profileConnectorIds.map((id) => [id, id === 'vendor_b' ? { recalled: 3 } : { replaced: 3 }]),
    ),
  };
  const dryRun = await recall(app, push, { dryRun: true, replacement });
  expect(dryRun).toMatchObject({ status: 200, body: expected });
  for (const [id, n] of sent) expect(vendors.instance(id).summary().requests).toBe(n);

  const done = await recall(app, push, { replacement });
  expect(done).toMatchObject({ status: 200, body: expected });
  for (const { title, violations } of vendors.instances) expect(violations(), title).toEqual([]);
  const record = await service.api.request('GET', `/1.1/notifications/${push}`, {
    app,
    master: true,
  });
  expect(record.body.recall).toMatchObject({ status: 'done', isReplacement: true, ...expected });
});

/** Texts that carry the id of a message on the wire; 1 is the id. */
const idsOnTheWire: [ConnectorId, RegExp, object][] = [
  ['fcm', /"tag":"(\w+)"/, {}],
  ['vendor_a', /"tag":"(\w+)"/, {}],
  ['vendor_a', /"notify_id":(\d+)/, { hms: { notify_id: 77 } }],
  ['vendor_c', /"notifyKey":"([\w-]+)"/, {}],
  ['vendor_c', /"notifyKey":"([\w-]+)"/, { mz: { notifyKey: 'mine' } }],
  ['vendor_d', /"notify_id":(\d+)/, {}],
  ['vendor_d', /"notify_id":(\d+)/, { oppo: { notify_id: 42 } }],
  ['vendor_e', /"notifyId":(\d+)/, {}],
  ['vendor_f', /"tag":"(\w+)"/, {}],
];

test.each(idsOnTheWire)('%s: a replacement carries the id %s', async (connector, pattern, more) => {
  const app = await audienceOf(connector);
  const push = await send(app, { data: { ...data, ...more } });
  const bodies = () =>
    vendors
      .instance(connector)
      .requests()
      .map(({ body }) => decodeURIComponent(body.toString().replaceAll('+', ' ')));
  const idOfLast = () => pattern.exec(bodies().findLast((body) => pattern.test(body)) ?? '')?.[1];
  const id = idOfLast();
  expect(id).toBeDefined();
  expect((await recall(app, push, { replacement })).body).toEqual({
    connectors: { [connector]: { replaced: 3 } },
  });
  expect(bodies().findLast((body) => body.includes('costs 2'))).toBeDefined();
  expect(idOfLast()).toBe(id);
  expect(vendors.instance(connector).violations()).toEqual([]);
});

test('APNs: a replacement carries the collapse id of the push', async () => {
  const app = await audienceOf('apns');
  const { apns } = vendors.gateways;
  const push = await send(app, { data: { alert: 'One', 'collapse-id': 'price' } });
  expect((await recall(app, push, { replacement })).body).toEqual({
    connectors: { apns: { replaced: 3 } },
  });
  const ids = apns.requests.slice(-6).map(({ headers }) => headers['apns-collapse-id']);
  expect(ids).toEqual(Array(6).fill('price'));
});

test('a message without an id, or a replacement that is not shown, is impossible', async () => {
  const app = await audienceOf('apns', 'fcm', 'vendor_b');
  const impossible = { impossible: 3 };
  const silent = await send(app, { data: { silent: true, k: 1, ios: { 'content-available': 1 } } });
  expect((await recall(app, silent, { replacement })).body).toEqual({
    connectors: { apns: impossible, fcm: impossible, vendor_b: impossible },
  });
  const shown = await send(app);
  const before = vendors.instance('fcm').summary().requests;
  expect((await recall(app, shown)).body).toEqual({
    connectors: { apns: impossible, fcm: impossible, vendor_b: { recalled: 3 } },
  });
  expect(vendors.instance('fcm').summary().requests).toBe(before);
  const record = await service.api.request('GET', `/1.1/notifications/${shown}`, {
    app,
    master: true,
  });
  const { objectId } = record.body.recall;
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/failures/summary`;
  const causes = (await service.api.request('GET', path, { admin: true })).body.results;
  expect(causes).toContainEqual(
    expect.objectContaining({ connector: 'fcm', outcome: 'dropped', n: 3 }),
  );
});

test('Xiaomi and HarmonyOS recall by the number of the notification', async () => {
  const app = await vendors.app('vendor_a', 'vendor_b');
  const [regId = ''] = await vendors.add(app, 'vendor_b', 1);
  const harmony = ['MAMzAAAA1', 'MAMzAAAA2'];
  await addHarmony(app, harmony);
  const push = await send(app, {
    data: { ...data, hms: { notifyId: 12 }, mi: { notify_id: 34 } },
  });
  expect((await recall(app, push)).body).toEqual({
    connectors: { vendor_a: { recalled: 2 }, vendor_b: { recalled: 1 } },
  });
  const huawei = vendors.gateways.huawei.requests.at(-1);
  expect(huawei?.path).toBe(`/v1/${vendors.gateways.huawei.memory.app.appId}/messages:revoke`);
  expect(huawei?.headers['push-type']).toBe('0');
  const revoked = JSON.parse(String(huawei?.body));
  expect({ ...revoked, token: [...revoked.token].sort() }).toEqual({
    notifyId: 12,
    token: harmony,
  });
  const form = Object.fromEntries(new URLSearchParams(bodyOf('vendor_b')));
  expect(form).toEqual({
    registration_ids: regId,
    restricted_package_name: 'com.example.app',
    notify_id: '34',
  });
  for (const name of ['huawei', 'xiaomi'] as const)
    expect(vendors.gateways[name].violations).toEqual([]);
});

test('a recall of many HarmonyOS devices stays within the size of a request', async () => {
  const app = await vendors.app('vendor_a');
  await addHarmony(
    app,
    Array.from({ length: 100 }, (_, i) => `MAMz${'x'.repeat(150)}${i}`),
  );
  const push = await send(app);
  expect((await recall(app, push)).body).toEqual({ connectors: { vendor_a: { recalled: 100 } } });
  expect(vendors.gateways.huawei.violations).toEqual([]);
});

test('a refused recall is impossible, and no device is deleted', async () => {
  const app = await vendors.app('vendor_b');
  const [dead = ''] = await vendors.add(app, 'vendor_b', 3);
  const push = await send(app);
  vendors.gateways.xiaomi.deadTokens.add(dead);
  expect((await recall(app, push)).body).toEqual({
    connectors: { vendor_b: { recalled: 2, impossible: 1 } },
  });
  expect(await countRows(service.db, 'installation', app)).toBe(3);
});

test('messages that wait on the device channel are deleted', async () => {
  const app = await vendors.app();
  const ids = [randomUUID(), randomUUID(), randomUUID()];
  await insertDevices(
    service.db,
    app,
    ids.map((installationId) => ({ deviceType: 'android', installationId })),
  );
  const push = await send(app);
  // One of the devices has acknowledged its message.
  await service.db.query(
    'DELETE FROM channel_inbox WHERE id = (SELECT min(id) FROM channel_inbox WHERE app_id = $1)',
    [app.appId],
  );
  const expected = { connectors: { channel: { recalled: 2, impossible: 1 } } };
  expect((await recall(app, push, { dryRun: true })).body).toEqual(expected);
  expect(await countRows(service.db, 'channel_inbox', app)).toBe(2);
  expect((await recall(app, push)).body).toEqual(expected);
  expect(await countRows(service.db, 'channel_inbox', app)).toBe(0);
});

test('a replacement takes the place of a message that waits on the device channel', async () => {
  const app = await vendors.app();
  const installationId = randomUUID();
  await insertDevices(service.db, app, [{ deviceType: 'android', installationId }]);
  const push = await send(app);
  expect((await recall(app, push, { replacement })).body).toEqual({
    connectors: { channel: { recalled: 1 } },
  });
  const { rows } = await service.db.query<{ alert: string }>(
    `SELECT m.content ->> 'alert' AS alert FROM channel_inbox i
       JOIN channel_message m ON m.app_id = i.app_id AND m.id = i.message_id WHERE i.app_id = $1`,
    [app.appId],
  );
  expect(rows).toEqual([{ alert: replacement.data.alert }]);
});

test('a device that another gateway serves by now is left out', async () => {
  const app = await audienceOf('vendor_b', 'vendor_e');
  const push = await send(app, { data, where: { vendor: 'vendor_b' } });
  await service.db.query(
    "UPDATE installation SET vendor = 'vendor_e', vendor_name = 'vivo' WHERE app_id = $1",
    [app.appId],
  );
  const expected = { connectors: { vendor_b: { impossible: 3 } } };
  expect((await recall(app, push, { dryRun: true, replacement })).body).toEqual(expected);
  expect((await recall(app, push, { replacement })).body).toEqual(expected);
});

test('an open push is not recalled before it is cancelled', async () => {
  const app = await vendors.app('vendor_b');
  await vendors.add(app, 'vendor_b', 3);
  const at = new Date(Date.now() + 3_600_000).toISOString();
  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data, push_time: at },
  });
  const { objectId } = reply.body;
  const refused = await recall(app, objectId);
  expect(refused).toMatchObject({ status: 409 });
  expect(refused.body.error).toContain('cancel it');
  await service.api.request(
    'POST',
    `/console/api/apps/${app.appId}/notifications/${objectId}/cancel`,
    { admin: true },
  );
  expect(await recall(app, objectId)).toMatchObject({ status: 200, body: { connectors: {} } });
});

test('a recall is refused with its cause', async () => {
  const app = await audienceOf('vendor_b');
  const push = await send(app);
  expect(await recall(app, 'nothing')).toMatchObject({ status: 404 });
  for (const [body, member] of [
    [{ dryRun: 'yes' }, 'dryRun'],
    [{ replacement: 'text' }, 'replacement'],
    [{ replacement: { data: 'text' } }, 'data'],
    [{ replacement: {} }, 'data'],
    [{ replacement: { data: { alert: 5 } } }, 'alert'],
    [{ replacement: { data: {} } }, 'alert'],
    [{ other: 1 }, 'other'],
  ] as const) {
    const refused = await recall(app, push, body);
    expect(refused.status, JSON.stringify(body)).toBe(400);
    expect(refused.body.error).toContain(member);
  }
  const long = { alert: 'a', k: 'x'.repeat(5000) };
  const refused = await recall(app, push, { replacement: { data: long } });
  expect(refused.body.error).toContain('4096');
  await service.api.request('PUT', `/console/api/apps/${app.appId}/freeze`, {
    admin: true,
    body: {},
  });
  expect(await recall(app, push)).toMatchObject({ status: 409 });
  await service.api.request('DELETE', `/console/api/apps/${app.appId}/freeze`, { admin: true });
  expect((await recall(app, push)).status).toBe(200);
  const record = await service.api.request('GET', `/1.1/notifications/${push}`, {
    app,
    master: true,
  });
  const again = await recall(app, record.body.recall.objectId);
  expect(again).toMatchObject({ status: 409 });
  expect(again.body.error).toContain(push);
  const redrive = await service.api.request(
    'POST',
    `/console/api/apps/${app.appId}/notifications/${record.body.recall.objectId}/redrive`,
    { admin: true, body: {} },
  );
  expect(redrive).toMatchObject({ status: 409 });
});

test('a sender recalls only its own pushes, and the audit names the recall', async () => {
  const app = await audienceOf('vendor_b');
  const push = await send(app);
  const made = { name: 'CI', role: 'sender', apps: [app.appId] };
  const { token } = (
    await service.api.request('POST', '/console/api/tokens', { admin: true, body: made })
  ).body;
  const path = `/console/api/apps/${app.appId}/notifications/${push}/recall`;
  const asSender = await service.api.request('POST', path, {
    headers: { Authorization: `Bearer ${token}` },
    body: {},
  });
  expect(asSender.status).toBe(403);
  await recall(app, push);
  const audit = await service.api.request('GET', `/console/api/audit?app=${app.appId}`, {
    admin: true,
  });
  expect(audit.body.results).toContainEqual(
    expect.objectContaining({ action: 'push.recall', target: push }),
  );
});

test('a push whose recall was cancelled is recalled again', async () => {
  const app = await audienceOf('vendor_b');
  const push = await send(app);
  const post = (path: string) =>
    service.api.request('POST', `/console/api${path}`, { admin: true });
  const breaker = `/breakers/vendor_b:${app.appId}:_default`;
  expect((await post(`${breaker}/open`)).status).toBe(200);
  const first = recall(app, push);
  const ofRecord = async () =>
    (await service.api.request('GET', `/1.1/notifications/${push}`, { app, master: true })).body
      .recall;
  await expect.poll(ofRecord).toMatchObject({ status: 'in-queue' });
  const { objectId } = await ofRecord();
  const cancelled = await post(`/apps/${app.appId}/notifications/${objectId}/cancel`);
  expect(cancelled.status).toBe(200);
  expect((await post(`${breaker}/release`)).status).toBe(200);
  expect((await first).status).toBe(200);
  expect(await ofRecord()).toMatchObject({ objectId, status: 'cancelled' });
  expect(await recall(app, push)).toMatchObject({
    status: 200,
    body: { connectors: { vendor_b: { recalled: 3 } } },
  });
});

test('one recall of a push runs at a time, and a slow one continues after the reply', async () => {
  const app = await audienceOf('vendor_b');
  const push = await send(app);
  vendors.gateways.xiaomi.misbehave({ kind: 'slow', delayMs: 7000, count: 1 });
  const first = recall(app, push);
  const running = async () =>
    (await service.api.request('GET', `/1.1/notifications/${push}`, { app, master: true })).body
      .recall?.status;
  await expect.poll(running).toBe('in-queue');
  expect(await recall(app, push)).toMatchObject({ status: 409 });
  expect((await first).body).toEqual({ connectors: { vendor_b: { recalled: 3 } } });
  await expect.poll(running, { timeout: 20_000 }).toBe('done');
  expect((await recall(app, push)).status).toBe(200);
});

test.each([true, false])(
  'a replacement without an answer is sent again if the device hides a repeat: %s',
  async (isRepeatHidden) => {
    const reportAs =
      (attempt: AttemptResult): Sender['send'] =>
      async ({ recipients, report }) => {
        for (const { index } of recipients) report(index, attempt);
      };
    const unanswered = { kind: 'unknown', reason: 'timeout', isRepeatHidden } as const;
    const sender: Sender = {
      recall: reportAs({ kind: 'sent' }),
      send: reportAs(unanswered),
      close: async () => undefined,
    };
    const messages = { earlier: aMessage(data), replacement: aMessage(replacement.data) };
    const recalling = new RecallSender({ sender, connector: xiaomi }, { messages, pushId: 1 });
    const to = recipients(2, { deviceType: 'android', vendor: 'mi' });
    const expected = isRepeatHidden ? unanswered : { kind: 'sent', form: 'recalled' };
    expect((await sendAll(recalling, to)).attempts).toEqual([expected, expected]);
  },
);
