import type { Database, Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';
import { isSharded } from '../../sharding.ts';

/** Calls of one app that are counted together. */
export interface CountedCalls {
  appId: string;
  calls: number;
  /** Calls of the app that one window may have. */
  perWindow: number;
}

/** Calls of an app in its current window. */
export interface CallWindow {
  /** Calls so far, the counted ones included. */
  calls: number;
  /** Time until the window ends. */
  msLeft: number;
}

/** How calls are counted. */
export interface CountTerms {
  windowMs: number;
  /** Whether the calls within the rate count for the usage of the day; not if they are refused for another reason. */
  isUsage: boolean;
  /** Time limit of waiting for a row that another transaction changes; 0 for the time limit of a statement. */
  lockTimeoutMs: number;
}

const count = prepare(
  `WITH asked AS MATERIALIZED (
     SELECT c.app_id, c.calls, c.per_window, 'push:' || c.app_id AS key, terms.now_ms
       FROM unnest($1::text[], $2::int[], $3::int[]) AS c (app_id, calls, per_window),
            (SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms, set_config('synchronous_commit', 'off', true),
                    set_config('lock_timeout', $6, true)) AS terms
      ORDER BY c.app_id),
   taken AS (
     INSERT INTO rate_limit AS r (key, points, expire)
     SELECT key, calls, now_ms + $4::bigint FROM asked
     ON CONFLICT (key) DO UPDATE
        SET points = CASE WHEN r.expire > excluded.expire - $4::bigint THEN r.points ELSE 0 END + excluded.points,
            expire = CASE WHEN r.expire > excluded.expire - $4::bigint THEN r.expire ELSE excluded.expire END
     RETURNING key, points, expire),
   used AS (
     INSERT INTO usage_day AS u (app_id, day, calls, peak_calls_per_minute)
     SELECT app_id, (now() AT TIME ZONE 'UTC')::date, least(calls, per_window - points + calls), least(points, per_window)
       FROM asked JOIN taken USING (key) WHERE $5::boolean AND points - calls < per_window ORDER BY app_id
     ON CONFLICT (app_id, day) DO UPDATE
        SET calls = u.calls + excluded.calls,
            peak_calls_per_minute = greatest(u.peak_calls_per_minute, excluded.peak_calls_per_minute))
   SELECT app_id, points, expire - now_ms AS ms_left FROM asked JOIN taken USING (key)`,
);

/**
 * Counts push calls of different apps for their rates and for the usage of the day, whose peak is the largest count of one
 * window (protocol/push.md#call-rate). A window begins with the first call after the one before. Commits asynchronously: a
 * crash of the database loses a fraction of a second of counts. Returns the windows by app. Locks rows in the order of app
 * ids, so that two processes cannot deadlock.
 */
export async function countCalls(
  db: Database,
  apps: readonly CountedCalls[],
  terms: CountTerms,
): Promise<Map<string, CallWindow>> {
  const { lockTimeoutMs } = terms;
  if (lockTimeoutMs === 0 || !(await isSharded(db))) return countBy(db, apps, terms);
  // The workers get the time limit of a lock only from the transaction.
  return db.transaction((tx) => countBy(tx, apps, terms), { lockTimeoutMs });
}

async function countBy(
  db: Handle,
  apps: readonly CountedCalls[],
  { windowMs, isUsage, lockTimeoutMs }: CountTerms,
): Promise<Map<string, CallWindow>> {
  const { rows } = await db.query<{ app_id: string; points: number; ms_left: number }>(count, [
    apps.map(({ appId }) => appId),
    apps.map(({ calls }) => calls),
    apps.map(({ perWindow }) => perWindow),
    windowMs,
    isUsage,
    `${lockTimeoutMs}ms`,
  ]);
  return new Map(rows.map((row) => [row.app_id, { calls: row.points, msLeft: row.ms_left }]));
}

/** Makes the window of an app end `windowMs` from now, because it has passed its rate. */
export async function extendCallWindow(db: Handle, appId: string, windowMs: number): Promise<void> {
  await db.query(
    `UPDATE rate_limit SET expire = (extract(epoch FROM now()) * 1000)::bigint + $2::bigint WHERE key = 'push:' || $1`,
    [appId, windowMs],
  );
}
