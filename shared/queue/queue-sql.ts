/**
 * Our own statements on pg-boss's table of jobs. No other file outside pg-boss has any. Each doc
 * comment says what the public API of pg-boss lacks. They fit version 43 of its tables
 * (`queueSchemaVersion`). They name no other table, so they also work on a sharded database.
 */
import type { Database, Handle } from '../db/pool.ts';
import { PreparedStatements, prepare } from '../db/prepared.ts';
import { listsOf, query } from '../db/query.ts';

interface Attempt {
  id: string;
  retryCount: number;
}

/** Jobs that wait, and jobs that have not ended. */
const waiting = `state IN ('created', 'retry')`;
const live = `state IN ('created', 'retry', 'active')`;

const heartbeat = prepare(
  `WITH free AS MATERIALIZED (
     SELECT j.id FROM unnest($2::uuid[], $3::int[]) AS held (id, attempt)
       JOIN pgboss.job j ON j.id = held.id AND j.retry_count = held.attempt
      WHERE j.name = $1 AND j.state = 'active' FOR NO KEY UPDATE OF j SKIP LOCKED)
   UPDATE pgboss.job j SET heartbeat_on = pgboss.job_now() FROM free WHERE j.name = $1
     AND j.id = free.id`,
);

/**
 * Writes a heartbeat for jobs in work. Skips jobs that another transaction has locked, because that
 * transaction usually ends them. `touch` of pg-boss waits for these locks, and deadlocks with
 * transactions that end several jobs.
 */
export async function touchJobs(
  db: Handle,
  queue: string,
  jobs: readonly Attempt[],
): Promise<void> {
  if (jobs.length > 0) await db.query(heartbeat, [queue, ...listsOf(jobs, 'id', 'retryCount')]);
}

/**
 * Makes postponed batches of an app due now. Returns the queues that contain any. `update` of
 * pg-boss takes no list of ids.
 */
export async function startNow(
  db: Handle,
  appId: string,
  batchIds: readonly number[],
): Promise<string[]> {
  if (batchIds.length === 0) return [];
  return query(db).column<string>(
    `WITH due AS (
       UPDATE pgboss.job SET start_after = now()
        WHERE name LIKE 'deliver-%' AND ${waiting} AND start_after > now() AND data ->> 'appId' = $1
          AND (data ->> 'batchId')::bigint = ANY ($2::bigint[])
       RETURNING name)
     SELECT DISTINCT name FROM due`,
    [appId, batchIds],
  );
}

/**
 * The queue name is part of the text. If it were a parameter, PostgreSQL would plan each execution.
 */
const highestStatements = new PreparedStatements();

/**
 * Returns the highest priority of the jobs that are due; 0 without jobs. The API of pg-boss has no
 * such function.
 */
export const highestPriority = (db: Handle, { queue }: { queue: string }) =>
  query(db).number(
    highestStatements.of(
      `SELECT max(priority) AS highest FROM pgboss.job
        WHERE name = '${queue}' AND ${waiting} AND start_after <= now()`,
    ),
  );

/** Text of `findDueQueues`. It uses the index with which pg-boss fetches jobs. */
export const dueText = `SELECT name FROM unnest($1::text[]) AS queue (name)
    WHERE EXISTS (SELECT FROM pgboss.job j
                   WHERE j.name = queue.name AND j.state < 'active' AND NOT j.blocked
                     AND j.start_after <= now())`;

const dueStatement = prepare(dueText);

/**
 * Returns the queues that contain a due job. With the API of pg-boss this would be a fetch of each
 * queue every second.
 */
export const findDueQueues = (db: Handle, queues: readonly string[]) =>
  query(db).column<string>(dueStatement, [queues]);

/** Number of jobs of a queue that have not ended, and their age. */
export interface QueueState {
  queue: string;
  ready: number;
  waiting: number;
  active: number;
  oldestSeconds: number;
}

/**
 * Counts the jobs of each queue that contains any, and returns the age of the oldest due job.
 * pg-boss reports no age. Its `getQueues` returns the counts of the last maintenance, which runs
 * only on dispatchers. Without dispatchers these counts would not change.
 */
