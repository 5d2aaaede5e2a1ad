import type { Handle } from '../db/pool.ts';
import { insertPushes, insertPushesText, type NewPush } from '../db/tables/pushes/pushes.ts';
import { planJob } from './jobs.ts';
import type { JobQueue } from './queue.ts';

/** Payload and group of `planJob`, made of the columns that `insertPushesText` returns. */
const job = { data: `json_build_object('appId', app_id, 'pushId', id)`, group: 'app_id' };

/** Inserts pushes that are sent now, of any apps, each with the job that plans it, by one statement (`JobQueue.withJobs`). */
export async function insertQueuedPushes(
  db: Handle,
  queue: JobQueue,
  pushes: readonly NewPush[],
): Promise<void> {
  if (queue.isSpread) {
    const ids = await insertPushes(db, pushes);
    const jobs = pushes.map(({ appId }, i) => ({ appId, pushId: ids[i] ?? 0 }));
    return await queue.send(planJob, jobs, { tx: db });
  }
  await insertPushes(db, pushes, await queue.statementWithJobs(planJob, insertPushesText, job));
}
