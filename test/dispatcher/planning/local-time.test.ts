import { beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices, readPush } from '../../support/tables.ts';

const service = useTestService();
let dispatcher: RunningDispatcher;

beforeAll(async () => {
  dispatcher = await service.dispatch();
});

/** Returns the current time in UTC. It has passed in the zones east of UTC. */
const timeOfNow = (): string => new Date(systemClock.now()).toISOString().slice(0, 16);

async function createApp(): Promise<App> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  return app;
}

/** Adds a device in a time zone. Returns its token. */
async function addDevice(app: App, zone: string | null): Promise<string> {
  const [token = ''] = await service.addIosInstallations(app, 1);
  await moveTo(app, token, zone);
  return token;
}

/** Changes the time zone of an installation, as if the device had saved it. */
async function moveTo(app: App, token: string, zone: string | null): Promise<void> {
  await changeDevices(service.db, app, { timeZone: zone, updatedAt: new Date() }, [token]);
}

async function send(app: App, more: object = {}): Promise<string> {
  const time = { push_time: timeOfNow(), push_time_local: true };
  const body = { where: {}, data: { alert: 'Morning' }, ...time, ...more };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body.objectId;
}

const pathOf = (app: App, objectId: string, verb = '') =>
  `/console/api/apps/${app.appId}/notifications/${objectId}${verb}`;

const recordOf = async (app: App, objectId: string) =>
  (await service.api.request('GET', pathOf(app, objectId), { admin: true })).body;

/** Waits until the devices of all past starts are counted and the next start waits. */
async function untilWaiting(app: App, objectId: string, totals: object): Promise<void> {
  await expect
    .poll(() => recordOf(app, objectId), { interval: 50, timeout: 60_000 })
    .toMatchObject({ state: 'sending', isPlanned: false, ...totals });
}

/** Moves all times of a push and its jobs back by some hours. */
async function letPass(app: App, hours: number): Promise<void> {
  const past = `- ${hours} * interval '1 hour'`;
  await service.db.transaction(async (tx) => {
    await tx.query(
      `WITH past AS (
         SELECT app_id, id, created_at ${past} AS created_at, push_time ${past} AS push_time,
                expires_at ${past} AS expires_at, local_after ${past} AS local_after,
                local_at ${past} AS local_at, jsonb_set(request, '{local,time}', to_jsonb(
                  to_char((request #>> '{local,time}')::timestamp ${past},
                  'YYYY-MM-DD"T"HH24:MI:SS.MS'))) AS request
           FROM notification WHERE app_id = $1)
       UPDATE notification n
          SET created_at = past.created_at, push_time = past.push_time,
              expires_at = past.expires_at, local_after = past.local_after,
              local_at = past.local_at, request = past.request
         FROM past WHERE n.app_id = past.app_id AND n.id = past.id AND n.app_id = $1`,
      [app.appId],
    );
    await tx.query(
      `UPDATE pgboss.job SET start_after = start_after ${past} WHERE data ->> 'appId' = $1
        AND state = 'created'`,
      [app.appId],
    );
  });
}

const seen = (tokens: string[]): number[] => tokens.map((token) => service.apns.seen(token));

