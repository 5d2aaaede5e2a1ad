import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changePush } from '../../support/tables.ts';
import { signUp } from '../../support/users.ts';

let dispatcher: RunningDispatcher | undefined;

const service = useTestService();
afterEach(() => service.apns.behave());

/** The only dispatcher. The first test that needs it starts it. */
async function start(): Promise<void> {
  dispatcher ??= await service.dispatch();
}

async function stop(): Promise<void> {
  await dispatcher?.stack.close();
  dispatcher = undefined;
}

async function fieldOf<T>(app: App, column: string): Promise<T | undefined> {
  const { rows } = await service.db.query<{ value: T }>(
    `SELECT ${column} AS value FROM notification WHERE app_id = $1`,
    [app.appId],
  );
  return rows[0]?.value;
}

test('a queue without consumers reports its waiting jobs and waiting time', async () => {
  const { app } = await createAppOn(service, null, 1);
  const objectId = await beginPush(service, app);
  const gauge = async (name: string) => {
    const { body } = await service.api.request('GET', '/metrics', {});
    return Number(new RegExp(`^${name}\\{queue="plan"\\} (\\S+)$`, 'm').exec(body)?.[1]);
  };
  expect(await gauge('carillon_queue_depth')).toBe(1);
  const age = await gauge('carillon_queue_oldest_seconds');
  await expect.poll(() => gauge('carillon_queue_oldest_seconds')).toBeGreaterThan(age);
  await start();
  await service.untilDone(app, objectId);
  // A sample of the queues is used for all scrapes within a moment.
  await expect.poll(() => gauge('carillon_queue_depth')).toBe(0);
});

test('a background job closes a push whose last step was lost', async () => {
  await start();
  const { app } = await createAppOn(service, null, 3);
  const objectId = await beginPush(service, app);
  await service.untilDone(app, objectId);
  // State after a crash between the last batch and the end of the push.
  await changePush(service.db, app, { state: 'sending', finishedAt: null, totals: {} });
  const record = await service.untilDone(app, objectId);
  expect(record).toMatchObject({ status: 'done', devices: 3, outcomes: { sent: 3 } });
});

test('a condition with a time in the year 0 selects its devices', async () => {
  await start();
  const { app } = await createAppOn(service, null, 2);
  // Clients in China send the first day of their calendar in this form.
  const first = { __type: 'Date', iso: '0001-01-01T00:00:00+08:00' };
  const second = { __type: 'Date', iso: '0001-01-02T00:00:00+08:00' };
  const where = { createdAt: { $gt: first, $nin: [first, second] } };
  const objectId = await beginPush(service, app, { where });
  expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 2 });
});

test('a push at whose condition PostgreSQL fails ends as failed', async () => {
  await start();
  const { app } = await createAppOn(service, null, 1);
  // The api stores no such number. Another program may.
  await service.db.query(
    `UPDATE installation SET fields = '{"place":{"__type":"GeoPoint","latitude":1e400,"longitude":0}}'
      WHERE app_id = $1`,
    [app.appId],
  );
  const center = { __type: 'GeoPoint', latitude: 1, longitude: 1 };
  const where = { place: { $nearSphere: center, $maxDistanceInKilometers: 10 } };
  const objectId = await beginPush(service, app, { where });
  expect(await service.untilDone(app, objectId)).toMatchObject({
    status: 'the database cannot evaluate the condition of the push',
    devices: 0,
  });
});

