import { describe, expect, test } from 'vitest';
import { dayMs, minuteMs, systemClock } from '../../../shared/clock.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { pauseRestoredWork } from '../../../shared/db/tables/restorations.ts';
import {
  findRecurring,
  insertRecurring,
  type RecurringPush,
  type RecurringTerms,
} from '../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { parsePush } from '../../../shared/domain/pushes/push.ts';
import { useDispatcherProcesses } from '../../support/servers/dispatcher-processes.ts';
import { useTestService } from '../../support/service.ts';
import { readPushes } from '../../support/tables.ts';

const service = useTestService();
const processes = useDispatcherProcesses(service);

async function appWithDevice(): Promise<App> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 1);
  return app;
}

/**
 * Adds a recurring push that has been due for `lateMs`. By default its expression names a time of
 * another season.
 */
async function add(
  app: App,
  { lateMs = 0, ...more }: Partial<RecurringTerms> & { lateMs?: number; name: string },
  db: Handle = service.db,
): Promise<number> {
  const body = { data: { alert: more.name }, where: {} };
  const { pushOrder } = parsePush(body, undefined, 0);
  const { id } = await insertRecurring(db, app.appId, {
    expression: '0 0 29 2 *',
    timeZone: 'UTC',
    startsAt: null,
    endsAt: null,
    isEnabled: true,
    body,
    pushOrder,
    notificationId: null,
    lifeSeconds: null,
    nextAt: new Date(systemClock.now() - lateMs),
    by: { name: 'Li', tokenId: 7 },
    ...more,
  });
  return id;
}

async function find(app: App, id: number): Promise<RecurringPush> {
  const found = await findRecurring(service.db, app.appId, id);
  if (!found) throw new Error('there is no such recurring push');
  return found;
}

/** Waits until the due times of a recurring push are processed. */
async function handled(app: App, id: number): Promise<RecurringPush> {
  const count = async () => {
    const { starts, missed, heldBack } = await find(app, id);
    return starts + missed + heldBack;
  };
  await expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(0);
  return find(app, id);
}

/** Returns the number of pushes per recurring push of an app. */
async function countPushes(app: App): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  for (const { recurringId } of await readPushes(service.db, app))
    if (recurringId !== null) counts.set(recurringId, (counts.get(recurringId) ?? 0) + 1);
  return counts;
}

const seen = (alert: string) =>
  service.apns.requests.filter(({ body }) => JSON.parse(body.toString()).aps.alert === alert)
    .length;

