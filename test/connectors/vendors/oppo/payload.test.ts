import { describe, expect, test } from 'vitest';
import type { PushMessage } from '../../../../connectors/contract/connector.ts';
import { baseUrlOf, regionOf, signatureOf } from '../../../../connectors/vendors/oppo/client.ts';
import { oppo } from '../../../../connectors/vendors/oppo/index.ts';
import { renderOppo } from '../../../../connectors/vendors/oppo/payload.ts';
import { notificationFault } from '../../../../ops/sandbox/vendors/oppo/rules.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { aMessage } from '../../../support/gateways/apns.ts';

function payloadOf(data: JsonObject, more: Partial<PushMessage> = {}, nowMs?: number) {
  const rendering = renderOppo(aMessage(data, more), nowMs);
  if (!rendering.ok) throw new Error(rendering.error);
  return rendering.payload;
}

/** Renders the notification of a push and validates it with the sandbox's rules. */
function notificationOf(
  data: JsonObject,
  more: Partial<PushMessage> = {},
  nowMs?: number,
): JsonObject {
  const { isBroadcast, notification } = payloadOf(data, more, nowMs);
  expect(notificationFault(notification, isBroadcast)).toBeNull();
  return notification;
}

describe('a notification for OPPO', () => {
  test('has its texts, opens the app with the whole push, and has an id that drops repeats', () => {
    const data = { alert: 'Text', title: 'Title', order: { id: 7 } };
    const notification = notificationOf(data);
    expect(notification).toMatchObject({
      app_message_id: 'PushRecord000001',
      title: 'Title',
      content: 'Text',
      style: 1,
      click_action_type: 0,
      off_line: true,
      off_line_ttl: 3600,
    });
    expect(JSON.parse(String(notification.action_parameters))).toEqual(data);
    expect(payloadOf(data)).toMatchObject({ isRepeatHidden: true, isBroadcast: false });
    expect(payloadOf({ alert: 'a', oppo: { app_message_id: null } }).isRepeatHidden).toBe(false);
  });

  test('of more than 50 characters has the style for 128', () => {
    expect(notificationOf({ alert: '☃'.repeat(50) })).toMatchObject({
      style: 1,
      title: '☃'.repeat(50),
    });
    expect(notificationOf({ alert: '☃'.repeat(128) })).toMatchObject({
      style: 2,
      title: '☃'.repeat(50),
    });
  });

  test('prefers members of oppo, then android, then the others, under either name', () => {
    const data = {
      alert: 'a',
      title: 't',
      android: { title: 'android' },
      vendor_d: { alert: 'own' },
    };
    expect(notificationOf(data)).toMatchObject({ title: 'android', content: 'own' });
  });

  test('replaces a message with the same collapse-id', () => {
    const of = (id: string) => notificationOf({ alert: 'a', 'collapse-id': id }).notify_id;
    expect(of('score')).toBe(of('score'));
    expect(of('score')).not.toBe(of('other'));
    // Without a collapse id, the id of the push makes the message replaceable.
    expect(notificationOf({ alert: 'a' }).notify_id).toBe(notificationOf({ alert: 'b' }).notify_id);
  });

  test('uses the channel and the category of the push', () => {
    const more = { notificationChannel: 'orders' };
    expect(notificationOf({ alert: 'a' }, more)).toMatchObject({ channel_id: 'orders' });
    expect(payloadOf({ alert: 'a' }).messageClass).toBe('default');
    expect(payloadOf({ alert: 'a' }, more).messageClass).toBe('orders');
    const oppo = { category: 'ORDER', notify_level: 2 };
    expect(payloadOf({ alert: 'a', oppo }, more).messageClass).toBe('ORDER');
  });

  test('lives as long as the push, at most ten days, then only on online devices', () => {
    const lifetimeOf = (leftMs: number, oppo: JsonObject = {}) =>
      notificationOf({ alert: 'a', oppo }, { createdAtMs: 0, expiresAtMs: leftMs });
    expect(lifetimeOf(90_500)).toMatchObject({ off_line_ttl: 90 });
    expect(lifetimeOf(1e12)).toMatchObject({ off_line_ttl: 864_000 });
    expect(lifetimeOf(90_000, { off_line_ttl: 5 })).toMatchObject({ off_line_ttl: 5 });
    expect(lifetimeOf(90_000, { off_line_ttl: 500 })).toMatchObject({ off_line_ttl: 90 });
    expect(lifetimeOf(999)).toMatchObject({ off_line: false });
    const late = { createdAtMs: 0, expiresAtMs: 90_000 };
    expect(notificationOf({ alert: 'a' }, late, 60_000)).toMatchObject({ off_line_ttl: 30 });
  });
});

