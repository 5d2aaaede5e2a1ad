import type { Handle } from '../db/pool.ts';
import type { JobKind } from './jobs.ts';
import type { Job } from './queue.ts';
import { wakeQueues, wakeTopic } from './wake.ts';

/** Start time of held jobs: consumers do not take them, and they stay in the order of their creation. */
const heldUntil = `now() + interval '100 years'`;
const isHeld = `start_after > now() + interval '50 years'`;

/**
 * Holds a job in work until the freeze of its app, or of the whole service, ends. Returns false, and changes nothing, if
 * neither is frozen any more or another consumer has taken over the job. The freeze cannot end before `db` has committed.
 */
export async function holdJob<T extends { appId: string }>(
  db: Handle,
  kind: JobKind<T>,
  job: Job<T>,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `WITH frozen AS MATERIALIZED (
       SELECT FROM push_freeze WHERE (app_id IS NULL OR app_id = $4) AND released_at IS NULL LIMIT 1 FOR SHARE)
     UPDATE pgboss.job SET state = 'retry', start_after = ${heldUntil} FROM frozen
      WHERE name = $1 AND id = $2::uuid AND retry_count = $3 AND state = 'active'`,
    [kind.queue, job.id, job.retryCount, job.data.appId],
  );
  return (rowCount ?? 0) > 0;
}

/**
 * Gives back up to `limit` held jobs that no freeze holds any more, the oldest first, and wakes their consumers; forgets the
 * ended freezes after the last one. Returns how many. Without an ended freeze, or while another dispatcher does this, it
 * does nothing.
 */
export async function giveBackHeldJobs(tx: Handle, limit: number): Promise<number> {
  const { rows: ended } = await tx.query<{ scope: string }>(
    `SELECT coalesce(app_id, '') AS scope FROM push_freeze WHERE released_at IS NOT NULL FOR UPDATE SKIP LOCKED`,
  );
  if (ended.length === 0) return 0;
  const { rows } = await tx.query<{ given: number }>(
    `WITH due AS MATERIALIZED (
       SELECT name, id FROM pgboss.job
        WHERE state IN ('created', 'retry') AND ${isHeld}
          AND NOT EXISTS (SELECT FROM push_freeze f WHERE f.released_at IS NULL AND (f.app_id IS NULL OR f.app_id = data ->> 'appId'))
        ORDER BY created_on, id LIMIT $1 FOR UPDATE SKIP LOCKED),
     given AS (
       UPDATE pgboss.job j
          SET start_after = now(),
              data = data || jsonb_build_object('waitedUntilMs', floor(extract(epoch FROM now()) * 1000)) FROM due
        WHERE j.name = due.name AND j.id = due.id RETURNING j.name),
     woken AS (SELECT pg_notify($2, name) FROM (SELECT DISTINCT name FROM given) AS queues)
     SELECT (SELECT count(*) FROM given) AS given, (SELECT count(*) FROM woken) AS woken`,
    [limit, wakeTopic],
  );
  const given = rows[0]?.given ?? 0;
  if (given < limit) {
    const scopes = ended.map(({ scope }) => scope);
    await tx.query(`DELETE FROM push_freeze WHERE coalesce(app_id, '') = ANY ($1)`, [scopes]);
  }
  return given;
}

/**
 * Makes the waiting batches of a push due now, whatever they wait for, and wakes their consumers: those of a cancelled push end
 * unsent. A statement over the queue alone, as a spread database needs.
 */
export async function makeBatchesDue(tx: Handle, appId: string, pushId: number): Promise<void> {
  const { rows } = await tx.query<{ name: string }>(
    `WITH due AS (
       UPDATE pgboss.job SET start_after = now()
        WHERE name LIKE 'deliver-%' AND state IN ('created', 'retry') AND start_after > now()
          AND data ->> 'appId' = $1 AND data ->> 'pushId' = $2::text
       RETURNING name)
     SELECT DISTINCT name FROM due`,
    [appId, String(pushId)],
  );
  await wakeQueues(
    tx,
    rows.map(({ name }) => name),
  );
}
