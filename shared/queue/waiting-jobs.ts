import type { Database } from '../db/pool.ts';

/** States of jobs that are not done. */
export const jobStates = ['created', 'retry', 'active'] as const;

/** Job of a queue that is not done. */
export interface WaitingJob {
  id: string;
  state: (typeof jobStates)[number];
  /** Tries so far. */
  tries: number;
  appId: string | null;
  pushId: number | null;
  batchId: number | null;
  messageId: number | null;
  createdAt: Date;
  /** Not taken before. */
  startAfter: Date;
  startedAt: Date | null;
}

export interface JobFilter {
  state?: WaitingJob['state'] | undefined;
  minTries: number;
  limit: number;
}

/** A queue may hold millions of jobs. */
const timeoutMs = 5000;

/**
 * Lists jobs of a queue that are not done, the oldest first. Throws PostgreSQL's error of a statement over its time
 * limit.
 */
export function listWaitingJobs(
  db: Database,
  queue: string,
  { state, minTries, limit }: JobFilter,
): Promise<WaitingJob[]> {
  return db.transaction(
    async (tx) => {
      const { rows } = await tx.query<WaitingJob>(
        `SELECT id, state::text AS state, retry_count AS tries, data ->> 'appId' AS "appId",
                (data ->> 'pushId')::bigint AS "pushId", (data ->> 'batchId')::bigint AS "batchId",
                (data ->> 'messageId')::bigint AS "messageId", created_on AS "createdAt",
                start_after AS "startAfter", started_on AS "startedAt"
           FROM pgboss.job
          WHERE name = $1 AND state IN ('created', 'retry', 'active') AND ($2::text IS NULL OR state::text = $2)
            AND retry_count >= $3
          ORDER BY created_on, id LIMIT $4`,
        [queue, state ?? null, minTries, limit],
      );
      return rows;
    },
    { statementTimeoutMs: timeoutMs },
  );
}
