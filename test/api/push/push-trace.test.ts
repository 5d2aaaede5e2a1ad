import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectDevices } from '../../../ops/sandbox/devices/devices.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { changePush, findDevice } from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});
afterEach(() => service.apns.behave());

async function appWithIos(count: number, fields = {}): Promise<{ app: App; tokens: string[] }> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, count, fields) };
}

async function begin(app: App, body: object = {}): Promise<string> {
  const whole = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: whole });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body.objectId;
}

async function push(app: App, body: object = {}): Promise<string> {
  const objectId = await begin(app, body);
  await service.untilDone(app, objectId);
  return objectId;
}

const ask = (app: App, objectId: string, device: string) =>
  service.api.request(
    'GET',
    `/console/api/apps/${app.appId}/notifications/${objectId}/devices/${encodeURIComponent(device)}`,
    { admin: true },
  );

async function why(app: App, objectId: string, device: string) {
  const { status, body } = await ask(app, objectId, device);
  expect({ status, body }).toMatchObject({ status: 200 });
  expect(JSON.stringify(body)).not.toMatch(/[0-9a-f]{64}/);
  return body;
}

const objectIdOf = async (app: App, token: string): Promise<string> =>
  (await findDevice(service.db, app, { deviceToken: token })).objectId;

const change = (app: App, token: string, assignment: string) =>
  service.db.query(
    `UPDATE installation SET ${assignment} WHERE app_id = $1 AND device_token = $2`,
    [app.appId, token],
  );

describe('a device that the push reached', () => {
  test('was sent: batch, route and time are facts, for each id of the device', async () => {
    const { app, tokens } = await appWithIos(3);
    const objectId = await push(app);
    const [token = ''] = tokens;
    const installation = await objectIdOf(app, token);
    const explanation = await why(app, objectId, token);
    expect(explanation).toMatchObject({
      installation,
      isMatched: true,
      clause: null,
      isValid: true,
      isFresh: true,
      route: { connector: 'apns', profile: '_default' },
      batch: { attempt: 0, settled: true },
      outcome: 'sent',
      status: null,
      reason: null,
      letter: null,
    });
    expect(explanation.sentence).toContain('accepted by APNs (profile _default)');
    expect(Date.parse(explanation.at)).not.toBeNaN();
    expect(await why(app, objectId, installation)).toEqual(explanation);
  });

  test('is still reported as sent if the device changes later', async () => {
    const { app, tokens } = await appWithIos(1, { level: 1 });
    const objectId = await push(app, { where: { level: 1 } });
    await change(app, tokens[0] ?? '', `fields = '{"level":2}', valid = false`);
    expect(await why(app, objectId, tokens[0] ?? '')).toMatchObject({
      isMatched: true,
      clause: null,
      isValid: false,
      outcome: 'sent',
    });
  });

  test('has the status and reason of a refusal by the gateway', async () => {
    const { app, tokens } = await appWithIos(2);
    service.apns.tokenTopics.set(tokens[0] ?? '', 'com.example.other');
    const explanation = await why(app, await push(app), tokens[0] ?? '');
    expect(explanation).toMatchObject({
      outcome: 'failed',
      status: 400,
      reason: 'DeviceTokenNotForTopic',
    });
    expect(explanation.sentence).toContain('did not take it (400 DeviceTokenNotForTopic)');
  });

  test('if deleted for its invalid token is described by the recorded failure', async () => {
    const { app, tokens } = await appWithIos(5);
    const [token = ''] = tokens;
    const installation = await objectIdOf(app, token);
    service.apns.deadTokens.set(token, Date.now() + 60_000);
    const objectId = await push(app);
    // The device is deleted after the end of the push.
    await expect.poll(async () => (await ask(app, objectId, token)).status).toBe(404);
    const explanation = await why(app, objectId, installation);
    expect(explanation).toMatchObject({
      installation,
      isMatched: true,
      isValid: null,
      outcome: 'invalid_token',
      status: 410,
      route: { connector: 'apns', profile: '_default' },
    });
    expect(explanation.sentence).toMatch(/dead .* deleted since/);
  });

  test('over the daily cap is capped', async () => {
    const app = await service.api.createApp({ dailyRecipientCap: 2 });
    await service.addApnsProfile(app);
    const tokens = await service.addIosInstallations(app, 3);
    const objectId = await push(app);
    const explanation = await Promise.all(tokens.map((token) => why(app, objectId, token)));
    expect(explanation.map(({ outcome }) => outcome).sort()).toEqual(['capped', 'sent', 'sent']);
    const capped = explanation.find(({ outcome }) => outcome === 'capped');
    expect(capped.sentence).toBe('It was not sent: the daily recipient cap of 2 is reached.');
  });

  test('without a profile has the reason', async () => {
    const { app, tokens } = await appWithIos(2);
    await change(app, tokens[0] ?? '', `topic = 'com.example.unknown'`);
    const explanation = await why(app, await push(app), tokens[0] ?? '');
    expect(explanation).toMatchObject({
      outcome: 'failed',
      route: { connector: 'apns', profile: '', problem: 'no APNs profile owns the topic' },
    });
    expect(explanation.sentence).toContain('no APNs profile owns the topic');
  });
});

