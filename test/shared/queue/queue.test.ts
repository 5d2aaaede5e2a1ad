import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import { query } from '../../../shared/db/query.ts';
import { type DeliverJob, deliverJob } from '../../../shared/queue/jobs.ts';
import { FairPriorities } from '../../../shared/queue/push-jobs.ts';
import { type Job, JobQueue } from '../../../shared/queue/queue.ts';
import { findJobless, startNow } from '../../../shared/queue/queue-sql.ts';
import { silentLog } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';

const kind = deliverJob('apns');
const appId = 'app';
const jobOf = (batchId: number): DeliverJob => ({ appId, pushId: 1, batchId });

// No dispatcher works on this database.
let database: Awaited<ReturnType<typeof createTestDatabase>>;
let db: Database;
let queue: JobQueue;

beforeAll(async () => {
  database = await createTestDatabase();
  db = new Database({ url: database.url, applicationName: 'queue' });
  queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
});
beforeEach(() => db.query('DELETE FROM pgboss.job'));
afterAll(async () => {
  await queue?.stop();
  await db?.close();
  await database?.drop();
});

const send = (...batchIds: number[]) =>
  db.transaction((tx) =>
    queue.send(kind, batchIds.map(jobOf), { tx, priority: (index) => -index }),
  );
async function take(count: number): Promise<Job<DeliverJob>[]> {
  const jobs = await queue.fetch(kind, count);
  expect(jobs).toHaveLength(count);
  return jobs;
}
const batchesOf = (jobs: Job<DeliverJob>[]) => jobs.map(({ data }) => data.batchId);
const stateOf = async () => (await queue.states()).find(({ queue: name }) => name === kind.queue);

test('jobs are part of the transaction that sends or ends them', async () => {
  const rolledBack = db.transaction(async (tx) => {
    await queue.send(kind, [jobOf(1)], { tx });
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');
  expect(await queue.fetch(kind, 1)).toEqual([]);
  await send(1, 2);
  const [one, two] = await take(2);
  if (!one || !two) throw new Error('the jobs were not taken');
  const notEnded = db.transaction(async (tx) => {
    expect(await queue.end(kind, one, tx)).toBe(true);
    throw new Error('rolled back');
  });
  await expect(notEnded).rejects.toThrow('rolled back');
  expect(await stateOf()).toMatchObject({ active: 2 });
  expect(await db.transaction((tx) => queue.endAll(kind, [one, two], tx))).toBe(2);
  expect(await stateOf()).toBeUndefined();
});

test('a late worker does not end the job of a newer attempt', async () => {
  await send(1);
  const [first] = await take(1);
  if (!first) throw new Error('the job was not taken');
  await queue.putBack(kind, first, 'stopped');
  await db.query('UPDATE pgboss.job SET start_after = now()');
  const [second] = await take(1);
  if (!second) throw new Error('the job was not taken');
  expect(second.retryCount).toBe(first.retryCount + 1);
  expect(await queue.end(kind, first, db)).toBe(false);
  expect(await stateOf()).toMatchObject({ active: 1, ready: 0 });
  expect(await queue.end(kind, second, db)).toBe(true);
  expect(await stateOf()).toBeUndefined();
});

test('chosen batches that wait for a later time become due, and no others', async () => {
  const startAfter = new Date(Date.now() + 3_600_000);
  await db.transaction((tx) => queue.send(kind, [1, 2, 3].map(jobOf), { tx, startAfter }));
  expect(await startNow(db, 'other', [1, 2, 3])).toEqual([]);
  expect(await startNow(db, appId, [1, 3, 9])).toEqual([kind.queue]);
  expect(batchesOf(await take(2)).sort()).toEqual([1, 3]);
  expect(await queue.fetch(kind, 1)).toEqual([]);
});

test('work without a job is found; a waiting or running job counts', async () => {
  await send(1, 2);
  await take(1);
  const workOf = (batchId: number | null, name = kind.queue) => ({
    queue: name,
    appId,
    pushId: 1,
    batchId,
  });
  const work = [workOf(1), workOf(2), workOf(3), workOf(null, 'plan'), workOf(1, 'deliver-fcm')];
  expect(await findJobless(db, work)).toEqual(work.slice(2));
  expect(await findJobless(db, [{ ...workOf(1), appId: 'other' }])).toHaveLength(1);
});

test("further batches of a push are spaced by the app's open pushes", async () => {
  await db.query(
    `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time,
      expires_at)
     SELECT $1, i::text, i::text, 'sending', '{}', 'prod', now(), now()
       FROM generate_series(1, 2) AS i`,
    [appId],
  );
  const priorities = new FairPriorities(appId);
  const next = (count: number) =>
    db.transaction(async (tx) => {
      const priority = await priorities.next(tx, kind, count);
      const jobs = Array.from({ length: count }, (_, i) => jobOf(i));
      await queue.send(kind, jobs, { tx, priority });
      return jobs.map((_, i) => priority(i));
    });
  expect(await next(2)).toEqual([0, -2]);
  expect(await next(1)).toEqual([-4]);
  // The queue has moved past these batches, so the next batches start at its front.
  for (const job of await take(2)) await queue.end(kind, job, db);
  expect(await next(1)).toEqual([-6]);
});

test('a queue whose priorities have fallen to the lowest one takes further batches', async () => {
  const lowest = -(2 ** 31);
  const kind = deliverJob('vendor_b');
  await db.transaction((tx) => queue.send(kind, [jobOf(0)], { tx, priority: lowest + 1 }));
  await db.transaction(async (tx) => {
    const priority = await new FairPriorities('another app').next(tx, kind, 3);
    await queue.send(kind, [1, 2, 3].map(jobOf), { tx, priority });
  });
  const priorities = await query(db).column<number>(
    'SELECT priority FROM pgboss.job WHERE name = $1 ORDER BY priority DESC',
    [kind.queue],
  );
  expect(priorities).toEqual([lowest + 1, lowest + 1, lowest, lowest]);
});
