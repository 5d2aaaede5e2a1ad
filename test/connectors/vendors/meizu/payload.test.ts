import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../../connectors/contract/connector.ts';
import { signatureOf } from '../../../../connectors/vendors/meizu/client.ts';
import { meizu } from '../../../../connectors/vendors/meizu/index.ts';
import { renderMeizu } from '../../../../connectors/vendors/meizu/payload.ts';
import { expectedSign, violationOf } from '../../../../ops/sandbox/vendors/meizu/server.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { reason } from '../../../../shared/domain/reasons.ts';
import { aMessage } from '../../../support/gateways/apns.ts';

/** Renders the message of a push and validates it with the sandbox's rules. */
function messageFor(data: JsonObject, more: Partial<PushMessage> = {}, nowMs?: number) {
  const rendering = renderMeizu(aMessage(data, more), nowMs);
  if (!rendering.ok) throw new Error(rendering.error);
  const { message } = rendering.payload;
  const form = new URLSearchParams({
    appId: '1',
    pushIds: 'RA1',
    messageJson: JSON.stringify(message),
  });
  expect(violationOf(form, message)).toBeNull();
  return JSON.parse(meizu.preview?.(rendering.payload) ?? '');
}
const problemOf = (data: JsonObject, more: Partial<PushMessage> = {}) => {
  const rendering = meizu.render(aMessage(data, more), 'android');
  return rendering.ok ? null : rendering;
};

describe('a notification for Meizu', () => {
  test('has its texts, the whole push for the app, and a key that hides a repeat', () => {
    const message = messageFor({ alert: 'Text', title: 'Title', order: { id: 7 } });
    expect(message).toMatchObject({
      noticeBarInfo: { noticeBarType: 0, title: 'Title', content: 'Text' },
      noticeExpandInfo: { noticeExpandType: 0 },
      clickTypeInfo: {
        clickType: 0,
        parameters: { alert: 'Text', title: 'Title', order: { id: 7 } },
      },
      advanceInfo: { notifyKey: 'PushReco' },
    });
    expect(message.extra).toBeUndefined();
  });

  test('replaces a message with the same collapse-id, if Meizu accepts that as a key', () => {
    const keyOf = (id: string) =>
      messageFor({ alert: 'a', 'collapse-id': id }).advanceInfo.notifyKey;
    expect(keyOf('score')).toBe('score');
    expect(keyOf('a longer one')).toBe('PushReco');
  });

  test('uses the start of its text if it has no title', () => {
    expect(messageFor({ alert: '☃'.repeat(60) }).noticeBarInfo.title).toBe('☃'.repeat(32));
  });

  test.each(['mz', 'meizu', 'vendor_c'])(
    'prefers members of %s, then android, then the others',
    (name) => {
      const data: JsonObject = {
        alert: 'a',
        title: 't',
        android: { title: 'android' },
        [name]: { alert: 'own' },
      };
      expect(messageFor(data).noticeBarInfo).toMatchObject({ title: 'android', content: 'own' });
    },
  );

  test.each([
    [1000, 1],
    [3_600_000, 1],
    [3_600_001, 2],
    [1e12, 72],
  ])('with %i ms to live is kept for %i hours', (leftMs, hours) => {
    const { pushTimeInfo } = messageFor({ alert: 'a' }, { createdAtMs: 0, expiresAtMs: leftMs });
    expect(pushTimeInfo).toEqual({ offLine: 1, validTime: hours });
  });

  test('with less than a second left is only for devices that are online', () => {
    const late = { createdAtMs: 0, expiresAtMs: 60_000 };
    expect(messageFor({ alert: 'a' }, late, 59_500).pushTimeInfo).toEqual({
      offLine: 0,
      validTime: 1,
    });
  });

  test('that is silent is dropped, with a reason', () => {
    expect(problemOf({ alert: 'a', silent: true })).toEqual({
      ok: false,
      outcome: 'dropped',
      error: reason('silentNotSupported', { connector: 'vendor_c' }),
    });
  });
});

