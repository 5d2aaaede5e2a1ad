import { expect, test } from 'vitest';
import { messageJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

test('a heartbeat does not wait for a job that is being ended, in any order of jobs', async () => {
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  await db.transaction((tx) =>
    queue.send(
      messageJob,
      [1, 2, 3].map((messageId) => ({ appId: 'app', messageId })),
      { tx },
    ),
  );
  const jobs = await queue.fetch(messageJob, 3);
  const [first, second] = jobs;
  if (!first || !second) throw new Error('the queue has three jobs');
  await db.query(
    "UPDATE pgboss.job SET heartbeat_on = now() - interval '5 seconds' WHERE name = $1",
    [messageJob.queue],
  );
  for (const touched of [jobs, jobs.toReversed()]) {
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const)
      await db.transaction(async (tx) => {
        const lock = (id: string) =>
          tx.query('SELECT FROM pgboss.job WHERE id = $1 FOR UPDATE', [id]);
        await lock(one.id);
        // If the heartbeat waited for this transaction, it would keep a lock on the other job,
        // which this transaction needs next.
        await queue.touch(messageJob, touched);
        await lock(other.id);
      });
  }
  const { rows } = await db.query<{ id: string }>(
    "SELECT id FROM pgboss.job WHERE name = $1 AND heartbeat_on > now() - interval '4 seconds' ORDER BY id",
    [messageJob.queue],
  );
  expect(rows.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id).toSorted());
  await queue.stop();
});
