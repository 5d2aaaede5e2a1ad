import { beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { endSmallPushes, type SmallPlan, startSmallPushes } from '../../../shared/db/tables/pushes/small.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { areDatabasesSpread } from '../../support/database.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
const timeoutMs = 60_000;

interface Device {
  id: number;
  object_id: string;
  device_token: string;
}

async function appWithDevices(count: number, dailyRecipientCap = 1000) {
  const app = await service.api.createApp({ dailyRecipientCap });
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, count);
  const { rows } = await service.db.query<Device>(
    'SELECT id, object_id, device_token FROM installation WHERE app_id = $1 ORDER BY id',
    [app.appId],
  );
  return { app, devices: rows };
}

const begin = (app: App, where: object) => beginPush(service, app, { where });

/** Accepts a push to each device, while no dispatcher runs or in one go. */
const beginAll = (app: App, devices: Device[]) =>
  Promise.all(devices.map(({ object_id: objectId }) => begin(app, { objectId })));

const control = (app: App, objectId: string, verb: string) =>
  service.api.request('POST', `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`, {
    admin: true,
  });

async function internalId(app: App, objectId: string): Promise<number> {
  const { rows } = await service.db.query<{ id: number }>(
    'SELECT id FROM notification WHERE app_id = $1 AND object_id = $2',
    [app.appId, objectId],
  );
  return rows[0]?.id ?? 0;
}

async function plansOf(app: App, devices: Device[], cap: number | null): Promise<SmallPlan[]> {
  const pushes = await beginAll(app, devices);
  const ids = await Promise.all(pushes.map((objectId) => internalId(app, objectId)));
  return ids.map((pushId, i) => ({
    appId: app.appId,
    pushId,
    recipient: { id: devices[i]?.id ?? 0, connector: 'apns', profile: '_default' },
    cap,
  }));
}

const totalsOf = (plans: SmallPlan[], batches: ({ batchId: number | null } | undefined)[]) =>
  plans.map(({ appId, pushId }, i) => ({
    appId,
    pushId,
    firstSentAt: null,
    batch: {
      id: batches[i]?.batchId ?? 0,
      connector: 'apns' as const,
      profile: '_default',
      states: Buffer.from([1]),
      totals: { sent: 1 },
      failure: null,
      messageId: null,
    },
  }));

// In a spread database a statement has rows of one app: such a push is planned as any other there.
describe.skipIf(areDatabasesSpread())('statements for many small pushes', () => {
  test('start all but those that are paused, cancelled or started already', async () => {
    const { app, devices } = await appWithDevices(5);
    const plans = await plansOf(app, devices, null);
    const change = (place: number, state: string) =>
      service.db.query('UPDATE notification SET state = $3 WHERE app_id = $1 AND id = $2', [
        app.appId,
        plans[place]?.pushId,
        state,
      ]);
    await Promise.all([change(1, 'paused'), change(2, 'cancelled')]);
    const first = plans.slice(4);
    expect((await startSmallPushes(service.db, first))[0]?.batchId).toBeGreaterThan(0);
    const started = await startSmallPushes(service.db, plans);
    expect(started.map((push) => push !== undefined)).toEqual([true, false, false, true, false]);
    expect(started[0]).toMatchObject({ granted: null });
  });

  test('charge the recipients to the cap of each app, the first ones first', async () => {
    const one = await appWithDevices(3, 2);
    const other = await appWithDevices(2);
    const plans = [
      ...(await plansOf(one.app, one.devices, 2)),
      ...(await plansOf(other.app, other.devices, 9)),
    ];
    const granted = (await startSmallPushes(service.db, plans)).map((push) => push?.granted);
    expect(granted).toEqual([1, 1, 0, 1, 1]);
    const later = await plansOf(one.app, one.devices.slice(0, 1), 3);
    expect((await startSmallPushes(service.db, later))[0]).toMatchObject({ granted: 1 });
  });

  test('skip a push that another transaction has locked', async () => {
    const { app, devices } = await appWithDevices(2);
    const plans = await plansOf(app, devices, null);
    await service.db.transaction(async (tx) => {
      await tx.query('SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR UPDATE', [
        app.appId,
        plans[0]?.pushId,
      ]);
      const started = await startSmallPushes(service.db, plans);
      expect(started.map((push) => push !== undefined)).toEqual([false, true]);
    });
  });

  test('end each batch once, also when a late worker reports it again', async () => {
    const { app, devices } = await appWithDevices(3);
    const plans = await plansOf(app, devices, null);
    const ends = totalsOf(plans, await startSmallPushes(service.db, plans));
    expect((await endSmallPushes(service.db, ends.slice(0, 1)))[0]).toMatchObject({ isSettled: true });
    const ended = await endSmallPushes(service.db, ends);
    expect(ended.map(({ isSettled, closed }) => isSettled && closed !== null)).toEqual([false, true, true]);
    const { rows } = await service.db.query(
      `SELECT FROM notification WHERE app_id = $1 AND state = 'done' AND totals = '{"apns": {"sent": 1}}'`,
      [app.appId],
    );
    expect(rows).toHaveLength(3);
  });
});