describe('a recurring push', () => {
  test('creates one ordinary push at its time, and schedules its next run', async () => {
    await service.dispatch();
    const app = await appWithDevice();
    const id = await add(app, { name: 'ordinary', notificationId: 'daily', lifeSeconds: 3600 });
    const { lastPush, starts, missed, nextAt, lastAt } = await handled(app, id);
    expect({ starts, missed }).toEqual({ starts: 1, missed: 0 });
    expect(nextAt?.getUTCMonth()).toBe(1);
    expect(await service.untilDone(app, lastPush ?? '')).toMatchObject({
      status: 'done',
      successes: 1,
      notificationId: 'daily',
      'from-service': 'recurring',
      'push-time': lastAt?.toISOString(),
    });
    expect(seen('ordinary')).toBe(1);
    const path = `/console/api/apps/${app.appId}/notifications/${lastPush}`;
    const { body } = await service.api.request('GET', path, { admin: true });
    expect(body).toMatchObject({ recurring: { id, name: 'ordinary' }, createdBy: 'Li' });
    expect(Date.parse(body.expiresAt) - Date.parse(body['push-time'])).toBe(3_600_000);
    expect(body.request).not.toHaveProperty('recurring');
  });

  test('puts the id of its push into the messages if the app has the option', async () => {
    const app = await service.api.createApp({ reportOpens: true });
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 1);
    const { lastPush } = await handled(app, await add(app, { name: 'reported' }));
    expect(await service.untilDone(app, lastPush ?? '')).toMatchObject({ events: { opened: 0 } });
    const message = service.apns.requests
      .map(({ body }) => JSON.parse(body.toString()))
      .find(({ aps }) => aps.alert === 'reported');
    expect(message).toMatchObject({ _push: lastPush });
    // A member of this name that was stored before the option was on stays.
    const pushOrder = parsePush({ data: { alert: 'own', _push: 'mine' } }, undefined, 0).pushOrder;
    const own = await handled(app, await add(app, { name: 'own', pushOrder }));
    expect(await service.untilDone(app, own.lastPush ?? '')).toMatchObject({ status: 'done' });
  });

  test('after an outage sends only the last missed run, and counts the others', async () => {
    const app = await appWithDevice();
    const first = new Date(systemClock.now() - 10 * minuteMs);
    const expression = `${first.getUTCMinutes()} ${first.getUTCHours()} * * *`;
    const minute = Math.floor(first.getTime() / minuteMs) * minuteMs;
    const lateMs = systemClock.now() - minute + 3 * dayMs;
    const { starts, missed, lastAt } = await handled(
      app,
      await add(app, { name: 'late', expression, lateMs }),
    );
    expect({ starts, missed, lastAt }).toEqual({ starts: 1, missed: 3, lastAt: new Date(minute) });
  });

  test('ends with its last run, which counts as missed if it is an hour late', async () => {
    const app = await appWithDevice();
    const times = { lateMs: 61 * minuteMs, endsAt: new Date(systemClock.now()) };
    const { starts, missed, nextAt } = await handled(
      app,
      await add(app, { name: 'ended', ...times }),
    );
    expect({ starts, missed, nextAt }).toEqual({ starts: 0, missed: 1, nextAt: null });
  });

  test('does not repeat runs that were sent before a restore', async () => {
    const app = await appWithDevice();
    const id = await service.db.transaction(async (tx) => {
      const added = await add(app, { name: 'restored', lateMs: minuteMs }, tx);
      await pauseRestoredWork(tx, new Date(0));
      return added;
    });
    expect(await handled(app, id)).toMatchObject({ starts: 0, missed: 1 });
  });

  test('has at most ten unfinished pushes', async () => {
    const app = await appWithDevice();
    const id = await add(app, { name: 'held' });
    const { lastPush } = await handled(app, id);
    await service.untilDone(app, lastPush ?? '');
    await service.db.query(
      `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
        push_time, expires_at, recurring_id)
       SELECT app_id, 'open' || i, 'open', 'paused', request, prod, push_time, expires_at,
         recurring_id
         FROM notification, generate_series(1, 10) AS i WHERE app_id = $1`,
      [app.appId],
    );
    await service.db.query('UPDATE recurring_push SET next_at = now() WHERE app_id = $1', [
      app.appId,
    ]);
    await expect.poll(async () => (await find(app, id)).heldBack).toBe(1);
    expect(await find(app, id)).toMatchObject({ starts: 1, lastPush });
  });

  test('creates no push after its app is deleted', async () => {
    const app = await appWithDevice();
    const id = await add(app, { name: 'gone', lateMs: -dayMs });
    const path = `/console/api/apps/${app.appId}`;
    const deleted = await service.api.request('DELETE', path, {
      admin: true,
      body: { appId: app.appId },
    });
    expect(deleted.status).toBe(200);
    expect(await findRecurring(service.db, app.appId, id)).toBeUndefined();
  });
});

test('that cannot be processed does not delay others', async () => {
  const { deps } = await service.dispatch();
  const app = await appWithDevice();
  const broken = await add(app, { name: 'broken', timeZone: 'Mars/Olympus', lateMs: minuteMs });
  await handled(app, await add(app, { name: 'sound' }));
  const failures = async () => {
    const { values } = await deps.metrics.backgroundJobFailures.get();
    return values.find(({ labels }) => labels.duty === 'recurring pushes')?.value;
  };
  await expect.poll(failures, { timeout: 60_000 }).toBeGreaterThan(0);
  expect((await find(app, broken)).starts).toBe(0);
  await service.db.query('DELETE FROM recurring_push WHERE app_id = $1', [app.appId]);
});

test('with kill -9 of one of several dispatchers: each run has exactly one push', {
  timeout: 120_000,
}, async () => {
  const app = await appWithDevice();
  const first = await processes.start();
  const ids = await Promise.all(
    Array.from({ length: 100 }, (_, i) => add(app, { name: `among ${i}`, lateMs: -1500 })),
  );
  await expect.poll(async () => (await countPushes(app)).size, { interval: 5 }).toBeGreaterThan(10);
  first.kill('SIGKILL');
  for (const id of ids)
    expect(await handled(app, id)).toMatchObject({ starts: 1, missed: 0, heldBack: 0 });
  expect([...(await countPushes(app))].sort(([a], [b]) => a - b)).toEqual(
    [...ids].sort((a, b) => a - b).map((id) => [id, 1]),
  );
});
