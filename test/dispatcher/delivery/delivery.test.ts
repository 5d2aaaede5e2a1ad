import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import {
  changeDevices,
  countRows,
  daysAgo,
  insertDevices,
  readDevices,
} from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});
afterEach(() => service.apns.behave());

const appWithIos = (count: number) => createAppOn(service, null, count);
async function push(app: App, body: object = {}): Promise<Record<string, unknown>> {
  return service.untilDone(app, await begin(app, body));
}

const begin = (app: App, body: object = {}) => beginPush(service, app, body);

async function tokensLeft(app: App): Promise<string[]> {
  const devices = await readDevices(service.db, app);
  return devices.map(({ deviceToken }) => deviceToken ?? '');
}

async function reasons(app: App): Promise<Record<string, number>> {
  const { rows } = await service.db.query<{ reason: string; n: number }>(
    'SELECT reason, count(*) AS n FROM push_failure WHERE app_id = $1 GROUP BY reason',
    [app.appId],
  );
  return Object.fromEntries(rows.map((row) => [row.reason, row.n]));
}

describe('devices with invalid tokens', () => {
  test('are deleted and counted when the gateway reports them', async () => {
    const { app, tokens } = await appWithIos(50);
    const dead = tokens.slice(0, 5);
    for (const token of dead) service.apns.deadTokens.set(token, Date.now() + 60_000);
    expect(await push(app)).toMatchObject({ devices: 50, successes: 45, invalidTokens: 5 });
    // They are deleted after the end of the push.
    const alive = tokens.filter((token) => !dead.includes(token)).toSorted();
    await expect.poll(async () => (await tokensLeft(app)).toSorted()).toEqual(alive);
  });

  test('stay if the installation was saved after the token became invalid', async () => {
    const { app, tokens } = await appWithIos(10);
    service.apns.deadTokens.set(tokens[0] ?? '', Date.now() - 3_600_000);
    expect(await push(app)).toMatchObject({ successes: 9, invalidTokens: 1 });
    expect(await tokensLeft(app)).toHaveLength(10);
  });

  test('all stay if the whole push had no success', async () => {
    const { app, tokens } = await appWithIos(20);
    for (const token of tokens) service.apns.badTokens.add(token);
    expect(await push(app)).toMatchObject({ devices: 20, successes: 0, invalidTokens: 20 });
    expect(await tokensLeft(app)).toHaveLength(20);
  });
});

describe('replies that do not concern the token', () => {
  test('503: the push is retried for the affected recipients only', async () => {
    const { app, tokens } = await appWithIos(30);
    service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable', count: 4 });
    expect(await push(app)).toMatchObject({ devices: 30, successes: 30 });
    const seen = tokens.map((token) => service.apns.seen(token));
    expect(seen.filter((n) => n === 2)).toHaveLength(4);
    expect(seen.filter((n) => n === 1)).toHaveLength(26);
  });

  test('a token of another topic fails with its reason, and all tokens stay', async () => {
    const { app, tokens } = await appWithIos(10);
    for (const token of tokens.slice(0, 3))
      service.apns.tokenTopics.set(token, 'com.example.other');
    const record = await push(app);
    expect(record).toMatchObject({ devices: 10, successes: 7, outcomes: { sent: 7, failed: 3 } });
    expect(record.errors).toContain('DeviceTokenNotForTopic');
    expect(await tokensLeft(app)).toHaveLength(10);
  });

  test('refused credentials end the push for the profile, with a hint', async () => {
    const { app } = await appWithIos(1500);
    service.apns.misbehave({ kind: 'answer', status: 403, reason: 'InvalidProviderToken' });
    const record = await push(app);
    expect(record).toMatchObject({
      status: 'done',
      devices: 1500,
      successes: 0,
      outcomes: { failed: 1500 },
    });
    // One hint for all recipients, whether a request was sent for them or not.
    expect(record.errors).toMatch(/^apns: InvalidProviderToken: .+ \(1500\)$/);
    expect(await tokensLeft(app)).toHaveLength(1500);
  });

  test('GOAWAY and refused streams lose no recipient and repeat none', async () => {
    const { app, tokens } = await appWithIos(500);
    // A GOAWAY frame cannot say that no stream was processed, so the connection must have answered
    // before.
    await push(app);
    service.apns.misbehave({ kind: 'goaway', count: 1 });
    service.apns.misbehave({ kind: 'refuse', count: 20 });
    expect(await push(app)).toMatchObject({ devices: 500, successes: 500 });
    expect(tokens.filter((token) => service.apns.seen(token) !== 2)).toEqual([]);
  });
});

