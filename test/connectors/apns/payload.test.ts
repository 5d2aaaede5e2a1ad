import { describe, expect, test } from 'vitest';
import { renderApns } from '../../../connectors/apns/payload.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import { aMessage } from '../../support/gateways/apns.ts';

function rendered(data: JsonObject, more = {}) {
  const rendering = renderApns(aMessage(data, more));
  if (!rendering.ok) throw new Error(rendering.error);
  return rendering.payload;
}

const bodyOf = (data: JsonObject): unknown => JSON.parse(rendered(data).body.toString());

function problemOf(data: JsonObject): string {
  const rendering = renderApns(aMessage(data));
  return rendering.ok ? 'none' : rendering.error;
}

describe('the plain layout', () => {
  test('puts known members into aps and custom members next to it', () => {
    expect(
      bodyOf({
        alert: 'Hi',
        category: 'GAME',
        'thread-id': 't1',
        badge: 3,
        sound: 'ping.caf',
        'content-available': 1,
        'mutable-content': 1,
        'url-args': ['a'],
        'target-content-id': 'w1',
        game: { id: 7 },
        '12': 'first in JavaScript',
      }),
    ).toEqual({
      aps: {
        alert: 'Hi',
        category: 'GAME',
        'thread-id': 't1',
        badge: 3,
        sound: 'ping.caf',
        'content-available': 1,
        'mutable-content': 1,
        'url-args': ['a'],
        'target-content-id': 'w1',
      },
      game: { id: 7 },
      '12': 'first in JavaScript',
    });
  });

  test('adds title to a string alert, and leaves an alert object unchanged', () => {
    expect(bodyOf({ alert: 'Body', title: 'T' })).toEqual({
      aps: { alert: { title: 'T', body: 'Body' } },
    });
    expect(bodyOf({ alert: { body: 'B', 'loc-args': ['x'] }, title: 'T' })).toEqual({
      aps: { alert: { body: 'B', 'loc-args': ['x'] } },
    });
  });

  test('accepts a sound object, with its volume also as a string', () => {
    expect(bodyOf({ alert: 'a', sound: { name: 's', critical: true, volume: '0.8' } })).toEqual({
      aps: { alert: 'a', sound: { name: 's', critical: 1, volume: 0.8 } },
    });
  });

  test('omits members for other vendors', () => {
    expect(
      bodyOf({
        alert: 'a',
        silent: true,
        action: 'com.x.A',
        _notificationChannel: 'c',
        android: { alert: 'b' },
        hms: {},
        mi: {},
        vendor_a: {},
        fcm: {},
        keep: 1,
      }),
    ).toEqual({ aps: { alert: 'a' }, keep: 1 });
  });
});

describe('the ios object', () => {
  test('is merged over the default members, in either layout', () => {
    expect(bodyOf({ alert: 'default', x: 1, ios: { title: 'Only here', x: 2 } })).toEqual({
      aps: { alert: { title: 'Only here', body: 'default' } },
      x: 2,
    });
    expect(
      bodyOf({ alert: 'default', badge: 1, ios: { aps: { alert: { body: 'own' } } } }),
    ).toEqual({
      aps: { badge: 1, alert: { body: 'own' } },
    });
    expect(bodyOf({ aps: { alert: 'a', sound: 's' }, ios: { alert: 'b' } })).toEqual({
      aps: { alert: 'b', sound: 's' },
    });
  });
});

