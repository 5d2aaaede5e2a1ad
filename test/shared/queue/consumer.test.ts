import { expect, test } from 'vitest';
import { Listener } from '../../../shared/db/listener.ts';
import { Consumer } from '../../../shared/queue/consumer.ts';
import { type MessageJob, messageJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

test.each([
  {
    name: 'the cooldown after a fetch',
    first: 1,
    cooldowns: { cooldownMs: 1500 },
    expected: [[1], [2, 3, 4]],
  },
  {
    name: 'the longer cooldown after a fetch of many',
    first: 2,
    cooldowns: { cooldownMs: 1, busyCooldown: { jobs: 2, ms: 1500 } },
    expected: [
      [1, 2],
      [3, 4, 5],
    ],
  },
])('jobs that arrive within $name are fetched together', async ({ first, cooldowns, expected }) => {
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  const listener = new Listener(db.url, silentLog);
  await listener.start();
  const fetched: number[][] = [];
  const fetch = queue.fetch.bind(queue);
  const counting = Object.assign(queue, {
    fetch: async (...args: Parameters<typeof fetch>) => {
      const jobs = await fetch(...args);
      if (jobs.length > 0)
        fetched.push(jobs.map(({ data }) => messageJob.data.parse(data).messageId).sort());
      return jobs;
    },
  });
  const done = Promise.withResolvers<void>();
  let handled = 0;
  const consumer = new Consumer<MessageJob>({
    queue: counting,
    listener,
    log: silentLog,
    kind: messageJob,
    capacity: 10,
    duePoll: { add: () => () => undefined },
    ...cooldowns,
    handle: async (job) => {
      await queue.end(messageJob, job, db);
      handled += 1;
      if (handled === first) await Promise.all([1, 2, 3].map((n) => send(first + n)));
      if (handled === first + 3) done.resolve();
      return 'done';
    },
  });
  const send = (messageId: number) =>
    db.transaction((tx) => queue.send(messageJob, [{ appId: 'app', messageId }], { tx }));
  for (let messageId = 1; messageId <= first; messageId += 1) await send(messageId);
  await consumer.start();
  await done.promise;
  expect(fetched).toEqual(expected);
  await consumer.stop(0);
  await listener.close();
  await queue.stop();
});
