import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../connectors/contract/connector.ts';
import {
  appliedClass,
  classEffect,
  type ProfileClasses,
} from '../../../connectors/contract/message-class.ts';
import { classesError } from '../../../connectors/contract/profile-classes.ts';
import { connectors } from '../../../connectors/registry.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import {
  type MessageClass,
  messageClasses,
  messageClassNames,
} from '../../../shared/domain/pushes/message-classes.ts';

const createdAtMs = Date.UTC(2026, 10, 28);

/** Returns the rendered request of a push, with the vendors' ids of the class in the profile. */
function requestOf(
  connector: ConnectorId,
  { name, data = {}, classes, deviceType = 'android' }: Sent,
): JsonObject {
  const sender = connectors.get(connector);
  const rendering = sender?.render(messageOf(connector, { name, data, classes }), deviceType);
  if (!rendering?.ok) throw new Error(rendering ? rendering.error : 'no connector');
  const body = sender?.preview?.(rendering.payload) ?? JSON.stringify(rendering.payload);
  return JSON.parse(body);
}

interface Sent {
  name: MessageClass;
  data?: JsonObject;
  classes?: ProfileClasses | undefined;
  deviceType?: string;
}

function messageOf(connector: ConnectorId, { name, data = {}, classes }: Sent): PushMessage {
  const messageClass = appliedClass({ messageClass: name }, { connector, classes });
  return {
    objectId: 'Zk3vQ0pWm7xYtR1b',
    data: { alert: 'It is on its way.', title: 'Order 1042', ...data },
    prod: 'prod',
    createdAtMs,
    expiresAtMs: createdAtMs + 86_400_000,
    ...(messageClass ? { messageClass } : {}),
  };
}

/** Labels of each class: Huawei, Honor, OPPO with its level, vivo, Meizu, Apple, FCM. */
const table: Record<MessageClass, string> = {
  im: 'IM NORMAL IM/2 IM 1 active HIGH',
  call: 'VOIP NORMAL IM/16 IM 1 time-sensitive HIGH',
  account: 'ACCOUNT NORMAL ACCOUNT ACCOUNT 1 active HIGH',
  finance: 'FINANCE NORMAL ACCOUNT ACCOUNT 1 active HIGH',
  order: 'EXPRESS NORMAL ORDER ORDER 1 active HIGH',
  express: 'EXPRESS NORMAL ORDER ORDER 1 active HIGH',
  todo: 'WORK NORMAL TODO TODO 1 active HIGH',
  travel: 'TRAVEL NORMAL TODO TODO 1 time-sensitive HIGH',
  health: 'HEALTH NORMAL TODO TODO 1 active HIGH',
  device: 'DEVICE_REMINDER NORMAL DEVICE_REMINDER DEVICE_REMINDER 1 active HIGH',
  mail: 'MAIL NORMAL TODO IM 1 active HIGH',
  subscription: 'SUBSCRIPTION NORMAL SUBSCRIPTION SUBSCRIPTION 1 active NORMAL',
  news: 'MARKETING LOW NEWS/1 NEWS 0 passive NORMAL',
  content: 'MARKETING LOW CONTENT/1 CONTENT 0 passive NORMAL',
  social: 'MARKETING LOW SOCIAL/1 SOCIAL 0 active NORMAL',
  marketing: 'MARKETING LOW MARKETING/1 MARKETING 0 passive NORMAL',
};

