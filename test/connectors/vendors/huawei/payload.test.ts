import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../../connectors/contract/connector.ts';
import { huawei } from '../../../../connectors/vendors/huawei/index.ts';
import { renderV1 } from '../../../../connectors/vendors/huawei/payload.ts';
import { v1Fault } from '../../../../ops/sandbox/vendors/huawei/message-v1.ts';
import { v3Fault } from '../../../../ops/sandbox/vendors/huawei/message-v3.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { aMessage } from '../../../support/gateways/apns.ts';

/** Returns the body for one device, validated with the sandbox's rules. */
function bodyFor(data: JsonObject, more: Partial<PushMessage> = {}, deviceType = 'android') {
  const rendering = huawei.render(aMessage(data, more), deviceType);
  if (!rendering.ok) throw new Error(rendering.error);
  const body = JSON.parse(huawei.preview?.(rendering.payload) ?? '');
  const { headers } = rendering.payload;
  const fault = deviceType === 'harmony' ? v3Fault(body, headers['push-type']) : v1Fault(body);
  return { ...body, fault, pushType: headers['push-type'], payloadOf: rendering.payload };
}
const messageFor = (data: JsonObject, more: Partial<PushMessage> = {}) => {
  const { fault, message } = bodyFor(data, more);
  expect(fault).toBeNull();
  return message;
};
const problemOf = (data: JsonObject, more: Partial<PushMessage> = {}) => {
  const rendering = huawei.render(aMessage(data, more), 'android');
  return rendering.ok ? null : rendering.error;
};

