import { expect, test } from 'vitest';
import { Database } from '../../../shared/db/pool.ts';
import { findBatch, insertBatches } from '../../../shared/db/tables/pushes/batches.ts';
import { RecipientStates } from '../../../shared/domain/recipient-states.ts';
import { settleBatchWithJob } from '../../../shared/queue/ended-pushes.ts';
import { deliverJob } from '../../../shared/queue/jobs.ts';
import { JobQueue } from '../../../shared/queue/queue.ts';
import { silentLog } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';

test('one statement settles a batch and completes its job, once, and not the job of a later attempt', async () => {
  // No dispatcher works on this database.
  const database = await createTestDatabase();
  const db = new Database({ url: database.url, applicationName: 'settled' });
  const queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  const kind = deliverJob('apns');
  const ids = { appId: 'app', pushId: 1 };
  const batch = { connector: 'apns', profile: '_default', badges: null, attempt: 0, hasJob: true } as const;
  const rows = [1, 2].map((id) => ({ ...batch, recipients: [id] }));
  const batchIds = await insertBatches(db, ids.appId, ids.pushId, rows);
  const jobs = batchIds.map((batchId) => ({ ...ids, batchId }));
  await db.transaction((tx) => queue.send(kind, jobs, { tx, priority: (place) => -place }));
  const [one, other] = await queue.fetch(kind, 2);
  if (!one || !other) throw new Error('the jobs were not taken');
  const settle = (job: typeof one, retriedCount = 0) => {
    const states = RecipientStates.allOpen(1);
    states.settle(0, 'sent');
    const stored = { appId: ids.appId, id: job.data.batchId, retriedCount };
    return settleBatchWithJob(db, stored, { states, totals: { sent: 1 } }, { kind, job });
  };
  const states = async () =>
    (await queue.states()).find(({ queue: name }) => name === kind.queue)?.active ?? 0;

  // More recipients have moved to retry batches than the batch has.
  expect(await settle(one, 1)).toBe(false);
  expect(await states()).toBe(2);

  expect(await settle(one)).toBe(true);
  expect(await states()).toBe(1);
  expect((await findBatch(db, ids.appId, one.data.batchId))?.isSettled).toBe(true);
  expect(await settle(one)).toBe(false);

  // A late worker settles the batch; the attempt that has taken it over keeps its job.
  expect(await settle({ ...other, retryCount: other.retryCount - 1 })).toBe(true);
  expect(await states()).toBe(1);
  await queue.stop();
  await db.close();
  await database.drop();
});
