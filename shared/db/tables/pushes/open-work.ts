import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';

/** A push that waits for planning, is being sent, or was cancelled while it was sent. */
export interface OpenPush {
  appId: string;
  id: number;
}

/** Work of a push that is not paused: a batch, or its planning (and its batches without jobs of their own). */
export interface OpenWork {
  appId: string;
  pushId: number;
  /** Null: the planning of the push. */
  batchId: number | null;
  connector: ConnectorId | null;
  /** Start of a retry. */
  notBefore: Date | null;
  /** It was held and has to continue; all other work needs a job. */
  isHeld: boolean;
  /** Planning that has begun. */
  isContinued: boolean;
  /** Changes with every progress. */
  mark: string;
}

/** States in which open recipients of a push are sent to or counted. */
const working = `'queued', 'sending', 'cancelled'`;
/** Most batches of one reading. */
const maxBatches = 20_000;

/** Lists the pushes with open work, the oldest first. A paused or scheduled push needs no job. */
export async function listOpenPushes(
  tx: Handle,
  { afterId, limit }: { afterId: number; limit: number },
): Promise<OpenPush[]> {
  const ofState = (state: string) =>
    `(SELECT app_id, id FROM notification WHERE state = ${state} AND id > $1 ORDER BY id LIMIT $2)`;
  const { rows } = await tx.query<OpenPush>(
    `SELECT app_id AS "appId", id FROM (${ofState("'queued'")} UNION ALL ${ofState("'sending'")}
      UNION ALL ${ofState("'cancelled' AND devices > 0")}) AS open ORDER BY id LIMIT $2`,
    [afterId, limit],
  );
  return rows;
}

/**
 * Reads the open work of pushes. Planning needs a job until its end, and after it while batches of a
 * small push have no jobs of their own.
 */
export async function readOpenWork(tx: Handle, pushes: readonly OpenPush[]): Promise<OpenWork[]> {
  if (pushes.length === 0) return [];
  const keys = [pushes.map(({ appId }) => appId), pushes.map(({ id }) => id)];
  const { rows: plans } = await tx.query<OpenWork>(
    `WITH open AS MATERIALIZED (
       SELECT n.app_id, n.id, n.state, n.is_planned, n.is_plan_held, n.planned_through,
              bool_or(n.devices <= 1000 AND NOT b.has_job) AS is_inline,
              string_agg(md5(coalesce(b.settled, '')), '' ORDER BY b.id) FILTER (WHERE n.devices <= 1000) AS digest
         FROM unnest($1::text[], $2::bigint[]) AS o (app_id, id) JOIN notification n USING (app_id, id)
         LEFT JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled
        WHERE n.state IN (${working})
        GROUP BY n.app_id, n.id)
     SELECT app_id AS "appId", id AS "pushId", NULL AS "batchId", NULL AS connector, NULL AS "notBefore",
            is_plan_held AS "isHeld", NOT is_planned AND planned_through > 0 AS "isContinued",
            planned_through || ' ' || coalesce(digest, '') AS mark
       FROM open WHERE is_plan_held OR (NOT is_planned AND state <> 'cancelled') OR is_inline ORDER BY id`,
    keys,
  );
  const { rows: batches } = await tx.query<OpenWork>(
    `SELECT b.app_id AS "appId", b.push_id AS "pushId", b.id AS "batchId", b.connector, b.not_before AS "notBefore",
            b.is_held AS "isHeld", false AS "isContinued", md5(coalesce(b.settled, '')) AS mark
       FROM unnest($1::text[], $2::bigint[]) AS o (app_id, id) JOIN notification n USING (app_id, id)
       JOIN push_batch b ON b.app_id = n.app_id AND b.push_id = n.id
      WHERE n.state IN (${working}) AND NOT b.is_settled AND b.has_job
      ORDER BY b.id LIMIT ${maxBatches}`,
    keys,
  );
  return [...plans, ...batches];
}

/**
 * Locks the rows of work until `tx` ends, and returns the work: a transaction that settles, holds or
 * postpones it changes its row first. Omits rows that another transaction has locked, since their
 * work goes on.
 */
export async function lockOpenWork(tx: Handle, work: readonly OpenWork[]): Promise<OpenWork[]> {
  const locked: OpenWork[] = [];
  for (const table of ['notification', 'push_batch'] as const) {
    const ofTable = work.filter(({ batchId }) => (batchId === null) === (table === 'notification'));
    // A statement for each app: a sharded database locks no rows of several.
    for (const [appId, ofApp] of Map.groupBy(ofTable, (item) => item.appId)) {
      const { rows } = await tx.query<{ id: number }>(
        `SELECT id FROM ${table} WHERE app_id = $1 AND id = ANY ($2::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`,
        [appId, ofApp.map(({ pushId, batchId }) => batchId ?? pushId)],
      );
      const ids = new Set(rows.map(({ id }) => id));
      locked.push(...ofApp.filter(({ pushId, batchId }) => ids.has(batchId ?? pushId)));
    }
  }
  return locked;
}