describe('a notification for Huawei', () => {
  test('has the texts, an intent with the app’s members, and a tag that hides a repeat', () => {
    const message = messageFor({ alert: 'Text', title: 'Title', order: 7, deep: { x: ['é'] } });
    const { notification } = message.android;
    expect(notification).toMatchObject({ title: 'Title', body: 'Text', tag: 'PushRecord000001' });
    const [, content = ''] =
      /S\.content=([^#]*)#Intent/.exec(notification.click_action.intent) ?? [];
    expect(JSON.parse(decodeURIComponent(content))).toEqual({ order: 7, deep: { x: ['é'] } });
    expect(notification.click_action).toMatchObject({
      type: 1,
      intent: expect.stringMatching(
        /^intent:\/\/cn\.leancloud\.push\/notify_detail\?S\.content=.*#Intent;scheme=lcpushscheme;launchFlags=0x10000000;end$/,
      ),
    });
    expect(message.data).toBeUndefined();
    expect(message.token).toEqual(['TOKEN']);
  });

  test('opens the intent host of the profile', () => {
    const rendering = renderV1(aMessage(), { intentHost: 'com.example.push' });
    expect(rendering.ok && rendering.payload.head).toContain(
      'intent://com.example.push/notify_detail?',
    );
  });

  test('lives as long as the push, at most fifteen days, and names it for receipts', () => {
    const at = (leftMs: number) =>
      messageFor({ alert: 'a' }, { createdAtMs: 0, expiresAtMs: leftMs }).android;
    expect(at(90_500)).toMatchObject({ ttl: '91s', bi_tag: 'PushRecord000001' });
    expect(at(1).ttl).toBe('1s');
    expect(at(1e12).ttl).toBe('1296000s');
    const later = renderV1(aMessage({ alert: 'a' }, { createdAtMs: 0, expiresAtMs: 90_000 }), {
      nowMs: 60_000,
    });
    expect(later.ok && later.payload.head).toContain('"ttl":"30s"');
  });

  test('uses the notification channel, and replaces a message with the same collapse-id', () => {
    const { notification } = messageFor(
      { alert: 'a', 'collapse-id': 'score' },
      { notificationChannel: 'news' },
    ).android;
    expect(notification).toMatchObject({ channel_id: 'news', tag: 'score' });
  });

  test('has the push as its tag, unless the sender chose a notification id', () => {
    expect(messageFor({ alert: 'a' }).android.notification.tag).toBe('PushRecord000001');
    const { notification } = messageFor({ alert: 'a', hms: { notify_id: 7 } }).android;
    expect(notification).toMatchObject({ notify_id: 7 });
    expect(notification).not.toHaveProperty('tag');
  });

  test('uses the start of its text if it has no title', () => {
    expect(messageFor({ alert: 'x'.repeat(60) }).android.notification.title).toBe('x'.repeat(40));
  });

  test('ignores the badge of the push; only Huawei’s own object sets a badge', () => {
    expect(messageFor({ alert: 'a', badge: 5 }).android.notification.badge).toBeUndefined();
    const badgeOf = (badge: JsonObject[string]) =>
      messageFor({ alert: 'a', hms: { badge } }).android.notification.badge;
    expect(badgeOf({ add_num: 2, class: 'com.example.Main' })).toEqual({
      add_num: 2,
      class: 'com.example.Main',
    });
    expect(badgeOf(120)).toEqual({ set_num: 99 });
    expect(badgeOf('Increment')).toEqual({ add_num: 1 });
  });
});

describe('members of the vendor’s object', () => {
  test('are placed where Huawei has them and take precedence; a null removes a member', () => {
    const message = messageFor({
      alert: 'a',
      vendor_a: {
        title: 'own',
        category: 'IM',
        collapse_key: 3,
        urgency: 'NORMAL',
        target_user_type: 1,
        ttl: '60s',
        importance: 'LOW',
        channel_id: 'own',
        click_action: { type: 3 },
        tag: null,
        notification: { image: 'https://example.com/i.png' },
        review: { reviewer: ['x'] },
        unheard_of: { x: 1 },
      },
    });
    expect(message.android).toMatchObject({
      category: 'IM',
      collapse_key: 3,
      urgency: 'NORMAL',
      target_user_type: 1,
      ttl: '60s',
      unheard_of: { x: 1 },
      notification: {
        title: 'own',
        importance: 'LOW',
        channel_id: 'own',
        image: 'https://example.com/i.png',
      },
    });
    expect(message.android.notification.tag).toBeUndefined();
    expect(message.android.notification.click_action).toEqual({ type: 3 });
    expect(message.review).toEqual({ reviewer: ['x'] });
  });

  test('cannot select targets or a dry run', () => {
    const targeted = { validate_only: true, topic: 'all', condition: 'x', token: ['other'] };
    for (const hms of [targeted, { ...targeted, message: { ...targeted, data: 'x' } }]) {
      const { message, validate_only } = bodyFor({ alert: 'a', hms });
      expect(validate_only).toBe(false);
      expect(message).toMatchObject({ token: ['TOKEN'] });
      expect(Object.keys(message)).not.toEqual(expect.arrayContaining(['topic']));
      expect(JSON.stringify(message)).not.toContain('other');
    }
  });

  test('may be a native message: passed through, with default expiry and push id', () => {
    const own = {
      notification: { title: 'T', body: 'B' },
      android: {
        notification: { foreground_show: false, click_action: { type: 1, action: 'com.e.OPEN' } },
      },
    };
    const { fault, message, payloadOf } = bodyFor(
      { hms: { message: own } },
      { createdAtMs: 0, expiresAtMs: 5000 },
    );
    expect(fault).toBeNull();
    expect(message).toEqual({
      ...own,
      android: { ...own.android, ttl: '5s', bi_tag: 'PushRecord000001' },
      token: ['TOKEN'],
    });
    // It has no tag, so the device would show a repeat.
    expect(payloadOf.isRepeatHidden).toBe(false);
  });

  test('may be a message of Huawei’s former API, which is converted', () => {
    const intent = 'intent://com.e/x#Intent;scheme=s;end';
    const notification = {
      type: 3,
      body: { title: 'T', content: 'C' },
      action: { type: 1, param: { intent } },
    };
    expect(messageFor({ hms: { msg: notification } }).android.notification).toEqual({
      title: 'T',
      body: 'C',
      click_action: { type: 1, intent },
    });
    const link = { ...notification, action: { type: 2, param: { url: 'https://example.com' } } };
    expect(messageFor({ hms: { msg: link } }).android.notification.click_action).toEqual({
      type: 2,
      url: 'https://example.com',
    });
    expect(
      messageFor({ hms: { msg: { ...notification, action: 5 } } }).android.notification.click_action
        .type,
    ).toBe(3);
    expect(messageFor({ hms: { msg: { type: 1, body: { k: 1 } } } }).data).toBe('{"k":1}');
  });
});

test('a silent push is a data message with all members, and its repeat is not hidden', () => {
  const { fault, message, payloadOf } = bodyFor({
    silent: true,
    k: 1,
    hms: { urgency: 'NORMAL', importance: 'LOW' },
  });
  expect(fault).toBeNull();
  expect(JSON.parse(message.data)).toEqual({ silent: true, k: 1 });
  expect(message.android.notification).toBeUndefined();
  expect(message.android.urgency).toBe('NORMAL');
  expect(payloadOf.isRepeatHidden).toBe(false);
});

describe('limits are reported before anything is sent', () => {
  test('for data and channels together', () => {
    expect(problemOf({ alert: 'a', k: 'x'.repeat(4096) })).toMatch(
      /data and channels have \d+ bytes/,
    );
    const data = { alert: 'x'.repeat(2000), title: 't' };
    expect(problemOf(data)).toBeNull();
    expect(problemOf(data, { channels: ['c'.repeat(2000), 'd'.repeat(100)] })).toMatch(
      /less than 4096/,
    );
  });

  test('for the body without the devices’ tokens', () => {
    // Each character takes six bytes when it is escaped for the intent.
    expect(problemOf({ alert: 'a', k: 'é'.repeat(1000) })).toMatch(/takes at most 4096/);
  });

  test.each<JsonObject>([
    { hms: { target_user_type: 1 } },
    { vendor_a: { android: { target_user_type: 1 } } },
  ])('for tests, 500 per day, to ten devices: %j', (vendor) => {
    expect(huawei.testLimit?.(aMessage({ alert: 'a', ...vendor }))).toEqual({
      pushesPerDay: 500,
      devicesPerPush: 10,
    });
  });

  test('but a push that is not a test has no such limit', () => {
    const others: JsonObject[] = [{}, { target_user_type: 0 }, { message: { android: {} } }];
    for (const hms of others) expect(huawei.testLimit?.(aMessage({ alert: 'a', hms }))).toBeNull();
    const native = { message: { android: { target_user_type: 1 }, data: 'x' } };
    expect(huawei.testLimit?.(aMessage({ hms: native }))).not.toBeNull();
  });

  test('the rate of a profile counts devices', () => {
    const profile = { appId: '1', appSecret: '2' };
    expect(huawei.rate?.(profile)).toBeNull();
    expect(huawei.rate?.({ ...profile, ratePerSecond: 3000 })).toMatchObject({
      perSecond: 3000,
      counts: 'recipients',
    });
  });
});

describe('a message for HarmonyOS', () => {
  const v3 = (data: JsonObject, more: Partial<PushMessage> = {}) => bodyFor(data, more, 'harmony');

  test('is an alert with the app’s members, ttl in seconds and an id that hides a repeat', () => {
    const body = v3({ alert: 'Text', title: 'T', k: 1 }, { createdAtMs: 0, expiresAtMs: 60_000 });
    expect(body.fault).toBeNull();
    expect(body.pushType).toBe('0');
    expect(body.payload.notification).toMatchObject({
      category: 'MARKETING',
      title: 'T',
      body: 'Text',
      clickAction: { actionType: 0, data: { k: 1 } },
      notifyId: expect.any(Number),
    });
    expect(body.pushOptions).toEqual({ ttl: 60, biTag: 'PushRecord000001' });
    expect(body.target).toEqual({ token: ['TOKEN'] });
    expect(body.payloadOf.isRepeatHidden).toBe(true);
    expect(v3({ alert: 'Text' }).payload.notification.notifyId).toBe(
      body.payload.notification.notifyId,
    );
  });

  test('translates members of both APIs, and passes unknown members on', () => {
    const hms = {
      category: 'IM',
      urgency: 'HIGH',
      receipt_id: 'R',
      notify_id: 4,
      badge: 3,
      style: 1,
      appMessageId: 'x',
      pushOptions: { collapseKey: 1 },
    };
    const { fault, payload, pushOptions } = v3({ alert: 'a', hms });
    expect(fault).toBeNull();
    expect(payload.notification).toMatchObject({
      category: 'IM',
      notifyId: 4,
      badge: { setNum: 3 },
      appMessageId: 'x',
    });
    expect(payload.notification).not.toHaveProperty('urgency');
    expect(payload.notification).not.toHaveProperty('style');
    expect(pushOptions).toMatchObject({ receiptId: 'R', collapseKey: 1 });
  });

  test('is passed to the app in the background if it is silent', () => {
    const body = v3({ silent: true, k: 1 });
    expect(body.fault).toBeNull();
    expect(body.pushType).toBe('6');
    expect(JSON.parse(body.payload.extraData)).toEqual({ silent: true, k: 1 });
  });

  test('may be a native payload, of any push type', () => {
    const form = { formId: 7, version: 2, moduleName: 'entry', formName: 'f', abilityName: 'a' };
    const payload = { ...form, formData: { k: 1 } };
    const body = v3({ hms: { payload, 'push-type': 1 } });
    expect(body.payload).toEqual(payload);
    expect(body.pushType).toBe('1');
    expect(body.payloadOf.tokensPerRequest).toBe(1);
  });

  test('goes to ten devices per request if it is a test', () => {
    const body = v3({ alert: 'a', hms: { target_user_type: 1 } });
    expect(body.pushOptions.testMessage).toBe(true);
    expect(body.payloadOf.tokensPerRequest).toBe(10);
  });

  const problemIn = (hms: JsonObject, data: JsonObject = { alert: 'a' }) => {
    const rendering = huawei.render(aMessage({ ...data, hms }), 'harmony');
    return rendering.ok ? 'none' : rendering.error;
  };
  const notification = { category: 'IM', title: 'T', body: 'B', clickAction: { actionType: 0 } };
  const form = {
    formId: 7,
    version: 2,
    moduleName: 'm',
    formName: 'f',
    abilityName: 'a',
    formData: {},
  };

  const liveView = {
    activityId: 1,
    operation: 0,
    event: 'FLIGHT',
    status: 'BOARDING',
    version: 1,
    activityData: {
      notificationData: {
        type: 5,
        keywords: { flightNo: 'MU5101' },
        contentTitle: '{{flightNo}} {{status}}',
        contentText: [{ text: 'Gate 12' }],
        clickAction: { actionType: 0 },
        firstTextBlock: { title: '08:00' },
        lastTextBlock: { title: '10:05' },
        keepTime: 3600,
      },
      capsuleData: { type: 1, status: 1, icon: 'plane.png', bgColor: '#FF0A59F7' },
    },
  };
  type Change = Record<string, unknown>;
  /** The live view with changed members; null removes one. */
  const liveViewWith = (more: Change, shown: Change = {}, capsule: Change = {}) => ({
    'push-type': 7,
    payload: {
      ...liveView,
      activityData: {
        notificationData: { ...liveView.activityData.notificationData, ...shown },
        capsuleData: { ...liveView.activityData.capsuleData, ...capsule },
      },
      ...more,
    } as JsonObject,
  });
  const taxi = {
    type: 3,
    keywords: null,
    richProgress: { progress: 40 },
    contentTitle: 'Your car {{status}}',
  };

  test.each<[string, JsonObject]>([
    ['a flight', liveViewWith({})],
    [
      'an update of a delivery',
      liveViewWith({ operation: 1, event: 'DELIVERY', status: null }, taxi),
    ],
    ['a taxi', liveViewWith({ event: 'TAXI' }, taxi)],
    ['an end without content', liveViewWith({ operation: 2, activityData: null })],
  ])('accepts the live view of %s', (_name, hms) => {
    const body = v3({ alert: 'a', hms });
    expect(body.fault).toBeNull();
    expect(body.pushType).toBe('7');
  });

  const shown = 'hms.payload.activityData.notificationData';
  const capsule = 'hms.payload.activityData.capsuleData';
  test.each<[JsonObject, string]>([
    [liveViewWith({ event: 'PARTY' }), 'hms.payload.event must be one of TAXI, DELIVERY'],
    [
      liveViewWith({ event: 'DELIVERY' }),
      'hms.payload.event must be FLIGHT, TAXI, TRAIN to create',
    ],
    [liveViewWith({ activityId: 2 ** 31 }), 'hms.payload.activityId must be a whole number'],
    [liveViewWith({ version: -1 }), 'hms.payload.version must be a whole number'],
    [liveViewWith({ status: null }), 'hms.payload.status must be a status'],
    [liveViewWith({ activityData: null }), 'hms.payload.activityData must be an object'],
    [liveViewWith({}, { type: 3 }), `${shown}.type must be 5`],
    [
      liveViewWith({ event: 'TAXI' }, { ...taxi, type: 6 }),
      `${shown}.type must be one of 3, 4, 5, 7`,
    ],
    [
      liveViewWith({ event: 'TAXI' }, { ...taxi, richProgress: null }),
      `${shown}.richProgress must`,
    ],
    [liveViewWith({}, { lastTextBlock: null }), `${shown}.lastTextBlock must be an object`],
    [
      liveViewWith({}, { contentTitle: 'x'.repeat(1025) }),
      `${shown}.contentTitle must be a string`,
    ],
    [liveViewWith({}, { contentText: 'Gate' }), `${shown}.contentText must be a list`],
    [liveViewWith({}, { clickAction: null }), `${shown}.clickAction must be an object`],
    [
      liveViewWith({}, { keepTime: 3601 }),
      `${shown}.keepTime must be a whole number from 0 to 3600`,
    ],
    [
      liveViewWith({}, { contentTitle: '{{flightNo}}' }),
      `${shown}.contentTitle must contain {{status}}`,
    ],
    [
      liveViewWith({}, { contentTitle: '{{status}}' }),
      `${shown}.contentTitle must contain {{flightNo}}`,
    ],
    [liveViewWith({}, { keywords: null }), `${shown}.keywords.flightNo must be a string`],
    [liveViewWith({}, {}, { type: 4 }), `${capsule}.type must be 1, 2 or 3`],
    [liveViewWith({}, {}, { status: 0 }), `${capsule}.status must be 1 or -1`],
    [liveViewWith({}, {}, { bgColor: 'red' }), `${capsule}.bgColor must be a colour`],
    [
      liveViewWith({}, {}, { icon: 'https://a/b.png' }),
      `${capsule}.icon must be the name of a file`,
    ],
    [{ payload: { badge: { addNum: 0 } } }, 'hms.payload.badge must have addNum'],
    [{ payload: { badge: { setNum: 100 } } }, 'hms.payload.badge must have addNum'],
    [{ payload: { badge: {} } }, 'hms.payload.badge must have addNum'],
    [
      { payload: { ...form, images: [{ keyName: 'k', url: 'http://a/b.png' }] }, 'push-type': 1 },
      'hms.payload.images must be a list of one object',
    ],
    [{ clickAction: { actionType: 1 } }, 'hms.clickAction must have action or uri'],
  ])('with a rule of its kind broken is refused: %j', (hms, error) => {
    expect(problemIn(hms)).toContain(error);
  });

  test.each<[number, JsonObject, unknown]>([
    [0, { payload: { notification } }, { notification }],
    [0, { payload: { badge: { setNum: 3 } } }, { badge: { setNum: 3 } }],
    [1, { payload: form }, form],
    [
      2,
      { extraData: 'Order 1042 was paid' },
      { extraData: 'Order 1042 was paid', notification: { category: 'PLAY_VOICE', body: 'a' } },
    ],
    [
      6,
      { payload: { extraData: 'x', proxyData: 'ENABLE' } },
      { extraData: 'x', proxyData: 'ENABLE' },
    ],
    [6, { extraData: { k: 1 } }, { extraData: '{"k":1}' }],
    [7, { payload: liveView as JsonObject }, liveView],
    [10, { payload: { extraData: 'call' } }, { extraData: 'call' }],
  ])('of the push-type %i has the body of its kind: %j', (type, own, payload) => {
    const body = v3({ alert: 'a', hms: { ...own, 'push-type': String(type) } });
    expect(body.fault).toBeNull();
    expect(body.pushType).toBe(String(type));
    expect(body.payload).toMatchObject(Object(payload));
  });

  test('accepts the members of both APIs where they belong', () => {
    const hms = {
      ttl: '60s',
      collapse_key: 3,
      receipt_id: 'R',
      bi_tag: 'own',
      category: 'miss_call',
      appMessageId: 'order 1042',
      bigTitle: 'B',
      inbox_content: ['a'],
      soundDuration: '5',
      badge: { add_num: 1, class: 'com.example.Main' },
      clickAction: { actionType: 1, uri: 'x', data: '{"k":1}' },
    };
    const body = v3({ alert: 'a', hms });
    expect(body.fault).toBeNull();
    expect(body.pushOptions).toEqual({ ttl: 60, collapseKey: 3, receiptId: 'R', biTag: 'own' });
    expect(body.payload.notification).toMatchObject({
      category: 'MISS_CALL',
      appMessageId: 'order 1042',
      bigTitle: 'B',
      inboxContent: ['a'],
      soundDuration: 5,
      badge: { addNum: 1 },
      clickAction: { actionType: 1, uri: 'x', data: { k: 1 } },
    });
    expect(body.payload.notification.badge).toEqual({ addNum: 1 });
    const older = messageFor({ alert: 'a', hms });
    expect(Object.keys(older.android)).toEqual(
      expect.arrayContaining(['ttl', 'collapse_key', 'category']),
    );
    for (const name of ['appMessageId', 'bigTitle', 'soundDuration', 'clickAction'])
      expect(JSON.stringify(older)).not.toContain(name);
  });

  test('hides a repeat by appMessageId too', () => {
    const hidden = v3({ alert: 'a', hms: { notifyId: -1, appMessageId: 'x' } });
    expect(hidden.payloadOf.isRepeatHidden).toBe(true);
    expect(v3({ alert: 'a', hms: { notifyId: -1 } }).payloadOf.isRepeatHidden).toBe(false);
  });

  test.each<[JsonObject, string]>([
    [{ 'push-type': 3 }, 'hms.push-type must be one of 0, 1, 2, 6, 7, 10, 11'],
    [{ pushType: 'alert' }, 'hms.pushType must be one of'],
    [{ 'push-type': 1 }, 'hms.payload must be given for the push-type 1'],
    [{ 'push-type': 7 }, 'hms.payload must be given for the push-type 7'],
    [{ 'push-type': 2 }, 'hms must have extraData for the push-type 2'],
    [
      { 'push-type': 2, extraData: 'x', category: 'IM' },
      'hms must have the category PLAY_VOICE for the push-type 2',
    ],
    [{ category: 'PLAY_VOICE' }, 'hms must not have the category PLAY_VOICE for the push-type 0'],
    [{ payload: { moduleName: 'm' } }, 'hms.payload must have notification for the push-type 0'],
    [{ payload: { notification: { title: 'T' } } }, 'hms.payload must have notification.category'],
    [{ payload: { ...form, formName: null }, 'push-type': 1 }, 'hms.payload must have formName'],
    [
      { payload: { activityId: 1, operation: 3, event: 'TAXI' }, 'push-type': 7 },
      'hms.payload.operation must be 0, 1 or 2',
    ],
    [{ payload: { proxyData: 'ENABLE' }, 'push-type': 6 }, 'hms.payload must have extraData'],
    [
      { payload: { extraData: 'x', proxyData: true }, 'push-type': 6 },
      'hms.payload.proxyData must be ENABLE',
    ],
    [{ pushOptions: { ttl: 0 } }, 'hms.pushOptions.ttl must be a number of seconds from 1'],
    [
      { pushOptions: { collapseKey: 101 } },
      'hms.pushOptions.collapseKey must be a whole number from -1 to 100',
    ],
    [
      { pushOptions: { biTag: 'x'.repeat(65) } },
      'hms.pushOptions.biTag must be a string of at most 64 bytes',
    ],
    [{ pushOptions: { testMessage: 'yes' } }, 'hms.pushOptions.testMessage must be true or false'],
    [
      { pushOptions: { backgroundMode: 1 } },
      'hms.pushOptions.backgroundMode must not be given for the push-type 0',
    ],
    [{ pushOptions: 'x' }, 'hms.pushOptions must be an object'],
    [{ appMessageId: 'a/b?' }, 'hms.appMessageId must be 1 to 64 letters'],
    [{ soundDuration: 61 }, 'hms.soundDuration must be a whole number from 1 to 60'],
    [{ inboxContent: ['a', 'b', 'c', 'd'] }, 'hms.inboxContent must be a list of at most 3'],
    [{ clickAction: { actionType: 2 } }, 'hms.clickAction.actionType must be 0, 1 or 3'],
    [{ clickAction: { actionType: 0, data: 'text' } }, 'hms.clickAction.data must be an object'],
  ])('with a wrong member is refused: %j', (hms, error) => {
    expect(problemIn(hms)).toContain(error);
  });

  test('is refused for a wrong v3 member, whatever the devices’ system', () => {
    const rendering = huawei.render(
      aMessage({ alert: 'a', hms: { pushOptions: { ttl: 'x' } } }),
      'android',
    );
    expect(rendering).toMatchObject({
      ok: false,
      error: expect.stringContaining('hms.pushOptions.ttl must be'),
    });
    // Content that fits only older devices is not an error.
    const data = { alert: 'a', hms: { 'push-type': 6, payload: { extraData: 'x' } } };
    expect(huawei.render(aMessage(data), 'android').ok).toBe(true);
  });

  test('in the background keeps its options', () => {
    const own = { pushOptions: { backgroundMode: 1 }, collapse_key: 3 };
    const body = v3({ silent: true, k: 1, hms: own });
    expect(body.fault).toBeNull();
    expect(body.pushOptions).toMatchObject({ backgroundMode: 1 });
    expect(body.pushOptions).not.toHaveProperty('collapseKey');
  });
});