describe.each(messageClassNames)('the class %s', (name) => {
  const [huawei, honor, oppo = '', vivo, meizu, ios, fcm] = table[name].split(' ');
  const [category, level] = oppo.split('/');

  test('has the label of each vendor at its place', () => {
    expect(requestOf('vendor_a', { name })).toMatchObject({
      message: { android: { category: huawei, ttl: '86400s' } },
    });
    expect(requestOf('vendor_a', { name, deviceType: 'harmony' })).toMatchObject({
      payload: { notification: { category: huawei } },
      pushOptions: { ttl: name === 'call' ? 60 : 86_400 },
    });
    expect(requestOf('vendor_f', { name })).toMatchObject({
      android: { notification: { importance: honor } },
    });
    expect(requestOf('vendor_d', { name })).toMatchObject({ category });
    expect(requestOf('vendor_d', { name }).notify_level).toBe(level && Number(level));
    const vivoRequest = requestOf('vendor_e', { name });
    expect(vivoRequest).toMatchObject({ category: vivo });
    expect(vivoRequest).not.toHaveProperty('classification');
    expect(requestOf('vendor_c', { name })).toMatchObject({
      noticeBarInfo: { noticeMsgType: Number(meizu) },
    });
    expect(requestOf('apns', { name, deviceType: 'ios' })).toMatchObject({
      aps: { 'interruption-level': ios },
    });
    for (const label of ['fcm', 'vendor_g'] as const)
      expect(requestOf(label, { name })).toMatchObject({ message: { android: { priority: fcm } } });
  });

  test('has the channel and template of the profile at Xiaomi', () => {
    const members = { channel_id: '137', template_id: 'P10645', template_param: { name: 'Tom' } };
    expect(requestOf('vendor_b', { name, classes: { [name]: members } })).toMatchObject({
      'extra.channel_id': '137',
      'extra.template_id': 'P10645',
      'extra.template_param': '{"name":"Tom"}',
      'extra.notify_effect': '1',
    });
  });

  test('is refused by Xiaomi without a channel, and is no mistake of the push', () => {
    const rendering = connectors
      .get('vendor_b')
      ?.render(messageOf('vendor_b', { name }), 'android');
    expect(rendering).toMatchObject({ ok: false, isMisfit: true });
    expect(rendering).toHaveProperty('error', expect.stringContaining('channel_id'));
  });
});

test('the object of the push overrides the profile, which overrides the table', () => {
  const layer = fc.constantFrom('NEWS', 'CONTENT', 'SOCIAL', 'MARKETING', 'ORDER', 'TODO', null);
  const spelling = fc.constantFrom<(category: string) => JsonObject>(
    (category) => ({ category }),
    (category) => ({ notification: { category } }),
  );
  fc.assert(
    fc.property(layer, layer, spelling, spelling, (profile, own, ofProfile, ofPush) => {
      const { category } = requestOf('vendor_d', {
        name: 'account',
        classes: { account: profile === null ? {} : ofProfile(profile) },
        data: own === null ? {} : { oppo: ofPush(own) },
      });
      expect(category).toBe(own ?? profile ?? 'ACCOUNT');
    }),
  );
});

test('a null in the object of the push removes a member of the class', () => {
  const classes = { order: { channel_id: '1', template_id: 'P1', template_param: { a: 'b' } } };
  const own = { template_id: null, template_param: null };
  const request = requestOf('vendor_b', { name: 'order', classes, data: { mi: own } });
  expect(request).toMatchObject({ 'extra.channel_id': '1' });
  expect(request).not.toHaveProperty('extra.template_id');
  expect(
    requestOf('vendor_e', { name: 'order', data: { vivo: { category: null } } }),
  ).not.toHaveProperty('category');
  const ios = { 'interruption-level': null };
  expect(requestOf('apns', { name: 'order', data: { ios } }).aps).not.toHaveProperty(
    'interruption-level',
  );
});

test('members of the push fill the template of a profile', () => {
  const own = { order: 1042, from: 'A "new" shop', state: { a: 1 } };
  const members = { order: '{{order}}', from: 'From {{ from }}', text: '{{alert}}' };
  const order = { channel_id: '137', template_id: 'P10645', template_param: members };
  const filled = { order: '1042', from: 'From A "new" shop', text: 'It is on its way.' };
  for (const template_param of [members, JSON.stringify(members)]) {
    const classes = { order: { ...order, template_param } };
    const request = requestOf('vendor_b', { name: 'order', classes, data: own });
    expect(JSON.parse(String(request['extra.template_param']))).toEqual(filled);
  }
  const oppo = { private_msg_template_id: '6875', private_content_parameters: members };
  expect(
    requestOf('vendor_d', { name: 'order', classes: { order: oppo }, data: own }),
  ).toMatchObject({ private_content_parameters: filled });
  const unknown = { order: { ...order, template_param: { a: '{{state}} {{none}}' } } };
  expect(requestOf('vendor_b', { name: 'order', classes: unknown, data: own })).toMatchObject({
    'extra.template_param': '{"a":"{{state}} {{none}}"}',
  });
  const emoji = { alert: 'Sale 🎉' };
  const message = messageOf('vendor_b', { name: 'order', classes: { order }, data: emoji });
  expect(connectors.get('vendor_b')?.render(message, 'android')).toMatchObject({
    ok: false,
    isMisfit: true,
    error: expect.stringContaining('messageClasses.order.template_param.text'),
  });
  const { template_param: _, ...half } = order;
  const without = messageOf('vendor_b', { name: 'order', classes: { order: half } });
  expect(connectors.get('vendor_b')?.render(without, 'android')).toMatchObject({
    ok: false,
    isMisfit: true,
    error: expect.stringContaining('template_param'),
  });
});

