import { expect, test } from 'vitest';
import { Listener } from '../../../shared/db/listener.ts';
import { Consumer } from '../../../shared/queue/consumer.ts';
import { type MessageJob, messageJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

test('jobs that arrive within the rest after a fetch are taken by one', async () => {
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  const listener = new Listener(db.url, silentLog);
  await listener.start();
  const fetched: number[][] = [];
  const fetch = queue.fetch.bind(queue);
  const restMs = 1500;
  const counting = Object.assign(queue, {
    fetch: async (...args: Parameters<typeof fetch>) => {
      const jobs = await fetch(...args);
      if (jobs.length > 0) fetched.push(jobs.map(({ data }) => messageJob.data.parse(data).messageId).sort());
      return jobs;
    },
  });
  const done = Promise.withResolvers<void>();
  let handled = 0;
  const consumer = new Consumer<MessageJob>({
    ...{ queue: counting, listener, log: silentLog, kind: messageJob, capacity: 10, pollMs: 60_000, restMs },
    handle: async (job) => {
      await queue.complete(messageJob, job, db);
      handled += 1;
      if (handled === 1) await Promise.all([2, 3, 4].map(send));
      if (handled === 4) done.resolve();
      return true;
    },
  });
  const send = (messageId: number) =>
    db.transaction((tx) => queue.send(messageJob, [{ appId: 'app', messageId }], { tx }));
  await send(1);
  await consumer.start();
  await done.promise;
  expect(fetched).toEqual([[1], [2, 3, 4]]);
  await consumer.stop(0);
  await listener.close();
  await queue.stop();
});
