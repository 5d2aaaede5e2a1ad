/**
 * Tests texts in a push body that UTF-8 or PostgreSQL cannot represent
 * (protocol/push.md#push-call).
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let app: App;

beforeAll(async () => {
  app = await service.api.createApp();
  const body = { deviceType: 'android', installationId: 'a-1' };
  await service.api.request('POST', '/1.1/installations', { app, body });
});

const push = (data: JsonObject) =>
  service.api.request('POST', '/1.1/push', { app, master: true, body: { data } });

describe('a text that is not valid Unicode', () => {
  const half = '\ud83d';
  test.each<[string, string, object]>([
    ['data.alert', 'half of a UTF-16 pair', { data: { alert: `a${half}` } }],
    ['data.alert', 'half of a UTF-16 pair', { data: { alert: `\udc00b` } }],
    [
      'data.custom.0.deep',
      'half of a UTF-16 pair',
      { data: { alert: 'a', custom: [{ deep: half }] } },
    ],
    [
      'data: the name of a member',
      'half of a UTF-16 pair',
      { data: { alert: 'a', [`k${half}`]: 1 } },
    ],
    [
      'data.ios.alert.title',
      'half of a UTF-16 pair',
      { data: { ios: { alert: { title: half } } } },
    ],
    ['data.collapse-id', 'half of a UTF-16 pair', { data: { alert: 'a', 'collapse-id': half } }],
    [
      'data.hms.category',
      'half of a UTF-16 pair',
      { data: { alert: 'a', hms: { category: half } } },
    ],
    [
      'languages.en.alert',
      'half of a UTF-16 pair',
      { data: { alert: 'a' }, languages: { en: { alert: half } } },
    ],
    [
      'variables.n.default',
      'half of a UTF-16 pair',
      { data: { alert: '{{n}}' }, variables: { n: { field: 'n', default: half } } },
    ],
    ['topic', 'half of a UTF-16 pair', { data: { alert: 'a' }, topic: half }],
    [
      '_notificationChannel',
      'half of a UTF-16 pair',
      { data: { alert: 'a' }, _notificationChannel: half },
    ],
    ['where.k', 'half of a UTF-16 pair', { data: { alert: 'a' }, where: { k: half } }],
    ['where.k', 'half of a UTF-16 pair', { data: { alert: 'a' }, where: '{"k":"\\ud83d"}' }],
    ['data.alert', 'U+0000', { data: { alert: 'a\u0000' } }],
    ['data.k', 'U+0000', { data: { alert: 'a', k: '\u0000' } }],
  ])('in %s is refused by name: %s', async (path, what, body) => {
    const error = expect.stringMatching(new RegExp(`^${path}: .*${what.replace('+', '\\+')}`));
    const refused = { status: 400, body: { code: 111, error } };
    // JSON.stringify writes half a surrogate pair as an escape, like careless clients.
    const sent = JSON.stringify(body);
    const call = (to: string, text: string) =>
      service.api.request('POST', to, {
        app,
        master: true,
        body: text,
        headers: { 'Content-Type': 'application/json' },
      });
    expect(await call('/1.1/push', sent)).toMatchObject(refused);
    if (!path.startsWith('where') && path !== '_notificationChannel')
      expect(
        await call(
          '/1.1/push/devices',
          JSON.stringify({ ...body, device_type: 'ios', device_ids: ['a'] }),
        ),
      ).toMatchObject(refused);
  });

  test('in a custom field of an installation is refused by name', async () => {
    const body = '{"deviceType":"android","installationId":"x-9","profile":{"names":["\\ud83d"]}}';
    const reply = await service.api.request('POST', '/1.1/installations', { app, body });
    expect(reply).toMatchObject({
      status: 400,
      body: { code: 111, error: expect.stringMatching(/^profile\.names\.0: it holds half/) },
    });
  });

  test('with whole surrogate pairs arrives as it was sent', async () => {
    const data = { alert: '👩‍👩‍👧 \u{10ffff} \ue000', '😀': '\u2028' };
    const { body } = await push(data);
    const record = await service.api.request('GET', `/1.1/notifications/${body.objectId}`, {
      app,
    });
    expect(record.body.msg).toEqual(data);
  });
});
