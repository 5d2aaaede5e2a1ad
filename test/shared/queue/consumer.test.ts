import { expect, onTestFinished, test } from 'vitest';
import { Listener } from '../../../shared/db/listener.ts';
import { Consumer, type ConsumerOptions } from '../../../shared/queue/consumer.ts';
import { type MessageJob, messageJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();

test.each([
  {
    name: 'the cooldown after a fetch',
    atStart: 1,
    first: 1,
    cooldowns: { cooldownMs: 1500 },
    expected: [[1], [2, 3, 4]],
  },
  {
    name: 'the longer cooldown after a fetch of many',
    atStart: 2,
    first: 2,
    cooldowns: { cooldownMs: 1, busyCooldown: { jobs: 2, ms: 1500 } },
    expected: [
      [1, 2],
      [3, 4, 5],
    ],
  },
  {
    name: 'the cooldown, even if slots are free,',
    atStart: 3,
    first: 1,
    capacity: 3,
    cooldowns: { cooldownMs: 1500 },
    expected: [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
  },
])(
  'jobs that arrive within $name are fetched together',
  async ({ atStart, first, capacity = 10, cooldowns, expected }) => {
    const done = Promise.withResolvers<void>();
    let handled = 0;
    const { fetched, send } = await consume(atStart, { capacity, ...cooldowns }, async () => {
      handled += 1;
      if (handled === first) for (const n of [1, 2, 3]) await send(atStart + n);
      if (handled === atStart + 3) done.resolve();
    });
    await done.promise;
    expect(fetched).toEqual(expected);
  },
);

test('slots that a fetch has left are filled after the cooldown, while the others are in use', async () => {
  const third = Promise.withResolvers<void>();
  const { fetched } = await consume(3, { capacity: 3, cooldownMs: 1 }, async (messageId) => {
    if (messageId === 3) third.resolve();
    await third.promise;
  });
  await third.promise;
  expect(fetched).toEqual([[1, 2], [3]]);
});

test('a job that is taken again counts as in work until its last try has ended', async () => {
  const tries = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const taken = Promise.withResolvers<void>();
  const events: string[] = [];
  let begun = 0;
  const { consumer, queue } = await consume(1, { capacity: 2, isEnded: false }, async () => {
    begun += 1;
    if (begun === 2) {
      taken.resolve();
      await tries[1].promise;
      events.push('second try ended');
      return;
    }
    // As the supervision does after lost heartbeats.
    await service.db.query(`UPDATE pgboss.job SET state = 'retry', start_after = now()`);
    void queue.wake(messageJob);
    await tries[0].promise;
  });
  await taken.promise;
  tries[0].resolve();
  await service.db.query('SELECT 1');
  const stopped = consumer.stop(0).then(() => events.push('stopped'));
  // A consumer that does not wait stops within this time.
  for (let i = 0; i < 20; i += 1) await service.db.query('SELECT 1');
  tries[1].resolve();
  await stopped;
  expect(events).toEqual(['second try ended', 'stopped']);
});

/**
 * Starts a consumer after jobs 1 to `jobs` were sent. `fetched` contains the jobs of each fetch.
 * The consumer stops at the end of the test.
 */
async function consume(
  jobs: number,
  {
    isEnded = true,
    ...options
  }: Pick<ConsumerOptions<MessageJob>, 'capacity' | 'cooldownMs' | 'busyCooldown'> & {
    /** False if the jobs stay in the queue while they are handled. */
    isEnded?: boolean;
  },
  handle: (messageId: number) => Promise<void>,
) {
  const { db } = service;
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  const listener = new Listener(db.url, silentLog);
  await listener.start();
  const fetched: number[][] = [];
  const fetch = queue.fetch.bind(queue);
  const counting = Object.assign(queue, {
    fetch: async (...args: Parameters<typeof fetch>) => {
      const found = await fetch(...args);
      if (found.length > 0)
        fetched.push(found.map(({ data }) => messageJob.data.parse(data).messageId).sort());
      return found;
    },
  });
  const consumer = new Consumer<MessageJob>({
    queue: counting,
    listener,
    log: silentLog,
    kind: messageJob,
    duePoll: { add: () => () => undefined },
    ...options,
    handle: async (job) => {
      if (isEnded) await queue.end(messageJob, job, db);
      await handle(job.data.messageId);
      return 'done';
    },
  });
  const send = (messageId: number) =>
    db.transaction((tx) => queue.send(messageJob, [{ appId: 'app', messageId }], { tx }));
  for (let messageId = 1; messageId <= jobs; messageId += 1) await send(messageId);
  await consumer.start();
  onTestFinished(async () => {
    await consumer.stop(0);
    await listener.close();
    await queue.stop();
  });
  return { fetched, send, consumer, queue };
}
