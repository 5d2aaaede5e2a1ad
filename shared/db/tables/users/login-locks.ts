import type { Handle } from '../../pool.ts';

/** Failures that lock a user, or an identifier without a user (protocol/users.md#account-lock). */
export interface LockRule {
  /** More failures than this within the window lock. */
  maxFailures: number;
  windowMs: number;
}

/** Tells whether an identifier is locked. */
export async function isLoginLocked(
  db: Handle,
  appId: string,
  { identifier, now }: { identifier: Buffer; now: Date },
): Promise<boolean> {
  const { rows } = await db.query(
    'SELECT 1 FROM login_lock WHERE app_id = $1 AND identifier = $2 AND locked_until > $3',
    [appId, identifier, now],
  );
  return rows.length > 0;
}

/**
 * Counts a failure in one statement, so that concurrent calls are all counted. Returns whether the identifier is locked
 * now. Counts nothing while it is locked: the lock ends one window after the failure that caused it. The times of failures are
 * in order, so that `width_bucket` is the number of those before the window; a sharded database takes no subquery here.
 */
export async function countLoginFailure(
  db: Handle,
  appId: string,
  { identifier, now, rule }: { identifier: Buffer; now: Date; rule: LockRule },
): Promise<boolean> {
  const { rows } = await db.query<{ is_locked: boolean }>(
    `INSERT INTO login_lock AS l (app_id, identifier, failed_at, last_failed_at)
     VALUES ($1, $2, ARRAY[$3::timestamptz(3)], $3)
     ON CONFLICT (app_id, identifier) DO UPDATE SET
       failed_at = CASE WHEN l.locked_until > $3 THEN l.failed_at
         ELSE l.failed_at[width_bucket($4, l.failed_at) + 1:] || $3::timestamptz(3) END,
       locked_until = CASE WHEN l.locked_until > $3 THEN l.locked_until
         WHEN cardinality(l.failed_at) - width_bucket($4, l.failed_at) >= $5 THEN $6::timestamptz END,
       last_failed_at = CASE WHEN l.locked_until > $3 THEN l.last_failed_at ELSE $3 END
     RETURNING coalesce(locked_until > $3, false) AS is_locked`,
    [
      appId,
      identifier,
      now,
      new Date(now.getTime() - rule.windowMs),
      rule.maxFailures,
      new Date(now.getTime() + rule.windowMs),
    ],
  );
  return rows[0]?.is_locked ?? false;
}

/** Deletes up to `limit` entries without recent failures. Returns their number. */
export async function deleteOldLoginLocks(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, identifier FROM login_lock WHERE last_failed_at < $1 LIMIT $2)
     DELETE FROM login_lock l USING old
      WHERE l.app_id = old.app_id AND l.identifier = old.identifier AND l.last_failed_at < $1`,
    [before, limit],
  );
  return rowCount ?? 0;
}

/** Returns the failures of an identifier since `since`, and the end of its lock; null without a lock. */
export async function readLoginLock(
  db: Handle,
  appId: string,
  { identifier, now, since }: { identifier: Buffer; now: Date; since: Date },
): Promise<{ failures: number; lockedUntil: Date | null }> {
  const { rows } = await db.query<{ failures: number; locked_until: Date | null }>(
    `SELECT (SELECT count(*) FROM unnest(failed_at) AS at WHERE at > $4) AS failures,
            CASE WHEN locked_until > $3 THEN locked_until END AS locked_until
       FROM login_lock WHERE app_id = $1 AND identifier = $2`,
    [appId, identifier, now, since],
  );
  return { failures: rows[0]?.failures ?? 0, lockedUntil: rows[0]?.locked_until ?? null };
}

/** Forgets the failures of an identifier, and with them its lock. */
export async function deleteLoginLock(db: Handle, appId: string, identifier: Buffer): Promise<void> {
  await db.query('DELETE FROM login_lock WHERE app_id = $1 AND identifier = $2', [appId, identifier]);
}