describe('a push at local time', () => {
  test("is sent at each zone's time, at once if it just passed, else not at all", async () => {
    const app = await createApp();
    const late = await addDevice(app, 'GMT+05:00');
    const early = await addDevice(app, 'Etc/GMT-1');
    const unknown = await addDevice(app, 'Nowhere/At-All');
    const none = await addDevice(app, null);
    const west = await addDevice(app, 'GMT-10:00');
    const objectId = await send(app, { default_time_zone: 'GMT-04:00' });
    await untilWaiting(app, objectId, { devices: 2, outcomes: { sent: 1, expired: 1 } });
    expect(seen([late, early, unknown, none, west])).toEqual([0, 1, 0, 0, 0]);
    await letPass(app, 5);
    await untilWaiting(app, objectId, { devices: 4, outcomes: { sent: 3, expired: 1 } });
    expect(seen([late, early, unknown, none, west])).toEqual([0, 1, 1, 1, 0]);
    await letPass(app, 6);
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 5,
      outcomes: { sent: 4, expired: 1 },
      errors: 'apns: its local time had passed when the push was called (1)',
    });
    expect(seen([late, early, unknown, none, west])).toEqual([0, 1, 1, 1, 1]);
  });

  test('reaches a device once if it changes its zone between two starts or is new', async () => {
    const app = await createApp();
    const first = await addDevice(app, 'GMT+01:00');
    const backwards = await addDevice(app, 'GMT-10:00');
    const last = await addDevice(app, 'GMT-11:00');
    const objectId = await send(app);
    await untilWaiting(app, objectId, { outcomes: { sent: 1 } });
    // The time of the first device's new zone is in the future. The time of the other device's new
    // zone has passed.
    await moveTo(app, first, 'GMT-04:00');
    await moveTo(app, backwards, 'GMT-03:00');
    const fresh = await addDevice(app, 'GMT-04:30');
    await letPass(app, 5);
    await untilWaiting(app, objectId, { outcomes: { sent: 3 } });
    expect(seen([first, backwards, fresh, last])).toEqual([1, 1, 1, 0]);
    await moveTo(app, first, 'GMT-11:00');
    await letPass(app, 7);
    expect(await service.untilDone(app, objectId)).toMatchObject({
      devices: 4,
      outcomes: { sent: 4 },
    });
    expect(seen([first, backwards, fresh, last])).toEqual([1, 1, 1, 1]);
  });

  test('continues on another dispatcher, and expires separately for each zone', async () => {
    const app = await createApp();
    const early = await addDevice(app, 'GMT+01:00');
    const west = await addDevice(app, 'GMT-10:00');
    const objectId = await send(app, { expiration_interval: 1800 });
    await untilWaiting(app, objectId, { outcomes: { expired: 1 } });
    await dispatcher.stack.close();
    await letPass(app, 10.25);
    dispatcher = await service.dispatch();
    expect(await service.untilDone(app, objectId)).toMatchObject({
      outcomes: { sent: 1, expired: 1 },
    });
    expect(seen([early, west])).toEqual([0, 1]);
    const request = service.apns.requests.find(({ token }) => token === west);
    const leftSeconds = Number(request?.headers['apns-expiration']) - systemClock.now() / 1000;
    expect(leftSeconds).toBeGreaterThan(0);
    expect(leftSeconds).toBeLessThanOrEqual(1800);
  });

  test('shows its starts in the dry run, and when a device gets it', async () => {
    const app = await createApp();
    await addDevice(app, 'GMT+05:00');
    const west = await addDevice(app, 'GMT-10:00');
    await addDevice(app, 'Nowhere/At-All');
    await addDevice(app, null);
    const push_time = timeOfNow();
    const body = { where: {}, data: { alert: 'x' }, push_time, push_time_local: true };
    const atUtc = Date.parse(`${push_time}Z`);
    const at = (hours: number) => new Date(atUtc + hours * hourMs).toISOString();
    const path = `/console/api/apps/${app.appId}/push/explain`;
    const dryRun = await service.api.request('POST', path, { admin: true, body });
    expect(dryRun.body).toMatchObject({
      devices: 4,
      starts: [
        { at: at(-5), devices: 1, isLate: true },
        { at: at(0), devices: 2, isLate: false },
        { at: at(10), devices: 1, isLate: false },
      ],
      texts: { limits: [{ code: 'localTimePassed', params: { devices: 1 } }] },
    });
    const objectId = await send(app, { push_time });
    await untilWaiting(app, objectId, { outcomes: { sent: 2, expired: 1 } });
    const why = await service.api.request('GET', pathOf(app, objectId, `/devices/${west}`), {
      admin: true,
    });
    expect(why.body.texts.at(-1)).toMatchObject({
      code: 'localStart',
      params: { at: at(10), zone: 'GMT-10:00', time: `${push_time}:00.000` },
    });
  });

  test('is cancelled as a whole', async () => {
    const app = await createApp();
    const tokens = [await addDevice(app, 'GMT+01:00'), await addDevice(app, 'GMT-10:00')];
    const objectId = await send(app);
    await untilWaiting(app, objectId, { outcomes: { sent: 1 } });
    const reply = await service.api.request('POST', pathOf(app, objectId, '/cancel'), {
      admin: true,
    });
    expect(reply.body).toMatchObject({ status: 'cancelled', devices: 1, outcomes: { sent: 1 } });
    await letPass(app, 11);
    const after = await send(app, { push_time: undefined, push_time_local: undefined });
    await service.untilDone(app, after);
    expect(seen(tokens)).toEqual([2, 1]);
  });

  test('is paused as a whole, and sends missed starts when it is resumed', async () => {
    const app = await createApp();
    const tokens = [await addDevice(app, 'GMT+01:00'), await addDevice(app, 'GMT-10:00')];
    const objectId = await send(app);
    await untilWaiting(app, objectId, { outcomes: { sent: 1 } });
    await service.api.request('POST', pathOf(app, objectId, '/pause'), { admin: true });
    await letPass(app, 11);
    await expect
      .poll(() => readPush(service.db, app, objectId))
      .toMatchObject({ isPlanHeld: true });
    expect(seen(tokens)).toEqual([1, 0]);
    await service.api.request('POST', pathOf(app, objectId, '/resume'), { admin: true, body: {} });
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { sent: 2 } });
    expect(seen(tokens)).toEqual([1, 1]);
  });

  test('is scheduled until the first zone of the earth reaches the time', async () => {
    const app = await createApp();
    await addDevice(app, 'GMT+01:00');
    const wallMs = Math.floor(systemClock.now() / 60_000) * 60_000 + 48 * hourMs;
    const time = new Date(wallMs).toISOString().slice(0, 19);
    const objectId = await send(app, { push_time: time });
    const { body } = await service.api.request('GET', '/1.1/scheduledPushMessages', {
      app,
      master: true,
    });
    expect(body.results).toMatchObject([{ expire_time: wallMs - 14 * hourMs }]);
    expect(await recordOf(app, objectId)).toMatchObject({
      status: 'scheduled',
      expiresAt: new Date(wallMs + 12 * hourMs + 7 * 24 * hourMs).toISOString(),
      request: { local: { time: `${time}.000`, zone: null, lifeSeconds: 604_800 } },
    });
    const path = `/console/api/apps/${app.appId}/scheduled/${body.results[0].id}`;
    const push_time = new Date(wallMs).toISOString();
    expect(
      await service.api.request('PATCH', path, { admin: true, body: { push_time } }),
    ).toMatchObject({
      status: 400,
      body: { code: 152 },
    });
  });

  test.each([
    [{ push_time: '2030-01-01T09:00:00Z' }, 152],
    [{ push_time: undefined }, 152],
    [{ push_time: '2020-01-01T09:00:00' }, 152],
    [{ push_time: '2090-01-01T09:00:00' }, 152],
    [{ push_time_local: 'yes' }, 152],
    [{ default_time_zone: 'Mars/Olympus' }, 111],
    [{ push_time_local: false, push_time: '2030-01-01T09:00:00' }, 152],
    [{ push_time_local: undefined, push_time: undefined, default_time_zone: 'UTC' }, 1],
  ])('refuses %j', async (more, code) => {
    const app = await service.api.createApp();
    const time = { push_time: timeOfNow(), push_time_local: true };
    const body = { where: {}, data: { alert: 'x' }, ...time, ...more };
    const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    expect(reply).toMatchObject({ status: 400, body: { code } });
  });
});
