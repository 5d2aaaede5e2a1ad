import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestService } from '../../support/service.ts';
import { countJobs, deleteRows, readPushes, startScheduledPushes } from '../../support/tables.ts';

/**
 * The api's clock is one hour behind, so that a time in a few seconds is far enough ahead to be
 * scheduled.
 */
const clockOneHourBehind = movableClock(systemClock.now() - 3_600_000);

const service = useTestService({ clock: clockOneHourBehind });
async function appWithDevice(): Promise<App> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 1);
  return app;
}

async function schedule(app: App, atMs: number, alert = 'x'): Promise<string> {
  const body = {
    data: { alert },
    push_time: new Date(atMs).toISOString(),
    expiration_interval: 86_400,
  };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body.objectId;
}

async function entries(app: App): Promise<{ id: number; push_msg: { id: string } }[]> {
  const path = '/1.1/scheduledPushMessages';
  return (await service.api.request('GET', path, { app, master: true })).body.results;
}

async function status(app: App, objectId: string): Promise<string> {
  const path = `/1.1/tables/Notifications/${objectId}`;
  return (await service.api.request('GET', path, { app })).body.status;
}

/** Returns the number of pushes that have started and not ended. */
async function countUnfinished(app: App): Promise<number> {
  const pushes = await readPushes(service.db, app);
  return pushes.filter(({ state }) => state === 'queued' || state === 'sending').length;
}

const alertsSeen = () =>
  service.apns.requests.map((request) => JSON.parse(request.body.toString()).aps.alert);

describe('a scheduled push', () => {
  test('waits for a dispatcher, and is sent as soon as one runs', async () => {
    const app = await appWithDevice();
    const objectId = await schedule(app, systemClock.now() - 10_000);
    expect(await status(app, objectId)).toBe('scheduled');
    await service.dispatch();
    expect(await service.untilDone(app, objectId)).toMatchObject({ status: 'done', successes: 1 });
    expect(await entries(app)).toEqual([]);
  });

  test('starts soon after its time, not before', async () => {
    const app = await appWithDevice();
    // An earlier push opens the connection to the gateway.
    await service.untilDone(app, await schedule(app, systemClock.now() - 1000));
    await deleteRows(service.db, 'notification', app);
    const atMs = systemClock.now() + 1500;
    const ids = await Promise.all(Array.from({ length: 10 }, () => schedule(app, atMs)));
    await Promise.all(ids.map((id) => service.untilDone(app, id)));
    const { rows } = await service.db.query<{ late_ms: number }>(
      `SELECT extract(epoch FROM first_sent_at - push_time)::float8 * 1000 AS late_ms
         FROM notification WHERE app_id = $1`,
      [app.appId],
    );
    expect(rows).toHaveLength(10);
    for (const { late_ms } of rows) {
      expect(late_ms).toBeGreaterThanOrEqual(0);
      // The limit is high, because a process on a loaded machine may get no CPU time for seconds.
      // `npm run bench -- latency` measures the promised second.
      expect(late_ms).toBeLessThan(10_000);
    }
  });

  test('nine years ahead has no job in the queue until its time', async () => {
    const app = await appWithDevice();
    const objectId = await schedule(app, systemClock.now() + 9 * 365 * 86_400_000);
    expect(await countJobs(service.db, app)).toBe(0);
    await startScheduledPushes(service.db, app);
    expect(await service.untilDone(app, objectId)).toMatchObject({ status: 'done', devices: 1 });
  });

  test('is not started early by a dispatcher whose clock is ahead', async () => {
    const app = await appWithDevice();
    await service.dispatch({ clock: movableClock(systemClock.now() + 7_200_000) });
    const early = await schedule(app, systemClock.now() + 3_600_000);
    const due = await schedule(app, systemClock.now() + 500);
    await service.untilDone(app, due);
    expect(await status(app, early)).toBe('scheduled');
    expect(await entries(app)).toHaveLength(1);
  });
});

describe('cancelling a scheduled push while it starts', () => {
  test('has exactly one result: cancelled, sent to no device, or sent once', {
    timeout: 60_000,
  }, async () => {
    const app = await appWithDevice();
    const count = 100;
    const farMs = systemClock.now() + 86_400_000;
    for (let i = 0; i < count; i += 1) await schedule(app, farMs, `race ${i}`);
    const all = await entries(app);
    // The start times are spread over the moments in which the cancelling calls arrive.
    await service.db.query(
      `WITH spread AS (
         SELECT app_id, id,
           now() + (row_number() OVER (ORDER BY id) * 8) * interval '1 ms' AS push_time
           FROM scheduled_push WHERE app_id = $1)
       UPDATE scheduled_push s SET push_time = spread.push_time FROM spread
        WHERE s.app_id = spread.app_id AND s.id = spread.id AND s.app_id = $1`,
      [app.appId],
    );
    const replies = await Promise.all(
      all.map(async ({ id, push_msg }, i) => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 1000));
        // Half of the calls use the schedule entry, the other half the push record.
        const path =
          i % 2 === 0
            ? `/1.1/scheduledPushMessages/${id}`
            : `/1.1/notifications/${push_msg.id}?i=${i}`;
        const reply = await service.api.request('DELETE', path, { app, master: true });
        return { i, isCancelled: reply.status === 200 };
      }),
    );
    const byEntry = replies.filter(({ i }) => i % 2 === 0);
    const sent = byEntry.filter(({ isCancelled }) => !isCancelled);
    expect(sent.length).toBeGreaterThan(0);
    expect(byEntry.length - sent.length).toBeGreaterThan(0);
    const open = async () => (await entries(app)).length;
    await expect.poll(open).toBe(0);
    await expect.poll(() => countUnfinished(app)).toBe(0);
    const ends = await Promise.all(sent.map(({ i }) => status(app, all[i]?.push_msg.id ?? '')));
    expect(new Set(ends)).toEqual(new Set(['done']));
    const seen = alertsSeen();
    for (const { i, isCancelled } of byEntry)
      expect(seen.filter((alert) => alert === `race ${i}`)).toHaveLength(isCancelled ? 0 : 1);
    // A push may have been sent before it was cancelled, but never twice.
    for (const { i } of replies)
      expect(seen.filter((alert) => alert === `race ${i}`).length).toBeLessThanOrEqual(1);
  });
});
