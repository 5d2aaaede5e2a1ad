import { beforeAll, expect, test } from 'vitest';
import { sleep } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { httpReason, reason, withStatus } from '../../../../shared/domain/reasons.ts';
import { changeMaxAgeMs } from '../../../../shared/ttl-cache.ts';
import { useTestService } from '../../../support/service.ts';
import { endWithFailures, readDevices } from '../../../support/tables.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let sender: ConsoleCall;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  sender = await callerOf(service.api, 'sender', { name: 'Li' });
});

const resend = (id: string, outcomes: string[]) =>
  sender('POST', `/apps/${app.appId}/notifications/${id}/resend`, { body: { outcomes } });

/** Sends a push of the app and ends it with failures (device, outcome, status, reason). */
async function closedPush(
  failures: [string, string, number, string][],
  data: object = { alert: 'Again' },
): Promise<string> {
  const body = { data, expiration_interval: 600 };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  const devices = new Map(
    (await readDevices(service.db, app)).map((one) => [one.deviceToken, one]),
  );
  await endWithFailures(
    service.db,
    app,
    reply.body.objectId,
    failures.map(([token, outcome, status, reason]) => {
      const device = devices.get(token) ?? { id: 0, objectId: '' };
      return { device, outcome, status, reason };
    }),
  );
  return reply.body.objectId;
}

test('a push is sent again, once, to recipients who certainly did not get it', async () => {
  const tokens = await service.addIosInstallations(app, 7);
  const [failed = '', expired = '', dead = '', silent = '', spent = '', repeated = ''] = tokens;
  const id = await closedPush([
    [failed, 'failed', 500, 'InternalServerError'],
    [expired, 'expired', 0, 'expired'],
    [dead, 'invalid_token', 410, 'Unregistered'],
    [silent, 'failed', 0, 'unknown'],
    [spent, 'failed', 0, 'retries exhausted: timeout'],
    [repeated, 'failed', 500, 'InternalServerError'],
  ]);
  await service.db.query(
    `INSERT INTO push_batch (app_id, push_id, connector, profile, recipients, unanswered)
     SELECT n.app_id, n.id, 'apns', '_default', ARRAY[i.id], 1 FROM notification n, installation i
      WHERE n.app_id = $3 AND i.app_id = n.app_id AND n.object_id = $1 AND i.device_token = $2`,
    [id, repeated, app.appId],
  );
  const path = `/apps/${app.appId}/notifications/${id}/redrive/explain`;
  expect((await sender('POST', path, { body: {} })).body).toMatchObject({
    devices: 2,
    failures: { selected: 5, unsure: 3, redriven: 0, gone: 0 },
  });
  expect((await sender('POST', path, { body: { includeUnsure: true } })).body).toMatchObject({
    devices: 5,
    failures: { selected: 5, unsure: 3, redriven: 0, gone: 0 },
  });
  const sent = await resend(id, ['failed', 'expired']);
  expect(sent).toMatchObject({ status: 201, body: { status: 'in-queue' } });
  const record = (await sender('GET', `/apps/${app.appId}/notifications/${sent.body.objectId}`))
    .body;
  expect(record).toMatchObject({
    createdBy: 'Li',
    msg: { alert: 'Again' },
    where: {},
    redriveOf: id,
  });
  expect(Date.parse(record.expiresAt) - Date.parse(record['push-time'])).toBe(600_000);
  expect((await resend(id, ['failed'])).body).toMatchObject({ code: 409 });
});

test('a repeated redrive returns the first one, even if all failures are redriven', async () => {
  const [token = ''] = await service.addIosInstallations(app, 1);
  const id = await closedPush([[token, 'failed', 500, 'InternalServerError']]);
  const redrive = () =>
    sender('POST', `/apps/${app.appId}/notifications/${id}/redrive`, {
      body: {},
      headers: { 'Idempotency-Key': 'repeated' },
    });
  const first = await redrive();
  expect(first.status).toBe(201);
  // The planning of the redrive claims the failures.
  await service.db.query(
    `UPDATE push_failure SET redriven_by = 1 WHERE app_id = $1 AND push_id = (
       SELECT id FROM notification WHERE app_id = $1 AND object_id = $2)`,
    [app.appId, id],
  );
  expect(await redrive()).toMatchObject({
    status: 201,
    body: { objectId: first.body.objectId },
  });
});

