import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../connectors/contract/connector.ts';
import { appliedClass } from '../../../connectors/contract/message-class.ts';
import { connectors } from '../../../connectors/registry.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { parsePush } from '../../../shared/domain/pushes/push.ts';
import { givenRichMembers } from '../../../shared/domain/pushes/rich-content.ts';

const createdAtMs = Date.UTC(2026, 10, 28);
const image = 'https://example.com/1042.png';
const url = 'https://example.com/orders/1042';
const buttons: JsonObject[] = [
  { id: 'track', title: 'Track', url: 'https://example.com/track' },
  { id: 'later', title: 'Later' },
];

const messageOf = (data: JsonObject): PushMessage => ({
  objectId: 'Zk3vQ0pWm7xYtR1b',
  data: { alert: 'It is on its way.', title: 'Order 1042', ...data },
  prod: 'prod',
  createdAtMs,
  expiresAtMs: createdAtMs + 86_400_000,
});

function requestOf(connector: ConnectorId, data: JsonObject, deviceType = 'android'): JsonObject {
  const sender = connectors.get(connector);
  const rendering = sender?.render(messageOf(data), deviceType);
  if (!rendering?.ok) throw new Error(rendering ? rendering.error : 'no connector');
  return JSON.parse(sender?.preview?.(rendering.payload) ?? JSON.stringify(rendering.payload));
}

