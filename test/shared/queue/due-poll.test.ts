import { afterAll, beforeAll, expect, test } from 'vitest';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { deliverJob, messageJob, planJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { dueText } from '../../../shared/queue/queue-sql.ts';
import { DuePoll } from '../../../shared/queue/waking.ts';
import { openTestDatabase } from '../../support/database.ts';

const log = createLogger({ level: 'silent', name: 'test' });
const { db } = await openTestDatabase();
let queue: JobQueue;

beforeAll(async () => {
  queue = new JobQueue(db, log, { supervise: false });
  await queue.start();
});
afterAll(async () => {
  await queue.stop();
});

test('the poll wakes only consumers of a queue with an available job', async () => {
  const poll = new DuePoll(db, log);
  const wakes: string[] = [];
  const add = (queueName: string, name = queueName) => poll.add(queueName, () => wakes.push(name));
  add(planJob.queue);
  add(planJob.queue, 'continued plans');
  add(messageJob.queue);
  const apns = deliverJob('apns');
  const remove = add(apns.queue);
  const later = new Date(systemClock.now() + hourMs);
  await db.transaction(async (tx) => {
    await queue.send(planJob, [{ appId: 'app', pushId: 1 }], { tx, startAfter: later });
    await queue.send(apns, [{ appId: 'app', pushId: 1, batchId: 1 }], { tx });
  });
  await expect.poll(() => wakes.length).toBeGreaterThanOrEqual(2);
  expect(new Set(wakes)).toEqual(new Set([apns.queue]));
  remove();
  await db.query(`UPDATE pgboss.job SET start_after = now() WHERE name = $1`, [planJob.queue]);
  wakes.length = 0;
  await expect.poll(() => wakes.length).toBeGreaterThanOrEqual(2);
  expect(new Set(wakes)).toEqual(new Set([planJob.queue, 'continued plans']));
  await poll.stop();
  // A job that was fetched is not due.
  expect((await queue.fetch(planJob, 1)).length).toBe(1);
  const next = new DuePoll(db, log);
  const woken = new Set<string>();
  for (const name of [planJob.queue, apns.queue]) next.add(name, () => woken.add(name));
  await expect.poll(() => woken.has(apns.queue)).toBe(true);
  expect(woken.has(planJob.queue)).toBe(false);
  await next.stop();
});

test("the poll reads only the queue's index if many jobs wait for a later time", async () => {
  const waiting = 20_000;
  await db.query(
    `INSERT INTO pgboss.job_common (name, data, start_after)
     SELECT $1, '{}', now() + interval '1 day' FROM generate_series(1, $2::int)`,
    [messageJob.queue, waiting],
  );
  await db.query('ANALYZE pgboss.job_common');
  const { rows } = await db.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${dueText.replace('$1', `'{${messageJob.queue},${planJob.queue}}'`)}`,
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan;
  expect(plan?.['Shared Hit Blocks']).toBeGreaterThan(0);
  expect((plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)).toBeLessThan(
    waiting / 50,
  );
});