describe('Meizu’s own object', () => {
  test('passes its members on in their groups, even if the push does not name the groups', () => {
    const mz = {
      noticeMsgType: 1,
      clickTypeInfo: { clickType: 1, activity: 'com.example.app.Main' },
      parameters: { more: 'x' },
      validTime: 3,
      advanceInfo: { notificationType: { sound: 0 } },
      vipInfo: { subtitle: 'of VIPs' },
      unheardOf: [1],
    };
    expect(messageFor({ alert: 'a', k: 1, mz })).toMatchObject({
      noticeBarInfo: { noticeMsgType: 1, content: 'a' },
      clickTypeInfo: {
        clickType: 1,
        activity: 'com.example.app.Main',
        parameters: { k: 1, more: 'x' },
      },
      pushTimeInfo: { offLine: 1, validTime: 1 },
      advanceInfo: { suspend: 1, notificationType: { vibrate: 1, sound: 0 } },
      vipInfo: { subtitle: 'of VIPs' },
      unheardOf: [1],
    });
  });

  test('determines the daily quota of the message', () => {
    const classOf = (mz: JsonObject) => {
      const rendering = renderMeizu(aMessage({ alert: 'a', mz }));
      return rendering.ok && rendering.payload.messageClass;
    };
    expect(classOf({})).toBe('public');
    expect(classOf({ noticeBarInfo: { noticeMsgType: 1 } })).toBe('private');
  });

  test('may be a complete message, which needs no alert', () => {
    const noticeBarInfo = { title: 'T', content: 'C' };
    expect(messageFor({ mz: { noticeBarInfo } }).noticeBarInfo).toMatchObject(noticeBarInfo);
    expect(messageFor({ mz: { messageJson: { noticeBarInfo } } }).noticeBarInfo).toMatchObject(
      noticeBarInfo,
    );
  });

  test('selects no devices and signs nothing; packages are sent in addition to the message', () => {
    const mz = {
      pushIds: 'x',
      alias: 'y',
      sign: 'z',
      appId: '1',
      taskId: 't',
      restrictedPackageNames: ['com.example.a', 'com.example.b'],
    };
    const rendering = renderMeizu(aMessage({ alert: 'a', mz }));
    expect(rendering).toMatchObject({
      payload: { parameters: { restrictedPackageNames: 'com.example.a,com.example.b' } },
    });
    for (const name of Object.keys(mz))
      expect(messageFor({ alert: 'a', mz })[name]).toBeUndefined();
  });

  test.each<[string, JsonObject]>([
    ['title must have at most 32', { alert: 'a', title: 'x'.repeat(33) }],
    ['alert must have at most 100', { alert: '☃'.repeat(101) }],
    [
      'mz.noticeBarInfo.title must',
      { mz: { noticeBarInfo: { title: 'x'.repeat(33), content: 'c' } } },
    ],
    ['mz.noticeBarInfo.content must', { mz: { noticeBarInfo: { title: 't', content: ' ' } } }],
    ['noticeMsgType', { alert: 'a', mz: { noticeMsgType: 2 } }],
    ['noticeBarType', { alert: 'a', mz: { noticeBarType: 1 } }],
    ['mz.noticeBarInfo must be an object', { alert: 'a', mz: { noticeBarInfo: 'x' } }],
    ['noticeExpandType', { alert: 'a', mz: { noticeExpandType: 3 } }],
    ['noticeExpandContent', { alert: 'a', mz: { noticeExpandType: 1 } }],
    ['noticeExpandImgUrl', { alert: 'a', mz: { noticeExpandType: 2 } }],
    ['clickType', { alert: 'a', mz: { clickType: 3 } }],
    ['activity', { alert: 'a', mz: { clickType: 1 } }],
    ['url', { alert: 'a', mz: { clickType: 2 } }],
    ['parameters', { alert: 'a', mz: { clickTypeInfo: { parameters: 'x' } } }],
    ['customAttribute', { alert: 'a', mz: { customAttribute: '中'.repeat(334) } }],
    ['mz.offLine must', { alert: 'a', mz: { offLine: 2 } }],
    ['validTime', { alert: 'a', mz: { validTime: 0 } }],
    ['mz.validTime must', { alert: 'a', mz: { validTime: 'a day' } }],
    ['notifyKey', { alert: 'a', mz: { notifyKey: 'ninechars' } }],
    ['notifyKey', { alert: 'a', mz: { notifyKey: 5 } }],
    ['fixStartDisplayTime', { alert: 'a', mz: { fixStartDisplayTime: 'noon' } }],
    ['fixEndDisplayTime', { alert: 'a', mz: { fixEndDisplayTime: 5 } }],
    [
      'mz.extra.callback must',
      { alert: 'a', mz: { extra: { callback: `https://x/${'x'.repeat(128)}` } } },
    ],
    ['callback.param', { alert: 'a', mz: { extra: { 'callback.param': 'x'.repeat(65) } } }],
    ['callback.type', { alert: 'a', mz: { extra: { 'callback.type': '4' } } }],
    [
      'restrictedPackageNames',
      { alert: 'a', mz: { restrictedPackageNames: Array(51).fill('com.example') } },
    ],
    ['restrictedPackageNames', { alert: 'a', mz: { restrictedPackageNames: 'x'.repeat(129) } }],
    ['restrictedPackageNames', { alert: 'a', mz: { restrictedPackageNames: 5 } }],
    ['bytes', { alert: 'a', k: 'x'.repeat(4000) }],
  ])('is reported before anything is sent: %s', (problem, data) => {
    expect(problemOf(data)?.error).toContain(problem);
  });
});

describe('the signature of a call', () => {
  test('equals Meizu’s own example, in any order of the parameters', () => {
    const parameters = {
      pushIds: 'RA50c6348036344485d01776773577c64740465480a6b',
      messageJson:
        '{"title":"title","content":"content","pushTimeInfo":{"offLine":1,"validTime":24}}',
      appId: '10000',
    };
    expect(signatureOf(parameters, '<APP_SECRET>')).toBe('ac076ff25d9900015a681cb5172aa53b');
    expect(expectedSign(new URLSearchParams(parameters), '<APP_SECRET>')).toBe(
      'ac076ff25d9900015a681cb5172aa53b',
    );
  });
});

test('the rate counts devices: 200 per second by default, or the rate of the profile', () => {
  const credentials = { appId: '1', appSecret: 's' };
  expect(meizu.rate?.(credentials)).toMatchObject({ perSecond: 200, counts: 'recipients' });
  expect(meizu.rate?.({ ...credentials, ratePerSecond: 5000 })).toMatchObject({ perSecond: 5000 });
});