describe('a device whose push was not sent', () => {
  const objectIdNow = (app: App, tokens: string[]) => objectIdOf(app, tokens[0] ?? '');
  const control = (app: App, objectId: string, verb: string) =>
    service.api.request(
      'POST',
      `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`,
      {
        admin: true,
      },
    );

  /** Sends a push to a device whose gateway asks for a pause of ten minutes. */
  async function putOff(body: object = {}) {
    const { app, tokens } = await appWithIos(1);
    const [token = ''] = tokens;
    const answer = { status: 429, reason: 'TooManyRequests', retryAfter: '600', token };
    service.apns.misbehave({ kind: 'answer', ...answer });
    const objectId = await begin(app, body);
    await expect
      .poll(async () => (await why(app, objectId, token)).batch?.attempt, { timeout: 15_000 })
      .toBe(1);
    return { app, token, objectId, installation: await objectIdNow(app, tokens) };
  }

  test('expired before its first attempt', async () => {
    const { app, tokens } = await appWithIos(1);
    const objectId = await push(app, {
      expiration_time: new Date(Date.now() - 1000).toISOString(),
    });
    expect(await why(app, objectId, tokens[0] ?? '')).toMatchObject({
      isMatched: true,
      batch: { attempt: 0, settled: true },
      outcome: 'expired',
      sentence: 'The push expired before it was sent to this device (expired before it was sent).',
    });
  });

  test('expired between two attempts: the last reply is shown', async () => {
    const { app, token, objectId } = await putOff({ expiration_interval: 8 });
    await service.untilDone(app, objectId);
    expect(await why(app, objectId, token)).toMatchObject({
      batch: { attempt: 1, settled: true },
      outcome: 'expired',
      sentence:
        'The push expired before it was sent to this device (expired; the last try: TooManyRequests).',
    });
  });

  test('waits for another attempt', async () => {
    const { app, token, objectId, installation } = await putOff();
    expect(await why(app, objectId, installation)).toMatchObject({
      installation,
      batch: { attempt: 1, settled: false },
      outcome: null,
      at: null,
      sentence:
        'It was matched and goes by APNs (profile _default): it was tried once and will be tried again. The last try: TooManyRequests.',
    });
    await control(app, objectId, 'cancel');
    // The pause of ten minutes ends with the push.
    await expect
      .poll(async () => (await why(app, objectId, token)).sentence)
      .toContain('It was dropped and not sent: cancelled');
  });

  test('was paused before planning, then cancelled', async () => {
    const { app, tokens } = await appWithIos(1);
    const [token = ''] = tokens;
    const objectId = await begin(app, {
      push_time: new Date(Date.now() + 3_600_000).toISOString(),
    });
    // Simulates that the operator pauses the push between its push_time and its planning.
    await changePush(service.db, app, { state: 'paused' }, objectId);
    const paused = await why(app, objectId, token);
    expect(paused).toMatchObject({
      isMatched: true,
      batch: null,
      outcome: null,
      route: { connector: 'apns' },
    });
    expect(paused.sentence).toContain('The push is paused and has not come to this device');
    expect((await control(app, objectId, 'cancel')).status).toBe(200);
    expect(await why(app, objectId, token)).toMatchObject({
      batch: null,
      outcome: null,
      sentence: 'The push was cancelled before this device was matched.',
    });
  });

  test('was cancelled during sending: dropped', async () => {
    const { app, tokens } = await appWithIos(3000);
    service.apns.misbehave({ kind: 'slow', delayMs: 400 });
    const already = service.apns.total;
    const objectId = await begin(app);
    await service.apns.waitFor(already + 1);
    await control(app, objectId, 'cancel');
    const missed = async () => {
      const { rows } = await service.db.query<{ object_id: string }>(
        `SELECT object_id FROM push_failure WHERE app_id = $1 AND outcome = 'dropped' LIMIT 1`,
        [app.appId],
      );
      return rows[0]?.object_id ?? '';
    };
    await expect.poll(missed, { timeout: 15_000 }).not.toBe('');
    expect(tokens).toHaveLength(3000);
    expect(await why(app, objectId, await missed())).toMatchObject({
      outcome: 'dropped',
      sentence: 'It was dropped and not sent: cancelled.',
    });
  });
});

