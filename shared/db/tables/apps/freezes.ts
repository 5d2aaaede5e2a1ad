import type { Handle } from '../../pool.ts';

/** NOTIFY topic of changed freezes. */
export const freezeTopic = 'carillon_freeze';

/** A freeze: pushes of an app, or of all apps, are accepted and held. */
export interface Freeze {
  /** Null: the whole service. */
  appId: string | null;
  reason: string;
  /** Name of the operator. */
  by: string;
  since: Date;
}

const members = 'app_id AS "appId", reason, actor AS "by", since';

/** Lists the freezes, that of the whole service first. */
export async function listFreezes(db: Handle): Promise<Freeze[]> {
  const { rows } = await db.query<Freeze>(
    `SELECT ${members} FROM push_freeze WHERE released_at IS NULL ORDER BY app_id NULLS FIRST`,
  );
  return rows;
}

/**
 * Freezes an app, or the whole service (null), and tells all dispatchers once `tx` commits; a freeze that exists gets the new
 * reason. Returns undefined if the app does not exist.
 */
export async function insertFreeze(
  tx: Handle,
  { appId, reason, by }: Omit<Freeze, 'since'>,
): Promise<Freeze | undefined> {
  const { rows } = await tx.query<Freeze>(
    `INSERT INTO push_freeze AS f (app_id, reason, actor)
     SELECT $1::text, $2, $3 WHERE $1::text IS NULL OR EXISTS (SELECT FROM app WHERE app_id = $1)
     ON CONFLICT (app_id) DO UPDATE
        SET reason = excluded.reason, actor = excluded.actor, released_at = NULL,
            since = CASE WHEN f.released_at IS NULL THEN f.since ELSE excluded.since END
     RETURNING ${members}`,
    [appId, reason, by],
  );
  await notifyFreezes(tx);
  return rows[0];
}

/**
 * Ends a freeze and tells all dispatchers once `tx` commits. Its row stays until all held pushes have
 * their jobs again. Returns it; undefined if there is no such freeze.
 */
export async function releaseFreeze(tx: Handle, appId: string | null): Promise<Freeze | undefined> {
  const { rows } = await tx.query<Freeze>(
    `UPDATE push_freeze SET released_at = now()
      WHERE app_id IS NOT DISTINCT FROM $1 AND released_at IS NULL RETURNING ${members}`,
    [appId],
  );
  await notifyFreezes(tx);
  return rows[0];
}

/** Returns whether an app or the service is frozen, and keeps it so until `tx` ends. */
export async function lockFreeze(tx: Handle, appId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `SELECT FROM push_freeze WHERE (app_id IS NULL OR app_id = $1) AND released_at IS NULL LIMIT 1 FOR SHARE`,
    [appId],
  );
  return (rowCount ?? 0) > 0;
}

/** Returns whether pushes of an ended freeze may still be held. */
export async function hasEndedFreeze(db: Handle): Promise<boolean> {
  const { rowCount } = await db.query('SELECT FROM push_freeze WHERE released_at IS NOT NULL LIMIT 1');
  return (rowCount ?? 0) > 0;
}

/**
 * Locks the freezes that have ended until `tx` ends, and returns their scopes: the app, or '' for the
 * service. Omits those that another dispatcher has locked.
 */
export async function lockEndedFreezes(tx: Handle): Promise<string[]> {
  const { rows } = await tx.query<{ scope: string }>(
    `SELECT coalesce(app_id, '') AS scope FROM push_freeze WHERE released_at IS NOT NULL FOR UPDATE SKIP LOCKED`,
  );
  return rows.map(({ scope }) => scope);
}

/** Forgets locked freezes. */
export async function deleteFreezes(tx: Handle, scopes: readonly string[]): Promise<void> {
  await tx.query(`DELETE FROM push_freeze WHERE coalesce(app_id, '') = ANY ($1)`, [scopes]);
}

async function notifyFreezes(tx: Handle): Promise<void> {
  await tx.query(`SELECT pg_notify($1, '')`, [freezeTopic]);
}

/** Tells whether an app or the whole service is frozen. */
export async function isFrozen(db: Handle, appId: string): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    'SELECT EXISTS (SELECT FROM push_freeze WHERE released_at IS NULL AND (app_id IS NULL OR app_id = $1)) AS found',
    [appId],
  );
  return rows[0]?.found ?? false;
}
