import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../../connectors/contract/connector.ts';
import { signatureOf } from '../../../../connectors/vendors/vivo/client.ts';
import { vivo } from '../../../../connectors/vendors/vivo/index.ts';
import { renderVivo } from '../../../../connectors/vendors/vivo/payload.ts';
import { messageFault } from '../../../../ops/sandbox/vendors/vivo/rules.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { aMessage } from '../../../support/gateways/apns.ts';

function payloadOf(data: JsonObject, more: Partial<PushMessage> = {}, nowMs?: number) {
  const rendering = renderVivo(aMessage(data, more), nowMs);
  if (!rendering.ok) throw new Error(rendering.error);
  return rendering.payload;
}

/** Renders the message of a push and validates it with the sandbox's rules. */
function messageOf(data: JsonObject, more: Partial<PushMessage> = {}, nowMs?: number): JsonObject {
  const { message } = payloadOf(data, more, nowMs);
  expect(messageFault({ ...message, appId: 1, regId: 'x', requestId: 'r' }, false)).toBeNull();
  return message;
}

describe('a message for vivo', () => {
  test('has its texts, opens the client library’s activity, and contains the app’s members', () => {
    const message = messageOf({ alert: 'Text', title: 'Title', order: { id: 7 }, who: 'Ann' });
    expect(message).toMatchObject({
      notifyType: 4,
      title: 'Title',
      content: 'Text',
      skipType: 4,
      skipContent: expect.stringContaining(
        '//cn.leancloud.push/detail#Intent;scheme=mixpushscheme;',
      ),
      networkType: -1,
      clientCustomMap: { order: '{"id":7}', who: 'Ann' },
      timeToLive: 3600,
    });
    expect(messageOf({ alert: 'a' })).not.toHaveProperty('clientCustomMap');
    const own = { clientCustomMap: { n: 5, deep: { b: true } } };
    expect(messageOf({ alert: 'a', deep: { a: 1 }, vivo: own })).toMatchObject({
      clientCustomMap: { n: '5', deep: '{"a":1,"b":true}' },
    });
  });

  test('uses the start of its text if it has no title', () => {
    expect(messageOf({ alert: '☃'.repeat(60) }).title).toBe('☃'.repeat(40));
  });

  test('prefers members of vivo, then android, then the others, under either name', () => {
    const data = {
      alert: 'a',
      title: 't',
      android: { title: 'android' },
      vendor_e: { alert: 'own' },
    };
    expect(messageOf(data)).toMatchObject({ title: 'android', content: 'own' });
  });

  test('is shown once for all attempts, and replaces a message with the same collapse-id', () => {
    const idOf = (data: JsonObject, objectId = 'A') => messageOf(data, { objectId }).notifyId;
    expect(idOf({ alert: 'a' })).toBe(idOf({ alert: 'b' }));
    expect(idOf({ alert: 'a' })).not.toBe(idOf({ alert: 'a' }, 'B'));
    expect(idOf({ alert: 'a', 'collapse-id': 's' })).toBe(
      idOf({ alert: 'a', 'collapse-id': 's' }, 'B'),
    );
    expect(payloadOf({ alert: 'a' }).isRepeatHidden).toBe(true);
    expect(payloadOf({ alert: 'a', vivo: { notifyId: null } }).isRepeatHidden).toBe(false);
  });

  test('lives as long as the push, at most a day, then only on online devices', () => {
    const lifetimeOf = (leftMs: number, vivo: JsonObject = {}) =>
      messageOf({ alert: 'a', vivo }, { createdAtMs: 0, expiresAtMs: leftMs });
    expect(lifetimeOf(90_500)).toMatchObject({ timeToLive: 90 });
    expect(lifetimeOf(90_500)).not.toHaveProperty('sendOnline');
    expect(lifetimeOf(1e12)).toMatchObject({ timeToLive: 86_400 });
    expect(lifetimeOf(120_000, { timeToLive: 70 })).toMatchObject({ timeToLive: 70 });
    expect(lifetimeOf(120_000, { timeToLive: 500 })).toMatchObject({ timeToLive: 120 });
    expect(lifetimeOf(59_999)).toMatchObject({ timeToLive: 60, sendOnline: true });
    expect(
      messageOf({ alert: 'a' }, { createdAtMs: 0, expiresAtMs: 190_000 }, 90_000),
    ).toMatchObject({
      timeToLive: 100,
    });
  });

  test.each<[JsonObject, string]>([
    [{}, 'operation'],
    [{ classification: 0 }, 'operation'],
    [{ classification: 1 }, 'system'],
    [{ category: 'ORDER' }, 'system'],
    [{ category: 'NEWS' }, 'operation'],
    [{ category: 'ORDER', classification: 1 }, 'system'],
    [{ category: 'NEWS', classification: 0 }, 'operation'],
    [{ pushMode: 1, classification: 1 }, 'test'],
  ])('counts towards its class: %j counts as %s', (vivo, messageClass) => {
    expect(payloadOf({ alert: 'a', vivo }).messageClass).toBe(messageClass);
  });
});