describe('OPPO’s own object', () => {
  test('passes its members on, in the spelling of the server', () => {
    const own = {
      click_action_type: 4,
      clickActionActivity: 'com.example.app.MainActivity',
      action_parameters: { id: 'm1' },
      show_ttl: 3600,
      network_type: 1,
      badge_operation_type: 1,
      badge_message_count: 3,
      badge: 9,
      private_msg_template_id: 't1',
      privateContentParameters: { name: 'Ann' },
      verify_registration_id: true,
    };
    const payload = payloadOf({ alert: 'a', oppo: own });
    expect(notificationFault(payload.notification, false)).toBeNull();
    const {
      badge: _,
      clickActionActivity,
      privateContentParameters,
      verify_registration_id,
      ...same
    } = own;
    expect(payload.notification).toMatchObject({
      ...same,
      click_action_activity: clickActionActivity,
      private_content_parameters: privateContentParameters,
      action_parameters: '{"id":"m1"}',
    });
    expect(payload.notification).not.toHaveProperty('badge');
    expect(payload.envelope).toEqual({ verify_registration_id });
    const bare = payloadOf({
      alert: 'a',
      oppo: { action_parameters: null, sub_title: null },
    }).notification;
    expect(bare).not.toHaveProperty('action_parameters');
    expect(notificationOf({ alert: 'a', oppo: { actionParameters: '{"k":1}' } })).toMatchObject({
      action_parameters: '{"k":1}',
    });
    expect(
      payloadOf({ alert: 'a', oppo: { a_field_to_come: 1 } }).notification.a_field_to_come,
    ).toBe(1);
  });

  test('may be a complete message, which needs no alert and selects no devices', () => {
    const notification = { title: 'T', content: 'C', style: 2 };
    const whole = {
      target_type: 2,
      target_value: 'CN_x',
      verify_registration_id: true,
      notification,
    };
    const forms: JsonObject[] = [
      whole,
      { message: whole },
      { ...notification, verify_registration_id: true },
    ];
    for (const oppo of forms) {
      const payload = payloadOf({ oppo });
      expect(payload.notification).toMatchObject(notification);
      expect(payload.notification).not.toHaveProperty('target_value');
      expect(payload.envelope).toEqual({ verify_registration_id: true });
    }
    expect(notificationOf({ oppo: { content: 'C'.repeat(60) } })).toMatchObject({
      title: 'C'.repeat(50),
    });
  });

  test('requires a broadcast for a big picture or a fixed speed', () => {
    const forms: JsonObject[] = [
      { style: 3, big_picture_id: 'p' },
      { fix_speed: true, fix_speed_rate: 1000 },
    ];
    for (const oppo of forms) {
      const payload = payloadOf({ alert: 'a', oppo });
      expect(payload).toMatchObject({
        isBroadcast: true,
        isRepeatHidden: true,
        messageClass: 'broadcast default',
      });
      expect(payloadOf({ alert: 'b', oppo }).notification.notify_id).toBe(
        payload.notification.notify_id,
      );
      expect(notificationOf({ alert: 'a', oppo: { ...oppo, notify_id: 7 } })).toMatchObject({
        notify_id: 7,
      });
    }
  });

  test.each<[string, JsonObject]>([
    ['title must have at most 50', { alert: 'a', title: 'x'.repeat(51) }],
    ['alert must have at most 128', { alert: '☃'.repeat(129) }],
    ['content of this style must have at most 50', { alert: 'x'.repeat(51), oppo: { style: 1 } }],
    ['content of this style must have at most 50', { alert: 'x'.repeat(51), oppo: { style: 3 } }],
    ['content of this style must have at most 128', { oppo: { content: 'x'.repeat(129) } }],
    ['needs a content', { oppo: { content: ' ' } }],
    ['style', { alert: 'a', oppo: { style: 6 } }],
    ['sub_title', { alert: 'a', oppo: { sub_title: 'x'.repeat(11) } }],
    ['click_action_type', { alert: 'a', oppo: { click_action_type: 3 } }],
    ['needs click_action_activity', { alert: 'a', oppo: { click_action_type: 4 } }],
    ['needs click_action_activity', { alert: 'a', oppo: { click_action_type: 1 } }],
    ['needs click_action_url', { alert: 'a', oppo: { click_action_type: 2 } }],
    ['needs click_action_url', { alert: 'a', oppo: { click_action_type: 5 } }],
    ['click_action_activity', { alert: 'a', oppo: { click_action_activity: 'x'.repeat(501) } }],
    ['click_action_url', { alert: 'a', oppo: { click_action_url: 'x'.repeat(2001) } }],
    ['action_parameters', { alert: 'a', k: 'x'.repeat(4000) }],
    ['action_parameters', { alert: 'a', oppo: { action_parameters: 'no JSON' } }],
    ['action_parameters', { alert: 'a', oppo: { action_parameters: [1] } }],
    ['oppo.off_line must', { alert: 'a', oppo: { off_line: 'yes' } }],
    ['off_line_ttl', { alert: 'a', oppo: { off_line_ttl: 'five' } }],
    ['show_ttl', { alert: 'a', oppo: { show_ttl: 172_801 } }],
    ['show_time_type', { alert: 'a', oppo: { show_time_type: 2 } }],
    ['show_start_time', { alert: 'a', oppo: { show_start_time: 'now' } }],
    ['show_end_time', { alert: 'a', oppo: { show_end_time: -1 } }],
    ['notify_id', { alert: 'a', oppo: { notify_id: 2_147_483_648 } }],
    ['channel_id', { alert: 'a', oppo: { channel_id: 5 } }],
    ['channel_id', { alert: 'a', _notificationChannel: 'a\u0000' }],
    ['category', { alert: 'a', oppo: { category: 'a\u0000' } }],
    ['oppo.category must be one of IM, ', { alert: 'a', oppo: { category: '' } }],
    ['oppo.notify_level must', { alert: 'a', oppo: { category: 'ORDER', notify_level: 3 } }],
    ['needs a category', { alert: 'a', oppo: { notify_level: 2 } }],
    ['private_title_parameters', { alert: 'a', oppo: { private_title_parameters: 'x' } }],
    ['private_content_parameters', { alert: 'a', oppo: { private_content_parameters: [] } }],
    ['call_back_url', { alert: 'a', oppo: { call_back_url: 'x'.repeat(201) } }],
    ['call_back_parameter', { alert: 'a', oppo: { call_back_parameter: 'x'.repeat(101) } }],
    ['oppo.fix_speed must', { alert: 'a', oppo: { fix_speed: 2 } }],
    ['fix_speed_rate', { alert: 'a', oppo: { fix_speed_rate: 999 } }],
    ['network_type', { alert: 'a', oppo: { network_type: 2 } }],
    ['badge_operation_type', { alert: 'a', oppo: { badge_operation_type: 2 } }],
    ['badge_message_count', { alert: 'a', oppo: { badge_message_count: -1 } }],
    ['app_message_id', { alert: 'a', oppo: { app_message_id: '' } }],
    ['bytes', { alert: '中'.repeat(120), k: '中'.repeat(1300) }],
  ])('is reported before anything is sent: %s', (problem, data) => {
    const rendering = oppo.render(aMessage(data), 'android');
    expect(rendering.ok ? null : rendering.error).toContain(problem);
  });
});

