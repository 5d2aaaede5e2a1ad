import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../../connectors/contract/connector.ts';
import { baseUrlOf, regionFor } from '../../../../connectors/vendors/xiaomi/client.ts';
import { xiaomi } from '../../../../connectors/vendors/xiaomi/index.ts';
import { renderXiaomi } from '../../../../connectors/vendors/xiaomi/payload.ts';
import { faultOf } from '../../../../ops/sandbox/vendors/xiaomi/server.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { aMessage } from '../../../support/gateways/apns.ts';

/** Renders the fields of a push and validates them with the sandbox's rules. */
function fieldsOf(
  data: JsonObject,
  more: Partial<PushMessage> = {},
  nowMs?: number,
): Record<string, string> {
  const rendering = renderXiaomi(aMessage(data, more), nowMs);
  if (!rendering.ok) throw new Error(rendering.error);
  const { fields } = rendering.payload;
  const whole = {
    registration_id: 'someone+/1234==',
    restricted_package_name: 'com.example.app',
    ...fields,
  };
  expect(faultOf(new URLSearchParams(whole))).toBeNull();
  return fields;
}
const problemOf = (data: JsonObject, more: Partial<PushMessage> = {}) => {
  const rendering = xiaomi.render(aMessage(data, more), 'android');
  return rendering.ok ? null : reasonText(rendering.error);
};

describe('a notification for Xiaomi', () => {
  test('has its texts, the whole push as payload, and a key that hides a repeat', () => {
    const fields = fieldsOf({ alert: 'Text', title: 'Title', order: 7 });
    expect(fields).toMatchObject({
      title: 'Title',
      description: 'Text',
      pass_through: '0',
      notify_type: '-1',
      'extra.jobkey': 'PushRecord000001',
    });
    expect(JSON.parse(fields.payload ?? '')).toEqual({ alert: 'Text', title: 'Title', order: 7 });
    expect(fields.notify_id).toBe(fieldsOf({ alert: 'other' }).notify_id);
    expect(fields.notify_id).not.toBe(
      fieldsOf({ alert: 'a' }, { objectId: 'PushRecord000002' }).notify_id,
    );
  });

  test('replaces a message with the same collapse-id', () => {
    const of = (objectId: string) =>
      fieldsOf({ alert: 'a', 'collapse-id': 'score' }, { objectId }).notify_id;
    expect(of('PushRecord000001')).toBe(of('PushRecord000002'));
  });

  test('uses the start of its text if it has no title', () => {
    expect(fieldsOf({ alert: '☃'.repeat(60) }).title).toBe('☃'.repeat(49));
  });

  test('prefers members of mi, then android, then the others', () => {
    const fields = fieldsOf({
      alert: 'a',
      title: 't',
      android: { title: 'android' },
      mi: { alert: 'xiaomi' },
    });
    expect(fields).toMatchObject({ title: 'android', description: 'xiaomi' });
  });

  test('uses the category of the push, which has its own daily quota', () => {
    const rendering = renderXiaomi(aMessage({ alert: 'a' }, { notificationChannel: '112233' }));
    expect(rendering).toMatchObject({
      payload: { messageClass: '112233', fields: { 'extra.channel_id': '112233' } },
    });
    expect(renderXiaomi(aMessage())).toMatchObject({ payload: { messageClass: 'default' } });
  });

  test('has the lifetime of the push: at most a day, in a category ten days', () => {
    const lifetimeOf = (leftMs: number, more: Partial<PushMessage> = {}) =>
      fieldsOf({ alert: 'a' }, { createdAtMs: 0, expiresAtMs: leftMs, ...more }).time_to_live;
    expect(lifetimeOf(90_500)).toBe('90500');
    expect(lifetimeOf(1e12)).toBe('86400000');
    expect(lifetimeOf(1e12, { notificationChannel: 'c' })).toBe('864000000');
    const late = { createdAtMs: 0, expiresAtMs: 90_000 };
    expect(fieldsOf({ alert: 'a' }, late, 60_000).time_to_live).toBe('30000');
    expect(fieldsOf({ alert: 'a', mi: { time_to_live: 5000 } }, late).time_to_live).toBe('5000');
  });

  test('with less than a second left is only for devices that are online', () => {
    const last = { createdAtMs: 0, expiresAtMs: 999 };
    expect(fieldsOf({ alert: 'a' }, last)).toMatchObject({ 'extra.only_send_once': '1' });
    expect(fieldsOf({ alert: 'a' })['extra.only_send_once']).toBeUndefined();
  });
});