describe('a group of small pushes', () => {
  let dispatcher: RunningDispatcher;
  const before = new Map<string, { app: App; devices: Device[]; pushes: string[] }>();
  const prepare = async (name: string, count: number, cap?: number) => {
    const { app, devices } = await appWithDevices(count, cap);
    before.set(name, { app, devices, pushes: await beginAll(app, devices) });
  };
  const of = (name: string) => before.get(name) ?? { app: {} as never, devices: [], pushes: [] };

  beforeAll(async () => {
    // They wait for the dispatcher, which takes them as one group.
    await prepare('sent', 20);
    await prepare('capped', 3, 2);
    await prepare('dead', 2);
    await prepare('stopped', 3);
    const { app, pushes } = of('stopped');
    await control(app, pushes[0] ?? '', 'pause');
    await control(app, pushes[1] ?? '', 'cancel');
    const dead = of('dead').devices[0]?.device_token ?? '';
    service.apns.deadTokens.set(dead, Date.UTC(2100, 0, 1));
    dispatcher = await service.dispatch();
  });

  const done = (name: string) =>
    Promise.all(of(name).pushes.map((objectId) => service.untilDone(of(name).app, objectId, timeoutMs)));
  const seen = (name: string) => of(name).devices.map(({ device_token: token }) => service.apns.seen(token));

  test('is sent, each device once', async () => {
    for (const record of await done('sent'))
      expect(record).toMatchObject({ status: 'done', devices: 1, successes: 1, errors: '' });
    expect(seen('sent')).toEqual(of('sent').devices.map(() => 1));
  });

  test('stays within the cap of its app', async () => {
    const outcomes = (await done('capped')).map(({ outcomes }) => JSON.stringify(outcomes)).sort();
    expect(outcomes).toEqual(['{"capped":1}', '{"sent":1}', '{"sent":1}']);
    expect(seen('capped').reduce((sum, n) => sum + n, 0)).toBe(2);
  });

  test('goes on when the gateway refuses one of them, with the reason on its record', async () => {
    const [refused, sent] = await done('dead');
    expect(refused).toMatchObject({ devices: 1, successes: 0, invalidTokens: 1 });
    expect(refused?.errors).toMatch(/^apns: .+ \(1\)$/);
    expect(sent).toMatchObject({ successes: 1 });
  });

  test('leaves out one that is paused until it is resumed, and one that is cancelled', async () => {
    const { app, pushes } = of('stopped');
    const [paused = '', , third = ''] = pushes;
    expect(await service.untilDone(app, third, timeoutMs)).toMatchObject({ successes: 1 });
    expect(seen('stopped').slice(0, 2)).toEqual([0, 0]);
    await control(app, paused, 'resume');
    expect(await service.untilDone(app, paused, timeoutMs)).toMatchObject({ successes: 1 });
    expect(seen('stopped')).toEqual([1, 0, 1]);
  });

  test.skipIf(areDatabasesSpread())('does not fail because of one whose statement fails', async () => {
    const { app, devices } = await appWithDevices(3);
    const plans = (await plansOf(app, devices, null)).map((plan, i) => ({
      ...plan,
      // Text that PostgreSQL does not store.
      ...(i === 1 && plan.recipient ? { recipient: { ...plan.recipient, profile: 'a\0b' } } : {}),
    }));
    const started = await Promise.allSettled(plans.map((plan) => dispatcher.deps.small.start(plan)));
    expect(started.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    // The dispatcher has jobs of the same pushes: one that it starts at this moment is locked, and changes its state next.
    for (const i of [0, 2])
      await expect.poll(() => internalState(app, plans[i]?.pushId ?? 0)).not.toBe('queued');
  });

  test('without a device is done at once', async () => {
    const { app } = await appWithDevices(1);
    const objectId = await begin(app, { objectId: '0'.repeat(24) });
    expect(await service.untilDone(app, objectId, timeoutMs)).toMatchObject({ status: 'done', devices: 0 });
  });

  test.each(['device_token', 'installation_id'] as const)('finds a device by %s', async (column) => {
    const { app, devices } = await appWithDevices(2);
    await service.db.query('UPDATE installation SET installation_id = $2 || object_id WHERE app_id = $1', [
      app.appId,
      'i',
    ]);
    const [one] = devices;
    const where =
      column === 'device_token'
        ? { deviceToken: one?.device_token }
        : { installationId: `i${one?.object_id}` };
    const objectId = await begin(app, where);
    expect(await service.untilDone(app, objectId, timeoutMs)).toMatchObject({ devices: 1, successes: 1 });
    expect(service.apns.seen(one?.device_token ?? '')).toBe(1);
  });
});

async function internalState(app: App, pushId: number): Promise<string> {
  const { rows } = await service.db.query<{ state: string }>(
    'SELECT state FROM notification WHERE app_id = $1 AND id = $2',
    [app.appId, pushId],
  );
  return rows[0]?.state ?? '';
}