describe('vivo’s own object', () => {
  test('passes its members on', () => {
    const own = {
      pushMode: 1,
      skipType: 2,
      skipContent: 'https://example.com/',
      classification: 1,
      category: 'ORDER',
      foregroundShow: false,
      addBadge: true,
      profileId: 'p',
      notifyType: 1,
      networkType: 1,
      clientCustomMap: { k: 'v' },
      extra: { callback: 'https://own.example/r' },
      auditReview: [{ k: 1 }],
    };
    expect(payloadOf({ alert: 'a', x: 'y', vivo: { ...own, badge: 3 } }).message).toMatchObject({
      ...own,
      clientCustomMap: { x: 'y', k: 'v' },
    });
    expect(payloadOf({ alert: 'a', vivo: { badge: 3 } }).message).not.toHaveProperty('badge');
    expect(payloadOf({ alert: 'a', vivo: { memberToCome: 1 } }).message.memberToCome).toBe(1);
  });

  test('may only open the app', () => {
    expect(messageOf({ alert: 'a', vivo: { skipType: 1 } })).not.toHaveProperty('skipContent');
  });

  test('may be a complete message, which needs no alert and selects no devices', () => {
    const own = {
      title: 'T',
      content: 'C',
      regId: 'x',
      regIds: ['y'],
      alias: 'z',
      requestId: 'r',
      appId: 5,
    };
    const message = messageOf({ vivo: own });
    expect(message).toMatchObject({ title: 'T', content: 'C' });
    for (const name of ['regId', 'regIds', 'alias', 'requestId', 'appId'])
      expect(message).not.toHaveProperty(name);
    expect(messageOf({ vivo: { content: 'C'.repeat(60) } }).title).toBe('C'.repeat(40));
  });

  test('marks a test, which has limits of devices and pushes', () => {
    const limitOf = (own: JsonObject) => vivo.testLimit?.(aMessage({ alert: 'a', vivo: own }));
    expect(limitOf({ pushMode: 1 })).toEqual({ pushesPerDay: 100, devicesPerPush: 20 });
    expect(limitOf({ pushMode: 1, classification: 1 })).toEqual({
      pushesPerDay: 10_000,
      devicesPerPush: 20,
    });
    expect(limitOf({ pushMode: 0 })).toBeNull();
    expect(limitOf({})).toBeNull();
  });

  test.each<[string, JsonObject]>([
    ['title must have at most 40', { alert: 'a', title: 'x'.repeat(41) }],
    ['alert must have at most 100', { alert: '☃'.repeat(101) }],
    ['vivo.content must be a string of 1 to 100', { vivo: { content: 'x'.repeat(101) } }],
    ['vivo.content must be a string of 1 to 100', { vivo: { content: ' ', title: 'x' } }],
    ['vivo.title must', { alert: 'a', vivo: { title: 'x'.repeat(41) } }],
    [
      'needs a skipType',
      { alert: 'a', vivo: { notifyType: 1, content: 'x', title: 't', skipType: null } },
    ],
    ['notifyType', { alert: 'a', vivo: { notifyType: 5 } }],
    ['timeToLive', { alert: 'a', vivo: { timeToLive: 59 } }],
    ['timeToLive', { alert: 'a', vivo: { timeToLive: 86_401 } }],
    ['vivo.skipType must', { alert: 'a', vivo: { skipType: 5 } }],
    ['needs skipContent', { alert: 'a', vivo: { skipType: 4 } }],
    ['needs skipContent', { alert: 'a', vivo: { skipType: 2 } }],
    ['skipContent', { alert: 'a', vivo: { skipType: 2, skipContent: 'javascript:1' } }],
    ['skipContent', { alert: 'a', vivo: { skipType: 4, skipContent: 'x'.repeat(1025) } }],
    ['networkType', { alert: 'a', vivo: { networkType: 2 } }],
    ['classification', { alert: 'a', vivo: { classification: 2 } }],
    ['vivo.category must be one of IM, ', { alert: 'a', vivo: { category: 'TO_COME' } }],
    ['clientCustomMap', { alert: 'a', vivo: { clientCustomMap: 'x' } }],
    ['clientCustomMap', { alert: 'a', k: 'x'.repeat(1024) }],
    ['pushMode', { alert: 'a', vivo: { pushMode: 2 } }],
    ['notifyId', { alert: 'a', vivo: { notifyId: 0 } }],
    ['notifyId', { alert: 'a', vivo: { notifyId: 2_147_483_648 } }],
    ['profileId', { alert: 'a', vivo: { profileId: 'x'.repeat(65) } }],
    ['vivo.sendOnline must', { alert: 'a', vivo: { sendOnline: 2 } }],
    ['foregroundShow', { alert: 'a', vivo: { foregroundShow: 'no' } }],
    ['vivo.addBadge must', { alert: 'a', vivo: { addBadge: 'one' } }],
    ['vivo.extra must', { alert: 'a', vivo: { extra: 'x' } }],
    ['vivo.extra.callback must', { alert: 'a', vivo: { extra: { callback: 'x'.repeat(129) } } }],
    [
      'vivo.extra.callback.param must',
      { alert: 'a', vivo: { extra: { 'callback.param': 'x'.repeat(65) } } },
    ],
    ['bytes', { alert: 'a', vivo: { auditReview: [{ k: 'x'.repeat(4096) }] } }],
  ])('is reported before anything is sent: %s', (problem, data) => {
    const rendering = vivo.render(aMessage(data), 'android');
    expect(rendering.ok ? null : rendering.error).toContain(problem);
  });
});

test('a silent message is dropped: vivo has no equivalent', () => {
  expect(vivo.render(aMessage({ silent: true, k: 1 }), 'android')).toMatchObject({
    ok: false,
    outcome: 'dropped',
    error: expect.stringContaining('silent'),
  });
});

test('the rate counts devices: that of the smallest apps, or of the profile', () => {
  const credentials = { appId: '1', appKey: 'k', appSecret: 's' };
  expect(vivo.rate?.(credentials)).toMatchObject({ perSecond: 3000, counts: 'recipients' });
  expect(vivo.rate?.({ ...credentials, ratePerSecond: 5000 })).toMatchObject({ perSecond: 5000 });
});

test('a token call is signed with MD5 of app, key, time and secret', () => {
  // echo -n '10004key1501484120000secret' | md5sum
  const app = { appId: '10004', appKey: 'key', appSecret: 'secret' };
  expect(signatureOf(app, 1_501_484_120_000)).toBe('435a8dd41ce51a69c420d5c13e8e9f31');
});
