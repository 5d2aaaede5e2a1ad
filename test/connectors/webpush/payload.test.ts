import { describe, expect, test } from 'vitest';
import { maxTextBytes } from '../../../connectors/webpush/encryption.ts';
import { renderWebPush, ttlOf, webBadgeOf } from '../../../connectors/webpush/payload.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { aMessage } from '../../support/gateways/apns.ts';

const rendered = (data: JsonObject, deviceType = 'web') => {
  const rendering = renderWebPush(aMessage(data), deviceType);
  if (!rendering.ok) throw new Error(rendering.error);
  return rendering.payload;
};
const json = (data: JsonObject, deviceType = 'web') =>
  JSON.parse(rendered(data, deviceType).text.toString('utf8'));
const errorOf = (data: JsonObject, deviceType = 'web') => {
  const rendering = renderWebPush(aMessage(data), deviceType);
  return rendering.ok ? null : { ...rendering, error: reasonText(rendering.error) };
};

describe('the text of a message', () => {
  test('serves service workers and browsers with declarative messages', () => {
    const data = {
      title: 'Order 1042',
      alert: 'It is on its way.',
      badge: 3,
      image: 'https://shop.example/map.png',
      url: 'https://shop.example/orders/1042',
      buttons: [{ id: 'track', title: 'Track', url: 'https://shop.example/track' }],
      orderId: '1042',
      'collapse-id': 'order-1042',
    };
    expect(json(data)).toEqual({
      web_push: 8030,
      app_badge: 3,
      notification: {
        title: 'Order 1042',
        body: 'It is on its way.',
        tag: 'order-1042',
        renotify: true,
        navigate: 'https://shop.example/orders/1042',
        image: 'https://shop.example/map.png',
        actions: [{ action: 'track', title: 'Track', navigate: 'https://shop.example/track' }],
        app_badge: 3,
        data: { orderId: '1042' },
      },
      alert: 'It is on its way.',
      title: 'Order 1042',
      orderId: '1042',
    });
  });

  test('without a title the alert is the title, without a link the service worker shows it', () => {
    const message = json({ alert: 'Hello' });
    expect(message).toEqual({
      notification: { title: 'Hello', tag: 'PushRecord000001', data: {} },
      alert: 'Hello',
    });
  });

  test('data.web replaces members, objects of other devices are left out', () => {
    const message = json({
      alert: 'Hello',
      title: 'All',
      ios: { alert: 'iPhone' },
      mi: { channel_id: 'x' },
      web: {
        title: 'Browser',
        icon: 'https://a.example/i.png',
        requireInteraction: true,
        lang: 'en',
      },
    });
    expect(message).toEqual({
      notification: {
        title: 'Browser',
        body: 'Hello',
        tag: 'PushRecord000001',
        icon: 'https://a.example/i.png',
        requireInteraction: true,
        lang: 'en',
        data: {},
      },
      alert: 'Hello',
      title: 'Browser',
    });
  });

  test('an alert of iOS with title and body, and custom members of data.custom', () => {
    const message = json({ alert: { title: 'T', body: 'B' }, custom: { url: 'x', n: 1 } });
    expect(message.notification).toMatchObject({ title: 'T', body: 'B', data: { url: 'x', n: 1 } });
  });

  test('mutable is in both places where browsers read it', () => {
    const message = json({ alert: 'a', url: 'https://a.example/', web: { mutable: true } });
    expect([message.mutable, message.notification.mutable]).toEqual([true, true]);
  });

  test.each([
    ['text', 'plain'],
    [{ any: ['json'] }, '{"any":["json"]}'],
  ])('payload is sent as it is: %j', (payload, expected) => {
    const sent = payload === 'text' ? 'plain' : payload;
    expect(rendered({ web: { payload: sent } }).text.toString()).toBe(expected);
  });

  test('the badge is the stored number of each device', () => {
    const payload = rendered({ alert: 'a', badge: 'Increment' });
    expect(JSON.parse(payload.textWith?.(7).toString() ?? '').app_badge).toBe(7);
    expect(JSON.parse(payload.text.toString()).app_badge).toBe(1);
    expect(webBadgeOf(aMessage({ alert: 'a', badge: 'Increment' }))).toBe('Increment');
    expect(webBadgeOf(aMessage({ alert: 'a', badge: 4 }))).toBe(4);
    expect(webBadgeOf(aMessage({ alert: 'a' }))).toBeNull();
  });
});