describe('image, url and buttons', () => {
  const data = { image, url, buttons };

  test('become custom members and a category on Apple devices', () => {
    expect(requestOf('apns', data, 'ios')).toEqual({
      aps: {
        alert: { title: 'Order 1042', body: 'It is on its way.' },
        'mutable-content': 1,
        category: 'track|later',
      },
      image,
      url,
      buttons,
    });
    expect(requestOf('apns', { url }, 'ios').aps).not.toHaveProperty('mutable-content');
    const own = requestOf(
      'apns',
      { ...data, ios: { category: 'ORDER', 'mutable-content': 0 } },
      'ios',
    );
    expect(own.aps).toMatchObject({ category: 'ORDER', 'mutable-content': 0 });
    const aps = requestOf('apns', { title: null, aps: { alert: 'a' }, image }, 'ios');
    expect(aps).toEqual({ aps: { alert: 'a', 'mutable-content': 1 }, image });
    const ofIos = requestOf('apns', { ios: { image } }, 'ios');
    expect(ofIos).toMatchObject({ aps: { 'mutable-content': 1 }, image });
  });

  test('are a picture of the notification and data at FCM', () => {
    const { message } = requestOf('fcm', data) as { message: JsonObject };
    expect(message).toMatchObject({ notification: { image } });
    const { payload } = message.data as { payload: string };
    expect(JSON.parse(payload)).toMatchObject(data);
    const other = 'https://example.com/other.png';
    expect(requestOf('fcm', { ...data, fcm: { notification: { image: other } } })).toMatchObject({
      message: { notification: { image: other } },
    });
  });

  test('are members of the notification at Huawei and Honor', () => {
    expect(requestOf('vendor_a', data)).toMatchObject({
      message: {
        android: {
          notification: {
            image,
            click_action: { type: 2, url },
            buttons: [
              { name: 'Track', action_type: 2, intent: 'https://example.com/track' },
              { name: 'Later', action_type: 0, data: '{"button":"later"}' },
            ],
          },
        },
      },
    });
    expect(requestOf('vendor_f', data)).toMatchObject({
      android: {
        notification: {
          image,
          clickAction: { type: 2, url },
          buttons: [
            { name: 'Track', actionType: 2, intent: 'https://example.com/track' },
            { name: 'Later', actionType: 0, data: '{"button":"later"}' },
          ],
        },
      },
    });
  });

  test('are a picture and data of the tap on HarmonyOS', () => {
    const request = requestOf('vendor_a', data, 'harmony');
    expect(request).toMatchObject({
      payload: { notification: { image, clickAction: { actionType: 0, data } } },
    });
    expect(request.payload).not.toHaveProperty('notification.buttons');
  });

  test('open the web page on a tap at Xiaomi, OPPO, vivo and Meizu', () => {
    expect(requestOf('vendor_b', data)).toMatchObject({
      'extra.notify_effect': '3',
      'extra.web_uri': url,
    });
    const oppo = requestOf('vendor_d', data);
    expect(oppo).toMatchObject({ click_action_type: 2, click_action_url: url });
    expect(oppo).not.toHaveProperty('action_parameters');
    expect(requestOf('vendor_e', data)).toMatchObject({ skipType: 2, skipContent: url });
    expect(requestOf('vendor_c', data)).toMatchObject({ clickTypeInfo: { clickType: 2, url } });
  });

  test('are passed to devices of the device channel', () => {
    expect(requestOf('channel', data)).toMatchObject(data);
  });

  test('leave an address of the app to the app', () => {
    const app = { url: 'myapp://orders/1042' };
    expect(requestOf('vendor_a', app)).toMatchObject({
      message: { android: { notification: { click_action: { type: 1 } } } },
    });
    expect(requestOf('vendor_b', app)).toMatchObject({ 'extra.notify_effect': '1' });
    expect(requestOf('vendor_d', app)).toMatchObject({ click_action_type: 0 });
    expect(requestOf('vendor_e', app)).toMatchObject({ skipType: 4 });
    expect(requestOf('vendor_c', app)).toMatchObject({ clickTypeInfo: { clickType: 0 } });
  });

  test('yield to the object of the vendor', () => {
    const other = 'https://example.com/other';
    expect(
      requestOf('vendor_a', { url, hms: { notification: { click_action: { type: 3 } } } }),
    ).toMatchObject({ message: { android: { notification: { click_action: { type: 3 } } } } });
    expect(
      requestOf('vendor_f', { url, honor: { notification: { clickAction: { type: 3 } } } }),
    ).toMatchObject({ android: { notification: { clickAction: { type: 3 } } } });
    expect(
      requestOf('vendor_b', { url, mi: { notify_effect: 2, intent_uri: 'intent:#Intent;end' } }),
    ).not.toHaveProperty('extra.web_uri');
    expect(requestOf('vendor_d', { url, oppo: { click_action_type: 0 } })).not.toHaveProperty(
      'click_action_url',
    );
    expect(requestOf('vendor_e', { url, vivo: { skipType: 2, skipContent: other } })).toMatchObject(
      { skipContent: other },
    );
    expect(requestOf('vendor_c', { url, mz: { clickTypeInfo: { clickType: 0 } } })).toMatchObject({
      clickTypeInfo: { clickType: 0 },
    });
  });

  test('may differ for Android devices', () => {
    const other = 'https://example.com/other.png';
    expect(requestOf('fcm', { image, android: { image: other } })).toMatchObject({
      message: { notification: { image: other } },
    });
    expect(requestOf('fcm', { image, android: { image: null } }).message).not.toHaveProperty(
      'notification.image',
    );
  });

  test('count towards the size of the request', () => {
    const long = `https://example.com/${'a'.repeat(990)}`;
    const large = { image: long, url: long, alert: 'a'.repeat(1500) };
    const rendering = connectors.get('apns')?.render(messageOf(large), 'ios');
    expect(rendering).toMatchObject({ ok: true });
    const buttonsTooLarge = [0, 1].map((id) => ({ id: `b${id}`, title: 'b', url: long }));
    const refused = connectors
      .get('apns')
      ?.render(messageOf({ ...large, buttons: buttonsTooLarge }), 'ios');
    expect(refused).toMatchObject({ ok: false, isMisfit: true });
  });
});

