import { describe, expect, test } from 'vitest';
import {
  type AndroidOptions,
  androidContent,
  bodySizeError,
  firstChars,
  titleOf,
} from '../../../connectors/kit/android.ts';
import { receiptUrl } from '../../../connectors/kit/receipts.ts';
import { charsOf } from '../../../connectors/kit/values.ts';
import { isBetweenHours, untilHourMs } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import { aMessage } from '../../support/gateways/apns.ts';

const huawei: AndroidOptions = {
  connector: 'vendor_a',
  can: { passThrough: true },
  limits: { recipientsPerRequest: 1000, bodyBytes: 4096, titleChars: 10, alertChars: 12 },
  isNative: (vendor) => typeof vendor.message === 'object',
};

const contentOf = (data: JsonObject, options = huawei, more = {}) => {
  const rendering = androidContent(aMessage(data, more), options);
  if (!rendering.ok) throw new Error(rendering.error);
  return rendering.payload;
};
const problemOf = (data: JsonObject, options = huawei) => {
  const rendering = androidContent(aMessage(data), options);
  return rendering.ok ? undefined : rendering;
};

describe('content for a vendor’s devices', () => {
  test('prefers members of the vendor, then android, then the default ones', () => {
    const content = contentOf({
      alert: 'all',
      title: 'all',
      k: 'all',
      android: { title: 'android', k: 'android', more: 1 },
      hms: { title: 'huawei' },
    });
    expect(content).toMatchObject({
      alert: 'all',
      title: 'huawei',
      custom: { k: 'android', more: 1 },
      vendor: {},
    });
    expect(content.data).toEqual({ alert: 'all', title: 'huawei', k: 'android', more: 1 });
  });

  test.each(['hms', 'vendor_a'])(
    'reads the object under %s, and passes its unknown members on',
    (name) => {
      const content = contentOf({
        alert: 'a',
        [name]: { alert: 'b', target_user_type: 1, deep: { x: [1] } },
      });
      expect(content.alert).toBe('b');
      expect(content.vendor).toEqual({ target_user_type: 1, deep: { x: [1] } });
      expect(content.custom).toEqual({});
    },
  );

  test('omits the objects of other vendors, but not custom members with such a name', () => {
    const data = { alert: 'a', ios: { alert: 'i' }, mi: { x: 1 }, oppo: 'red', fcm: { y: 1 } };
    expect(contentOf(data).custom).toEqual({ oppo: 'red' });
  });

  test('has the same object for both FCM connectors', () => {
    const data = { alert: 'a', fcm: { alert: 'b' } };
    for (const connector of ['fcm', 'vendor_g'] as const)
      expect(contentOf(data, { ...huawei, connector }).alert).toBe('b');
  });

  test('contains the notification channel of the vendor, or of the push', () => {
    const order = { notificationChannel: 'of the push' };
    expect(contentOf({ alert: 'a' }, huawei, order).notificationChannel).toBe('of the push');
    const data = { alert: 'a', hms: { _notificationChannel: 'own' } };
    expect(contentOf(data, huawei, order).notificationChannel).toBe('own');
    expect(contentOf(data).custom).toEqual({});
  });

  test('has a badge only if it is a whole number', () => {
    expect(contentOf({ alert: 'a', badge: 3 }).badge).toBe(3);
    expect(contentOf({ alert: 'a', badge: 3, hms: { badge: 5 } }).badge).toBe(5);
    expect(contentOf({ alert: 'a', badge: 'Increment' }).badge).toBeNull();
    expect(contentOf({ alert: 'a', badge: -1 }).badge).toBeNull();
  });

  test('contains silent messages with all their members if the vendor supports them', () => {
    const content = contentOf({ silent: true, k: 1, action: 'com.example.GO' });
    expect(content).toMatchObject({ silent: true, alert: '', custom: { k: 1 } });
    expect(content.data).toEqual({ silent: true, k: 1, action: 'com.example.GO' });
  });

  test('drops silent messages with an error text if the vendor does not support them', () => {
    const meizu: AndroidOptions = { ...huawei, connector: 'vendor_c', can: { passThrough: false } };
    expect(problemOf({ alert: 'a', silent: true }, meizu)).toMatchObject({
      outcome: 'dropped',
      error: reason('silentNotSupported', { connector: 'vendor_c' }),
    });
    // A vendor's object applies only to devices of that vendor.
    expect(problemOf({ alert: 'a', hms: { silent: true } }, meizu)).toBeUndefined();
  });

  test('passes a native body on and requires no alert', () => {
    const message = { notification: { title: 'T' } };
    expect(contentOf({ hms: { message } }).vendor).toEqual({ message });
  });

  test.each<[string, JsonObject]>([
    ['alert', {}],
    ['alert', { alert: '  ' }],
    ['alert', { alert: { body: 'iOS' } }],
    ['alert', { alert: 'a', android: { alert: 5 } }],
    ['title', { alert: 'a', hms: { title: [] } }],
    ['silent', { alert: 'a', hms: { silent: 'yes' } }],
    ['action', { alert: 'a', action: 5 }],
    ['hms', { alert: 'a', hms: 'x' }],
    ['android', { alert: 'a', android: [] }],
    ['alert must have at most 12', { alert: 'thirteen chars' }],
    ['title must have at most 10', { alert: 'a', title: 'eleven char' }],
  ])('reports the error %s of %j', (name, data) => {
    expect(problemOf(data)?.error).toContain(name);
  });

  test('counts code points, not UTF-16 units', () => {
    expect(charsOf('中文😀')).toBe(3);
    expect(firstChars('中文😀x', 3)).toBe('中文😀');
    expect(problemOf({ alert: '😀'.repeat(12) })).toBeUndefined();
  });

  test('has a title for gateways that require one', () => {
    expect(titleOf(contentOf({ alert: 'A long text' }), 6)).toBe('A long');
    expect(titleOf(contentOf({ alert: 'text', title: 'T' }), 6)).toBe('T');
  });

  test('accepts names with a meaning in JavaScript', () => {
    const data: JsonObject = JSON.parse('{"alert":"a","__proto__":{"x":1},"constructor":"c"}');
    expect(contentOf(data).custom).toEqual({ constructor: 'c' });
  });
});