describe('silent pushes', () => {
  test('are dropped for browsers, with the reason', () => {
    expect(errorOf({ silent: true, k: 1 })).toMatchObject({
      outcome: 'dropped',
      error: 'webpush does not support silent messages',
    });
  });

  test('reach an app that uses UnifiedPush as JSON', () => {
    expect(json({ silent: true, k: 1, alert: 'a' }, 'android')).toEqual({
      k: 1,
      alert: 'a',
      silent: true,
    });
    expect(rendered({ silent: true }, 'android').urgency).toBe('normal');
  });
});

describe('headers', () => {
  test('urgency, topic and TTL come from data.web', () => {
    const payload = rendered({ alert: 'a', web: { urgency: 'low', topic: 'news', ttl: 60 } });
    expect(payload).toMatchObject({ urgency: 'low', topic: { value: 'news' }, ttlS: 60 });
    expect(ttlOf(payload, 3_600_000)).toBe(60);
    expect(ttlOf(payload, 10_500)).toBe(11);
  });

  test.each([
    [-5, 1],
    [0, 1],
    [1, 1],
    [1001, 2],
    [9e12, 2_419_200],
  ])('%i ms left is a TTL of %i s, never 0', (leftMs, seconds) => {
    expect(ttlOf(rendered({ alert: 'a' }), leftMs)).toBe(seconds);
  });

  test('a collapse id becomes a topic, other pushes have none', () => {
    expect(rendered({ alert: 'a', 'collapse-id': 'x' }).topic).toEqual({ collapseId: 'x' });
    expect(rendered({ alert: 'a' })).toMatchObject({ topic: null, urgency: 'high' });
  });

  test.each(
    Array.from(
      { length: 34 },
      (_, length) => [length, length >= 2 && length <= 32 && length % 4 !== 1] as const,
    ),
  )('a topic of %i characters is accepted: %s', (length, isAccepted) => {
    const error = errorOf({ alert: 'a', web: { topic: 'x'.repeat(length) } });
    expect(error === null).toBe(isAccepted);
  });
});

describe('content that cannot be sent', () => {
  test.each<[JsonObject, RegExp]>([
    [{}, /needs an alert/],
    [{ alert: ' ' }, /needs an alert/],
    [{ alert: 5 }, /alert must be a text/],
    [{ alert: 'a', title: 5 }, /title must be a text/],
    [{ alert: 'a', silent: 'maybe' }, /silent must be true or false/],
    [{ alert: 'a', web: { unknownMember: 1 } }, /web\.unknownMember/],
    [{ alert: 'a', web: { urgency: 'urgent' } }, /web\.urgency must be one of/],
    [{ alert: 'a', web: { ttl: 0 } }, /web\.ttl must be a whole number/],
    [{ alert: 'a', web: { icon: 'http://a.example/i.png' } }, /web\.icon must be an https/],
    [{ alert: 'a', web: { dir: 'up' } }, /web\.dir must be auto, ltr or rtl/],
    [{ alert: 'a', web: { actions: [1] } }, /web\.actions must be a list/],
  ])('%j', (data, expected) => {
    expect(errorOf(data)?.error).toMatch(expected);
  });

  test('a text of 3,993 bytes is the largest', () => {
    const overhead = rendered({ web: { payload: '' }, alert: 'a' }).text.length;
    expect(overhead).toBe(0);
    expect(rendered({ web: { payload: 'x'.repeat(maxTextBytes) } }).text.length).toBe(maxTextBytes);
    expect(errorOf({ web: { payload: 'x'.repeat(maxTextBytes + 1) } })?.error).toMatch(
      /3994 bytes; webpush takes at most 3993/,
    );
  });
});
