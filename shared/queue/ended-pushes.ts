import type { Handle } from '../db/pool.ts';
import { PreparedStatements, prepare } from '../db/prepared.ts';
import { settleText, settleValues, type UnsettledBatch } from '../db/tables/pushes/batches.ts';
import { type EndedPush, endSmallPushes, endText, type SmallEnd } from '../db/tables/pushes/small.ts';
import type { OutcomeTotals } from '../domain/outcome.ts';
import type { RecipientStates } from '../domain/recipient-states.ts';
import { type DeliverJob, type JobKind, type PlanJob, planJob } from './jobs.ts';
import { completeText, type Job } from './queue.ts';

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

const batchStatements = new PreparedStatements();

/** Parameters of `settleText`. */
const settleParameters = 6;

/**
 * Settles a batch (`settleBatch`) and ends its job by one statement, which needs no transaction around it. Returns false, and
 * changes nothing, as `settleBatch` does.
 */
export async function settleBatchWithJob(
  db: Handle,
  batch: UnsettledBatch,
  { states, totals }: { states: RecipientStates; totals: OutcomeTotals },
  { kind, job }: { kind: JobKind<DeliverJob>; job: Job<DeliverJob> },
): Promise<boolean> {
  const statement = batchStatements.of(
    `WITH settled AS (${settleText} RETURNING id),
       jobs AS (${completeText(kind, settleParameters + 1)} AND EXISTS (SELECT FROM settled))
     SELECT id FROM settled`,
  );
  const values = [...settleValues(batch, states, totals), job.id, job.retryCount];
  const { rows } = await db.query(statement, values);
  return rows.length > 0;
}
