import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import { chargeDevices, deleteOldDeviceDays } from '../../../shared/db/tables/recipients.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
beforeAll(async () => {
  await Promise.all([service.dispatch(), service.dispatch()]);
});

async function appWith(devices: number, devicePushesPerDay: number | null) {
  const app = await service.api.createApp({ devicePushesPerDay });
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, devices) };
}

async function push(app: App, body: object = {}): Promise<Record<string, unknown>> {
  return service.untilDone(app, await beginPush(service, app, body));
}

const seen = (tokens: string[]): number[] => tokens.map((token) => service.apns.seen(token));

async function rowsOf({ appId }: App): Promise<unknown[]> {
  const { rows } = await service.db.query('SELECT pushes FROM device_day WHERE app_id = $1', [
    appId,
  ]);
  return rows;
}

describe('a frequency cap per device and day', () => {
  test('allows that number of pushes, and counts further pushes as capped', async () => {
    const { app, tokens } = await appWith(3, 2);
    await push(app);
    await push(app);
    const fresh = await service.addIosInstallations(app, 1);
    const record = await push(app);
    expect(record).toMatchObject({ devices: 4, outcomes: { sent: 1, capped: 3 } });
    expect(record.errors).toContain('the device has had its 2 pushes of the day (3)');
    expect(seen([...tokens, ...fresh])).toEqual([2, 2, 2, 1]);
  });

  test('is never exceeded by concurrent pushes, small or large', async () => {
    const { app, tokens } = await appWith(1500, 1);
    const one = { where: { deviceToken: tokens[0] } };
    const ids = await Promise.all([{}, {}, one, one].map((body) => beginPush(service, app, body)));
    const records = await Promise.all(ids.map((id) => service.untilDone(app, id)));
    expect(records.map(({ devices }) => devices)).toEqual([1500, 1500, 1, 1]);
    expect(seen(tokens).filter((n) => n !== 1)).toEqual([]);
  });

  test('exempts transactional pushes, and a push may set its own cap', async () => {
    const { app, tokens } = await appWith(1, 1);
    await push(app);
    const transactional = { where: { deviceToken: tokens[0] }, kind: 'transactional' };
    expect(await push(app, transactional)).toMatchObject({ outcomes: { sent: 1 } });
    expect(await push(app, { device_cap: 0 })).toMatchObject({ outcomes: { sent: 1 } });
    expect(await push(app, { device_cap: 2 })).toMatchObject({ outcomes: { sent: 1 } });
    expect(await push(app, { device_cap: 2, kind: 'marketing' })).toMatchObject({
      outcomes: { capped: 1 },
    });
    expect(await rowsOf(app)).toEqual([{ pushes: 2 }]);
  });

  test('appears in the dry run, and in "why" before and after the push', async () => {
    const { app, tokens } = await appWith(2, 1);
    await push(app, { where: { deviceToken: tokens[0] } });
    const base = `/console/api/apps/${app.appId}`;
    const body = { where: {}, data: { alert: 'x' } };
    const dryRun = await service.api.request('POST', `${base}/push/explain`, { admin: true, body });
    expect(dryRun.body.texts.limits).toMatchObject([
      { code: 'deviceCap', params: { over: 1, cap: 1 } },
    ]);
    const why = async (objectId: unknown) => {
      const path = `${base}/notifications/${objectId}/devices/${tokens[0]}`;
      return (await service.api.request('GET', path, { admin: true })).body;
    };
    const push_time = new Date(systemClock.now() + 3_600_000).toISOString();
    const later = await beginPush(service, app, { push_time });
    expect((await why(later)).texts.at(-1)).toMatchObject({
      code: 'deviceCapReached',
      params: { cap: 1 },
    });
    const record = await push(app);
    expect(await why(record.objectId)).toMatchObject({
      outcome: 'capped',
      meaning: { code: 'deviceCap' },
      sentence: 'It was not sent: the device has had its 1 pushes of the day.',
    });
  });

  test('costs nothing in a push without a cap', async () => {
    const { app } = await appWith(2, null);
    await push(app);
    expect(await rowsOf(app)).toEqual([]);
  });

  test('is charged in a redrive of capped recipients only', async () => {
    const { app, tokens } = await appWith(1, 1);
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const failed = await push(app);
    service.apns.behave();
    const capped = await push(app);
    const redrive = async ({ objectId }: Record<string, unknown>, body: object) => {
      const path = `/console/api/apps/${app.appId}/notifications/${objectId}/redrive`;
      const reply = await service.api.request('POST', path, { admin: true, body });
      return service.untilDone(app, reply.body.objectId);
    };
    expect(await redrive(failed, { outcomes: ['failed'] })).toMatchObject({
      outcomes: { sent: 1 },
    });
    expect(await redrive(capped, { outcomes: ['capped'] })).toMatchObject({
      outcomes: { capped: 1 },
    });
    expect(seen(tokens)).toEqual([2]);
  });

  test('starts again on the next day, and the cleaner deletes earlier days', async () => {
    const { app } = await appWith(1, 1);
    await push(app);
    await service.db.query(`UPDATE device_day SET day = day - 1 WHERE app_id = $1`, [app.appId]);
    expect(await push(app)).toMatchObject({ outcomes: { sent: 1 } });
    expect(await rowsOf(app)).toHaveLength(2);
    // The cleaner of the dispatchers keeps yesterday's rows.
    await deleteOldDeviceDays(service.db, new Date(systemClock.now()), 1000);
    expect(await rowsOf(app)).toHaveLength(1);
  });

  test('counts each device of a call once', async () => {
    const { app } = await appWith(1, 1);
    const charge = (ids: number[], cap: number) =>
      chargeDevices(service.db, app.appId, { ids, cap });
    expect(await charge([3, 1, 2], 2)).toHaveLength(3);
    expect(await charge([1], 2)).toEqual([1]);
    expect((await charge([1, 2, 3, 4], 2)).sort()).toEqual([2, 3, 4]);
  });

  test.each([{ kind: 'urgent' }, { device_cap: -1 }, { device_cap: 1.5 }, { device_cap: '2' }])(
    'refuses %j',
    async (more) => {
      const { app } = await appWith(0, null);
      const body = { where: {}, data: { alert: 'x' }, ...more };
      const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
      expect(reply).toMatchObject({ status: 400, body: { code: 111 } });
    },
  );
});