describe('a silent message', () => {
  test('is passed to the app with all members, and repeats are not hidden', () => {
    const data = { silent: true, alert: 'a', k: [1], action: 'com.example.GO' };
    const fields = fieldsOf(data);
    expect(fields).toMatchObject({ pass_through: '1' });
    expect(JSON.parse(fields.payload ?? '')).toEqual(data);
    for (const name of ['title', 'description', 'notify_id', 'extra.jobkey'])
      expect(fields[name]).toBeUndefined();
    expect(renderXiaomi(aMessage(data))).toMatchObject({ payload: { isRepeatHidden: false } });
  });
});

describe('Xiaomi’s own object', () => {
  test('passes its members on: fields unchanged, extras under extra', () => {
    const fields = fieldsOf({
      alert: 'a',
      mi: {
        notify_type: 1,
        channel_id: '7',
        badge: 3,
        sound_uri: 'android.resource://com.example.app/raw/ding',
        extra: { notify_effect: '2', intent_uri: 'intent:#Intent;end', own: { deep: true } },
        'extra.flow_control': 5000,
        time_to_send: 1_800_000_000_000,
      },
    });
    expect(fields).toMatchObject({
      notify_type: '1',
      'extra.channel_id': '7',
      'extra.badge': '3',
      'extra.sound_uri': 'android.resource://com.example.app/raw/ding',
      'extra.notify_effect': '2',
      'extra.intent_uri': 'intent:#Intent;end',
      'extra.own': '{"deep":true}',
      'extra.flow_control': '5000',
      time_to_send: '1800000000000',
    });
  });

  test('may be a complete message, which needs no alert', () => {
    const mi = { title: 'T', description: 'D', payload: 'own', notify_id: 4, pass_through: 0 };
    expect(fieldsOf({ mi })).toMatchObject({
      title: 'T',
      description: 'D',
      payload: 'own',
      notify_id: '4',
    });
    expect(fieldsOf({ mi: { payload: { a: 1 }, pass_through: 1 } })).toMatchObject({
      payload: '{"a":1}',
      pass_through: '1',
    });
    expect(fieldsOf({ mi: { description: 'D' } }).title).toBe('D');
  });

  test('selects no devices', () => {
    const mi = { registration_id: 'x', alias: 'y', topic: 'z' };
    const fields = fieldsOf({ alert: 'a', mi });
    for (const name of Object.keys(mi)) expect(fields[name]).toBeUndefined();
  });

  test.each<[string, JsonObject]>([
    ['title must have at most 49', { alert: 'a', title: 'x'.repeat(50) }],
    ['alert must have at most 127', { alert: '☃'.repeat(128) }],
    ['description must have at most 127', { mi: { title: 't', description: 'x'.repeat(128) } }],
    ['needs a description', { mi: { title: 't', payload: 'x' } }],
    ['needs a description', { mi: { title: 't', description: ' ' } }],
    ['needs a description', { alert: 'a', mi: { title: 'T', description: '' } }],
    ['pass_through', { alert: 'a', mi: { pass_through: 2 } }],
    ['notify_type', { alert: 'a', mi: { notify_type: 8 } }],
    ['notify_id', { alert: 'a', mi: { notify_id: -1 } }],
    ['notify_id', { alert: 'a', mi: { notify_id: 2_147_483_648 } }],
    ['time_to_live', { alert: 'a', mi: { time_to_live: 0 } }],
    ['time_to_send', { alert: 'a', mi: { time_to_send: 'tomorrow' } }],
    ['restricted_package_name', { alert: 'a', mi: { restricted_package_name: 'x'.repeat(129) } }],
    ['mi.notify_effect must be 1, 2 or 3', { alert: 'a', mi: { notify_effect: 4 } }],
    ['mi.notify_foreground must', { alert: 'a', mi: { notify_foreground: 'yes' } }],
    ['mi.only_send_once must', { alert: 'a', mi: { only_send_once: 2 } }],
    ['mi.web_uri must', { alert: 'a', mi: { web_uri: 'javascript:1' } }],
    ['mi.jobkey must', { alert: 'a', mi: { jobkey: '_x' } }],
    ['mi.jobkey must', { alert: 'a', mi: { jobkey: 'x'.repeat(21) } }],
    [
      'mi.extra.callback.param must',
      { alert: 'a', mi: { extra: { 'callback.param': 'x'.repeat(65) } } },
    ],
    ['mi.extra.callback.type must', { alert: 'a', mi: { extra: { 'callback.type': 0 } } }],
    ['mi.extra must be an object', { alert: 'a', mi: { extra: 'x' } }],
    [
      'at most 10',
      { alert: 'a', mi: { extra: Object.fromEntries([...'abcdefghijk'].map((k) => [k, 1])) } },
    ],
    ['at most 1024', { alert: 'a', mi: { extra: { k: 'x'.repeat(1024) } } }],
    ['bytes', { alert: 'a', k: 'x'.repeat(4096) }],
    ['bytes', { alert: 'a', k: '中'.repeat(1365) }],
  ])('is reported before anything is sent: %s', (problem, data) => {
    expect(problemOf(data)).toContain(problem);
  });
});

