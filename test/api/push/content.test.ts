/**
 * Tests which content the push calls refuse, and which content they accept for some devices
 * (protocol/push.md#content).
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

/** Apps by the kinds of devices that they have. */
const apps: Record<'apple' | 'android' | 'both' | 'none', App> = Object.create(null);

beforeAll(async () => {
  const ios = { deviceType: 'ios', deviceToken: 'a'.repeat(64) };
  const android = { deviceType: 'android', installationId: 'a-1' };
  for (const [name, devices] of [
    ['apple', [ios]],
    ['android', [android]],
    ['both', [ios, android]],
    ['none', []],
  ] as const) {
    apps[name] = await service.api.createApp({ hybridPush: true });
    for (const body of devices)
      await service.api.request('POST', '/1.1/installations', { app: apps[name], body });
  }
  for (const app of Object.values(apps)) {
    const token = {
      auth: 'token',
      teamId: 'TEAM123456',
      keyId: 'ABCDE12345',
      topics: ['com.example.app'],
    };
    const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
    await service.api.request('PUT', path, {
      admin: true,
      body: { ...token, privateKey: await p8() },
    });
  }
});

async function p8(): Promise<string> {
  const { createApnsCredentials } = await import('../../../ops/sandbox/apns/server.ts');
  return createApnsCredentials().privateKey;
}

const push = (app: App, data: JsonObject, more: JsonObject = {}) =>
  service.api.request('POST', '/1.1/push', { app, master: true, body: { data, ...more } });

const toIos = { where: { deviceType: 'ios' } };

describe('a member that APNs would refuse', () => {
  const wrong: [path: string, data: JsonObject][] = [
    ['content-available', { alert: 'a', 'content-available': 'yes' }],
    ['mutable-content', { alert: 'a', 'mutable-content': 5 }],
    ['badge', { alert: 'a', badge: 'five' }],
    ['sound', { alert: 'a', sound: 5 }],
    ['category', { alert: 'a', category: {} }],
    ['thread-id', { alert: 'a', 'thread-id': 5 }],
    ['interruption-level', { alert: 'a', 'interruption-level': 'loud' }],
    ['relevance-score', { alert: 'a', 'relevance-score': 2 }],
    ['pgw-priority', { alert: 'a', 'pgw-priority': 7 }],
    ['apns-priority', { alert: 'a', 'apns-priority': 'high' }],
    ['apns-push-type', { alert: 'a', 'apns-push-type': 'voip' }],
    ['collapse-id', { alert: 'a', 'collapse-id': 'x'.repeat(65) }],
    ['ios.badge', { alert: 'a', ios: { badge: -1 } }],
    [
      'aps.timestamp',
      { aps: { event: 'update', 'content-state': {} }, 'apns-push-type': 'liveactivity' },
    ],
    ['aps.event', { aps: { timestamp: 1_790_000_000 }, 'apns-push-type': 'liveactivity' }],
    ['aps.alert', { aps: { alert: 'a', 'content-available': 1 }, 'apns-push-type': 'background' }],
    ['ios', { alert: 'a', ios: 'text' }],
  ];

  test.each(wrong)(
    '%s is refused by every call that can reach Apple’s devices: %j',
    async (path, data) => {
      const refused = {
        status: 400,
        body: { code: 1, error: expect.stringMatching(new RegExp(`^data: ${path} `)) },
      };
      expect(await push(apps.both, data)).toMatchObject(refused);
      expect(await push(apps.apple, data)).toMatchObject(refused);
      expect(await push(apps.none, data)).toMatchObject(refused);
      expect(await push(apps.android, data, toIos)).toMatchObject(refused);
      expect(
        await push(apps.both, data, { where: { deviceType: { $in: ['ios'] } } }),
      ).toMatchObject(refused);
      const devices = { device_type: 'ios', device_ids: ['a'.repeat(64)], data };
      const call = await service.api.request('POST', '/1.1/push/devices', {
        app: apps.both,
        master: true,
        body: devices,
      });
      expect(call).toMatchObject(refused);
    },
  );

  test.each(wrong.filter(([, { alert }]) => alert))(
    '%s is a custom member for Android alone: %j',
    async (path, data) => {
      const conditions: JsonObject[] = [
        { deviceType: 'android' },
        { deviceType: { $in: ['android'] } },
        { deviceType: { $eq: 'android' } },
      ];
      for (const where of conditions)
        expect(await push(apps.both, data, { where })).toMatchObject({ status: 200 });
      // Without a condition, the push reaches no Apple device of this app.
      if (path !== 'ios') expect(await push(apps.android, data)).toMatchObject({ status: 200 });
    },
  );

  test('in a translation is named with its language', async () => {
    const { body, status } = await push(
      apps.both,
      { alert: 'a' },
      { languages: { en: { badge: 'x' } } },
    );
    expect({ status, error: body.error }).toEqual({
      status: 400,
      error: expect.stringMatching(/^languages\.en: badge must/),
    });
  });

  test('is reported as a limit in the dry run', async () => {
    const path = `/console/api/apps/${apps.both.appId}/push/explain`;
    const body = { data: { alert: 'a', badge: 'x' } };
    const reply = await service.api.request('POST', path, { admin: true, body });
    expect(JSON.stringify(reply.body.limits)).toContain('badge must be a whole number');
  });
});