test('every recipient is planned once while devices change and a dispatcher stops', {
  timeout: 120_000,
}, async () => {
  const { app, tokens } = await createAppOn(service, null, 16_000);
  await start();
  const objectId = await beginPush(service, app);
  await expect
    .poll(() => fieldOf<number>(app, 'planned_through'), { timeout: 30_000, interval: 2 })
    .toBeGreaterThan(0);
  const stopped = stop();
  const removed = await service.db.query<{ device_token: string }>(
    `DELETE FROM installation WHERE app_id = $1 AND id IN (
       (SELECT id FROM installation WHERE app_id = $1 ORDER BY id LIMIT 40)
       UNION (SELECT id FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT 40))
     RETURNING device_token`,
    [app.appId],
  );
  const late = await service.addIosInstallations(app, 40);
  await stopped;
  await start();
  const record = await service.untilDone(app, objectId, 90_000);
  const outcomes = record.outcomes as Record<string, number>;
  expect(Object.values(outcomes).reduce((sum, n) => sum + n, 0)).toBe(record.devices);
  const deleted = new Set(removed.rows.map((row) => row.device_token));
  const stayed = tokens.filter((token) => !deleted.has(token));
  expect(stayed.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
  expect([...deleted, ...late].filter((token) => service.apns.seen(token) > 1)).toEqual([]);
});

test('job payloads contain only ids and flags: no content, token or key', async () => {
  await stop();
  const { app } = await createAppOn(service, null, 1100);
  const objectId = await beginPush(service, app);
  // Jobs are deleted when they end.
  const members = new Set<string>();
  const read = async () => {
    const { rows } = await service.db.query<{ member: string }>(
      "SELECT DISTINCT jsonb_object_keys(data) AS member FROM pgboss.job WHERE data ->> 'appId' = $1",
      [app.appId],
    );
    for (const { member } of rows) members.add(member);
    // A batch may wait for the first reply of its gateway.
    return [...members].filter((member) => member !== 'waitedUntilMs').sort();
  };
  await read();
  service.apns.misbehave({ kind: 'slow', delayMs: 1000 });
  await start();
  await expect.poll(read, { interval: 10 }).toEqual(['appId', 'batchId', 'pushId']);
  service.apns.behave();
  await service.untilDone(app, objectId);
});

test('failed pushes leave no connection open', async () => {
  await start();
  const { app } = await createAppOn(service, null, 1);
  await service.untilDone(app, await beginPush(service, app));
  const { connections } = service.apns;
  service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
  for (let i = 0; i < 10; i += 1) {
    const record = await service.untilDone(app, await beginPush(service, app));
    expect(record).toMatchObject({ outcomes: { failed: 1 } });
  }
  expect(service.apns.connections).toBe(connections);
});

describe('a push reaches', () => {
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    const owner = await signUp(service.api, app, { level: 3 });
    const pointer = { __type: 'Pointer', className: '_User', objectId: owner.id };
    const at = (latitude: number) => ({ __type: 'GeoPoint', latitude, longitude: 0 });
    await service.addIosInstallations(app, 1, { owner: pointer, at: at(1), city: 'a' });
    await service.addIosInstallations(app, 2, { owner: pointer, at: at(2), city: 'b' });
    await service.addIosInstallations(app, 4, { at: at(80), city: 'b' });
    await start();
  });

  const near = {
    $nearSphere: { __type: 'GeoPoint', latitude: 0, longitude: 0 },
    $maxDistanceInKilometers: 300,
  };
  const users = { className: '_User', where: { level: { $gt: 2 } } };

  test.each<[string, object, number]>([
    ['$inQuery', { where: { owner: { $inQuery: users } } }, 3],
    ['$notInQuery', { where: { owner: { $notInQuery: users } } }, 4],
    [
      '$select',
      {
        where: {
          city: { $select: { key: 'city', query: { className: '_Installation', limit: 1 } } },
        },
      },
      1,
    ],
    ['$nearSphere', { where: { at: near } }, 3],
    ['a list and a channel-less rest', { where: [{ at: near }, { city: 'b' }] }, 2],
    ['a condition as text', { where: JSON.stringify({ city: 'a' }) }, 1],
    ['cql', { cql: "select * from _Installation where city = 'b' and owner is exists" }, 2],
  ])('the devices of %s', async (_name, targets, devices) => {
    const record = await service.untilDone(app, await beginPush(service, app, targets));
    expect(record).toMatchObject({ status: 'done', devices, outcomes: { sent: devices } });
  });
});
