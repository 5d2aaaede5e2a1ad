import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../connectors/contract/connector.ts';
import { previewFcm, renderFcm } from '../../../connectors/fcm/payload.ts';
import { violationOf } from '../../../ops/sandbox/fcm/rules.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { aMessage } from '../../support/gateways/apns.ts';

/** Returns the message for one device, validated with FCM's rules. */
function messageOf(data: JsonObject, more: Partial<PushMessage> = {}, nowMs?: number) {
  const rendering = renderFcm('vendor_g', aMessage(data, more), nowMs);
  if (!rendering.ok) throw new Error(rendering.error);
  const body = JSON.parse(previewFcm(rendering.payload));
  expect(violationOf(body)).toBeUndefined();
  const { token, ...message } = body.message;
  expect(token).toBe('TOKEN');
  return { ...message, isRepeatHidden: rendering.payload.isRepeatHidden };
}

function problemOf(data: JsonObject): string {
  const rendering = renderFcm('fcm', aMessage(data));
  if (rendering.ok) throw new Error('it was rendered');
  return reasonText(rendering.error);
}

describe('a push to FCM', () => {
  test('is a notification with the whole push as text in its data', () => {
    const data = { alert: 'Hello', title: 'T', k: { deep: [1] }, action: 'com.example.GO' };
    expect(messageOf(data, { channels: ['news'], notificationChannel: 'orders' })).toEqual({
      notification: { title: 'T', body: 'Hello' },
      data: { payload: JSON.stringify(data), _channel: 'news', action: 'com.example.GO' },
      android: {
        ttl: '3600s',
        priority: 'HIGH',
        notification: { tag: 'PushRecord000001', channel_id: 'orders' },
      },
      isRepeatHidden: true,
    });
  });

  test('that is silent contains only data, without a tag that could hide a repeat', () => {
    expect(messageOf({ silent: true, k: 1 })).toEqual({
      data: { payload: '{"silent":true,"k":1}' },
      android: { ttl: '3600s', priority: 'NORMAL' },
      isRepeatHidden: false,
    });
  });

  test('has the remaining lifetime at the time of sending', () => {
    const ttl = (expiresAtMs: number, nowMs: number) =>
      messageOf({ alert: 'a' }, { expiresAtMs }, nowMs).android.ttl;
    expect(ttl(10_000, 8_500)).toBe('2s');
    expect(ttl(10_000, 10_000)).toBe('0s');
    expect(ttl(10_000, 20_000)).toBe('0s');
    expect(ttl(40 * 86_400_000, 0)).toBe('2419200s');
  });

  test('with a collapse-id replaces the previous push, in transit and on the screen', () => {
    const { android } = messageOf({ alert: 'a', 'collapse-id': 'score' });
    expect(android).toMatchObject({ collapse_key: 'score', notification: { tag: 'score' } });
  });

  test.each(['fcm', 'vendor_g'])(
    'accepts FCM’s own members from the object %s, wherever they belong',
    (name) => {
      const own = {
        title: 'Own',
        priority: 'NORMAL',
        ttl: '60s',
        tag: 'mine',
        color: '#ff0000',
        image: 'https://example.com/i.png',
        data: { extra: 'x' },
        android: { restricted_package_name: 'com.example' },
        fcm_options: { analytics_label: 'campaign' },
      };
      expect(messageOf({ alert: 'a', [name]: own })).toMatchObject({
        notification: { title: 'Own', body: 'a' },
        data: { extra: 'x', payload: '{"alert":"a","title":"Own"}' },
        android: {
          priority: 'NORMAL',
          ttl: '60s',
          restricted_package_name: 'com.example',
          notification: { tag: 'mine', color: '#ff0000', image: 'https://example.com/i.png' },
        },
        fcm_options: { analytics_label: 'campaign' },
      });
    },
  );

  test('accepts a native message unchanged, except for its target', () => {
    const message = {
      token: 'somebody else',
      topic: 'all',
      notification: { title: 'N' },
      android: { priority: 'HIGH' },
    };
    expect(messageOf({ fcm: { message, validate_only: true } })).toEqual({
      notification: { title: 'N' },
      android: { priority: 'HIGH', ttl: '3600s' },
      isRepeatHidden: false,
    });
  });

  test('that FCM would refuse is reported before anything is sent', () => {
    expect(problemOf({})).toMatch(/alert/);
    expect(problemOf({ alert: 'a', fcm: { data: { n: 5 } } })).toBe('fcm.data.n must be a string');
    expect(problemOf({ alert: 'a', fcm: { data: { 'google.x': '' } } })).toMatch(/keeps to itself/);
    expect(problemOf({ alert: 'a', fcm: { android: { data: [] } } })).toMatch(/must be an object/);
    expect(problemOf({ alert: 'ä'.repeat(1100) })).toMatch(
      /^the message has \d+ bytes; fcm takes at most 4096$/,
    );
  });

  test('of exactly the maximum size is accepted', () => {
    const sizeOf = (alert: string) => {
      const rendering = renderFcm('fcm', aMessage({ alert }));
      return rendering.ok ? rendering.payload.body.length : 0;
    };
    // Each character is in both the notification and the payload.
    const chars = Math.floor((4096 + '{"message":{"token":"",}'.length - sizeOf('a')) / 2);
    messageOf({ alert: 'a'.repeat(1 + chars) });
    expect(problemOf({ alert: 'a'.repeat(1 + chars + 2) })).toMatch(/4096/);
  });
});

