import type { Handle } from '../../../pool.ts';

/** Key of a push. */
interface PushKey {
  appId: string;
  id: number;
}

/** Approval of a push to many devices; it waits while `givenAt` is null. */
export interface Approval {
  /** Devices above which the app wants an approval; null for a push that was approved before it was planned. */
  above: number | null;
  /** First of two operators who approve a push by an app's own keys. */
  firstBy: string | null;
  firstAt: Date | null;
  givenBy: string | null;
  givenAt: Date | null;
}

const columns = `above, first_by AS "firstBy", first_at AS "firstAt", given_by AS "givenBy", given_at AS "givenAt"`;

/** Finds the approval of a push; undefined if none was asked or given. */
export async function findApproval(db: Handle, { appId, id }: PushKey): Promise<Approval | undefined> {
  const { rows } = await db.query<Approval>(
    `SELECT ${columns} FROM push_approval WHERE app_id = $1 AND push_id = $2`,
    [appId, id],
  );
  return rows[0];
}

/**
 * Pauses a push whose planning begins, with its planning parked, until it is approved. Returns false, and changes nothing, if
 * it was approved or stopped in this time.
 */
export async function askForApproval(tx: Handle, { appId, id }: PushKey, above: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `WITH asked AS (
       INSERT INTO push_approval AS a (app_id, push_id, above) VALUES ($1, $2, $3)
       ON CONFLICT (app_id, push_id) DO UPDATE SET above = excluded.above WHERE a.given_at IS NULL
       RETURNING 1)
     UPDATE notification SET state = 'paused', is_plan_held = true, updated_at = now() FROM asked
      WHERE app_id = $1 AND id = $2 AND state IN ('queued', 'sending') AND planned_through = 0 AND NOT is_planned`,
    [appId, id, above],
  );
  return (rowCount ?? 0) > 0;
}

/**
 * Locks a push that is not done, and returns its approval; undefined if it is done or cancelled.
 */
export async function lockForApproval(
  tx: Handle,
  { appId, id }: PushKey,
): Promise<{ isPaused: boolean; approval: Approval | undefined } | undefined> {
  const { rows } = await tx.query<{ isPaused: boolean }>(
    `SELECT state = 'paused' AS "isPaused" FROM notification WHERE app_id = $1 AND id = $2
        AND state IN ('scheduled', 'queued', 'sending', 'paused') FOR UPDATE`,
    [appId, id],
  );
  const [push] = rows;
  return push && { ...push, approval: await findApproval(tx, { appId, id }) };
}

/** Notes the first of two operators who approve a locked push. */
export async function noteFirstApproval(tx: Handle, { appId, id }: PushKey, by: string): Promise<void> {
  await tx.query(
    `INSERT INTO push_approval AS a (app_id, push_id, first_by, first_at) VALUES ($1, $2, $3, now())
     ON CONFLICT (app_id, push_id) DO UPDATE SET first_by = excluded.first_by, first_at = excluded.first_at`,
    [appId, id, by],
  );
}

/**
 * Approves a locked push, and resumes it if it waited for that. Returns `resumed`, or `noted` for
 * one that is not planned yet.
 */
export async function giveApproval(
  tx: Handle,
  { appId, id }: PushKey,
  { by, isPaused }: { by: string; isPaused: boolean },
): Promise<'resumed' | 'noted'> {
  const { rows } = await tx.query<{ above: number | null }>(
    `INSERT INTO push_approval AS a (app_id, push_id, given_by, given_at) VALUES ($1, $2, $3, now())
     ON CONFLICT (app_id, push_id) DO UPDATE SET given_by = excluded.given_by, given_at = excluded.given_at
     RETURNING above`,
    [appId, id, by],
  );
  if (rows[0]?.above === null || !isPaused) return 'noted';
  await tx.query(
    `UPDATE notification SET state = 'sending', updated_at = now() WHERE app_id = $1 AND id = $2`,
    [appId, id],
  );
  return 'resumed';
}

/** Pushes of an app that wait for their approval. */
export interface WaitingApprovals {
  appId: string;
  pushes: number;
  /** When the first of them began to wait. */
  since: Date;
}

/** Lists apps with pushes that wait for an approval, the one that waits longest first. */
export async function listWaitingApprovals(db: Handle, limit: number): Promise<WaitingApprovals[]> {
  const { rows } = await db.query<WaitingApprovals>(
    `SELECT a.app_id AS "appId", count(*) AS pushes, min(a.asked_at) AS since
       FROM push_approval a JOIN notification n ON n.app_id = a.app_id AND n.id = a.push_id
      WHERE a.above IS NOT NULL AND a.given_at IS NULL AND n.state = 'paused' GROUP BY a.app_id ORDER BY since LIMIT $1`,
    [limit],
  );
  return rows;
}

/** Returns those of these pushes of an app that wait for their approval. */
export async function findWaitingForApproval(
  db: Handle,
  appId: string,
  ids: readonly number[],
): Promise<Set<number>> {
  if (ids.length === 0) return new Set();
  const { rows } = await db.query<{ id: number }>(
    `SELECT push_id AS id FROM push_approval
      WHERE app_id = $1 AND push_id = ANY($2::bigint[]) AND above IS NOT NULL AND given_at IS NULL`,
    [appId, ids],
  );
  return new Set(rows.map(({ id }) => id));
}
