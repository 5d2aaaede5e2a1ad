import { expect, test } from 'vitest';
import { FairPriorities } from '../../../dispatcher/delivery/fair-priorities.ts';
import { Database } from '../../../shared/db/pool.ts';
import { findPush } from '../../../shared/db/tables/pushes/pushes.ts';
import { deliverJob, planJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { insertQueuedPushes, queueBatches } from '../../../shared/queue/queued-pushes.ts';
import { silentLog } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';

const kind = deliverJob('apns');
const appId = 'app';
const at = new Date();

const pushOf = (objectId: string) => ({
  ...{ appId, objectId, notificationId: objectId, state: 'queued' as const, createdAt: at, pushTime: at },
  expiresAt: new Date(at.getTime() + 3_600_000),
  pushOrder: {
    ...{ data: {}, target: { kind: 'query' as const, where: {}, channels: null }, prod: 'prod' as const },
    ...{ topic: null, teamId: null, flowControl: null, notificationChannel: null },
  },
});

const batchOf = (recipients: number[]) => ({
  ...{ connector: 'apns' as const, profile: '_default', badges: null, attempt: 0, hasJob: true },
  recipients,
});

test('one statement writes a page with jobs in fair order and ends the planning; nothing where the mark has moved', async () => {
  // No dispatcher works on this database.
  const database = await createTestDatabase();
  const db = new Database({ url: database.url, applicationName: 'page' });
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  await insertQueuedPushes(db, queue, [pushOf('a'), pushOf('b')]);
  // Two open pushes: the batches of each are two steps apart.
  await db.query(`UPDATE notification SET state = 'sending' WHERE app_id = $1`, [appId]);
  const [job, other] = await queue.fetch(planJob, 2);
  if (!job || !other) throw new Error('the jobs were not taken');
  const { pushId } = job.data;
  const page = { appId, pushId, kind, job };
  const jobs = async () => {
    const { rows } = await db.query(
      `SELECT priority, (data ->> 'pushId')::bigint AS push, (data ->> 'batchId')::bigint AS batch,
              (data ->> 'waitedUntilMs')::bigint AS waited FROM pgboss.job
        WHERE name = $1 ORDER BY priority DESC, created_on`,
      [kind.queue],
    );
    return rows;
  };
  const batches = async () => {
    const { rows } = await db.query(
      'SELECT id AS batch, recipients FROM push_batch WHERE app_id = $1 AND push_id = $2 ORDER BY id',
      [appId, pushId],
    );
    return rows;
  };
  const activePlans = async () =>
    (await queue.states()).find((state) => state.queue === planJob.queue)?.active ?? 0;

  const first = { from: 0, through: 2, devices: 2, isLast: false };
  const written = { ...page, batches: [batchOf([1]), batchOf([2])], step: first, lastPriority: null };
  expect(await queueBatches(db, queue, written)).toBe(-2);
  expect(await batches()).toMatchObject([{ recipients: [1] }, { recipients: [2] }]);
  expect(await activePlans()).toBe(2);

  // Another planner has written the page.
  expect(await queueBatches(db, queue, { ...written, lastPriority: -2 })).toBeUndefined();
  expect(await batches()).toHaveLength(2);
  expect(await jobs()).toHaveLength(2);

  const last = { from: 2, through: 5, devices: 1, isLast: true };
  const afterWait = { ...job, data: { ...job.data, waitedUntilMs: 5 } };
  const rest = { ...page, job: afterWait, batches: [batchOf([5])], step: last, lastPriority: -2 };
  expect(await queueBatches(db, queue, rest)).toBe(-4);
  expect(await activePlans()).toBe(1);
  const [one, two, three] = await batches();
  expect(await jobs()).toEqual([
    { priority: 0, push: pushId, batch: one?.batch, waited: null },
    { priority: -2, push: pushId, batch: two?.batch, waited: null },
    { priority: -4, push: pushId, batch: three?.batch, waited: 5 },
  ]);
  const push = await findPush(db, appId, pushId);
  expect(push).toMatchObject({ plannedThrough: 5, devices: 3, isPlanned: true });

  // A page of the other push chooses the priorities that `FairPriorities` would.
  const priorities = new FairPriorities(queue, appId);
  const expected = await db.transaction((tx) => priorities.next(tx, kind, 2));
  const own = { appId, pushId: other.data.pushId, kind, job: other, lastPriority: null };
  const pageOfOther = { batches: [batchOf([1]), batchOf([2])], step: first };
  expect(await queueBatches(db, queue, { ...own, ...pageOfOther })).toBe(expected(1));
  await queue.stop();
  await db.close();
  await database.drop();
});
