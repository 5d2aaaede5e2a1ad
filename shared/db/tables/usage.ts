import type { Usage } from '../../domain/apps/usage.ts';
import type { Database, Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { listsOf, query, sweepOf } from '../query.ts';
import { AppStatement, isSharded } from '../sharding.ts';

/** Today in UTC by the database's clock, which all processes share. */
export const today = `(now() AT TIME ZONE 'UTC')::date`;
/** The day of the time `$1` in UTC. */
export const utcDay = `($1::timestamptz AT TIME ZONE 'UTC')::date`;

/** A batch to charge, and the daily cap of its app. */
export interface ChargedBatch {
  appId: string;
  batchId: number;
  cap: number;
}

/** Batches of several apps with their caps. Ends in a condition, like `capOfOne`. */
const capsOfAll = `k.cap
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS k (app_id, id, cap)
       JOIN push_batch b ON b.app_id = k.app_id AND b.id = k.id`;
/** Without `unnest`, which a sharded database cannot join in a statement that inserts. */
const capOfOne = `($3::bigint[])[1] AS cap
       FROM push_batch b
      WHERE b.app_id = ANY($1::text[]) AND b.id = ANY($2::bigint[])`;
/** Recipients that a call adds to the row of a day. `excluded.last_grant` is the cap. */
const added = 'greatest(0, least(excluded.recipients, excluded.last_grant - u.recipients))';

/**
 * Locks rows of `usage_day` in the order of apps, to avoid deadlocks. `last_grant` of a new row is
 * the cap, which the shares of the batches do not exceed.
 */
const grantStatement = new AppStatement(
  4,
  (andApp, isOfOne) => `WITH batch AS MATERIALIZED (
     SELECT b.app_id, b.id, coalesce(b.size, cardinality(b.recipients)) AS size,
            ${isOfOne ? capOfOne : capsOfAll}
        AND b.granted IS NULL AND NOT b.is_settled${andApp('b')} ORDER BY b.app_id, b.id
        FOR UPDATE OF b),
   used AS (
     INSERT INTO usage_day AS u (app_id, day, recipients, last_grant)
     SELECT app_id, ${today}, least(sum(size), min(cap)), min(cap) FROM batch
      GROUP BY app_id ORDER BY app_id
     ON CONFLICT (app_id, day) DO UPDATE
        SET recipients = u.recipients + ${added}, last_grant = ${added}
     RETURNING app_id, last_grant),
   share AS (
     SELECT b.app_id, b.id,
            greatest(0, least(b.size,
            u.last_grant - (sum(b.size) OVER (PARTITION BY b.app_id ORDER BY b.id) - b.size)))::int
              AS granted
       FROM batch b JOIN used u USING (app_id))
   UPDATE push_batch b SET granted = s.granted
     FROM share s WHERE b.app_id = s.app_id AND b.id = s.id${andApp('b')}
   RETURNING b.id, b.granted`,
  { isPrepared: true },
);

/**
 * Charges the recipients of batches to the daily caps of their apps, and saves the grants on the
 * batches. Oldest batch first, each gets min(n, cap − used). One statement reads and charges, so
 * all dispatchers together stay within the cap (protocol/delivery.md#promise-6). Returns the number
 * of recipients that each batch may send to; undefined for a batch that already has a grant.
 */
export async function grantRecipients(
  db: Handle,
  batches: readonly ChargedBatch[],
): Promise<(number | undefined)[]> {
  const grants = await grantStatement.rowsById<{ id: number; granted: number }, ChargedBatch>(
    db,
    batches,
    (part) => listsOf(part, 'appId', 'batchId', 'cap'),
  );
  return batches.map(({ batchId }) => grants.get(batchId)?.granted);
}

/** Reads the usage of an app on a day (`YYYY-MM-DD`, UTC). Zeros without usage. */
export async function readUsage(db: Handle, appId: string, day: string): Promise<Usage> {
  const usage = await query(db).row<Usage>(
    `SELECT calls, peak_calls_per_minute AS "peakCallsPerMinute", recipients
       FROM usage_day WHERE app_id = $1 AND day = $2::date`,
    [appId, day],
  );
  return usage ?? { calls: 0, peakCallsPerMinute: 0, recipients: 0 };
}

/** Deletes days before `before`. */
export const deleteOldUsage = sweepOf({
  table: 'usage_day',
  key: ['app_id', 'day'],
  column: 'day',
  bound: utcDay,
});

/**
 * Lists the usage of an app between two days (`YYYY-MM-DD`, UTC, both included), oldest first. Days
 * without usage are missing.
 */
export const listUsage = (db: Handle, appId: string, { from, to }: { from: string; to: string }) =>
  query(db).rows<Usage & { day: string }>(
    `SELECT day::text AS day, calls, peak_calls_per_minute AS "peakCallsPerMinute", recipients
       FROM usage_day WHERE app_id = $1 AND day BETWEEN $2::date AND $3::date ORDER BY day`,
    [appId, from, to],
  );

interface CountedCalls {
  appId: string;
  calls: number;
  /** Maximum calls of the app in one window. */
  perWindow: number;
}

interface CallWindow {
  /** Number of calls so far, including the calls that were just counted. */
  calls: number;
  /** Time until the window ends, in ms. */
  msLeft: number;
}

interface CountTerms {
  windowMs: number;
  /**
   * Whether calls within the rate count towards usage. They do not if they are refused for another
   * reason.
   */
  isUsage: boolean;
  /** Timeout of waiting for a locked row, in ms. 0: the timeout of the statement. */
  lockTimeoutMs: number;
}

const count = prepare(
  `WITH asked AS MATERIALIZED (
     SELECT c.app_id, c.calls, c.per_window, 'push:' || c.app_id AS key, terms.now_ms
       FROM unnest($1::text[], $2::int[], $3::int[]) AS c (app_id, calls, per_window),
            (SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
                    set_config('synchronous_commit', 'off', true),
                    set_config('lock_timeout', $6, true)) AS terms
      ORDER BY c.app_id),
   taken AS (
     INSERT INTO rate_limit AS r (key, points, expire)
     SELECT key, calls, now_ms + $4::bigint FROM asked
     ON CONFLICT (key) DO UPDATE
        SET points = CASE WHEN r.expire > excluded.expire - $4::bigint THEN r.points
            ELSE 0 END + excluded.points,
              expire = CASE WHEN r.expire > excluded.expire - $4::bigint THEN r.expire
            ELSE excluded.expire END
     RETURNING key, points, expire),
   used AS (
     INSERT INTO usage_day AS u (app_id, day, calls, peak_calls_per_minute)
     SELECT app_id, ${today}, least(calls, per_window - points + calls),
       least(points, per_window)
       FROM asked JOIN taken USING (key) WHERE $5::boolean AND points - calls < per_window
         ORDER BY app_id
     ON CONFLICT (app_id, day) DO UPDATE
        SET calls = u.calls + excluded.calls,
            peak_calls_per_minute = greatest(u.peak_calls_per_minute,
            excluded.peak_calls_per_minute))
   SELECT app_id AS "appId", points AS calls, expire - now_ms AS "msLeft" FROM asked
     JOIN taken USING (key)`,
);

/**
 * Counts push calls of different apps for their rates and for the usage of the day. The peak of the
 * day is the largest count of one window (protocol/push.md#call-rate). A window begins with the
 * first call after the previous window. Commits asynchronously, so a crash of the database loses
 * the counts of a moment. Returns the windows by app. Locks rows in the order of app ids, so that
 * two processes cannot deadlock.
 */
export async function countCalls(
  db: Database,
  apps: readonly CountedCalls[],
  terms: CountTerms,
): Promise<Map<string, CallWindow>> {
  const { lockTimeoutMs } = terms;
  if (lockTimeoutMs === 0 || !(await isSharded(db))) return countBy(db, apps, terms);
  // The workers of Citus get the lock timeout only from the transaction.
  return db.transaction((tx) => countBy(tx, apps, terms), { lockTimeoutMs });
}

async function countBy(
  db: Handle,
  apps: readonly CountedCalls[],
  { windowMs, isUsage, lockTimeoutMs }: CountTerms,
): Promise<Map<string, CallWindow>> {
  const rows = await query(db).rows<CallWindow & { appId: string }>(count, [
    ...listsOf(apps, 'appId', 'calls', 'perWindow'),
    windowMs,
    isUsage,
    `${lockTimeoutMs}ms`,
  ]);
  return new Map(rows.map(({ appId, ...window }) => [appId, window]));
}

/** Extends the window of an app to `windowMs` from now, because it has exceeded its rate. */
export const extendCallWindow = (db: Handle, appId: string, windowMs: number) =>
  query(db).run(
    `UPDATE rate_limit SET expire = (extract(epoch FROM now()) * 1000)::bigint + $2::bigint
      WHERE key = 'push:' || $1`,
    [appId, windowMs],
  );
