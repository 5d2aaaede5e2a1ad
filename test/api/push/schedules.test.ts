import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import type { App, Plan } from '../../../shared/domain/apps/app.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { startTestService, useTestService } from '../../support/service.ts';

const clock = movableClock(systemClock.now());
let app: App;

const service = useTestService({ clock });
beforeAll(async () => {
  app = await service.api.createApp();
});

const data = { alert: 'test msg' };
const inAnHour = () => new Date(systemClock.now() + 3_600_000).toISOString();

const push = (of: App, body: object = {}) =>
  service.api.request('POST', '/1.1/push', { app: of, master: true, body: { data, ...body } });
const schedule = (of: App, body: object = {}) => push(of, { push_time: inAnHour(), ...body });
const list = (of: App) =>
  service.api.request('GET', '/1.1/scheduledPushMessages', { app: of, master: true });
const cancel = (of: App, id: unknown) =>
  service.api.request('DELETE', `/1.1/scheduledPushMessages/${id}`, { app: of, master: true });
const newApp = (plan: Plan = 'commercial') => service.api.createApp({}, plan);

describe('GET /1.1/scheduledPushMessages', () => {
  test('returns an entry exactly as specified', async () => {
    const own = await newApp();
    const time = inAnHour();
    const where = { installationId: 'just-for-test' };
    const { body } = await push(own, { push_time: time, where, notification_id: 'spring' });
    const reply = await list(own);
    expect(reply).toMatchObject({ status: 200 });
    expect(reply.body).toEqual({
      results: [
        {
          id: expect.any(Number),
          expire_time: Date.parse(time),
          push_msg: {
            'through?': null,
            'app-id': own.appId,
            where: {
              sort: { createdAt: 1 },
              query: { installationId: 'just-for-test', valid: true },
            },
            prod: 'prod',
            'api-version': '1.1',
            msg: data,
            id: body.objectId,
            notificationId: 'spring',
          },
          createdAt: body.createdAt,
        },
      ],
    });
    expect(Number.isInteger(reply.body.results[0].id)).toBe(true);
  });

  test('shows channels as a condition, silent as `through?`, and dev if requested', async () => {
    const own = await newApp();
    await schedule(own, { channels: 'news', data: { alert: 'x', silent: true }, prod: 'dev' });
    const { push_msg } = (await list(own)).body.results[0];
    expect(push_msg).toMatchObject({
      'through?': true,
      where: { query: { channels: { $in: ['news'] }, valid: true } },
      prod: 'dev',
    });
  });

  test('requires the master key', async () => {
    const path = '/1.1/scheduledPushMessages';
    expect((await service.api.request('GET', path, { app })).status).toBe(403);
    expect((await service.api.request('DELETE', `${path}/1`, { app })).status).toBe(403);
  });

  test('omits pushes that were cancelled by their record', async () => {
    const own = await newApp();
    const { body } = await schedule(own);
    const path = `/1.1/notifications/${body.objectId}`;
    expect((await service.api.request('DELETE', path, { app: own, master: true })).status).toBe(
      200,
    );
    expect((await list(own)).body).toEqual({ results: [] });
  });
});

describe('DELETE /1.1/scheduledPushMessages/:id', () => {
  test('cancels once, and the record is removed', async () => {
    const own = await newApp();
    const { body } = await schedule(own);
    const { id } = (await list(own)).body.results[0];
    expect(await cancel(own, id)).toMatchObject({ status: 200, body: {} });
    expect((await list(own)).body).toEqual({ results: [] });
    const record = await service.api.request('GET', `/1.1/notifications/${body.objectId}`, {
      app: own,
    });
    expect(record.status).toBe(404);
    expect(await cancel(own, id)).toMatchObject({ status: 404, body: { code: 101 } });
  });

  test("treats another app's entry as unknown, and leaves it unchanged", async () => {
    const [own, other] = [await newApp(), await newApp()];
    await schedule(own);
    const { id } = (await list(own)).body.results[0];
    expect(await cancel(other, id)).toMatchObject({ status: 404, body: { code: 101 } });
    expect((await list(own)).body.results).toHaveLength(1);
  });

  test.each([
    'abc',
    '1.5',
    '-1',
    '1e3',
    '2147483648',
    '99999999999999999999',
    "1' OR '1",
    'XRs9jmWnLd0GH2EH',
  ])('refuses %s with a message', async (id) => {
    const reply = await cancel(app, encodeURIComponent(id));
    expect(reply).toMatchObject({ status: 400, body: { code: 1 } });
    expect(reply.body.error).toMatch(/integer/);
  });
});

describe('push_time', () => {
  test('less than a minute ahead, or in the past, sends immediately', async () => {
    const own = await newApp();
    for (const ms of [59_000, 0, -3_600_000])
      expect(
        await push(own, { push_time: new Date(clock.now() + ms).toISOString() }),
      ).toMatchObject({
        status: 200,
      });
    expect((await list(own)).body).toEqual({ results: [] });
  });

  test('is not reached early if the clock of the api is ahead', async () => {
    const own = await newApp();
    const ahead = await startTestService({ clock: movableClock(systemClock.now() + 7_200_000) });
    try {
      const there = await ahead.api.createApp();
      const body = { data, push_time: inAnHour() };
      await ahead.api.request('POST', '/1.1/push', { app: there, master: true, body });
      const reply = await ahead.api.request('GET', '/1.1/scheduledPushMessages', {
        app: there,
        master: true,
      });
      expect(reply.body.results).toHaveLength(1);
    } finally {
      await ahead.close();
    }
    expect((await list(own)).body).toEqual({ results: [] });
  });
});

describe('the limit of pending pushes', () => {
  test('is exact for 50 concurrent calls, and a cancelled push frees its place', async () => {
    const small = await newApp('development');
    const replies = await Promise.all(Array.from({ length: 50 }, () => schedule(small)));
    const refused = replies.filter((reply) => reply.status !== 200);
    expect(refused).toHaveLength(40);
    for (const reply of refused) expect(reply).toMatchObject({ status: 400, body: { code: 154 } });
    const { results } = (await list(small)).body;
    expect(results).toHaveLength(10);
    expect((await push(small)).status).toBe(200);
    await cancel(small, results[0].id);
    expect((await schedule(small)).status).toBe(200);
    expect((await schedule(small)).body).toMatchObject({ code: 154 });
  });

  test('does not use up the req_id of a refused push', async () => {
    const small = await newApp('development');
    for (let i = 0; i < 10; i += 1) await schedule(small);
    expect((await schedule(small, { req_id: 'again' })).body).toMatchObject({ code: 154 });
    await cancel(small, (await list(small)).body.results[0].id);
    expect((await schedule(small, { req_id: 'again' })).status).toBe(200);
  });
});

describe('req_id', () => {
  test('can be reused after five minutes', async () => {
    const own = await newApp();
    const first = await push(own, { req_id: 'order1' });
    clock.moveMs(5 * 60_000 - 1000);
    expect((await push(own, { req_id: 'order1' })).body).toEqual(first.body);
    clock.moveMs(2000);
    const later = await push(own, { req_id: 'order1' });
    expect(later.body.objectId).not.toBe(first.body.objectId);
    expect((await push(own, { req_id: 'order1' })).body).toEqual(later.body);
  });

  test('is separate for each app', async () => {
    const replies = await Promise.all(
      [await newApp(), await newApp()].map((own) => push(own, { req_id: 'same' })),
    );
    expect(new Set(replies.map((reply) => reply.body.objectId)).size).toBe(2);
  });
});