describe('the action of a tap', () => {
  const effectOf = (data: JsonObject) => fieldsOf(data)['extra.notify_effect'];

  test('is in every notification, because Xiaomi refuses notifications without it', () => {
    expect(effectOf({ alert: 'a' })).toBe('1');
    expect(effectOf({ alert: 'a', mi: { intent_uri: 'intent:#Intent;end' } })).toBe('2');
    expect(effectOf({ alert: 'a', mi: { extra: { web_uri: 'https://example.com' } } })).toBe('3');
    expect(effectOf({ alert: 'a', mi: { notify_effect: 3, web_uri: 'https://example.com' } })).toBe(
      '3',
    );
    expect(effectOf({ mi: { title: 'T', description: 'D' } })).toBe('1');
    expect(effectOf({ silent: true, k: 1 })).toBeUndefined();
  });

  test.each<[JsonObject, string]>([
    [{ notify_effect: 2 }, 'extra.notify_effect 2 of vendor_b needs extra.intent_uri'],
    [
      { notify_effect: '3', intent_uri: 'x' },
      'extra.notify_effect 3 of vendor_b needs extra.web_uri',
    ],
  ])('has its target: %j', (mi, error) => {
    expect(problemOf({ alert: 'a', mi })).toBe(error);
  });
});

describe('a template', () => {
  const values = { keywords1: 'Tom', keywords2: 'phone' };
  const template = { channel_id: '112233', template_id: 'P10645', template_param: values };

  test('is sent in Xiaomi’s fields, whatever the form of its values', () => {
    const forms: JsonObject[] = [
      template,
      { ...template, template_param: JSON.stringify(values) },
      { extra: template },
      {
        'extra.channel_id': '112233',
        'extra.template_id': 'P10645',
        'extra.template_param': values,
      },
    ];
    for (const mi of forms)
      expect(fieldsOf({ alert: 'a', mi })).toMatchObject({
        'extra.channel_id': '112233',
        'extra.template_id': 'P10645',
        'extra.template_param': JSON.stringify(values),
        // Used for devices and accounts without the rule.
        description: 'a',
      });
    const more = { notificationChannel: '7' };
    const { channel_id: _, ...rest } = template;
    expect(fieldsOf({ alert: 'a', mi: rest }, more)).toMatchObject({ 'extra.channel_id': '7' });
    expect(
      fieldsOf({ alert: 'a', mi: { ...template, template_param: { n: 3 } } })[
        'extra.template_param'
      ],
    ).toBe('{"n":"3"}');
  });

  test('and a focus notification do not count towards the limit of pairs', () => {
    const pairs = Object.fromEntries([...'abcdefghij'].map((name) => [name, 'x'.repeat(100)]));
    const focus = { param_v2: { protocol: 1, ticker: 'x'.repeat(600) } };
    const mi = {
      ...template,
      template_param: Object.fromEntries([...'abcdefghi'].map((name) => [name, 'y'.repeat(128)])),
      'miui.focus.param': focus,
      'miui.focus.pic_aod': 'https://example.com/q.png',
      extra: { ...pairs, 'miui.focus.pic_ticker': 'https://example.com/p.png' },
    };
    expect(fieldsOf({ alert: 'a', mi })).toMatchObject({
      'extra.miui.focus.param': JSON.stringify(focus),
      'extra.miui.focus.pic_aod': 'https://example.com/q.png',
      'extra.miui.focus.pic_ticker': 'https://example.com/p.png',
      'extra.a': 'x'.repeat(100),
    });
    expect(problemOf({ alert: 'a', mi: { ...mi, extra: { ...pairs, k: 1 } } })).toContain(
      'at most 10',
    );
  });

  test.each<[JsonObject, string]>([
    [{ template_id: 'P1' }, 'a template of vendor_b needs extra.template_param'],
    [{ template_param: values, channel_id: '1' }, 'a template of vendor_b needs extra.template_id'],
    [{ template_id: 'P1', template_param: {} }, 'a template of vendor_b needs extra.channel_id'],
    [{ ...template, template_id: '' }, 'mi.template_id must be'],
    [
      { ...template, template_param: 'x' },
      'mi.template_param must be an object of at most 9 strings',
    ],
    [{ ...template, template_param: ['x'] }, 'mi.template_param must be an object'],
    [
      {
        ...template,
        template_param: Object.fromEntries([...'abcdefghij'].map((name) => [name, 'x'])),
      },
      'mi.template_param must be an object of at most 9 strings',
    ],
    ...['', '  ', 'x'.repeat(129), '😀', '★', '\u{378}', null, {}].map(
      (value): [JsonObject, string] => [
        { ...template, template_param: { keywords1: value } },
        'mi.template_param.keywords1 must be a string of 1 to 128 characters',
      ],
    ),
    [{ 'miui.focus.param': 'x' }, 'mi.miui.focus.param must be a JSON object'],
  ])('that Xiaomi would refuse is refused: %j', (mi, error) => {
    expect(problemOf({ alert: 'a', mi })).toContain(error);
  });

  test('has values of 128 characters, whatever their bytes', () => {
    const param = { k: '中'.repeat(128), other: 'a, “b” – 5 €' };
    expect(
      fieldsOf({ alert: 'a', mi: { ...template, template_param: param } })['extra.template_param'],
    ).toBe(JSON.stringify(param));
  });
});