describe('a device that the push does not match', () => {
  const where = { $and: [{ city: 'Paris' }, { age: { $gte: 18, $lt: 30 } }] };

  test.each([
    [`fields = '{"city":"Rome","age":20}'`, '{"city":"Paris"}'],
    [`fields = '{"city":"Paris","age":17}'`, '{"age":{"$gte":18}}'],
    [`fields = '{"city":"Paris","age":30}'`, '{"age":{"$lt":30}}'],
    [`channels = '{sport}'`, '{"channels":["news"]}'],
    ['valid = false', 'valid'],
    [`updated_at = now() - interval '91 days'`, 'updatedAt'],
  ])('%s: the clause is quoted as it was written', async (assignment, clause) => {
    const { app, tokens } = await appWithIos(1, { city: 'Paris', age: 20 });
    await change(app, tokens[0] ?? '', `channels = '{news}'`);
    await change(app, tokens[0] ?? '', assignment);
    const objectId = await push(app, { where, channels: 'news' });
    const explanation = await why(app, objectId, tokens[0] ?? '');
    expect(explanation).toMatchObject({
      isMatched: false,
      clause,
      batch: null,
      outcome: null,
      at: null,
    });
    expect(explanation.sentence).toMatch(/^It was not matched: /);
  });

  test('does not quote device tokens or phone numbers of a condition', async () => {
    const { app, tokens } = await appWithIos(2);
    const objectId = await push(app, {
      where: { deviceToken: { $in: [tokens[0] ?? '', 13_912_345_678] } },
    });
    expect(await why(app, objectId, tokens[1] ?? '')).toMatchObject({
      clause: '{"deviceToken":{"$in":["…","…"]}}',
    });
  });

  test('that registered later is described as such', async () => {
    const { app } = await appWithIos(1);
    const objectId = await push(app);
    const [token = ''] = await service.addIosInstallations(app, 1);
    const explanation = await why(app, objectId, token);
    expect(explanation).toMatchObject({ isMatched: true, batch: null, outcome: null });
    expect(explanation.sentence).toContain('after the push was made');
  });
});

test('of a scheduled push is described as the push would be sent now', async () => {
  const { app, tokens } = await appWithIos(1);
  const objectId = await begin(app, { push_time: new Date(Date.now() + 3_600_000).toISOString() });
  const explanation = await why(app, objectId, tokens[0] ?? '');
  expect(explanation).toMatchObject({ isMatched: true, batch: null, route: { connector: 'apns' } });
  expect(explanation.sentence).toContain('is scheduled');
});

test('on the device channel: the message waits, then it is acknowledged', async () => {
  const app = await service.api.createApp();
  const installationId = 'device-1';
  await service.api.request('POST', '/1.1/installations', {
    app,
    body: { deviceType: 'android', installationId },
  });
  const objectId = await push(app);
  expect(await why(app, objectId, installationId)).toMatchObject({
    outcome: 'sent',
    letter: 'waiting',
    route: { connector: 'channel' },
    sentence: expect.stringContaining('waits in the inbox'),
  });
  const devices = await connectDevices({
    apiUrl: service.api.url,
    appId: app.appId,
    installationIds: [installationId],
  });
  await devices.acked(1);
  await expect
    .poll(async () => (await why(app, objectId, installationId)).letter)
    .toBe('acknowledged');
  await devices.close();
});

test('unknown apps, pushes and devices return 404, and only operators may call it', async () => {
  const { app, tokens } = await appWithIos(1);
  const objectId = await push(app);
  expect((await ask(app, 'AAAAAAAAAAAAAAAA', tokens[0] ?? '')).status).toBe(404);
  expect((await ask(app, objectId, 'unknown')).status).toBe(404);
  expect((await ask(app, objectId, 'a\0b')).status).toBe(404);
  expect((await ask({ ...app, appId: 'none' }, objectId, 'x')).status).toBe(404);
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/devices/x`;
  expect((await service.api.request('GET', path, { app, master: true })).status).toBe(401);
});
