/**
 * Tests the plain forms of members (docs/reference/protocol/push.md#plain-forms) in the requests to
 * each gateway.
 */
import { describe, expect, test } from 'vitest';
import { connectors } from '../../../connectors/registry.ts';
import { bodyProblem } from '../../../ops/sandbox/apns/rules.ts';
import { violationOf } from '../../../ops/sandbox/fcm/rules.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { aMessage } from '../../support/gateways/apns.ts';

function render(connector: ConnectorId, data: JsonObject, deviceType = 'android') {
  const found = connectors.get(connector);
  const rendering = found?.render(aMessage(data), deviceType);
  if (!found || !rendering) throw new Error(`there is no connector ${connector}`);
  if (!rendering.ok) return { error: rendering.error };
  return { body: JSON.parse(found.preview?.(rendering.payload) ?? '') };
}

/** Returns the member at a path. The parts are separated by slashes, because names contain dots. */
function at(body: unknown, path: string): unknown {
  return path.split('/').reduce<unknown>((value, name) => Object(value)[name], body);
}

describe('iOS', () => {
  const converted: [path: string, data: JsonObject, value: Json][] = [
    ['aps/content-available', { alert: 'a', 'content-available': '1' }, 1],
    ['aps/content-available', { alert: 'a', 'content-available': true }, 1],
    ['aps/content-available', { alert: 'a', 'content-available': 'false' }, 0],
    ['aps/mutable-content', { alert: 'a', 'mutable-content': 'true' }, 1],
    ['aps/mutable-content', { aps: { alert: 'a', 'mutable-content': '1' } }, 1],
    ['aps/badge', { alert: 'a', badge: '5' }, 5],
    ['aps/badge', { alert: 'a', badge: ' 0 ' }, 0],
    ['aps/badge', { alert: 'a', ios: { aps: { badge: '12' } } }, 12],
    ['aps/relevance-score', { alert: 'a', 'relevance-score': '0.5' }, 0.5],
    ['aps/sound/critical', { alert: 'a', sound: { name: 's', critical: '1' } }, 1],
    ['aps/sound/volume', { alert: 'a', sound: { name: 's', volume: '0.25' } }, 0.25],
    ['aps/alert/summary-arg-count', { alert: { body: 'b', 'summary-arg-count': '3' } }, 3],
  ];

  test.each(converted)('%s of %j', (path, data, value) => {
    const { body } = render('apns', data, 'ios');
    expect(at(body, path)).toBe(value);
    expect(bodyProblem(Buffer.from(JSON.stringify(body)), 'alert')).toBeUndefined();
  });

  test('the server counts a badge in its plain form too', () => {
    expect(connectors.get('apns')?.badge?.(aMessage({ alert: 'a', badge: '5' }))).toBe(5);
    expect(
      connectors.get('apns')?.badge?.(aMessage({ alert: 'a', ios: { badge: 'Increment' } })),
    ).toBe('Increment');
    // A push that removes the badge for Apple devices changes no badge.
    expect(
      connectors.get('apns')?.badge?.(aMessage({ alert: 'a', badge: 3, ios: { badge: null } })),
    ).toBeNull();
  });

  const wrong: [error: string, data: JsonObject][] = [
    ...(['content-available', 'mutable-content'] as const).flatMap((name) =>
      [2, -1, 'yes', '', '01', [], {}, 0.5].map((value): [string, JsonObject] => [
        `${name} must be 0 or 1`,
        { alert: 'a', [name]: value },
      ]),
    ),
    ...[
      -1,
      1.5,
      'five',
      '',
      '5x',
      true,
      [5],
      {},
      4_000_000_000,
      '1e3',
      'increment',
      'INCREMENT',
    ].map((badge): [string, JsonObject] => [
      'badge must be a whole number from 0',
      { alert: 'a', badge },
    ]),
    ...[2, -0.1, '1.5', 'high', true, {}].map((score): [string, JsonObject] => [
      'relevance-score must be a number from 0 to 1',
      { alert: 'a', 'relevance-score': score },
    ]),
    ...['urgent', 'timeSensitive', 'ACTIVE', 1, {}].map((level): [string, JsonObject] => [
      'interruption-level must be one of passive, active, time-sensitive, critical',
      { alert: 'a', 'interruption-level': level },
    ]),
    ...['thread-id', 'category', 'target-content-id', 'filter-criteria'].flatMap((name) =>
      [5, true, ['x'], {}].map((value): [string, JsonObject] => [
        `${name} must be a string`,
        { alert: 'a', [name]: value },
      ]),
    ),
    ['sound must be a string or an object', { alert: 'a', sound: true }],
    ['sound must be a string or an object', { alert: 'a', sound: ['s'] }],
    ['sound.name must be a string', { alert: 'a', sound: { name: 5 } }],
    ['sound.critical must be true or false', { alert: 'a', sound: { name: 's', critical: 'yes' } }],
    [
      'sound.volume must be a number from 0 to 1',
      { alert: 'a', sound: { name: 's', volume: 'loud' } },
    ],
    ['url-args must be a list of strings', { alert: 'a', 'url-args': [1] }],
    // The path in the error is the path in the push.
    ['ios.badge must be', { alert: 'a', ios: { badge: 'x' } }],
    ['aps.mutable-content must be', { aps: { alert: 'a', 'mutable-content': 'x' } }],
    ['ios.aps.alert.loc-args must be', { ios: { aps: { alert: { 'loc-args': 'x' } } } }],
  ];

  test.each(wrong)('%s: %j is refused', (error, data) => {
    expect(render('apns', data, 'ios').error).toContain(error);
  });
});