export const readQueueStates = (db: Handle) =>
  query(db).rows<QueueState>(
    `SELECT name AS queue,
            count(*) FILTER (WHERE state <> 'active' AND start_after <= now()) AS ready,
            count(*) FILTER (WHERE state <> 'active' AND start_after > now()) AS waiting,
            count(*) FILTER (WHERE state = 'active') AS active,
            greatest(0, extract(epoch FROM now() - min(greatest(created_on, start_after))
              FILTER (WHERE state <> 'active' AND start_after <= now())))::float8 AS "oldestSeconds"
       FROM pgboss.job WHERE ${live} GROUP BY name ORDER BY name`,
  );

/**
 * Counts the due jobs of a queue, at most `maxCounted`. The counts of `getQueues` are too old to
 * decide whether to refuse pushes (`readQueueStates`).
 */
export const countReady = (db: Handle, { queue }: { queue: string }, maxCounted: number) =>
  query(db).number(
    `SELECT count(*) AS ready FROM (
       SELECT FROM pgboss.job WHERE name = $1 AND ${waiting} AND start_after <= now()
         LIMIT $2) AS jobs`,
    [queue, maxCounted],
  );

/** States of jobs that have not ended. */
export const jobStates = ['created', 'retry', 'active'] as const;

/** A job that has not ended. */
export interface WaitingJob {
  id: string;
  state: (typeof jobStates)[number];
  tries: number;
  appId: string | null;
  pushId: number | null;
  batchId: number | null;
  messageId: number | null;
  createdAt: Date;
  startAfter: Date;
  startedAt: Date | null;
}

export interface JobFilter {
  state?: WaitingJob['state'] | undefined;
  minTries: number;
  limit: number;
}

/** Timeout of a list in ms. A queue may contain millions of jobs. */
const listTimeoutMs = 5000;

/**
 * Lists jobs of a queue that have not ended, oldest first. `findJobs` of pg-boss has no limit and
 * would load the whole queue. Throws PostgreSQL's error if the statement exceeds its timeout.
 */
export const listWaitingJobs = (
  db: Database,
  queue: string,
  { state, minTries, limit }: JobFilter,
) =>
  db.transaction(
    (tx) =>
      query(tx).rows<WaitingJob>(
        `SELECT id, state::text AS state, retry_count AS tries, data ->> 'appId' AS "appId",
                (data ->> 'pushId')::bigint AS "pushId", (data ->> 'batchId')::bigint AS "batchId",
                (data ->> 'messageId')::bigint AS "messageId", created_on AS "createdAt",
                start_after AS "startAfter", started_on AS "startedAt"
           FROM pgboss.job
          WHERE name = $1 AND ${live} AND ($2::text IS NULL OR state::text = $2)
            AND retry_count >= $3
          ORDER BY created_on, id LIMIT $4`,
        [queue, state, minTries, limit],
      ),
    { statementTimeoutMs: listTimeoutMs },
  );

/** Work that a job brings: a batch, or the planning of a push if there is no `batchId`. */
export interface JobWork {
  queue: string;
  appId: string;
  pushId: number;
  batchId: number | null;
}

/**
 * Returns the work that has no job. pg-boss could find it only if job ids were derived from the
 * work. Jobs of the previous release have other ids, so a batch would get a second job and be sent
 * twice.
 */
export async function findJobless<T extends JobWork>(db: Handle, work: readonly T[]): Promise<T[]> {
  if (work.length === 0) return [];
  const places = await query(db).column<number>(
    `SELECT w.place FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (queue,
      app_id, id, place)
      WHERE NOT EXISTS (SELECT FROM pgboss.job j
                         WHERE j.name = w.queue AND ${live} AND j.data ->> 'appId' = w.app_id
                           AND coalesce(j.data ->> 'batchId', j.data ->> 'pushId')::bigint = w.id)
      ORDER BY w.place`,
    [
      work.map(({ queue }) => queue),
      work.map(({ appId }) => appId),
      work.map(({ pushId, batchId }) => batchId ?? pushId),
    ],
  );
  return places.flatMap((place) => work[place - 1] ?? []);
}