describe('what a device does not show', () => {
  const data = { image, url, buttons };
  const hidden = (connector: ConnectorId, deviceType = 'android', more: JsonObject = {}) => {
    const message = messageOf({ ...data, ...more });
    const given = givenRichMembers(message, deviceType);
    return (connectors.get(connector)?.notShown?.(message, deviceType) ?? []).filter((name) =>
      given.includes(name),
    );
  };

  test.each([
    ['apns', 'ios', []],
    ['fcm', 'android', ['buttons']],
    ['vendor_a', 'android', []],
    ['vendor_a', 'harmony', ['buttons']],
    ['vendor_b', 'android', ['image', 'buttons']],
    ['vendor_c', 'android', ['image', 'buttons']],
    ['vendor_d', 'android', ['image', 'buttons']],
    ['vendor_e', 'android', ['image', 'buttons']],
    ['vendor_f', 'android', ['image']],
    ['channel', 'android', []],
  ] as const)('%s, %s', (connector, deviceType, names) => {
    expect(hidden(connector, deviceType)).toEqual(names);
    expect(hidden(connector, deviceType, { silent: true })).toEqual([]);
  });

  test('is the picture of marketing messages at Honor', () => {
    const notShown = (name: 'im' | 'news') => {
      const messageClass = appliedClass({ messageClass: name }, { connector: 'vendor_f' });
      const message = { ...messageOf(data), ...(messageClass ? { messageClass } : {}) };
      return connectors.get('vendor_f')?.notShown?.(message, 'android');
    };
    expect(notShown('im')).toEqual([]);
    expect(notShown('news')).toEqual(['image']);
  });

  test('is all of it beside a complete message', () => {
    const all = ['image', 'url', 'buttons'];
    expect(hidden('fcm', 'android', { fcm: { message: {} } })).toEqual(all);
    expect(hidden('vendor_a', 'android', { hms: { message: {} } })).toEqual(all);
    expect(hidden('vendor_f', 'android', { honor: { notification: { body: 'b' } } })).toEqual(all);
  });
});

describe('the form of image, url and buttons', () => {
  const send = (data: JsonObject, more: JsonObject = {}) =>
    parsePush({ data: { alert: 'a', ...data }, where: {}, ...more }, undefined, createdAtMs);
  const fine = { id: 'a', title: 'A' };

  test.each([
    [{ image: 'http://example.com/a.png' }, /^data\.image: expected an https/],
    [{ image: { src: 'a' } }, /^data\.image:.*data\.custom/],
    [{ image: 'https://user@example.com/a.png' }, /^data\.image/],
    [{ image: `https://example.com/${'a'.repeat(1010)}` }, /^data\.image.*1024/],
    [{ url: 'orders/1042' }, /^data\.url: expected a URL.*data\.custom/],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a wrong URL
    [{ url: 'https://${host}/ a' }, /^data\.url/],
    [{ url: 'javascript:alert(1)' }, /^data\.url/],
    [{ url: 7 }, /^data\.url/],
    [{ buttons: 'ok' }, /^data\.buttons: expected a list of at most 3.*data\.custom/],
    [{ buttons: [fine, fine, fine, fine] }, /^data\.buttons: expected a list of at most 3/],
    [{ buttons: ['ok'] }, /^data\.buttons\.0: expected an object/],
    [{ buttons: [{ title: 'A' }] }, /^data\.buttons\.0\.id/],
    [{ buttons: [{ id: 'a b', title: 'A' }] }, /^data\.buttons\.0\.id/],
    [{ buttons: [fine, { id: 'b', title: ' ' }] }, /^data\.buttons\.1\.title/],
    [{ buttons: [{ id: 'b', title: 'x'.repeat(41) }] }, /^data\.buttons\.0\.title/],
    [{ buttons: [{ ...fine, url: 'x' }] }, /^data\.buttons\.0\.url/],
    [{ buttons: [{ ...fine, icon: 'x' }] }, /^data\.buttons\.0\.icon: a button has only/],
    [{ buttons: [fine, fine] }, /^data\.buttons: expected buttons with different ids/],
    [{ android: { image: 'x' } }, /^data\.android\.image/],
    [{ ios: { url: 'x' } }, /^data\.ios\.url/],
  ])('%j is refused', (data, error) => {
    expect(() => send(data as JsonObject)).toThrow(error);
  });

  test('is checked in translations', () => {
    expect(() => send({}, { languages: { en: { image: 'x' } } })).toThrow(/^languages\.en\.image/);
  });

  test('is free in custom, and null is absent', () => {
    const data = {
      custom: { image: 1, url: {}, buttons: 'x' },
      image: null,
      url: null,
      buttons: [],
    };
    expect(send(data).pushOrder.data).toEqual({ alert: 'a', ...data });
    expect(requestOf('apns', { custom: { url: 'a' } }, 'ios')).toMatchObject({
      custom: { url: 'a' },
    });
  });

  test.each([[7], ['chat'], ['default'], [{}], [[]], [true]])('class %j is refused', (name) => {
    expect(() => send({}, { class: name })).toThrow(/^class: expected one of im, call, account/);
  });
});
