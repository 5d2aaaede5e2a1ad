import { beforeAll, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  beginPush,
  createAppOn,
  startRestartableGateway,
} from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeFailures, daysAgo } from '../../support/tables.ts';

const service = useTestService();

beforeAll(() => service.dispatch().then(() => undefined));

const pathOf = (app: App, objectId: string) =>
  `/console/api/apps/${app.appId}/notifications/${objectId}`;
const call = (app: App, objectId: string, body: object = {}) =>
  service.api.request('POST', `${pathOf(app, objectId)}/redrive`, { admin: true, body });

async function raiseCap(app: App, dailyRecipientCap: number): Promise<void> {
  const body = { options: { dailyRecipientCap } };
  await service.api.request('PATCH', `/console/api/apps/${app.appId}`, { admin: true, body });
  // A changed option takes effect on every process within one second.
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
const recordOf = async (app: App, objectId: string) =>
  (await service.api.request('GET', pathOf(app, objectId), { admin: true })).body;
const notSentOnce = (tokens: string[]) => tokens.filter((token) => service.apns.seen(token) !== 1);

/** Sends a push that the gateway refuses for each device. */
async function failedPush(devices: number) {
  const { app, tokens } = await createAppOn(service, null, devices);
  service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
  const objectId = await beginPush(service, app);
  expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { failed: devices } });
  service.apns.behave();
  const before = new Map(tokens.map((token) => [token, service.apns.seen(token)]));
  /** Counts the requests to each device since then. */
  const requests = () => tokens.map((token) => service.apns.seen(token) - (before.get(token) ?? 0));
  return { app, tokens, objectId, requests };
}

test('capped recipients get the push once by a redrive, and the others not again', async () => {
  const app = await service.api.createApp({ dailyRecipientCap: 200 });
  await service.addApnsProfile(app);
  const tokens = await service.addIosInstallations(app, 600);
  const objectId = await beginPush(service, app, { expiration_interval: 600 });
  expect(await service.untilDone(app, objectId)).toMatchObject({
    outcomes: { sent: 200, capped: 400 },
  });
  await raiseCap(app, 500);
  const dryRun = await service.api.request('POST', `${pathOf(app, objectId)}/redrive/explain`, {
    admin: true,
    body: {},
  });
  expect(dryRun.body).toMatchObject({
    devices: 400,
    failures: { selected: 400, redriven: 0, unsure: 0, gone: 0, notKept: 0 },
    causes: [{ outcome: 'capped', n: 400 }],
    texts: { limits: [{ code: 'dailyCap', params: { cap: 500, left: 300, over: 100 } }] },
  });
  const { body } = await call(app, objectId);
  expect(await service.untilDone(app, body.objectId)).toMatchObject({
    devices: 400,
    outcomes: { sent: 300, capped: 100 },
  });
  expect(await recordOf(app, objectId)).toMatchObject({ redriven: 400, redrives: [body.objectId] });
  expect(await recordOf(app, body.objectId)).toMatchObject({ redriveOf: objectId, redriven: 0 });
  expect((await call(app, objectId)).body).toMatchObject({ code: 409 });
  await raiseCap(app, 600);
  const last = await call(app, body.objectId, { outcomes: ['capped'] });
  expect(await service.untilDone(app, last.body.objectId)).toMatchObject({
    outcomes: { sent: 100 },
  });
  expect(notSentOnce(tokens)).toEqual([]);
});

test('two concurrent redrives take each recipient once', async () => {
  const { app, objectId, requests } = await failedPush(2500);
  const { body } = await call(app, objectId);
  // The call refuses a second redrive until the first is planned, so the redrive is inserted
  // directly.
  await service.db.query(
    `WITH one AS (SELECT * FROM notification WHERE app_id = $1 AND object_id = $2),
     other AS (INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
       push_time, expires_at, redrive_of)
       SELECT app_id, 'otherRedrive0000', 'other', 'queued', request, prod, push_time, expires_at,
         redrive_of FROM one
       RETURNING app_id, id)
     INSERT INTO pgboss.job (name, data) SELECT 'plan', jsonb_build_object('appId', app_id,
       'pushId', id) FROM other`,
    [app.appId, body.objectId],
  );
  const [one, other] = await Promise.all(
    [body.objectId, 'otherRedrive0000'].map((id) => service.untilDone(app, id)),
  );
  expect(Number(one?.devices) + Number(other?.devices)).toBe(2500);
  expect(requests().filter((n) => n !== 1)).toEqual([]);
});

