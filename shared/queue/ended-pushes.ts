import type { Handle } from '../db/pool.ts';
import { prepare } from '../db/prepared.ts';
import { type EndedPush, endSmallPushes, endText, type SmallEnd } from '../db/tables/pushes/small.ts';
import { type PlanJob, planJob } from './jobs.ts';
import type { Job } from './queue.ts';

/** End of a push to one device, with the job that planned it. */
export interface EndOfJob extends SmallEnd {
  job: Job<PlanJob>;
}

/**
 * Deletes the jobs of the pushes, except those that another consumer has taken over. pg-boss would mark them as
 * completed, which writes each row and its index entries once more, and delete them some minutes later.
 */
const endJobs = `jobs AS (
    DELETE FROM pgboss.job j USING input i
     WHERE j.name = '${planJob.queue}' AND j.id = i.job_id AND j.retry_count = i.job_attempt AND j.state = 'active')`;

const statement = prepare(endText([endJobs]));

/** Ends pushes to one device (`endSmallPushes`) and their planning jobs by one statement. */
export const endPushesWithJobs = (db: Handle, ends: readonly EndOfJob[]): Promise<EndedPush[]> =>
  endSmallPushes(db, ends, statement);