describe('headers', () => {
  test('default to an alert of priority 10', () => {
    const payload = rendered({ alert: 'a' }, { expiresAtMs: 1_800_000_000_500 });
    expect(payload).toMatchObject({
      pushType: 'alert',
      priority: '10',
      collapseId: 'PushRecord000001',
      expiration: '1800000001',
    });
  });

  test('use the push as collapse id by default, so that a repeat replaces only itself', () => {
    expect(rendered({ alert: 'a' }, { objectId: 'AnotherRecord002' })).toMatchObject({
      collapseId: 'AnotherRecord002',
      isRepeatHidden: true,
    });
    expect(rendered({ alert: 'a', 'collapse-id': 'c1' })).toMatchObject({
      collapseId: 'c1',
      isRepeatHidden: true,
    });
    // The system does not show these types itself, so they get no default id.
    const unseen: JsonObject[] = [
      { 'content-available': 1 },
      ...['voip', 'complication', 'location'].map((type) => ({
        aps: { k: 1 },
        'pgw-push-type': type,
      })),
      ...['fileprovider', 'mdm', 'pushtotalk'].map((type) => ({ k: 1, 'pgw-push-type': type })),
    ];
    // A device ignores a second state with the same timestamp.
    expect(
      rendered({
        aps: { event: 'update', timestamp: 1_790_000_000, 'content-state': {} },
        'pgw-push-type': 'liveactivity',
      }),
    ).toMatchObject({ collapseId: null, isRepeatHidden: true });
    for (const data of unseen) {
      expect(rendered(data)).toMatchObject({ collapseId: null, isRepeatHidden: false });
      const named = rendered({ ...data, 'collapse-id': 'c1' });
      expect(named).toMatchObject({ collapseId: 'c1', isRepeatHidden: false });
    }
  });

  test('come from both spellings of their members', () => {
    expect(rendered({ alert: 'a', 'pgw-priority': 5, 'collapse-id': 'c1' })).toMatchObject({
      priority: '5',
      collapseId: 'c1',
    });
    expect(rendered({ 'content-available': 1, 'apns-push-type': 'background' })).toMatchObject({
      pushType: 'background',
      priority: '5',
    });
    expect(rendered({ aps: { alert: 'a' }, 'pgw-push-type': 'voip' })).toMatchObject({
      pushType: 'voip',
      expiration: '0',
    });
  });

  test('make a message that shows nothing a background message', () => {
    expect(rendered({ 'content-available': 1, k: 'v' })).toMatchObject({
      pushType: 'background',
      priority: '5',
    });
    expect(rendered({ 'content-available': 1, alert: 'a' })).toMatchObject({ pushType: 'alert' });
  });

  test('make an empty alert with content-available a background message', () => {
    const silent: JsonObject[] = [
      { alert: '', sound: '' },
      { 'pgw-push-type': 'alert' },
      { title: '', alert: { body: '', 'launch-image': 'l.png' } },
      { alert: 'for Android', ios: { alert: '' } },
    ];
    for (const data of silent) {
      const { body, ...payload } = rendered({ 'content-available': 1, k: 'v', ...data });
      expect(payload).toMatchObject({ pushType: 'background', priority: '5' });
      expect(JSON.parse(body.toString())).toEqual({ aps: { 'content-available': 1 }, k: 'v' });
    }
  });

  test('stay those of an alert if the user notices the push without a text', () => {
    const noticed: [JsonObject, JsonObject][] = [
      [{ badge: 0 }, { badge: 0 }],
      [{ alert: '', badge: 3 }, { badge: 3 }],
      [{ sound: 'ping.caf' }, { sound: 'ping.caf' }],
      [
        { 'content-available': 1, badge: 1 },
        { 'content-available': 1, badge: 1 },
      ],
      [{ title: 'T', alert: '' }, { alert: { title: 'T', body: '' } }],
      [{ alert: { 'loc-key': 'K' } }, { alert: { 'loc-key': 'K' } }],
      [{ alert: { 'title-loc-key': ['K'] } }, { alert: { 'title-loc-key': 'K' } }],
      [{ ios: { alert: 'a' }, alert: '' }, { alert: 'a' }],
    ];
    for (const [data, aps] of noticed) {
      expect(rendered(data)).toMatchObject({ pushType: 'alert', priority: '10' });
      expect(bodyOf(data)).toEqual({ aps });
    }
  });

  test('contain a collapse id that is not ASCII as a stable digest', () => {
    const first = rendered({ alert: 'a', 'collapse-id': '聊天-42' }).collapseId;
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(rendered({ alert: 'b', 'collapse-id': '聊天-42' }).collapseId).toBe(first);
  });
});

describe('badge Increment', () => {
  test('leaves a gap that a number fills', () => {
    const { body, badgeAt } = rendered({
      alert: 'a',
      badge: 'Increment',
      '7': 'digit name',
      k: '"badge":',
    });
    expect(badgeAt).toBeDefined();
    const text = `${body.subarray(0, badgeAt)}12${body.subarray(badgeAt)}`;
    expect(JSON.parse(text)).toEqual({
      aps: { badge: 12, alert: 'a' },
      '7': 'digit name',
      k: '"badge":',
    });
  });

  test('works alone and in the aps layout', () => {
    const layouts: JsonObject[] = [{ badge: 'Increment' }, { aps: { badge: 'Increment' } }];
    for (const data of layouts) {
      const { body, badgeAt = 0 } = rendered(data);
      expect(JSON.parse(`${body.subarray(0, badgeAt)}1${body.subarray(badgeAt)}`)).toEqual({
        aps: { badge: 1 },
      });
    }
  });
});

