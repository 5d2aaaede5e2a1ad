import { expect, test } from 'vitest';
import type { App } from '../../shared/domain/apps/app.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import { JobQueue } from '../../shared/queue/queue.ts';
import { silentLog } from '../support/api.ts';
import { beginPush, createAppOn } from '../support/gateways/app-gateway.ts';
import { useTestService } from '../support/service.ts';
import { readDevices } from '../support/tables.ts';

const service = useTestService();

const waiting = 2500;

/** Inserts pushes to one device with their jobs, as the api does. */
async function insertPushes(app: App, count: number): Promise<void> {
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  const [device] = await readDevices(db, app);
  const objectId = await beginPush(service, app, { where: { objectId: device?.objectId } });
  const { rows: pushes } = await db.query<{ id: number }>(
    `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time,
      expires_at)
     SELECT app_id, object_id || i, notification_id || i, 'queued', request, prod, push_time,
       expires_at
       FROM notification, generate_series(1, $3::int) AS i WHERE app_id = $1 AND object_id = $2
         RETURNING id`,
    [app.appId, objectId, count],
  );
  const jobs = pushes.map(({ id }) => ({ appId: app.appId, pushId: id }));
  await db.transaction((tx) => queue.send(planJob, jobs, { tx }));
  await queue.stop();
}

/** Counts the pushes of `app` that ended before all pushes of the other app. */
async function endedBefore(app: App, other: App): Promise<number> {
  const { rows } = await service.db.query<{ n: number }>(
    `SELECT count(*) AS n FROM notification
      WHERE app_id = $1 AND finished_at < (SELECT max(finished_at) FROM notification
        WHERE app_id = $2)`,
    [app.appId, other.appId],
  );
  return rows[0]?.n ?? 0;
}

test('the job of an accepted push belongs to its app, for fairness', async () => {
  const { app } = await createAppOn(service, null, 1);
  await beginPush(service, app, { where: { deviceType: 'ios' } });
  const { rows } = await service.db.query<{ group_id: string }>(
    `SELECT group_id FROM pgboss.job WHERE name = 'plan' AND data ->> 'appId' = $1`,
    [app.appId],
  );
  expect(rows).toEqual([{ group_id: app.appId }]);
});

// The steps of both pushes take time, in which the other app's pushes continue. If they had to wait
// behind all of those, they would be last.
test("another app's many waiting pushes do not delay small pushes and scans", async () => {
  const { app: greedy } = await createAppOn(service, null, 1);
  const { app: other } = await createAppOn(service, null, 3);
  // Until a gateway has answered, small pushes wait in the queue of batches, at most 128 of them.
  await service.dispatch();
  const first = await beginPush(service, greedy, { where: { deviceType: 'ios' } });
  await service.untilDone(greedy, first);
  await insertPushes(greedy, waiting);
  const [device] = await readDevices(service.db, other);
  // Both pushes are accepted last.
  const single = await beginPush(service, other, { where: { objectId: device?.objectId } });
  const scan = await beginPush(service, other, { where: { deviceType: 'ios' } });
  expect(await service.untilDone(other, single)).toMatchObject({ devices: 1, successes: 1 });
  expect(await service.untilDone(other, scan)).toMatchObject({ devices: 3, successes: 3 });
  expect(await endedBefore(greedy, other)).toBeLessThan((waiting * 3) / 4);
}, 120_000);
