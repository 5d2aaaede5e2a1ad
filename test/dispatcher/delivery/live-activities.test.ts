import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { query } from '../../../shared/db/query.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';

/** Live Activities from the call to the sandbox gateway, over real TLS. */

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});

const attributesType = 'OrderAttributes';
const contentState = { stage: 1 };
const alert = { title: { 'loc-key': 'order.title', 'loc-args': ['1042'] }, body: 'On its way.' };
const start = {
  event: 'start',
  attributesType,
  attributes: { orderId: '1042' },
  contentState,
  alert,
};

const token = (bytes = 80): string => randomBytes(bytes).toString('hex');

const post = (app: App, path: string, body: object, more: object = {}) =>
  service.api.request('POST', `/1.1/liveActivities${path}`, { app, master: true, body, ...more });

async function accepted(app: App, path: string, body: object) {
  const reply = await post(app, path, body);
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return service.untilDone(app, String(reply.body.objectId));
}

/** Creates an app with devices that have no token of a Live Activity yet. */
async function appWith(devices: number) {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const deviceTokens = await service.addIosInstallations(app, devices);
  const rows = await query(service.db).rows<{ objectId: string; deviceToken: string }>(
    `SELECT object_id AS "objectId", device_token AS "deviceToken" FROM installation
      WHERE app_id = $1 ORDER BY id`,
    [app.appId],
  );
  return { app, deviceTokens, ids: rows.map(({ objectId }) => objectId) };
}

async function report(app: App, objectId: string | undefined, of: object, own = token()) {
  const reply = await service.api.request('POST', '/1.1/liveActivities/tokens', {
    app,
    body: { objectId, token: own, ...of },
  });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return own;
}

const admin = (method: 'GET' | 'POST', app: App, path: string, body?: object) =>
  service.api.request(method, `/console/api/apps/${app.appId}${path}`, {
    admin: true,
    ...(body ? { body } : {}),
  });

const lastTo = (own: string) => service.apns.requests.findLast((one) => one.token === own);
const sentTo = (own: string) => JSON.parse(String(lastTo(own)?.body));
const countTokens = (app: App) =>
  query(service.db).number('SELECT count(*) AS n FROM live_activity_token WHERE app_id = $1', [
    app.appId,
  ]);
const countDevices = (app: App) =>
  query(service.db).number('SELECT count(*) AS n FROM installation WHERE app_id = $1', [app.appId]);

