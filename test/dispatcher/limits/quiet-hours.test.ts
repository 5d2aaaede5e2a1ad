import { beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import { insertRecurring } from '../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { parsePush } from '../../../shared/domain/pushes/push.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import {
  addDevicesIn,
  awakeZone,
  hoursOfNow,
  makeDue,
} from '../../support/gateways/quiet-hours.ts';
import { useTestService } from '../../support/service.ts';
import { type Batch, countDueJobs, readBatches, readPushes } from '../../support/tables.ts';

const service = useTestService();
let dispatcher: RunningDispatcher;
beforeAll(async () => {
  dispatcher = await service.dispatch();
});

const hours = hoursOfNow();

async function createApp(options: object = { quietHours: hours }): Promise<App> {
  const app = await service.api.createApp(options);
  await service.addApnsProfile(app);
  return app;
}

/** Adds devices in a time zone. Returns their tokens. */
const addDevices = (app: App, zone: string | null, count = 1): Promise<string[]> =>
  addDevicesIn(service, app, zone, count);

const adminGet = async (app: App, path: string) =>
  (
    await service.api.request('GET', `/console/api/apps/${app.appId}/notifications/${path}`, {
      admin: true,
    })
  ).body;

async function untilRecord(app: App, objectId: string, record: object): Promise<void> {
  await expect
    .poll(() => adminGet(app, objectId), { interval: 50, timeout: 60_000 })
    .toMatchObject(record);
}

async function batchesOf(app: App): Promise<Batch[]> {
  const batches = await readBatches(service.db, app);
  return batches.filter(({ isSettled }) => !isSettled);
}

/** Counts the due and running jobs of an app. */
const dueJobsOf = (app: App): Promise<number> => countDueJobs(service.db, app);

async function endHours(app: App, objectId: string): Promise<Record<string, unknown>> {
  // The waits of a push are counted before its job is postponed.
  await expect.poll(() => dueJobsOf(app), { interval: 50, timeout: 60_000 }).toBe(0);
  await makeDue(service, app, awakeZone);
  return service.untilDone(app, objectId);
}

const seen = (tokens: string[]): number[] => tokens.map((token) => service.apns.seen(token));

describe('a push with quiet hours', () => {
  test('waits in time zones with quiet hours, and is sent immediately in others', async () => {
    const app = await createApp();
    const [early, none] = [await addDevices(app, awakeZone, 2), await addDevices(app, null)];
    const [utc, london] = [
      await addDevices(app, 'Etc/UTC'),
      await addDevices(app, 'Atlantic/Reykjavik'),
    ];
    const unknown = await addDevices(app, 'Nowhere/At-All');
    const all = [...early, ...none, ...utc, ...london, ...unknown];
    const objectId = await beginPush(service, app, {});
    await untilRecord(app, objectId, {
      state: 'sending',
      devices: 6,
      outcomes: { sent: 2 },
      quietWaits: 4,
    });
    expect(seen(all)).toEqual([1, 1, 0, 0, 0, 0]);
    // Zones with the same local time share a batch.
    const [waiting, ...more] = await batchesOf(app);
    expect(more).toEqual([]);
    expect(waiting?.recipients).toHaveLength(4);
    const waitMs = (waiting?.quietUntil?.getTime() ?? 0) - systemClock.now();
    expect(waitMs).toBeGreaterThan(hourMs / 2);
    expect(waitMs).toBeLessThanOrEqual(2 * hourMs);
    expect(await endHours(app, objectId)).toMatchObject({
      devices: 6,
      outcomes: { sent: 6 },
      quietWaits: 4,
    });
    expect(seen(all)).toEqual([1, 1, 1, 1, 1, 1]);
    const text = await dispatcher.deps.metrics.registry.metrics();
    expect(text).toContain(
      `carillon_quiet_hours_recipients_total{app="${app.appId}",outcome="waiting"} 4`,
    );
  });

  test('that was delayed into quiet hours waits again, also in a retry', async () => {
    const app = await createApp();
    await addDevices(app, awakeZone, 2);
    service.apns.misbehave({ kind: 'answer', status: 503, reason: 'ServiceUnavailable' });
    const objectId = await beginPush(service, app, {});
    // Each try writes a batch with the hours of the previous batch. Moves the zone of the open
    // batch into these hours.
    await expect
      .poll(() => makeDue(service, app, 'Etc/UTC').then(() => adminGet(app, objectId)), {
        interval: 50,
        timeout: 60_000,
      })
      .toMatchObject({ state: 'sending', quietWaits: 2 });
    service.apns.behave();
    await makeDue(service, app);
    await expect.poll(() => dueJobsOf(app), { interval: 50, timeout: 60_000 }).toBe(0);
    expect(await endHours(app, objectId)).toMatchObject({ outcomes: { sent: 2 }, quietWaits: 2 });
  });

  test('respects them when it names one device', async () => {
    const app = await createApp();
    const [[asleep = ''], [other = '']] = [
      await addDevices(app, null),
      await addDevices(app, awakeZone),
    ];
    const one = await beginPush(service, app, { where: { deviceToken: asleep } });
    await untilRecord(app, one, { state: 'sending', quietWaits: 1 });
    const two = await beginPush(service, app, { where: { deviceToken: other } });
    expect(await service.untilDone(app, two)).toMatchObject({ outcomes: { sent: 1 } });
    expect(seen([asleep, other])).toEqual([0, 1]);
    expect(await endHours(app, one)).toMatchObject({ outcomes: { sent: 1 } });
  });

  test('counts recipients as expired if it expires before their end, with a reason', async () => {
    const app = await createApp();
    const tokens = [...(await addDevices(app, null, 2)), ...(await addDevices(app, awakeZone))];
    const objectId = await beginPush(service, app, { expiration_interval: 600 });
    expect(await service.untilDone(app, objectId)).toMatchObject({
      outcomes: { sent: 1, expired: 2 },
      errors: 'apns: it expires before the quiet hours of the device end (2)',
    });
    expect(seen(tokens)).toEqual([0, 0, 1]);
  });

  test('may override the hours of the app; transactional pushes and "off" have none', async () => {
    const app = await createApp();
    await addDevices(app, null);
    for (const more of [{ kind: 'transactional' }, { quiet_hours: 'off' }]) {
      const record = await service.untilDone(app, await beginPush(service, app, more));
      expect(record).toMatchObject({ outcomes: { sent: 1 } });
      expect(record).not.toHaveProperty('quietWaits');
    }
    const other = await createApp({});
    await addDevices(other, null);
    const waiting = await beginPush(service, other, { quiet_hours: hours });
    await untilRecord(other, waiting, { state: 'sending', quietWaits: 1 });
    expect(await endHours(other, waiting)).toMatchObject({ outcomes: { sent: 1 } });
  });

  test('respects them at local time, with translations and with a frequency cap', async () => {
    const app = await createApp({ quietHours: hours, devicePushesPerDay: 1 });
    const tokens = [...(await addDevices(app, 'GMT+00:00')), ...(await addDevices(app, awakeZone))];
    const local = {
      push_time: new Date(systemClock.now()).toISOString().slice(0, 16),
      push_time_local: true,
    };
    // The time of the other zone is long past, so its device ends as expired.
    const first = await beginPush(service, app, { ...local, languages: { en: { alert: 'Hi' } } });
    await untilRecord(app, first, { outcomes: { expired: 1 }, quietWaits: 1, devices: 2 });
    const second = await beginPush(service, app, {});
    expect(await service.untilDone(app, second)).toMatchObject({
      outcomes: { sent: 1, capped: 1 },
    });
    expect(await endHours(app, first)).toMatchObject({ outcomes: { sent: 1, expired: 1 } });
    expect(seen(tokens)).toEqual([1, 1]);
  });

  test('appears in the dry run, and in "why" before, during and after the wait', async () => {
    const app = await createApp();
    const [[asleep = ''], [other = '']] = [
      await addDevices(app, null),
      await addDevices(app, awakeZone),
    ];
    const dryRun = async (more: object) => {
      const body = { where: {}, data: { alert: 'x' }, ...more };
      const path = `/console/api/apps/${app.appId}/push/explain`;
      return (await service.api.request('POST', path, { admin: true, body })).body;
    };
    const waits = await dryRun({});
    expect(waits.quietHours).toMatchObject({
      hours,
      waiting: 1,
      expired: 0,
      ends: [{ devices: 1 }],
    });
    const at = waits.quietHours.ends[0].at;
    expect(waits.texts.limits).toMatchObject([
      { code: 'quietWaiting', params: { devices: 1, hours, until: at } },
    ]);
    const ends = await dryRun({ expiration_interval: 600 });
    expect(ends.quietHours).toMatchObject({ waiting: 0, expired: 1, ends: [] });
    expect(ends.texts.limits.at(-1)).toMatchObject({
      code: 'quietExpired',
      params: { devices: 1 },
    });
    expect(await dryRun({ quiet_hours: 'off' })).not.toHaveProperty('quietHours');
    const [, to = ''] = hours.split('-');
    const local = { push_time: `2030-01-01T${to}`, push_time_local: true };
    expect((await dryRun(local)).quietHours).toMatchObject({ waiting: 0, expired: 0 });

    const codes = async (objectId: string, token: string) =>
      (await adminGet(app, `${objectId}/devices/${token}`)).texts.map(
        ({ code }: { code: string }) => code,
      );
    const push_time = new Date(systemClock.now() + hourMs).toISOString();
    const later = await beginPush(service, app, { push_time });
    expect(await codes(later, asleep)).toEqual(['notYet', 'quietWillWait']);
    expect(await codes(later, other)).toEqual(['notYet']);
    const objectId = await beginPush(service, app, {});
    await untilRecord(app, objectId, { outcomes: { sent: 1 }, quietWaits: 1 });
    const waiting = await adminGet(app, `${objectId}/devices/${asleep}`);
    expect(waiting.texts.at(-1)).toMatchObject({ code: 'quietWaits', params: { at, hours } });
    expect(await codes(objectId, other)).toEqual(['handedOver']);
    await endHours(app, objectId);
    expect(await codes(objectId, asleep)).toEqual(['handedOver', 'quietWaited']);
  });

  test('respects them when it is created by a recurring push', async () => {
    const app = await createApp({});
    await addDevices(app, null);
    const body = { data: { alert: 'Weekly' }, where: {}, quiet_hours: hours };
    const { id } = await insertRecurring(service.db, app.appId, {
      name: 'weekly',
      expression: '0 0 29 2 *',
      timeZone: 'UTC',
      startsAt: null,
      endsAt: null,
      isEnabled: true,
      body,
      pushOrder: parsePush(body, undefined, 0).pushOrder,
      notificationId: null,
      lifeSeconds: null,
      nextAt: new Date(systemClock.now()),
      by: { name: 'Li', tokenId: null },
    });
    const created = async () =>
      (await readPushes(service.db, app)).find(({ recurringId }) => recurringId === id);
    await expect.poll(created, { interval: 50, timeout: 60_000 }).toMatchObject({ quietWaits: 1 });
    const objectId = (await created())?.objectId ?? '';
    expect(await endHours(app, objectId)).toMatchObject({ outcomes: { sent: 1 } });
  });

  test('costs nothing in a push without quiet hours', async () => {
    const app = await createApp({});
    await addDevices(app, 'Etc/UTC');
    await service.untilDone(app, await beginPush(service, app, {}));
    expect(await readBatches(service.db, app)).toMatchObject([{ quiet: null, quietUntil: null }]);
  });

  test.each([{ quiet_hours: '22-8' }, { quiet_hours: '08:00-08:00' }, { quiet_hours: false }])(
    'refuses %j',
    async (more) => {
      const app = await createApp({});
      const body = { where: {}, data: { alert: 'x' }, ...more };
      const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
      expect(reply).toMatchObject({ status: 400, body: { code: 111 } });
    },
  );
});
