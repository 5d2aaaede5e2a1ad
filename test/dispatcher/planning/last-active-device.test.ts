import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices, daysAgo, insertDevices } from '../../support/tables.ts';

const service = useTestService();
beforeAll(async () => {
  await service.dispatch();
});

async function iosApp(): Promise<App> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  return app;
}

const pointer = (objectId: string) => ({ __type: 'Pointer', className: '_User', objectId });

/**
 * Adds devices of a user that were last saved `hoursAgo` hours ago. Returns their tokens in the
 * same order.
 */
async function devicesOf(app: App, user: string, hoursAgo: number[]): Promise<string[]> {
  const tokens = await service.addIosInstallations(app, hoursAgo.length, { user: pointer(user) });
  for (const [i, hours] of hoursAgo.entries())
    await changeDevices(
      service.db,
      app,
      { updatedAt: daysAgo(hours / 24) },
      tokens.slice(i, i + 1),
    );
  return tokens;
}

const seen = (tokens: string[]): number[] => tokens.map((token) => service.apns.seen(token));

const explain = (app: App, body: object) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/push/explain`, { admin: true, body });

const lastActiveDeviceOnly = true;

describe('a push to the last active device only', () => {
  test('reaches one device of each user, and every device without a user', async () => {
    const app = await iosApp();
    const ann = await devicesOf(app, 'ann', [3, 1, 2]);
    const bob = await devicesOf(app, 'bob', [5]);
    const none = await service.addIosInstallations(app, 2);
    const body = { where: {}, data: { alert: 'hi' }, lastActiveDeviceOnly };
    expect((await explain(app, body)).body).toMatchObject({ devices: 4 });
    const objectId = await beginPush(service, app, body);
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 4,
      outcomes: { sent: 4 },
    });
    expect(seen([...ann, ...bob, ...none])).toEqual([0, 1, 0, 1, 1, 1]);
    const why = (token = '') =>
      service.api.request(
        'GET',
        `/console/api/apps/${app.appId}/notifications/${objectId}/devices/${token}`,
        {
          admin: true,
        },
      );
    expect((await why(ann[0])).body).toMatchObject({
      isMatched: false,
      clause: 'lastActiveDeviceOnly',
    });
    expect((await why(ann[1])).body).toMatchObject({ isMatched: true, outcome: 'sent' });
  });

  test('chooses among the devices that match the push', async () => {
    const app = await iosApp();
    const [old = '', fresh = ''] = await devicesOf(app, 'ann', [2, 1]);
    await changeDevices(service.db, app, { channels: ['news'] }, [old]);
    const listed = { device_type: 'ios', device_ids: [old, fresh], data: { alert: 'a' } };
    const cases = [
      { body: { channels: ['news'], where: {} }, expected: [1, 0] },
      { body: { where: { user: pointer('ann') } }, expected: [1, 1] },
      { body: { where: { deviceToken: old } }, expected: [2, 1] },
    ];
    for (const { body, expected } of cases) {
      await service.untilDone(
        app,
        await beginPush(service, app, { ...body, lastActiveDeviceOnly }),
      );
      expect(seen([old ?? '', fresh ?? ''])).toEqual(expected);
    }
    expect((await explain(app, { ...listed, lastActiveDeviceOnly })).body).toMatchObject({
      devices: 1,
    });
    expect((await explain(app, listed)).body).toMatchObject({ devices: 2 });
  });

  test('works across all pages of a large push', async () => {
    const app = await iosApp();
    await insertDevices(
      service.db,
      app,
      Array.from({ length: 3000 }, (_, n) => ({
        deviceType: 'ios',
        deviceToken: n.toString(16).padStart(64, '0'),
        fields: { user: { objectId: `u${n % 1500}` } },
      })),
    );
    const record = await service.untilDone(
      app,
      await beginPush(service, app, { where: {}, lastActiveDeviceOnly }),
    );
    expect(record).toMatchObject({ devices: 1500, outcomes: { sent: 1500 } });
  });

  test('does not choose again in a redrive', async () => {
    const app = await iosApp();
    const [other = '', chosen = ''] = await devicesOf(app, 'ann', [2, 1]);
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const objectId = await beginPush(service, app, { where: {}, lastActiveDeviceOnly });
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { failed: 1 } });
    service.apns.behave();
    const before = service.apns.seen(chosen);
    await changeDevices(service.db, app, { updatedAt: new Date() }, [other]);
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}/redrive`;
    const { body } = await service.api.request('POST', path, { admin: true, body: {} });
    expect(await service.untilDone(app, body.objectId)).toMatchObject({ outcomes: { sent: 1 } });
    expect(seen([other, chosen])).toEqual([0, before + 1]);
  });

  test('refuses a value that is not a boolean', async () => {
    const app = await iosApp();
    const wrong = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: { where: {}, data: { alert: 'a' }, lastActiveDeviceOnly: 'yes' },
    });
    expect(wrong).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('lastActiveDeviceOnly') },
    });
  });
});