describe('an activity', () => {
  test('is started on the devices with a push-to-start token', async () => {
    const { app, ids } = await appWith(3);
    const tokens = [
      await report(app, ids[0], { attributesType }, token().toUpperCase()),
      await report(app, ids[1], { attributesType }),
    ];
    await report(app, ids[2], { attributesType: 'OtherAttributes' });
    const record = await accepted(app, '', {
      ...start,
      staleDate: '2030-01-01T00:00:00Z',
      relevanceScore: 75.5,
      inputPushToken: true,
    });
    expect(record).toMatchObject({
      status: 'done',
      devices: 2,
      successes: 2,
      liveActivity: { event: 'start', attributesType, contentState, priority: 10 },
    });
    expect(JSON.stringify(record)).not.toContain(tokens[1]);
    for (const own of tokens) {
      const { aps } = sentTo(own.toLowerCase());
      expect(aps).toMatchObject({
        event: 'start',
        'attributes-type': attributesType,
        attributes: start.attributes,
        'content-state': contentState,
        alert,
        'input-push-token': 1,
        'relevance-score': 75.5,
        'stale-date': Date.UTC(2030, 0, 1) / 1000,
      });
      expect(lastTo(own.toLowerCase())?.headers).toMatchObject({
        'apns-push-type': 'liveactivity',
        'apns-topic': 'com.example.app.push-type.liveactivity',
        'apns-priority': '10',
      });
      expect(lastTo(own.toLowerCase())?.headers).not.toHaveProperty('apns-collapse-id');
    }
    const why = await admin('GET', app, `/notifications/${record.objectId}/devices/${ids[2]}`);
    expect(why.body.sentence).toContain('has no push-to-start token for the attributesType');
  });

  test('is updated and ended by its update tokens, with growing timestamps', async () => {
    const { app, ids } = await appWith(2);
    const tokens = [
      await report(app, ids[0], { activityId: 'order-1042' }),
      await report(app, ids[1], { activityId: 'order-1042' }, token(4)),
    ];
    const update = await accepted(app, '/order-1042', { event: 'update', contentState });
    expect(update).toMatchObject({ devices: 2, successes: 2, where: {} });
    const first = sentTo(tokens[0] ?? '').aps;
    expect(first).toEqual({
      event: 'update',
      timestamp: expect.any(Number),
      'content-state': contentState,
    });
    expect(lastTo(tokens[0] ?? '')?.headers['apns-priority']).toBe('5');
    const end = await accepted(app, '/order-1042', {
      event: 'end',
      contentState: { stage: 3 },
      dismissalDate: '2026-01-01T00:00:00Z',
      alert: { title: 'Here', sound: 'default' },
    });
    expect(end).toMatchObject({ devices: 2, successes: 2, liveActivity: { event: 'end' } });
    const last = sentTo(tokens[1] ?? '').aps;
    expect(last).toMatchObject({
      event: 'end',
      'dismissal-date': Date.UTC(2026, 0, 1) / 1000,
      alert: { title: 'Here', sound: 'default' },
    });
    expect(last.timestamp).toBeGreaterThan(first.timestamp);
  });

  test('loses only its token when APNs calls the token dead', async () => {
    const { app, ids } = await appWith(2);
    const dead = await report(app, ids[0], { activityId: 'a1' });
    await report(app, ids[1], { activityId: 'a1' });
    service.apns.deadTokens.set(dead, Date.now() + 60_000);
    const record = await accepted(app, '/a1', { event: 'update', contentState });
    expect(record).toMatchObject({ devices: 2, invalidTokens: 1, successes: 1 });
    await expect.poll(() => countTokens(app)).toBe(1);
    expect(await countDevices(app)).toBe(2);
  });

  test('keeps a token that is only called bad, unless another one succeeds', async () => {
    const { app, ids } = await appWith(2);
    const bad = await report(app, ids[0], { activityId: 'a1' });
    service.apns.badTokens.add(bad);
    await accepted(app, '/a1', { event: 'update', contentState });
    expect(await countTokens(app)).toBe(1);
    await report(app, ids[1], { activityId: 'a1' });
    await accepted(app, '/a1', { event: 'update', contentState });
    await expect.poll(() => countTokens(app)).toBe(1);
    expect(await countDevices(app)).toBe(2);
  });

  test('is not reached by a token that was reported more than twelve hours ago', async () => {
    const { app, ids } = await appWith(1);
    await report(app, ids[0], { activityId: 'old' });
    await service.db.query(
      `UPDATE live_activity_token SET reported_at = now() - interval '13 hours' WHERE app_id = $1`,
      [app.appId],
    );
    const record = await accepted(app, '/old', { event: 'update', contentState });
    expect(record).toMatchObject({ status: 'done', devices: 0 });
    const why = await service.api.request(
      'GET',
      `/console/api/apps/${app.appId}/notifications/${record.objectId}/devices/${ids[0]}`,
      { admin: true },
    );
    expect(why.body.sentence).toContain('was reported more than 12 hours ago');
  });

  test('is retried with the same timestamp', async () => {
    const { app, ids } = await appWith(1);
    const own = await report(app, ids[0], { activityId: 'a1' });
    service.apns.misbehave({
      kind: 'answer',
      status: 503,
      reason: 'ServiceUnavailable',
      count: 1,
      token: own,
    });
    await accepted(app, '/a1', { event: 'update', contentState });
    const stamps = service.apns.requests
      .filter((one) => one.token === own)
      .map((one) => JSON.parse(String(one.body)).aps.timestamp);
    expect(stamps).toHaveLength(2);
    expect(new Set(stamps).size).toBe(1);
  });

  test('is not retried after a newer state', async () => {
    const { app, ids } = await appWith(1);
    const own = await report(app, ids[0], { activityId: 'a1' });
    service.apns.misbehave({
      kind: 'answer',
      status: 429,
      reason: 'TooManyRequests',
      retryAfter: '2',
      count: 1,
      token: own,
    });
    const older = await post(app, '/a1', { event: 'update', contentState: { stage: 8 } });
    await expect.poll(() => service.apns.seen(own)).toBe(1);
    await accepted(app, '/a1', { event: 'update', contentState: { stage: 9 } });
    const end = await service.untilDone(app, String(older.body.objectId));
    expect(end.outcomes).toEqual({ dropped: 1 });
    expect(sentTo(own).aps['content-state']).toEqual({ stage: 9 });
  });

  test('is not recalled', async () => {
    const { app, ids } = await appWith(1);
    await report(app, ids[0], { activityId: 'a1' });
    const { objectId } = await accepted(app, '/a1', { event: 'update', contentState });
    for (const body of [{}, { dryRun: true }, { replacement: { data: { alert: 'Hello' } } }]) {
      const reply = await admin('POST', app, `/notifications/${objectId}/recall`, body);
      expect(reply).toMatchObject({ status: 409 });
      expect(reply.body.error).toContain('update or end the activity');
    }
  });

  test('that failed is no push that can be sent again', async () => {
    const { app, ids, deviceTokens } = await appWith(1);
    const own = await report(app, ids[0], { activityId: 'a1' });
    for (const token of [own, deviceTokens[0] ?? ''])
      service.apns.misbehave({
        kind: 'answer',
        status: 400,
        reason: 'PayloadEmpty',
        count: 1,
        token,
      });
    expect(await accepted(app, '/a1', { event: 'update', contentState })).toMatchObject({
      outcomes: { failed: 1 },
    });
    const push = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { where: {}, data: { alert: 'Hello' } },
    });
    await service.untilDone(app, push.body.objectId);
    const { body } = await admin('GET', app, '/undelivered');
    expect(body.results).toMatchObject([{ objectId: push.body.objectId, failed: 1 }]);
    service.apns.behave();
  });

  test.each([
    [403, 'InvalidProviderToken'],
    [429, 'TooManyRequests'],
  ])('survives the answer %i %s', async (status, reason) => {
    const { app, ids } = await appWith(1);
    const own = await report(app, ids[0], { activityId: 'a1' });
    service.apns.misbehave({ kind: 'answer', status, reason, count: 1, token: own });
    expect(await accepted(app, '/a1', { event: 'update', contentState })).toMatchObject({
      status: 'done',
    });
    expect(await countTokens(app)).toBe(1);
    service.apns.behave();
  });
});

