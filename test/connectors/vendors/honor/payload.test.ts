import { describe, expect, test } from 'vitest';
import type { PushMessage, ReceiptsResult } from '../../../../connectors/contract/connector.ts';
import { honor } from '../../../../connectors/vendors/honor/index.ts';
import { renderHonor } from '../../../../connectors/vendors/honor/payload.ts';
import { bodyFault, honorReceiptBody } from '../../../../ops/sandbox/vendors/honor/server.ts';
import type { Json, JsonObject } from '../../../../shared/domain/json.ts';
import { aMessage } from '../../../support/gateways/apns.ts';

/** Returns the body for one device, validated with the sandbox's rules. */
function bodyFor(data: JsonObject, more: Partial<PushMessage> = {}, badgeClass?: string) {
  const rendering = renderHonor(aMessage(data, more), { badgeClass });
  if (!rendering.ok) throw new Error(rendering.error);
  const body = JSON.parse(honor.preview?.(rendering.payload) ?? '');
  expect(bodyFault(body)).toBeNull();
  return { ...body, isRepeatHidden: rendering.payload.isRepeatHidden };
}
const notificationOf = (data: JsonObject, more: Partial<PushMessage> = {}) =>
  bodyFor(data, more).android.notification;

describe('a notification for Honor', () => {
  test('has the texts, an intent with the app’s members, and a tag that hides a repeat', () => {
    const body = bodyFor({ alert: 'Text', title: 'Title', order: 7 });
    expect(body).toMatchObject({ token: ['TOKEN'], isRepeatHidden: true });
    expect(body.android.notification).toEqual({
      title: 'Title',
      body: 'Text',
      tag: 'PushRecord000001',
      clickAction: {
        type: 1,
        intent:
          'intent://cn.leancloud.push/notify_detail?S.content=%7B%22order%22%3A7%7D#Intent;scheme=lcpushscheme;launchFlags=0x10000000;end',
      },
    });
    // The body contains no member of Huawei's envelope.
    expect(Object.keys(body)).not.toEqual(expect.arrayContaining(['message']));
  });

  test('lives as long as the push, at most fifteen days, and names it for receipts', () => {
    const at = (leftMs: number) =>
      bodyFor({ alert: 'a' }, { createdAtMs: 0, expiresAtMs: leftMs }).android;
    expect(at(90_500)).toMatchObject({ ttl: '91s', biTag: 'PushRecord000001' });
    expect(at(1e12).ttl).toBe('1296000s');
  });

  test('is replaced by a message with the same collapse-id', () => {
    expect(notificationOf({ alert: 'a', 'collapse-id': 'score' }).tag).toBe('score');
  });

  test('has the push as its tag, unless the sender chose a notification id', () => {
    expect(notificationOf({ alert: 'a' }).tag).toBe('PushRecord000001');
    const numbered = notificationOf({ alert: 'a', honor: { notifyId: 7 } });
    expect(numbered).toMatchObject({ notifyId: 7 });
    expect(numbered).not.toHaveProperty('tag');
  });
});

describe('the badge', () => {
  test.each<[Json, JsonObject | undefined]>([
    [5, { setNum: 5 }],
    [0, { setNum: 0 }],
    [250, { setNum: 99 }],
    ['Increment', { addNum: 1 }],
    ['increment', undefined],
    [-1, undefined],
    [1.5, undefined],
  ])('%j of the push is %j', (badge, expected) => {
    expect(notificationOf({ alert: 'a', badge }).badge).toEqual(expected);
  });

  test('names the activity of the push, or of the profile', () => {
    const data = { alert: 'a', badge: 3 };
    expect(bodyFor(data, {}, 'com.e.Main').android.notification.badge).toEqual({
      setNum: 3,
      badgeClass: 'com.e.Main',
    });
    const own = { ...data, honor: { badgeClass: 'com.e.Other' } };
    expect(bodyFor(own, {}, 'com.e.Main').android.notification.badge.badgeClass).toBe(
      'com.e.Other',
    );
  });

  test('of the vendor’s object overrides the push; Honor’s own form stays unchanged', () => {
    expect(notificationOf({ alert: 'a', badge: 3, honor: { badge: 4 } }).badge).toEqual({
      setNum: 4,
    });
    const badge = { addNum: 2, badgeClass: 'com.e.Main' };
    expect(notificationOf({ alert: 'a', badge: 3, honor: { badge } }).badge).toEqual(badge);
  });
});