test('a selection by reason skips the others, and a deleted device is not counted', async () => {
  const { app, tokens, objectId, requests } = await failedPush(4);
  await changeFailures(
    service.db,
    app,
    { status: 403, reason: 'InvalidProviderToken' },
    tokens.slice(0, 2),
  );
  await service.db.query('DELETE FROM installation WHERE device_token = $1', [tokens[0]]);
  const selection = { outcomes: ['failed'], connector: 'apns', reason: 'InvalidProviderToken' };
  const dryRun = await service.api.request('POST', `${pathOf(app, objectId)}/redrive/explain`, {
    admin: true,
    body: selection,
  });
  expect(dryRun.body).toMatchObject({ devices: 1, failures: { selected: 2, gone: 1 } });
  expect((await call(app, objectId, { ...selection, connector: 'vendor_d' })).body).toMatchObject({
    code: 409,
  });
  const { body } = await call(app, objectId, selection);
  expect(await service.untilDone(app, body.objectId)).toMatchObject({
    devices: 1,
    outcomes: { sent: 1 },
  });
  expect(requests()).toEqual([0, 1, 0, 0]);
});

test('a selection by time takes recipients that ended in that time', async () => {
  const { app, tokens, objectId, requests } = await failedPush(4);
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  for (const [i, token] of tokens.entries())
    await changeFailures(service.db, app, { createdAt: daysAgo((i + 1) / 24) }, [token]);
  const selection = { from: hoursAgo(3.5), to: hoursAgo(1.5) };
  const dryRun = await service.api.request('POST', `${pathOf(app, objectId)}/redrive/explain`, {
    admin: true,
    body: selection,
  });
  expect(dryRun.body).toMatchObject({ devices: 2, failures: { selected: 2 } });
  const some = await call(app, objectId, selection);
  expect(await service.untilDone(app, some.body.objectId)).toMatchObject({ outcomes: { sent: 2 } });
  expect(requests()).toEqual([0, 1, 1, 0]);
  expect((await call(app, objectId, selection)).body).toMatchObject({ code: 409 });
  const rest = await call(app, objectId);
  expect(await service.untilDone(app, rest.body.objectId)).toMatchObject({ outcomes: { sent: 2 } });
  expect(requests()).toEqual([1, 1, 1, 1]);
});

test('recipients that may have got the push are redriven only on request', async () => {
  const { app, tokens, objectId, requests } = await failedPush(4);
  await changeFailures(service.db, app, { isUnsure: true }, tokens.slice(0, 3));
  const sure = await call(app, objectId);
  await service.untilDone(app, sure.body.objectId);
  expect(requests()).toEqual([0, 0, 0, 1]);
  expect((await call(app, objectId)).body).toMatchObject({ code: 409 });
  const { body } = await call(app, objectId, { includeUnsure: true });
  expect(await service.untilDone(app, body.objectId)).toMatchObject({
    devices: 3,
    outcomes: { sent: 3 },
  });
  expect(requests()).toEqual([1, 1, 1, 1]);
});

test('after a broken connection, a redrive reaches only certain failures', async () => {
  const gateway = await startRestartableGateway();
  const { app, tokens } = await createAppOn(service, gateway.own, 1500);
  gateway.now().misbehave({ kind: 'disconnect' });
  const objectId = await beginPush(service, app, { expiration_interval: 2 });
  expect((await service.untilDone(app, objectId)).successes).toBe(0);
  gateway.now().behave();
  const seen = () => tokens.map((token) => gateway.now().seen(token));
  const before = seen();
  const { body } = await call(app, objectId, { expiration_interval: 600 });
  const { devices, outcomes } = await service.untilDone(app, body.objectId);
  expect(outcomes).toEqual({ sent: devices });
  const after = seen();
  // The gateway processed a request without answering it, so such a device may have the push.
  expect(after.filter((n, i) => before[i] !== 0 && n !== before[i])).toEqual([]);
  expect(after.filter((n, i) => n === (before[i] ?? 0) + 1)).toHaveLength(Number(devices));
  expect(Number(devices)).toBeGreaterThan(0);
  await gateway.stop();
});
