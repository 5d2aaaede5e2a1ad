import type { Handle } from '../db/pool.ts';
import type { ConnectorId } from '../domain/labels.ts';

/** A push that waits for planning, is being sent, or was cancelled while it was sent. */
export interface OpenPush {
  appId: string;
  id: number;
}

/** A push without its planning job, or without the job that unparks its work (`isRelease`). */
export interface JoblessPush extends OpenPush {
  isRelease: boolean;
  isPlanned: boolean;
  plannedThrough: number;
  /** Changes with every progress. */
  mark: string;
}

/** A batch without its job. */
export interface JoblessBatch extends OpenPush {
  pushId: number;
  connector: ConnectorId;
  /** Start of a retry. */
  notBefore: Date | null;
  mark: string;
}

/** Number of jobs above which the search is skipped: the dispatchers are busy, and it would cost too much. */
const mostJobs = 50_000;
/** Batches that one search compares with the jobs, and the most that it finds. */
const comparedBatches = 20_000;
const foundBatches = 2000;

const live = `state IN ('created', 'retry', 'active')`;
/** States in which open recipients of a push are sent to or counted. */
const working = `'queued', 'sending', 'cancelled'`;
const keysOf = (items: readonly OpenPush[]) => [items.map(({ appId }) => appId), items.map(({ id }) => id)];

/** Locks the search until `tx` ends. Returns false while another process searches or the queues are too long. */
export async function beginSearch(tx: Handle): Promise<boolean> {
  const { rows } = await tx.query<{ is_ours: boolean }>(
    `SELECT pg_try_advisory_xact_lock(hashtext('carillon lost jobs')) AS is_ours`,
  );
  if (!rows[0]?.is_ours) return false;
  const { rowCount } = await tx.query(`SELECT FROM pgboss.job WHERE ${live} OFFSET ${mostJobs} LIMIT 1`);
  return rowCount === 0;
}

/** Lists the pushes with open work, the oldest first. A paused or scheduled one needs no job. */
export async function listOpenPushes(
  tx: Handle,
  { afterId, limit }: { afterId: number; limit: number },
): Promise<OpenPush[]> {
  const ofState = (state: string) =>
    `(SELECT app_id, id FROM notification WHERE state = ${state} AND id > $1 ORDER BY id LIMIT $2)`;
  const { rows } = await tx.query<{ app_id: string; id: number }>(
    `SELECT app_id, id FROM (${ofState("'queued'")} UNION ALL ${ofState("'sending'")}
      UNION ALL ${ofState("'cancelled' AND devices > 0")}) AS open ORDER BY id LIMIT $2`,
    [afterId, limit],
  );
  return rows.map((row) => ({ appId: row.app_id, id: row.id }));
}

/**
 * Finds the pushes that need a job on the queue `plan` and have none: not planned yet, or planned with batches that the
 * planning job delivers itself, or resumed with parked work. One statement, so that it does not miss a job that is replaced
 * at the same time.
 */