test('a silent message is dropped: OPPO has no equivalent', () => {
  expect(oppo.render(aMessage({ silent: true, k: 1 }), 'android')).toMatchObject({
    ok: false,
    outcome: 'dropped',
    error: expect.stringContaining('silent'),
  });
});

const hex = '078ad8b8a137cadb14ae5b70cf846312';
test.each([
  [hex, 'https://api-push-cn.heytapmobi.com'],
  [`CN_${hex}`, 'https://api-push-cn.heytapmobi.com'],
  [`OPPO_CN_${hex}`, 'https://api-push-cn.heytapmobi.com'],
  [`IN_${hex}`, 'https://api-intl.push.oppomobile.com'],
  [`OPPO_IN_${hex}`, 'https://api-intl.push.oppomobile.com'],
  [`CN_OPPO_${hex}`, 'https://api-intl.push.oppomobile.com'],
  [`a_b_CN_${hex}`, 'https://api-intl.push.oppomobile.com'],
])('a device with the id %s is served at %s', (id, host) => {
  expect(baseUrlOf({}, regionOf(id))).toBe(host);
  expect(baseUrlOf({ endpoint: 'https://relay.example' }, regionOf(id))).toBe(
    'https://relay.example',
  );
});

test('the rate counts devices: that of the smallest apps, or of the profile', () => {
  const credentials = { appKey: 'k', masterSecret: 's' };
  expect(oppo.rate?.(credentials)).toMatchObject({ perSecond: 5000, counts: 'recipients' });
  expect(oppo.rate?.({ ...credentials, ratePerSecond: 30_000 })).toMatchObject({
    perSecond: 30_000,
  });
});

test('a token call is signed with SHA-256 of key, time and master secret', () => {
  // echo -n 'key1562207540879secret' | sha256sum
  expect(signatureOf({ appKey: 'key', masterSecret: 'secret' }, '1562207540879')).toBe(
    '78e59ad8070dc1a4a6d372eb68c8b250df3e6d14c59896164550ce489e6688e8',
  );
});