describe('plain forms', () => {
  test.each<JsonObject>([
    {
      alert: 'a',
      'content-available': '1',
      'mutable-content': true,
      badge: '5',
      'relevance-score': '0.5',
    },
    { alert: 'a', 'pgw-priority': '10', sound: { name: 's', critical: 1, volume: '0.5' } },
    { k: 1, silent: 'true', ios: { 'content-available': 'true' } },
    { alert: 'a', silent: '0' },
  ])('are accepted, and the record has them as they were sent: %j', async (data) => {
    const { body, status } = await push(apps.both, data);
    expect(status).toBe(200);
    const record = await service.api.request('GET', `/1.1/notifications/${body.objectId}`, {
      app: apps.both,
    });
    expect(record.body.msg).toEqual(data);
  });
});

describe('a vendor’s own object', () => {
  test.each<[string, JsonObject]>([
    ['fcm.colour: there is no such member', { fcm: { colour: 'red' } }],
    ['hms.category must', { hms: { category: 'CHAT' } }],
    ['vendor_a.pushOptions.ttl must', { vendor_a: { pushOptions: { ttl: 'x' } } }],
    ['mi.notify_id must', { mi: { notify_id: 'x' } }],
    ['mi.title must have at most 49', { mi: { title: 'x'.repeat(50) } }],
    ['mz.validTime must', { mz: { validTime: 100 } }],
    ['oppo.category must', { oppo: { category: 'CHAT' } }],
    ['vivo.notifyType must', { vivo: { notifyType: 9 } }],
    ['honor.importance must', { honor: { importance: 'HIGH' } }],
    ['android.title of Android content must', { android: { title: 5 } }],
  ])('with a wrong member is refused: %s', async (error, own) => {
    const reply = await push(apps.both, { alert: 'a', ...own });
    expect(reply).toMatchObject({
      status: 400,
      body: { code: 1, error: expect.stringContaining(`data: ${error}`) },
    });
    // No device of the push gets the member.
    expect(await push(apps.both, { alert: 'a', ...own }, toIos)).toMatchObject({ status: 200 });
  });

  test('is not checked if no device can use it', async () => {
    const plain = await service.api.createApp();
    expect(await push(plain, { alert: 'a', fcm: { colour: 'red' } })).toMatchObject({
      status: 200,
    });
  });
});

test.each<[string, JsonObject]>([
  ['an alert object for iOS', { alert: { body: 'a' } }],
  ['a text that is too long for a vendor', { alert: 'a'.repeat(200), mi: { channel_id: '1' } }],
  [
    'content with nothing to show on iOS',
    { alert: '', 'content-available': 1, android: { alert: 'a' } },
  ],
  ['a silent message', { silent: true, k: 1, oppo: {} }],
])('%s is accepted for devices that support it', async (_, data) => {
  expect(await push(apps.both, data)).toMatchObject({ status: 200 });
});