describe('members of FCM’s message', () => {
  const second = (more: JsonObject): JsonObject => ({ android_v2: { ttl: '60s', ...more } });

  test('are accepted at every level, in snake case and in camel case', () => {
    const own = {
      collapseKey: 'c',
      bandwidthConstrainedOk: true,
      restricted_satellite_ok: true,
      proxy: 'DENY',
      lightSettings: {
        color: { red: 1, green: '0.5', blue: 0, alpha: 1 },
        lightOnDuration: '0.3s',
        light_off_duration: 1,
      },
      eventTime: '2027-01-31T08:00:00Z',
      vibrateTimings: ['0.5s', 1],
      notification: { image: 'https://example.com/i.png' },
      android: { fcmOptions: { analyticsLabel: 'a' }, data: { k: 'v' } },
      apns: { headers: { 'apns-priority': '5' }, payload: { aps: {} }, live_activity_token: 't' },
      webpush: { fcm_options: { link: 'https://example.com' }, notification: { any: 1 } },
      fcmOptions: { analyticsLabel: 'b' },
    };
    expect(messageOf({ alert: 'a', fcm: own })).toMatchObject({
      notification: { body: 'a', image: 'https://example.com/i.png' },
      android: {
        collapse_key: 'c',
        bandwidth_constrained_ok: true,
        restricted_satellite_ok: true,
        data: { k: 'v' },
        fcm_options: { analytics_label: 'a' },
        notification: {
          proxy: 'DENY',
          event_time: '2027-01-31T08:00:00Z',
          vibrate_timings: ['0.5s', '1s'],
          light_settings: {
            color: { red: 1, green: 0.5, blue: 0, alpha: 1 },
            light_on_duration: '0.3s',
            light_off_duration: '1s',
          },
        },
      },
      apns: { headers: { 'apns-priority': '5' }, live_activity_token: 't' },
      webpush: { fcm_options: { link: 'https://example.com' } },
      fcm_options: { analytics_label: 'b' },
    });
  });

  test('of the second form replace ours of the first form', () => {
    const notification = {
      remote_notification: { notification: { id: 7, title: 'T', tag: 't' }, mutable_content: 1 },
    };
    const message = messageOf({ alert: 'a', fcm: second(notification) });
    expect(message).not.toHaveProperty('android');
    expect(message).toMatchObject({
      isRepeatHidden: true,
      android_v2: {
        ttl: '60s',
        remote_notification: { mutable_content: true, notification: { id: 7 } },
      },
    });
    expect(
      messageOf({ alert: 'a', fcm: { android_v2: { background_sync: {} } } }).android_v2,
    ).toEqual({
      ttl: '3600s',
      background_sync: {},
    });
    expect(messageOf({ fcm: { message: second({ background_sync: {} }) } })).not.toHaveProperty(
      'android',
    );
  });

  test.each<[JsonObject, string]>([
    [
      { newest: { x: 1 } },
      'fcm.newest: there is no such member; known are data, notification, android',
    ],
    [
      { colour: '#ff0000' },
      'fcm.colour: there is no such member; the nearest is android.notification.color',
    ],
    [
      { link: 'https://x' },
      'fcm.link: there is no such member; link is a member of webpush.fcm_options',
    ],
    [
      { analytics_label: 'x' },
      'analytics_label is a member of android.fcm_options, android_v2.fcm_options',
    ],
    [
      { notification: { channel_id: 'c' } },
      'fcm.notification.channel_id: there is no such member; channel_id is a member of android.notification',
    ],
    [{ android: { title: 't' } }, 'title is a member of notification, android.notification'],
    [
      { android: { notificaton: {} } },
      'fcm.android.notificaton: there is no such member; the nearest is android.notification',
    ],
    [
      { webpush: { ttl: 5 } },
      'fcm.webpush.ttl: there is no such member; ttl is a member of android, android_v2',
    ],
    [{ fcm_options: { image: 'x' } }, 'image is a member of notification, android.notification'],
    [
      { android_v2: { priority: 'HIGH', background_sync: {} } },
      'fcm.android_v2.priority: there is no such member',
    ],
    [
      { android_v2: { background_sync: { a: 1 } } },
      'fcm.android_v2.background_sync.a: there is no such member',
    ],
    [
      { message: { android: { colour: 'x' } } },
      'fcm.message.android.colour: there is no such member',
    ],
    [{ message: 5 }, 'fcm.message must be an object'],
    [{ message: {}, priority: 'HIGH' }, 'fcm.priority must be a member of fcm.message'],
    [second({}), 'fcm.android_v2 must have either remote_notification or background_sync'],
    [second({ background_sync: {}, remote_notification: {} }), 'must have either'],
    [
      second({ remote_notification: {} }),
      'fcm.android_v2.remote_notification must have notification',
    ],
    [
      { ...second({ background_sync: {} }), android: {} },
      'fcm.android and fcm.android_v2 must not be given together',
    ],
    [{ light_settings: { color: {} } }, 'light_settings must have light_on_duration'],
    [{ ttl: '29d' }, 'fcm.ttl must be seconds from 0 to 2419200'],
    [{ ttl: 2_419_201 }, 'fcm.ttl must be'],
    [{ priority: 10 }, 'fcm.priority must be NORMAL or HIGH'],
    [{ color: 'red' }, 'fcm.color must be a colour'],
    [{ event_time: 'tomorrow' }, 'fcm.event_time must be a time'],
    [{ event_time: '2027-02-30T08:00:00Z' }, 'fcm.event_time must be a time'],
    [{ body_loc_args: ['a', 1] }, 'fcm.body_loc_args must be a list of strings'],
    [{ webpush: { data: { n: 1 } } }, 'fcm.webpush.data.n must be a string'],
    [
      { webpush: { data: { from: 'x' } } },
      'fcm.webpush.data.from is a name that FCM keeps to itself',
    ],
    [{ apns: { payload: 'x' } }, 'fcm.apns.payload must be an object'],
  ])('are refused by name, with the nearest valid path: %j', (own, error) => {
    expect(problemOf({ alert: 'a', fcm: own })).toContain(error);
  });

  test('with a long unknown name are cut, and not compared with others', () => {
    expect(problemOf({ alert: 'a', fcm: { ['x'.repeat(3000)]: 1 } })).toContain(
      `fcm.${'x'.repeat(40)}…: there is no such`,
    );
  });
});