test.each<ConnectorId>(['vendor_a', 'vendor_b', 'vendor_f', 'fcm', 'channel'])(
  '%s: silent in its plain forms',
  (id) => {
    const silent = (value: Json, android = {}) => {
      const found = connectors.get(id);
      const rendering = found?.render(aMessage({ k: 1, silent: value, ...android }), 'android');
      return rendering?.ok ? 'rendered' : rendering?.error;
    };
    for (const value of [true, 'true', 1, '1']) expect(silent(value)).toBe('rendered');
    for (const value of [false, 'false', 0, '0']) expect(silent(value)).toMatch(/needs an alert/);
    for (const value of ['yes', 2, {}, []])
      expect(silent(value)).toMatch(/silent.* must be true or false/);
    expect(silent(false, { android: { silent: 'x' } })).toMatch(
      /android\.silent.* must be true or false/,
    );
  },
);

/**
 * Member of the vendor's own object, the value from a careless client, and the value in the request
 * to the gateway.
 */
const vendors: [connector: ConnectorId, key: string, own: JsonObject, path: string, value: Json][] =
  [
    ['fcm', 'fcm', { ttl: 60 }, 'message/android/ttl', '60s'],
    ['fcm', 'fcm', { ttl: '60' }, 'message/android/ttl', '60s'],
    ['fcm', 'fcm', { priority: 'high' }, 'message/android/priority', 'HIGH'],
    ['fcm', 'fcm', { sticky: 'true' }, 'message/android/notification/sticky', true],
    [
      'fcm',
      'fcm',
      { notification_count: '3' },
      'message/android/notification/notification_count',
      3,
    ],
    ['fcm', 'fcm', { visibility: 'private' }, 'message/android/notification/visibility', 'PRIVATE'],
    [
      'fcm',
      'fcm',
      { notification_priority: 'high' },
      'message/android/notification/notification_priority',
      'PRIORITY_HIGH',
    ],
    ['fcm', 'fcm', { directBootOk: 1 }, 'message/android/direct_boot_ok', true],
    [
      'fcm',
      'fcm',
      { apns: { headers: { 'apns-priority': 5 } } },
      'message/apns/headers/apns-priority',
      '5',
    ],
    ['fcm', 'fcm', { webpush: { headers: { TTL: 60 } } }, 'message/webpush/headers/TTL', '60'],
    ['vendor_a', 'hms', { ttl: 60 }, 'message/android/ttl', '60s'],
    ['vendor_a', 'hms', { target_user_type: '1' }, 'message/android/target_user_type', 1],
    ['vendor_a', 'hms', { collapse_key: '3' }, 'message/android/collapse_key', 3],
    ['vendor_a', 'hms', { notify_id: '7' }, 'message/android/notification/notify_id', 7],
    [
      'vendor_a',
      'hms',
      { foreground_show: 'false' },
      'message/android/notification/foreground_show',
      false,
    ],
    ['vendor_a', 'hms', { badge: '4' }, 'message/android/notification/badge/set_num', 4],
    [
      'vendor_a',
      'hms',
      { badge: { add_num: '2' } },
      'message/android/notification/badge/add_num',
      2,
    ],
    ['vendor_a', 'hms', { importance: 'low' }, 'message/android/notification/importance', 'LOW'],
    ['vendor_b', 'mi', { notify_id: 7 }, 'notify_id', '7'],
    ['vendor_b', 'mi', { notify_foreground: false }, 'extra.notify_foreground', '0'],
    ['vendor_b', 'mi', { only_send_once: true }, 'extra.only_send_once', '1'],
    ['vendor_b', 'mi', { channel_id: 112233 }, 'extra.channel_id', '112233'],
    ['vendor_c', 'mz', { noticeMsgType: '1' }, 'noticeBarInfo/noticeMsgType', 1],
    ['vendor_c', 'mz', { offLine: true }, 'pushTimeInfo/offLine', 1],
    ['vendor_c', 'mz', { extra: { 'callback.type': 3 } }, 'extra/callback.type', '3'],
    ['vendor_d', 'oppo', { category: 'ORDER', notify_level: '2' }, 'notify_level', 2],
    ['vendor_d', 'oppo', { show_ttl: '60' }, 'show_ttl', 60],
    ['vendor_d', 'oppo', { badge_message_count: '3' }, 'badge_message_count', 3],
    ['vendor_e', 'vivo', { classification: '1' }, 'classification', 1],
    ['vendor_e', 'vivo', { addBadge: 'true' }, 'addBadge', true],
    ['vendor_e', 'vivo', { notifyId: '7' }, 'notifyId', 7],
    ['vendor_f', 'honor', { ttl: '60' }, 'android/ttl', '60s'],
    ['vendor_f', 'honor', { targetUserType: '1' }, 'android/targetUserType', 1],
    ['vendor_f', 'honor', { notifyId: '7' }, 'android/notification/notifyId', 7],
    ['vendor_f', 'honor', { badge: '4' }, 'android/notification/badge/setNum', 4],
  ];