describe('a broadcast', () => {
  async function channelOf(app: App, storage: 'none' | 'last' = 'none'): Promise<string> {
    const reply = await post(app, '/channels', { storage });
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 201 });
    return String(reply.body.channel);
  }
  const pathOf = (channel: string) => `/channels/${encodeURIComponent(channel)}`;

  test('reaches its channel, which is the only recipient', async () => {
    const { app } = await appWith(0);
    for (const storage of ['none', 'last'] as const) {
      const channel = await channelOf(app, storage);
      const record = await accepted(app, pathOf(channel), {
        event: 'update',
        contentState,
        priority: 1,
      });
      expect(record).toMatchObject({
        devices: 1,
        successes: 1,
        liveActivity: { channel, storage, event: 'update' },
      });
      const { headers, status } = lastTo(channel) ?? {};
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        ':path': '/4/broadcasts/apps/com.example.app',
        'apns-channel-id': channel,
        'apns-push-type': 'liveactivity',
        'apns-priority': '1',
      });
      expect(headers).not.toHaveProperty('apns-topic');
      if (storage === 'none') expect(headers?.['apns-expiration']).toBe('0');
      else expect(Number(headers?.['apns-expiration'])).toBeGreaterThan(Date.now() / 1000);
    }
  });

  test('may have 5120 bytes, and a push to tokens 4096', async () => {
    const { app } = await appWith(0);
    const channel = await channelOf(app);
    const body = (length: number) => ({
      event: 'update',
      contentState: { text: 'x'.repeat(length) },
    });
    expect((await post(app, '/a1', body(4100))).body.error).toContain('at most 4096');
    expect(await accepted(app, pathOf(channel), body(5000))).toMatchObject({ successes: 1 });
    expect((await post(app, pathOf(channel), body(5100))).body.error).toContain('at most 5120');
  });

  test('marks a channel that APNs does not know', async () => {
    const { app } = await appWith(0);
    const channel = await channelOf(app);
    service.apns.channels.of('com.example.app').delete(channel);
    const record = await accepted(app, pathOf(channel), { event: 'update', contentState });
    expect(record).toMatchObject({ devices: 1, invalidTokens: 1 });
    await expect
      .poll(
        async () => (await post(app, pathOf(channel), { event: 'update', contentState })).status,
      )
      .toBe(404);
  });

  test.each([
    [400, 'BadChannelId', 'failed'],
    [400, 'FeatureNotEnabled', 'failed'],
    [400, 'MissingChannelId', 'failed'],
    [400, 'BadRequestPayload', 'failed'],
    [400, 'BadExpirationDate', 'failed'],
    [400, 'BadPriority', 'failed'],
    [400, 'BadMessageId', 'failed'],
    [400, 'PayloadEmpty', 'failed'],
    [400, 'MissingPushType', 'failed'],
    [400, 'InvalidPushType', 'failed'],
    [400, 'TopicDisallowed', 'failed'],
    [403, 'TopicMismatch', 'failed'],
    [403, 'BadCertificate', 'failed'],
    [403, 'BadCertificateEnvironment', 'failed'],
    [403, 'MissingProviderToken', 'failed'],
    [404, 'BadPath', 'failed'],
    [405, 'MethodNotAllowed', 'failed'],
    [413, 'PayloadTooLarge', 'failed'],
    [429, 'TooManyRequests', 'sent'],
    [500, 'InternalServerError', 'sent'],
    [503, 'Service Unavailable', 'sent'],
    [503, 'Shutdown', 'sent'],
  ])('after the answer %i %s is %s', async (status, reason, outcome) => {
    const { app } = await appWith(0);
    const channel = await channelOf(app);
    service.apns.misbehave({ kind: 'answer', status, reason, count: 1, token: channel });
    const record = await accepted(app, pathOf(channel), { event: 'update', contentState });
    expect(record.outcomes).toEqual({ [outcome]: 1 });
    service.apns.behave();
    for (const view of ['failures', 'failures/summary', 'timeline', 'progress'])
      expect(
        (await admin('GET', app, `/notifications/${record.objectId}/${view}`)).status,
        view,
      ).toBe(200);
    const redrive = await admin('POST', app, `/notifications/${record.objectId}/redrive`, {
      outcomes: ['failed'],
    });
    expect(redrive.status).toBe(409);
  });

  test('is explained to a device', async () => {
    const { app, ids } = await appWith(1);
    const channel = await channelOf(app);
    const { objectId } = await accepted(app, pathOf(channel), { event: 'update', contentState });
    const why = await admin('GET', app, `/notifications/${objectId}/devices/${ids[0]}`);
    expect(why.body.sentence).toContain('only Apple knows the devices of a channel');
  });
});
