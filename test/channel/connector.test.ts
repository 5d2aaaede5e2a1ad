import { describe, expect, test } from 'vitest';
import { channel } from '../../connectors/channel/index.ts';
import type {
  AttemptResult,
  MessageStore,
  PushMessage,
  Recipient,
} from '../../connectors/contract/connector.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { reasonText } from '../../shared/domain/reasons.ts';
import { aContext } from '../support/gateways/sender-context.ts';

const expiresAtMs = Date.parse('2030-01-01T00:00:00.000Z');
const message = (data: JsonObject, more: Partial<PushMessage> = {}): PushMessage => ({
  objectId: 'abcdefgh12345678',
  data,
  prod: 'prod',
  expiresAtMs,
  createdAtMs: 0,
  ...more,
});
const added = { _expiration_time: '2030-01-01T00:00:00.000Z' };

describe('content of the device channel', () => {
  const contentOf = (data: JsonObject, deviceType = 'android', more: Partial<PushMessage> = {}) =>
    channel.render(message(data, more), deviceType);

  test('on Android, android members override the default ones', () => {
    const data = {
      alert: 'default',
      title: 'kept',
      custom: { a: [1] },
      android: { alert: 'droid', extra: 1 },
      ios: { alert: 'apple' },
      hms: { x: 1 },
      vendor_b: { y: 1 },
      honor: { badge: 3 },
    };
    const common = { title: 'kept', custom: { a: [1] }, ...added };
    expect(contentOf(data)).toEqual({ ok: true, payload: { alert: 'droid', extra: 1, ...common } });
    expect(contentOf(data, 'web')).toEqual({ ok: true, payload: { alert: 'default', ...common } });
  });

  test('a custom member may have a vendor’s name unless it is an object', () => {
    expect(contentOf({ alert: 'x', mi: 5, fcm: 'text' })).toEqual({
      ok: true,
      payload: { alert: 'x', mi: 5, fcm: 'text', ...added },
    });
  });

  test('the server adds a single channel and the notification channel', () => {
    const payloadOf = (more: Partial<PushMessage>) => contentOf({ alert: 'x' }, 'android', more);
    expect(payloadOf({ channels: ['news'] })).toMatchObject({ payload: { _channel: 'news' } });
    expect(payloadOf({ channels: ['a', 'b'] })).not.toHaveProperty('payload._channel');
    expect(payloadOf({ notificationChannel: 'c' })).toMatchObject({
      payload: { _notificationChannel: 'c' },
    });
  });

  test('__proto__ is an ordinary member', () => {
    const data: JsonObject = JSON.parse(
      '{"alert":"x","__proto__":{"polluted":1},"android":{"__proto__":2}}',
    );
    const rendering = contentOf(data);
    expect(rendering.ok && JSON.stringify(rendering.payload)).toContain('"__proto__":2');
    expect(rendering).not.toHaveProperty('payload.polluted');
  });

  test('invalid Android content has an error text', () => {
    const problemOf = (data: JsonObject) => {
      const rendering = contentOf(data);
      return rendering.ok ? undefined : reasonText(rendering.error);
    };
    expect(problemOf({ title: 'x' })).toBe('Android content needs an alert.');
    expect(problemOf({ alert: { body: 'x' } })).toBe('alert of Android content must be a string.');
    expect(problemOf({ alert: 'x', silent: 'yes' })).toBe(
      'silent of Android content must be true or false.',
    );
    expect(problemOf({ alert: 'x', android: { title: 1 } })).toBe(
      'android.title of Android content must be a string.',
    );
    expect(problemOf({ alert: 'x', action: 1 })).toBe(
      'action of Android content must be a string.',
    );
    expect(problemOf({ alert: { body: 'x' }, android: { alert: 'x', silent: true } })).toBe(
      undefined,
    );
    expect(contentOf({ anything: 1 }, 'web').ok).toBe(true);
    const empty: JsonObject[] = [
      {},
      { alert: '' },
      { alert: ' ' },
      { action: '' },
      { silent: false },
    ];
    for (const data of empty) expect(problemOf(data)).toBe('Android content needs an alert.');
    // These pushes show no notification (protocol/channel.md#message-members).
    expect(problemOf({ silent: true, k: 1 })).toBe(undefined);
    expect(problemOf({ action: 'com.example.STATUS', k: 1 })).toBe(undefined);
  });
});