test('a silent message gets no notification from the class', () => {
  const classes = { im: { channel_id: 'im', priority: 'HIGH' } };
  const request = requestOf('fcm', { name: 'im', classes, data: { silent: true } });
  expect(request).toMatchObject({ message: { android: { priority: 'HIGH' } } });
  expect(JSON.stringify(request)).not.toContain('notification');
  const huawei = requestOf('vendor_a', { name: 'im', data: { silent: true } });
  expect(huawei).toMatchObject({ message: { android: { category: 'IM' } } });
  expect(JSON.stringify(huawei)).not.toContain('"notification"');
});

test('a class at APNs leaves pushes that show nothing as they are', () => {
  const data = { alert: '', title: '', 'content-available': 1 };
  expect(requestOf('apns', { name: 'im', data })).toEqual({ aps: { 'content-available': 1 } });
});

test('a missed call has the category of calls in v1 of Huawei', () => {
  const classes = { call: { category: 'MISS_CALL' } };
  expect(requestOf('vendor_a', { name: 'call', classes })).toMatchObject({
    message: { android: { category: 'VOIP' } },
  });
  expect(requestOf('vendor_a', { name: 'call', classes, deviceType: 'ohos' })).toMatchObject({
    payload: { notification: { category: 'MISS_CALL' } },
  });
});

describe('the effect of a class', () => {
  const effect = (connector: ConnectorId, sent: Sent) =>
    classEffect(connector, messageOf(connector, sent), { isTransactional: false });

  test.each([
    ['vendor_a', null, ['right'], 2],
    ['vendor_b', null, ['channel_id', 'template_id', 'template_param'], 5],
    ['vendor_c', null, [], 3],
    ['vendor_d', null, ['right', 'private_msg_template_id'], 2],
    ['vendor_e', null, ['right'], 2],
    ['vendor_f', null, ['right'], 2],
    ['apns', null, [], null],
    ['fcm', null, [], null],
    ['channel', null, [], null],
  ] as const)('of %s', (connector, service, missing, marketing) => {
    const name = 'order';
    expect(effect(connector, { name })).toEqual({ name, dailyLimit: service, missing });
    expect(effect(connector, { name: 'news' })).toEqual({
      name: 'news',
      dailyLimit: marketing,
      missing: connector === 'vendor_b' ? ['channel_id'] : [],
    });
  });

  test('follows a label that the push sets itself', () => {
    const data = {
      hms: { category: 'MARKETING' },
      honor: { android: { notification: { importance: 'LOW' } } },
    };
    expect(effect('vendor_a', { name: 'im', data })).toMatchObject({ dailyLimit: 2, missing: [] });
    expect(effect('vendor_f', { name: 'im', data })).toMatchObject({ dailyLimit: 2, missing: [] });
  });

  test('has nothing missing if profile and push have all', () => {
    const classes = { order: { channel_id: '1', template_id: 'P1' } };
    const data = { mi: { extra: { template_param: { a: 'b' } } } };
    expect(effect('vendor_b', { name: 'order', classes, data }).missing).toEqual([]);
    expect(effect('vendor_f', { name: 'order', classes: { order: {} } }).missing).toEqual([]);
  });

  test('of a transactional push is `default`, or is listed as missing', () => {
    const push = { kind: 'transactional' } as const;
    const classes = { default: { category: 'ACCOUNT' } };
    const applied = appliedClass(push, { connector: 'vendor_e', classes });
    expect(applied).toMatchObject({ name: 'default', isDeclared: true });
    expect(appliedClass(push, { connector: 'vendor_e' })).toBeUndefined();
    expect(appliedClass({}, { connector: 'vendor_e', classes })).toBeUndefined();
    const data = { alert: 'a' };
    const none = { name: null, dailyLimit: 2, missing: ['class'] };
    expect(classEffect('vendor_e', { data }, { isTransactional: true })).toEqual(none);
    expect(classEffect('vendor_e', { data }, { isTransactional: false }).missing).toEqual([]);
    expect(classEffect('vendor_b', { data }, { isTransactional: false }).dailyLimit).toBe(1);
    expect(
      classEffect(
        'vendor_e',
        { data, ...(applied ? { messageClass: applied } : {}) },
        { isTransactional: true },
      ),
    ).toEqual({ name: 'default', dailyLimit: null, missing: [] });
  });
});

