import type { Handle } from '../db/pool.ts';
import { batchesText, insertBatchesText, type NewBatch } from '../db/tables/pushes/batches.ts';
import { advanceText, countOpenText, type PlanningStep, stepValues } from '../db/tables/pushes/progress.ts';
import { insertPushes, insertPushesText, type NewPush } from '../db/tables/pushes/pushes.ts';
import { type DeliverJob, type JobKind, type PlanJob, planJob } from './jobs.ts';
import { completeText, highestText, type Job, type JobQueue } from './queue.ts';

/** Payload and group of `planJob`, made of the columns that `insertPushesText` returns. */
const job = {
  data: `json_strip_nulls(json_build_object('appId', app_id, 'pushId', id, 'hasNoWhere', nullif(has_no_where, false)))`,
  group: 'app_id',
};

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
  await insertPushes(
    db,
    pushes,
    await queue.statementWithJobs(planJob, `written AS (${insertPushesText})`, job),
  );
}

/** A page of batches on one queue, and the step of planning that writes it. */
export interface BatchesToQueue {
  appId: string;
  pushId: number;
  kind: JobKind<DeliverJob>;
  batches: readonly NewBatch[];
  step: PlanningStep;
  /** Priority of the push's last batch on this queue; null for none. */
  lastPriority: number | null;
  /** Job that plans the push, which ends with the last page. */
  job: Job<PlanJob>;
}

/**
 * Advances the planning of a push, writes batches and their jobs, and ends the planning job with the last page, by one statement,
 * which needs no transaction around it: as `advancePlanning`, `insertBatches`, `JobQueue.send` and `JobQueue.complete` do.
 * The jobs have the priorities of `FairPriorities`; returns the last one. Returns undefined, and changes nothing, where
 * `advancePlanning` returns false. Not for a spread database.
 */
export async function queueBatches(
  db: Handle,
  queue: JobQueue,
  { appId, pushId, kind, batches, step, lastPriority, job }: BatchesToQueue,
): Promise<number | undefined> {
  const statement = await queue.statementWithJobs(kind, pageText(kind), batchJob);
  const { rows } = await db.query<{ priority: number }>(statement, [
    ...[appId, pushId, batchesText(batches), ...stepValues(step)],
    ...[lastPriority, job.id, job.retryCount, job.data.waitedUntilMs ?? null],
  ]);
  return rows.length === 0 ? undefined : Math.min(...rows.map(({ priority }) => priority));
}

/** Payload and priority of a batch's job, made of the columns of `written` and parameters of `queueBatches`. */
const batchJob = {
  data: `json_strip_nulls(json_build_object('appId', $1::text, 'pushId', $2::bigint, 'batchId', id,
           'waitedUntilMs', $11::float8))`,
  priority: 'priority',
};

/** Place of the first parameter of a step in `pageText`: its parts have the parameters before it. */
const stepPlace = 4;
const [isLast, lastPriority, jobPlace] = [stepPlace + 3, stepPlace + 4, stepPlace + 5];

const pageText = (kind: JobKind<DeliverJob>): string =>
  `advanced AS (${advanceText(stepPlace)} RETURNING 1),
   inserted AS (${insertBatchesText('EXISTS (SELECT FROM advanced)')}),
   ended AS (${completeText(planJob, jobPlace)} AND $${isLast} AND EXISTS (SELECT FROM advanced)),
   front AS (${highestText(kind)}),
   open AS (${countOpenText}),
   terms AS MATERIALIZED (
     SELECT coalesce(highest, 0) AS front, greatest(1, n)::int AS step FROM front, open),
   written AS MATERIALIZED (
     SELECT id, least(front, $${lastPriority}::int - step) - (row_number() OVER (ORDER BY id) - 1)::int * step AS priority
       FROM inserted, terms)`;