describe('sending on the device channel', () => {
  const recipient = (index: number, deviceType = 'android'): Recipient => ({
    index,
    id: index + 100,
    deviceToken: `installation-${index}`,
    deviceType,
    topic: null,
    teamId: null,
    badge: null,
  });

  async function send(
    recipients: Recipient[],
    data: JsonObject,
    options: { fails?: boolean; signal?: AbortSignal } = {},
  ) {
    const stored: Parameters<MessageStore['enqueue']>[0][] = [];
    const attempts = new Map<number, AttemptResult[]>();
    const statuses: number[] = [];
    const sender = channel.open(
      {},
      {
        ...aContext(),
        onCall: (call) => statuses.push(call.status),
        messageStore: {
          async enqueue(message) {
            if (options.fails) throw new Error('the database is away');
            stored.push(message);
          },
          deleteWaiting: async () => new Set(),
        },
      },
    );
    await sender.send({
      pushId: 7,
      message: message(data),
      recipients,
      report: (index, attempt) => attempts.set(index, [...(attempts.get(index) ?? []), attempt]),
      signal: options.signal ?? new AbortController().signal,
    });
    await sender.close();
    return { stored, attempts, statuses };
  }

  test('stores a batch in one call, and every recipient is sent', async () => {
    const recipients = Array.from({ length: 1000 }, (_, i) => recipient(i));
    const { stored, attempts, statuses } = await send(recipients, { alert: 'x' });
    expect(stored).toEqual([
      { pushId: 7, content: { alert: 'x', ...added }, expiresAtMs, recipients },
    ]);
    expect(attempts.size).toBe(1000);
    for (const reported of attempts.values()) expect(reported).toEqual([{ kind: 'sent' }]);
    expect(statuses).toEqual([200]);
  });

  test('sends different content to other device types', async () => {
    const recipients = [recipient(0), recipient(1, 'web'), recipient(2, 'wp')];
    const { stored } = await send(recipients, { alert: 'x', android: { alert: 'y' } });
    expect(
      stored.map(({ content, recipients: to }) => [content.alert, to.map(({ index }) => index)]),
    ).toEqual([
      ['y', [0]],
      ['x', [1, 2]],
    ]);
  });

  test('retries a failed store, and never throws', async () => {
    const { attempts, statuses } = await send(
      [recipient(0), recipient(1)],
      { alert: 'x' },
      { fails: true },
    );
    for (const index of [0, 1])
      expect(attempts.get(index)).toMatchObject([{ kind: 'retry', afterMs: null }]);
    expect(statuses).toEqual([0]);
  });

  test('fails unrenderable content only for its recipients', async () => {
    const { attempts } = await send([recipient(0), recipient(1, 'web')], { alert: { body: 'x' } });
    expect(attempts.get(0)).toMatchObject([{ kind: 'rejected', outcome: 'failed' }]);
    expect(attempts.get(1)).toEqual([{ kind: 'sent' }]);
  });

  test('returns the recipients if it is stopped before the store', async () => {
    const { stored, attempts } = await send(
      [recipient(0)],
      { alert: 'x' },
      { signal: AbortSignal.abort() },
    );
    expect(stored).toEqual([]);
    expect(attempts.get(0)).toMatchObject([{ kind: 'retry', afterMs: 0 }]);
  });

  test('needs no credentials', () => {
    expect(channel.credentials.safeParse({}).success).toBe(true);
    expect(channel.credentials.safeParse({ appId: 'x' }).success).toBe(false);
    expect(channel.inspect({}, 0)).toEqual({ kind: 'none', expiresAtMs: null, problems: [] });
  });
});