describe('members of the vendor’s object', () => {
  test('are placed where Honor has them, and take precedence', () => {
    const body = bodyFor({
      alert: 'a',
      honor: {
        title: 'own',
        targetUserType: 1,
        ttl: '60s',
        importance: 'NORMAL',
        clickAction: { type: 3 },
        notification: { image: 'https://example.com/i.png' },
        android: { notification: { group: 'g' } },
        unheardOf: { x: 1 },
        token: ['other'],
      },
    });
    expect(body.token).toEqual(['TOKEN']);
    expect(body.android).toMatchObject({ targetUserType: 1, ttl: '60s', unheardOf: { x: 1 } });
    expect(body.android.notification).toMatchObject({
      title: 'own',
      importance: 'NORMAL',
      clickAction: { type: 3 },
      image: 'https://example.com/i.png',
      group: 'g',
    });
    expect(body.android.notification.clickAction).toEqual({ type: 3 });
  });

  test('large text equals the text', () => {
    const big = { style: 1, bigTitle: 'another', bigBody: 'another' };
    expect(notificationOf({ alert: 'Text', title: 'T', honor: big })).toMatchObject({
      bigTitle: 'T',
      bigBody: 'Text',
    });
  });

  test('may be a native body: passed through, with default expiry and push id', () => {
    const own = {
      notification: { title: 'T', body: 'B' },
      android: { notification: { title: 'T', body: 'B', clickAction: { type: 3 } } },
    };
    const body = bodyFor(
      { alert: 'for others', honor: own },
      { createdAtMs: 0, expiresAtMs: 5000 },
    );
    expect(body).toEqual({
      ...own,
      android: { ...own.android, ttl: '5s', biTag: 'PushRecord000001' },
      token: ['TOKEN'],
      isRepeatHidden: false,
    });
    const message = bodyFor({ honor: { data: 'raw' } });
    expect(message.data).toBe('raw');
    expect(message.android.notification).toBeUndefined();
  });
});

test('a silent push is a data message with all members, and its repeat is not hidden', () => {
  const body = bodyFor({ silent: true, k: 1, honor: { importance: 'LOW' } });
  expect(JSON.parse(body.data)).toEqual({ silent: true, k: 1 });
  expect(body.android.notification).toBeUndefined();
  expect(body.isRepeatHidden).toBe(false);
});

describe('limits are reported before anything is sent', () => {
  test('for the body without the devices’ tokens', () => {
    const rendering = honor.render(aMessage({ alert: 'x'.repeat(4096) }), 'android');
    expect(!rendering.ok && rendering.error).toMatch(/takes at most 4096/);
  });

  test.each<[JsonObject, boolean]>([
    [{ honor: { targetUserType: 1 } }, true],
    [{ vendor_f: { android: { targetUserType: 1 } } }, true],
    [{ honor: { targetUserType: 0 } }, false],
    [{ hms: { target_user_type: 1 } }, false],
    [{}, false],
  ])('for tests, 1000 per day, to ten devices: %j', (data, isTest) => {
    const limit = honor.testLimit?.(aMessage({ alert: 'a', ...data }));
    expect(limit).toEqual(isTest ? { pushesPerDay: 1000, devicesPerPush: 10 } : null);
  });

  test('the rate of a profile counts devices', () => {
    const profile = { appId: '1', clientId: '2', clientSecret: '3' };
    expect(honor.rate?.(profile)).toBeNull();
    expect(honor.rate?.({ ...profile, ratePerSecond: 50 })).toMatchObject({
      perSecond: 50,
      counts: 'recipients',
    });
  });
});

describe('receipts of Honor', () => {
  const read = (body: string): ReceiptsResult | undefined =>
    honor.receipts?.({ headers: {}, body }, []);
  const one = {
    token: 'T1',
    status: 40_000_002,
    biTag: 'PushRecord000001',
    requestId: 'h1',
    timestamp: 1489993883189,
  };

  test('contain push, message, device and time', () => {
    expect(read(honorReceiptBody('104', [one]))).toMatchObject({
      ok: true,
      receipts: [
        {
          objectId: 'PushRecord000001',
          messageId: 'h1',
          deviceToken: 'T1',
          event: 'delivered',
          code: '40000002',
          atMs: 1489993883189,
        },
      ],
    });
  });

  test.each([40_000_001, 0, 5, 2])(
    'with an unpublished status (%i) invalidate no device',
    (status) => {
      const parsed = read(honorReceiptBody('104', [{ ...one, status }]));
      expect(parsed?.ok && parsed.receipts[0]).toMatchObject({
        event: 'undelivered',
        code: String(status),
      });
    },
  );

  test.each(['', 'x', '[]', '{}', '{"statuses":5}'])(
    'with an invalid body are refused: %s',
    (body) => {
      expect(read(body)).toMatchObject({ ok: false, status: 400 });
    },
  );

  test('omit an invalid status', () => {
    const statuses = [null, {}, { token: 'T' }, { token: 5, status: 1 }, { token: 'T', status: 1 }];
    const parsed = read(JSON.stringify({ statuses }));
    expect(parsed?.ok && parsed.receipts).toMatchObject([
      { deviceToken: 'T', objectId: null, atMs: null },
    ]);
  });
});