describe('a push without a text', () => {
  const requestsTo = (token: string | undefined) =>
    service.apns.requests.filter((request) => request.token === token);

  test('reaches Apple devices in the background if it has content-available', async () => {
    const { app, tokens } = await appWithIos(1);
    const data = { alert: '', sound: '', 'content-available': 1, k: 'v' };
    expect(await push(app, { data })).toMatchObject({ devices: 1, successes: 1 });
    const [request] = requestsTo(tokens[0]);
    expect(request?.headers).toMatchObject({
      'apns-push-type': 'background',
      'apns-priority': '5',
    });
    expect(JSON.parse(request?.body.toString() ?? '')).toEqual({
      aps: { 'content-available': 1 },
      k: 'v',
    });
  });

  test('with a text for other devices only is not sent to Apple devices', async () => {
    const { app, tokens } = await appWithIos(1);
    const record = await push(app, { data: { silent: true, k: 'v' } });
    expect(record).toMatchObject({ devices: 1, outcomes: { failed: 1 } });
    expect(record.errors).toContain('iOS content needs an alert');
    expect(requestsTo(tokens[0])).toEqual([]);
  });
});

describe('Increment', () => {
  test('increments the badge of each device once and sends it', async () => {
    const { app, tokens } = await appWithIos(3);
    await changeDevices(service.db, app, { badge: 4 }, tokens.slice(0, 1));
    await push(app, { data: { alert: 'x', badge: 'Increment' } });
    const badgeOf = (token: string) =>
      service.apns.requests
        .filter((request) => request.token === token)
        .map((request) => JSON.parse(request.body.toString()).aps.badge);
    expect(tokens.map(badgeOf)).toEqual([[5], [1], [1]]);
  });

  test('repeats the same number in a retry, even after another push', async () => {
    const { app, tokens } = await appWithIos(1);
    // The retry comes after the other push is done.
    const again = { status: 503, reason: 'ServiceUnavailable', retryAfter: '3' };
    service.apns.misbehave({ kind: 'answer', count: 1, ...again });
    const first = await begin(app, { data: { alert: 'first', badge: 'Increment' } });
    await service.apns.waitFor(service.apns.total + 1);
    await push(app, { data: { alert: 'second', badge: 'Increment' } });
    await service.untilDone(app, first);
    const sent = service.apns.requests
      .filter((request) => request.token === tokens[0])
      .map((request) => JSON.parse(request.body.toString()).aps)
      .map((aps) => `${aps.alert} ${aps.badge}`);
    expect(sent).toEqual(['first 1', 'second 2', 'first 1']);
  });

  test('continues from a number that another push has set', async () => {
    const { app, tokens } = await appWithIos(1);
    await push(app, { data: { alert: 'x', badge: 7 } });
    await push(app, { data: { alert: 'x', badge: 'Increment' } });
    const badges = service.apns.requests
      .filter((request) => request.token === tokens[0])
      .map((request) => JSON.parse(request.body.toString()).aps.badge);
    expect(badges).toEqual([7, 8]);
  });
});