test.each(vendors)('%s: %s %j', (connector, key, own, path, value) => {
  const { body, error } = render(connector, { alert: 'a', [key]: own });
  expect(error).toBeUndefined();
  expect(at(body, path)).toBe(value);
  if (connector === 'fcm') expect(violationOf(body)).toBeUndefined();
});

test('Honor accepts the badge of the push in its plain form', () => {
  expect(
    at(render('vendor_f', { alert: 'a', badge: '5' }).body, 'android/notification/badge'),
  ).toEqual({
    setNum: 5,
  });
});

test.each<[ConnectorId, JsonObject]>([
  ['vendor_a', { hms: { target_user_type: '1' } }],
  ['vendor_a', { hms: { pushOptions: { testMessage: 'true' } } }],
  ['vendor_f', { honor: { targetUserType: '1' } }],
  ['vendor_e', { vivo: { pushMode: '1' } }],
])('%s: a test in its plain form has the limits of a test: %j', (connector, own) => {
  expect(connectors.get(connector)?.testLimit?.(aMessage({ alert: 'a', ...own }))).not.toBeNull();
});

/** Wrong values under the vendor's own key. The error starts with the path as it was sent. */
const refused: [connector: ConnectorId, data: JsonObject, error: string][] = [
  ['vendor_a', { hms: { ttl: '60m' } }, 'hms.ttl must be seconds from 1 to 1296000'],
  ['vendor_a', { hms: { category: 'CHAT' } }, 'hms.category must be one of IM'],
  ['vendor_a', { vendor_a: { badge: 'increment' } }, 'vendor_a.badge must be'],
  [
    'vendor_a',
    { hms: { badge: { add_num: 100 } } },
    'hms.badge.add_num must be a whole number from 1 to 99',
  ],
  ['vendor_a', { hms: { click_action: { type: 4 } } }, 'hms.click_action.type must be 1, 2 or 3'],
  [
    'vendor_a',
    { hms: { click_action: { type: 1 } } },
    'hms.click_action must have intent or action',
  ],
  [
    'vendor_a',
    { hms: { click_action: { type: 2, url: 'http://x' } } },
    'hms.click_action.url must be an https:// URL',
  ],
  [
    'vendor_a',
    { hms: { android: { notification: { notify_id: -1 } } } },
    'hms.android.notification.notify_id must be',
  ],
  [
    'vendor_a',
    { hms: { notification: { importance: 'MAX' } } },
    'hms.notification.importance must be',
  ],
  [
    'vendor_a',
    { hms: { message: { android: { collapse_key: 101 } } } },
    'hms.message.android.collapse_key must be',
  ],
  ['vendor_f', { honor: { importance: 'HIGH' } }, 'honor.importance must be LOW or NORMAL'],
  ['vendor_f', { honor: { badgeClass: 'no class' } }, 'honor.badgeClass must be'],
  ['vendor_f', { honor: { android: { ttl: true } } }, 'honor.android.ttl must be'],
  ['vendor_b', { mi: { notify_type: 'all' } }, 'mi.notify_type must be'],
  ['vendor_b', { vendor_b: { extra: { jobkey: '_' } } }, 'vendor_b.extra.jobkey must be'],
  ['vendor_b', { mi: { 'extra.notify_effect': 9 } }, 'mi.extra.notify_effect must be 1, 2 or 3'],
  ['vendor_c', { meizu: { validTime: 73 } }, 'meizu.validTime must be a whole number from 1 to 72'],
  ['vendor_c', { mz: { messageJson: 'x' } }, 'mz.messageJson must be an object'],
  ['vendor_d', { oppo: { category: 'CHAT' } }, 'oppo.category must be one of IM'],
  ['vendor_d', { oppo: { notifyLevel: 3, category: 'IM' } }, 'oppo.notifyLevel must be 1, 2 or 16'],
  ['vendor_d', { oppo: { message: 5 } }, 'oppo.message must be an object'],
  ['vendor_e', { vivo: { category: 'CHAT' } }, 'vivo.category must be one of IM'],
  [
    'vendor_e',
    { vivo: { category: 'ORDER', classification: 0 } },
    'classification 0 of vendor_e contradicts',
  ],
  [
    'vendor_e',
    { vivo: { category: 'NEWS', classification: 1 } },
    'classification 1 of vendor_e contradicts',
  ],
  ['vendor_e', { vivo: { liveMessage: 'x' } }, 'vivo.liveMessage must be an object'],
];

test.each(refused)('%s: %j is refused', (connector, own, error) => {
  expect(render(connector, { alert: 'a', ...own }).error).toContain(error);
});