test('a body that is too large is reported with its size', () => {
  const limits = { recipientsPerRequest: 1, bodyBytes: 10 };
  expect(bodySizeError('vendor_a', 11, limits)).toEqual({
    ok: false,
    isMisfit: true,
    error: 'the message has 11 bytes; vendor_a takes at most 10',
  });
  expect(bodySizeError('vendor_a', 10, limits)).toBeNull();
});

test('China is eight hours ahead of UTC', () => {
  const at = (text: string) => Date.parse(text);
  expect(isBetweenHours(at('2026-11-20T23:00:00Z'), 7, 23)).toBe(true);
  expect(isBetweenHours(at('2026-11-20T22:59:59Z'), 7, 23)).toBe(false);
  expect(isBetweenHours(at('2026-11-21T15:00:00Z'), 7, 23)).toBe(false);
  expect(untilHourMs(at('2026-11-21T15:30:00Z'), 7)).toBe(7.5 * 3600_000);
  expect(untilHourMs(at('2026-11-20T22:30:00Z'), 7)).toBe(0.5 * 3600_000);
});

test('passes a loopback URL for receipts only to a gateway with an endpoint', () => {
  const near = { callbackUrl: 'http://127.0.0.1:8080/callbacks/x' };
  expect(receiptUrl(near, {})).toBeUndefined();
  expect(receiptUrl(near, { endpoint: 'https://127.0.0.1:1' })).toBe(near.callbackUrl);
  expect(receiptUrl({ callbackUrl: 'https://push.example.com/c' }, {})).toBe(
    'https://push.example.com/c',
  );
});