describe('message classes of a profile', () => {
  const check = (connector: ConnectorId, classes: unknown) => {
    const sender = connectors.get(connector);
    return sender ? classesError(sender, JSON.parse(JSON.stringify(classes))) : 'no connector';
  };

  test.each([
    ['apns', { im: { 'interruption-level': 'time-sensitive', 'apns-priority': 5 } }],
    ['fcm', { im: { channel_id: 'im', android: { priority: 'HIGH' } } }],
    [
      'vendor_a',
      { default: { category: 'ACCOUNT' }, im: { channel_id: 'c', pushOptions: { ttl: 60 } } },
    ],
    [
      'vendor_b',
      { im: { channel_id: '1', 'extra.template_id': 'P1', extra: { template_param: {} } } },
    ],
    ['vendor_c', { im: { noticeMsgType: 1 } }],
    [
      'vendor_d',
      { im: { channel_id: 'c', notifyLevel: 16, private_msg_template_id: '687557242b16' } },
    ],
    ['vendor_e', { im: { category: 'IM' } }],
    ['vendor_f', { im: { importance: 'NORMAL' }, news: {} }],
  ] as const)('of %s are taken', (connector, classes) => {
    expect(check(connector, classes)).toBeNull();
  });

  test.each([
    ['vendor_b', 'im', /messageClasses must be an object/],
    [
      'vendor_b',
      { chat: {} },
      /messageClasses\.chat is no message class: expected one of default, im/,
    ],
    ['vendor_b', { im: 'x' }, /messageClasses\.im must be an object/],
    [
      'vendor_b',
      { im: { chanel_id: '1' } },
      /messageClasses\.im\.chanel_id.*nearest is extra\.channel_id/,
    ],
    ['vendor_b', { im: { registration_id: '1' } }, /messageClasses\.im\.registration_id/],
    ['vendor_b', { im: { extra: { own: '1' } } }, /messageClasses\.im\.extra\.own/],
    ['vendor_b', { im: { template_param: { a: '🎉' } } }, /messageClasses\.im\.template_param\.a/],
    ['vendor_a', { im: { category: 'CHAT' } }, /messageClasses\.im\.category must be one of/],
    ['vendor_a', { im: { catgory: 'IM' } }, /messageClasses\.im\.catgory/],
    ['vendor_c', { im: { noticeMsgType: 2 } }, /messageClasses\.im\.noticeMsgType must be 0 or 1/],
    [
      'vendor_d',
      { im: { notify_level: 3 } },
      /messageClasses\.im\.notify_level must be 1, 2 or 16/,
    ],
    ['vendor_e', { im: { category: 'VOIP' } }, /messageClasses\.im\.category/],
    ['vendor_f', { im: { category: 'IM' } }, /messageClasses\.im\.category/],
    ['vendor_g', { im: { chanel_id: 'x' } }, /messageClasses\.im\.chanel_id/],
    [
      'apns',
      { im: { 'interruption-level': 'loud' } },
      /messageClasses\.im\.interruption-level must be one of/,
    ],
    ['apns', { im: { alert: 'x' } }, /messageClasses\.im\.alert/],
    ['channel', { im: {} }, /no message classes/],
    [
      'vendor_b',
      { im: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`m${i}`, 1])) },
      /messageClasses\.im must have at most 20 members/,
    ],
    [
      'vendor_b',
      { im: { sound_uri: 'x'.repeat(17_000) } },
      /messageClasses must have at most 16384 bytes/,
    ],
  ] as const)('of %s with %j are refused', (connector, classes, error) => {
    expect(check(connector, classes)).toMatch(error);
  });
});

test('every class has a side', () => {
  expect(new Set(Object.values(messageClasses))).toEqual(new Set(['service', 'marketing']));
});
