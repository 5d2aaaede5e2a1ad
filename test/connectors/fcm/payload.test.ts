import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../connectors/contract/connector.ts';
import { previewFcm, renderFcm } from '../../../connectors/fcm/payload.ts';
import { violationOf } from '../../../ops/sandbox/fcm/rules.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { aMessage } from '../../support/gateways/apns.ts';

/** Returns the message for one device, checked with FCM's rules. */
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
  return rendering.error;
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

  test('that is silent is data only, without a tag that could hide a repeat', () => {
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

  test('with a collapse-id replaces the previous one, in transit and on the screen', () => {
    const { android } = messageOf({ alert: 'a', 'collapse-id': 'score' });
    expect(android).toMatchObject({ collapse_key: 'score', notification: { tag: 'score' } });
  });

  test.each(['fcm', 'vendor_g'])(
    'takes FCM’s own members from the object %s, wherever they belong',
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

  test('passes unknown members on to FCM', () => {
    const rendering = renderFcm('fcm', aMessage({ alert: 'a', fcm: { newest: { x: 1 } } }));
    if (!rendering.ok) throw new Error(rendering.error);
    const body = JSON.parse(previewFcm(rendering.payload));
    expect(body.message.newest).toEqual({ x: 1 });
    expect(violationOf(body)?.field).toBe('message.newest');
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
    // Each character is in the notification and in the payload.
    const chars = Math.floor((4096 + '{"message":{"token":"",}'.length - sizeOf('a')) / 2);
    messageOf({ alert: 'a'.repeat(1 + chars) });
    expect(problemOf({ alert: 'a'.repeat(1 + chars + 2) })).toMatch(/4096/);
  });
});