describe('a device', () => {
  test.each([
    [undefined, 'mi', 'https://api.xmpush.xiaomi.com', true],
    [undefined, null, 'https://api.xmpush.xiaomi.com', true],
    [undefined, 'MI-INTL', 'https://sgp-api.xmpush.global.xiaomi.com', false],
    ['india', 'mi-intl', 'https://idmb-api.xmpush.global.xiaomi.com', true],
    ['russia', 'mi', 'https://ru-api.xmpush.global.xiaomi.com', true],
    ['europe', 'mi-intl', 'https://fr-api.xmpush.global.xiaomi.com', true],
    ['global', 'mi-intl', 'https://sgp-api.xmpush.global.xiaomi.com', true],
    ['china', 'mi-intl', 'https://api.xmpush.xiaomi.com', true],
  ] as const)(
    'of a profile for %s with the label %s is served at %s',
    (region, vendor, host, isCertain) => {
      const profile = region === undefined ? {} : { region };
      const deviceRegion = regionFor(profile, vendor);
      expect(baseUrlOf({}, deviceRegion.region)).toBe(host);
      expect(deviceRegion.isRegionCertain).toBe(isCertain);
      expect(baseUrlOf({ endpoint: 'https://relay.example' }, deviceRegion.region)).toBe(
        'https://relay.example',
      );
    },
  );
});

test('the rate counts requests: that of the smallest apps, or of the profile', () => {
  const credentials = { appId: '1', appSecret: 's', packageName: 'com.example.app' };
  expect(xiaomi.rate?.(credentials)).toMatchObject({ perSecond: 500, counts: 'requests' });
  expect(xiaomi.rate?.({ ...credentials, ratePerSecond: 3000 })).toMatchObject({ perSecond: 3000 });
});

test('an unknown region and a too long package name are refused', () => {
  const credentials = { appId: '1', appSecret: 's', packageName: 'com.example.app' };
  expect(xiaomi.credentials.safeParse({ ...credentials, region: 'moon' }).success).toBe(false);
  expect(
    xiaomi.credentials.safeParse({ ...credentials, packageName: 'x'.repeat(129) }).success,
  ).toBe(false);
  expect(
    xiaomi.credentials.safeParse({ ...credentials, packageName: 'x'.repeat(128) }).success,
  ).toBe(true);
});