export async function findJoblessPushes(tx: Handle, pushes: readonly OpenPush[]): Promise<JoblessPush[]> {
  const { rows } = await tx.query<{
    app_id: string;
    id: number;
    is_release: boolean;
    is_planned: boolean;
    planned_through: number;
    digest: string | null;
  }>(
    `WITH open AS MATERIALIZED (
       SELECT n.app_id, n.id, n.state, n.devices, n.is_planned, n.is_plan_held, n.planned_through,
              bool_or(b.is_held) AS is_held, bool_or(n.devices <= 1000 AND NOT b.has_job) AS is_inline,
              string_agg(md5(coalesce(b.settled, '')), '' ORDER BY b.id) FILTER (WHERE n.devices <= 1000) AS digest
         FROM unnest($1::text[], $2::bigint[]) AS o (app_id, id) JOIN notification n USING (app_id, id)
         LEFT JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled
        WHERE n.state IN (${working})
        GROUP BY n.app_id, n.id),
     needing AS MATERIALIZED (
       SELECT app_id, id, false AS is_release FROM open
        WHERE NOT is_plan_held AND ((NOT is_planned AND state <> 'cancelled') OR is_inline)
       UNION ALL
       SELECT app_id, id, true FROM open WHERE is_plan_held OR is_held),
     jobless AS MATERIALIZED (
       SELECT * FROM needing EXCEPT
       SELECT data ->> 'appId', (data ->> 'pushId')::bigint, coalesce((data ->> 'isRelease')::boolean, false)
         FROM pgboss.job WHERE name = 'plan' AND ${live} AND EXISTS (SELECT FROM needing))
     SELECT j.app_id, j.id, j.is_release, o.is_planned, o.planned_through, o.digest
       FROM jobless j JOIN open o USING (app_id, id) ORDER BY j.id, j.is_release`,
    keysOf(pushes),
  );
  return rows.map((row) => ({
    appId: row.app_id,
    id: row.id,
    isRelease: row.is_release,
    isPlanned: row.is_planned,
    plannedThrough: row.planned_through,
    mark: `${row.planned_through} ${row.digest ?? ''}`,
  }));
}

/**
 * Finds the open batches of `pushes` that need a job of their own and have none, the oldest first; of `ids` only, if
 * given.
 */
export async function findJoblessBatches(
  tx: Handle,
  pushes: readonly OpenPush[],
  ids: number[] | null = null,
): Promise<JoblessBatch[]> {
  const { rows } = await tx.query<{
    app_id: string;
    id: number;
    push_id: number;
    connector: ConnectorId;
    not_before: Date | null;
    digest: string;
  }>(
    `WITH loose AS MATERIALIZED (
       SELECT b.app_id, b.id, b.connector
         FROM unnest($1::text[], $2::bigint[]) AS o (app_id, id)
         JOIN notification n USING (app_id, id)
         JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id
        WHERE n.state IN (${working}) AND NOT b.is_settled AND b.has_job AND NOT b.is_held
          AND ($3::bigint[] IS NULL OR b.id = ANY($3)) LIMIT ${comparedBatches}),
     jobless AS MATERIALIZED (
       SELECT app_id, id FROM loose EXCEPT
       SELECT data ->> 'appId', (data ->> 'batchId')::bigint
         FROM pgboss.job WHERE name IN (SELECT 'deliver-' || connector FROM loose) AND ${live}
       ORDER BY id LIMIT ${foundBatches})
     SELECT b.app_id, b.id, b.push_id, b.connector, b.not_before, md5(coalesce(b.settled, '')) AS digest
       FROM jobless j JOIN push_batch b USING (app_id, id) ORDER BY b.id`,
    [...keysOf(pushes), ids],
  );
  return rows.map((row) => ({
    appId: row.app_id,
    id: row.id,
    pushId: row.push_id,
    connector: row.connector,
    notBefore: row.not_before,
    mark: row.digest,
  }));
}

/**
 * Locks rows until `tx` ends, so that a later statement sees whether they still have no job: a transaction that
 * settles, parks or postpones a batch changes its row first. Omits rows that another transaction has locked, since
 * their work goes on.
 */
export async function lockJobless<T extends OpenPush>(
  tx: Handle,
  table: 'notification' | 'push_batch',
  items: readonly T[],
): Promise<T[]> {
  const locked = new Set<number>();
  // A statement for each app: a database that is spread by app_id locks no rows of several.
  for (const [appId, ofApp] of Map.groupBy(items, (item) => item.appId)) {
    const { rows } = await tx.query<{ id: number }>(
      `SELECT id FROM ${table} WHERE app_id = $1 AND id = ANY($2::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`,
      [appId, ofApp.map(({ id }) => id)],
    );
    for (const { id } of rows) locked.add(id);
  }
  return items.filter(({ id }) => locked.has(id));
}