test.each(['not-a-request-id', 'x'.repeat(17)])(
  'a redrive with an Idempotency-Key that cannot be a req_id is refused: %s',
  async (key) => {
    const [token = ''] = await service.addIosInstallations(app, 1);
    const id = await closedPush([[token, 'failed', 500, 'InternalServerError']]);
    const path = `/apps/${app.appId}/notifications/${id}/redrive`;
    const headers = { 'Idempotency-Key': key };
    expect(await sender('POST', path, { body: {}, headers })).toMatchObject({
      status: 400,
      body: { code: 1, error: expect.stringContaining('Idempotency-Key') },
    });
    expect((await sender('POST', path, { body: {} })).status).toBe(201);
  },
);

test('a redrive keeps a member _push of a push from before the option reportOpens', async () => {
  const [token = ''] = await service.addIosInstallations(app, 1);
  const own = { alert: 'Again', _push: 'of the app' };
  const id = await closedPush([[token, 'failed', 500, 'InternalServerError']], own);
  const setOption = async (reportOpens: boolean) => {
    await service.api.request('PATCH', `/console/api/apps/${app.appId}`, {
      admin: true,
      body: { options: { reportOpens } },
    });
    await sleep(changeMaxAgeMs + 50);
  };
  await setOption(true);
  const refused = { data: own, where: {} };
  expect((await sender('POST', `/apps/${app.appId}/push`, { body: refused })).status).toBe(400);
  const sent = await sender('POST', `/apps/${app.appId}/notifications/${id}/redrive`, { body: {} });
  expect(sent).toMatchObject({ status: 201 });
  const record = await sender('GET', `/apps/${app.appId}/notifications/${sent.body.objectId}`);
  expect(record.body).toMatchObject({ msg: own });
  await setOption(false);
});

test('rows of this and the previous version have one cause, which its text selects', async () => {
  const [one = '', other = '', more = ''] = await service.addIosInstallations(app, 3);
  const stored = reason('retriesExhausted', { why: withStatus(503, httpReason(503)) });
  const text = 'retries exhausted: 503 http_503';
  const id = await closedPush([
    [one, 'failed', 503, stored],
    [other, 'failed', 503, text],
    [more, 'failed', 500, 'InternalServerError'],
  ]);
  const push = `/apps/${app.appId}/notifications/${id}`;
  const cause = {
    reason: text,
    n: 2,
    meaning: {
      code: 'retriesExhausted',
      params: { why: { text: '503 http_503', code: 'httpFailure' } },
    },
  };
  const summary = await sender('GET', `${push}/failures/summary`);
  expect(summary.body.results).toMatchObject([cause, { reason: 'InternalServerError', n: 1 }]);
  const query = new URLSearchParams({ reason: text });
  expect((await sender('GET', `${push}/failures?${query}`)).body.results).toMatchObject([
    { reason: text },
    { reason: text },
  ]);
  const explained = await sender('POST', `${push}/redrive/explain`, { body: { reason: text } });
  expect(explained.body).toMatchObject({ devices: 2, causes: [cause] });
  const unsure = { status: 0, reason: reason('retriesExhausted', { why: 'timeout' }) };
  await service.db.query(
    'UPDATE push_failure SET status = $2, reason = $3 WHERE app_id = $1 AND reason LIKE $4',
    [app.appId, unsure.status, unsure.reason, `${text}%`],
  );
  const again = await sender('POST', `${push}/redrive/explain`, { body: {} });
  expect(again.body).toMatchObject({ devices: 1, failures: { selected: 3, unsure: 2 } });
});

test('a push that is open or has no such recipients is not sent again', async () => {
  const reply = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert: 'x' } },
  });
  expect((await resend(reply.body.objectId, ['failed'])).body.error).toContain('are open');
  const id = await closedPush([]);
  expect((await resend(id, ['failed'])).body).toMatchObject({ code: 409 });
  await service.db.query(
    `INSERT INTO push_failure (app_id, push_id, installation, object_id, connector, outcome, status,
      reason)
     SELECT app_id, id, i, 'o' || i, 'apns', 'failed', 500, 'x'
       FROM notification, generate_series(1, 1001) AS i
      WHERE object_id = $1`,
    [id],
  );
  expect((await resend(id, ['failed'])).status).toBe(201);
  expect((await resend(id, [])).status).toBe(400);
  expect((await resend(id, ['sent'])).status).toBe(400);
  expect((await resend('nothing', ['failed'])).body).toMatchObject({ code: 101 });
});