describe('a push', () => {
  test.each([
    new Date(Date.now() - 1000).toISOString(),
    // The least time of some clients, in China. It is in the year 0 in UTC.
    '0001-01-01T00:00:00+08:00',
  ])('that expired at %s is counted as expired and not sent', async (expiration_time) => {
    const { app, tokens } = await appWithIos(3);
    const record = await push(app, { expiration_time });
    expect(record).toMatchObject({
      status: 'done',
      devices: 3,
      successes: 0,
      outcomes: { expired: 3 },
    });
    expect(tokens.map((token) => service.apns.seen(token))).toEqual([0, 0, 0]);
  });

  test('without recipients is done immediately', async () => {
    const { app } = await appWithIos(1);
    expect(await push(app, { where: { channels: 'none' } })).toMatchObject({
      status: 'done',
      devices: 0,
      successes: 0,
    });
  });

  test('ignores installations that are invalid or not updated for three months', async () => {
    const { app, tokens } = await appWithIos(3);
    await changeDevices(service.db, app, { valid: false }, tokens.slice(0, 1));
    await changeDevices(service.db, app, { updatedAt: daysAgo(91) }, tokens.slice(1, 2));
    expect(await push(app)).toMatchObject({ devices: 1, successes: 1 });
  });

  test('counts devices without a usable profile, with the reason', async () => {
    const { app } = await appWithIos(2);
    await insertDevices(service.db, app, [{ deviceType: 'ios' }, { deviceType: 'android' }]);
    expect(await push(app)).toMatchObject({
      devices: 4,
      successes: 2,
      outcomes: { sent: 2, failed: 2 },
    });
    expect(Object.values(await reasons(app))).toEqual([1, 1]);
  });

  test('to the device channel puts one message into each inbox', async () => {
    const app = await service.api.createApp();
    await insertDevices(
      service.db,
      app,
      Array.from({ length: 1200 }, (_, i) => ({ deviceType: 'android', installationId: `i${i}` })),
    );
    const record = await push(app);
    expect(record).toMatchObject({
      devices: 1200,
      successes: 0,
      lcSuccesses: 0,
      outcomes: { sent: 1200 },
    });
    expect(await countRows(service.db, 'channel_inbox', app)).toBe(1200);
  });

  test('that is cancelled while it is sent counts every recipient', async () => {
    const { app } = await appWithIos(1500);
    service.apns.misbehave({ kind: 'slow', delayMs: 500 });
    const already = service.apns.total;
    const objectId = await begin(app);
    await service.apns.waitFor(already + 10);
    const path = `/1.1/notifications/${objectId}`;
    expect(await service.api.request('DELETE', path, { app, master: true })).toMatchObject({
      status: 200,
    });
    const counted = async () => {
      const { rows } = await service.db.query<{ counted: number; open: number; devices: number }>(
        `SELECT coalesce(sum((SELECT sum(value::int) FROM jsonb_each_text(b.totals))),
                0)::int AS counted, count(*) FILTER (WHERE NOT b.is_settled) AS open,
                max(n.devices) AS devices
           FROM push_batch b JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
          WHERE n.object_id = $1`,
        [objectId],
      );
      return rows[0];
    };
    await expect.poll(counted, { timeout: 20_000 }).toMatchObject({ open: 0 });
    const end = await counted();
    expect(end?.counted).toBe(end?.devices);
  });
});

test('pushes with one notification_id are counted together and separately', async () => {
  const { app, tokens } = await appWithIos(30);
  service.apns.deadTokens.set(tokens[0] ?? '', Date.now() + 60_000);
  const ids: string[] = [];
  for (const expected of [29, 29, 29]) {
    const objectId = await begin(app, { notification_id: 'campaign7' });
    ids.push(objectId);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: expected });
  }
  const { body } = await service.api.request('GET', '/1.1/notifications/campaign7', { app });
  expect(body).toMatchObject({
    objectId: ids[2],
    notificationId: 'campaign7',
    devices: 30 + 29 + 29,
    successes: 87,
    iosSuccesses: 87,
    invalidTokens: 1,
  });
});