describe('refuses', () => {
  const wrong: [string, JsonObject, RegExp][] = [
    ['a number as alert', { alert: 5 }, /alert must be a string or an object/],
    ['a list as alert', { alert: ['a'] }, /alert must be/],
    ['a number as title', { alert: 'a', title: 1 }, /title must be a string/],
    [
      'a wrong alert member',
      { alert: { 'loc-args': 'x' } },
      /alert\.loc-args must be a list of strings/,
    ],
    ['increment in lower case', { alert: 'a', badge: 'increment' }, /badge must be/],
    ['a badge with a fraction', { alert: 'a', badge: 1.5 }, /badge must be/],
    ['a negative badge', { alert: 'a', badge: -1 }, /badge must be/],
    ['a volume above 1', { alert: 'a', sound: { volume: 2 } }, /sound\.volume must be/],
    ['a number as sound', { alert: 'a', sound: 1 }, /sound must be/],
    [
      'a text as content-available',
      { alert: 'a', 'content-available': 'yes' },
      /content-available must be/,
    ],
    ['priority 7', { alert: 'a', 'pgw-priority': 7 }, /pgw-priority must be 10, 5 or 1/],
    [
      'a word as priority',
      { alert: 'a', 'apns-priority': 'high' },
      /apns-priority must be 10, 5 or 1/,
    ],
    [
      'voip in the plain layout',
      { alert: 'a', 'pgw-push-type': 'voip' },
      /pgw-push-type must be one of/,
    ],
    ['an unknown push type', { aps: {}, 'pgw-push-type': 'loud' }, /pgw-push-type must be one of/],
    [
      'background with priority 10',
      { 'content-available': 1, 'pgw-push-type': 'background', 'pgw-priority': 10 },
      /must be 5/,
    ],
    [
      'a collapse id of 65 bytes',
      { alert: 'a', 'collapse-id': 'c'.repeat(65) },
      /at most 64 bytes/,
    ],
    ['a number as collapse id', { alert: 'a', 'collapse-id': 1 }, /collapse-id must be a string/],
    ['url-args that are not a list', { alert: 'a', 'url-args': 'x' }, /url-args must be a list/],
    ['aps that is not an object', { aps: 'x' }, /aps must be an object/],
    ['ios that is not an object', { alert: 'a', ios: 'x' }, /ios must be an object/],
    ['an empty object', {}, /needs an alert, a badge, a sound or content-available/],
    ['an empty alert', { alert: '' }, /needs an alert/],
    ['an empty alert and an empty sound', { alert: '', sound: '' }, /needs an alert/],
    [
      'an alert object without a text',
      { alert: { body: '', 'loc-args': ['x'] } },
      /needs an alert/,
    ],
    ['an empty aps', { aps: {} }, /needs an alert/],
    ['an alert that ios empties', { alert: 'a', ios: { alert: '' } }, /needs an alert/],
    ['members of the app only', { k: 'v' }, /needs an alert/],
    ['mutable-content without an alert', { 'mutable-content': 1, category: 'C' }, /needs an alert/],
    ['content-available 0 alone', { 'content-available': 0 }, /needs an alert/],
    [
      'background without content-available',
      { 'pgw-push-type': 'background', k: 1 },
      /content-available must be given/,
    ],
    ['a payload over 4096 bytes', { alert: 'a'.repeat(4096) }, /takes at most 4096/],
  ];

  test.each(wrong)('%s', (_, data, pattern) => {
    expect(problemOf(data)).toMatch(pattern);
  });

  test('only VoIP pushes above 5120 bytes', () => {
    const voip = (bytes: number) => ({ aps: {}, 'pgw-push-type': 'voip', k: 'a'.repeat(bytes) });
    expect(problemOf(voip(5000))).toBe('none');
    expect(problemOf(voip(5120))).toMatch(/at most 5120/);
  });
});

test('rendering does not change the message', () => {
  const data: Record<string, Json> = {
    alert: 'a',
    badge: 'Increment',
    ios: { aps: { sound: 's' } },
  };
  const before = structuredClone(data);
  rendered(data);
  expect(data).toEqual(before);
});
