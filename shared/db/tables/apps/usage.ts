import type { Usage } from '../../../domain/apps/usage.ts';
import type { Handle } from '../../pool.ts';

/** Today in UTC, by the one clock that all processes share. */
const today = `(now() AT TIME ZONE 'UTC')::date`;

/** How many of a batch's recipients may be sent to. */
export interface Grant {
  granted: number;
  size: number;
}

/**
 * Asks the app's daily cap for all recipients of a batch and notes the answer on it: min(n, cap − used),
 * taken from today's rest in the same statement, so that no number of dispatchers passes the cap
 * (protocol/delivery.md#promise-6). Undefined when the batch was granted already, by an earlier take or a late
 * worker.
 */
export async function grantRecipients(
  db: Handle,
  batch: { appId: string; batchId: number },
  cap: number,
): Promise<Grant | undefined> {
  const { rows } = await db.query<Grant>(
    `WITH batch AS (
       SELECT app_id, id, coalesce(size, cardinality(recipients)) AS size FROM push_batch
        WHERE app_id = $1 AND id = $2 AND granted IS NULL AND NOT is_settled FOR UPDATE),
     used AS (
       INSERT INTO usage_day AS u (app_id, day, recipients, last_grant)
       SELECT app_id, ${today}, least(size, $3::bigint), least(size, $3::bigint) FROM batch
       ON CONFLICT (app_id, day) DO UPDATE
          SET recipients = u.recipients + greatest(0, least(excluded.recipients, $3::bigint - u.recipients)),
              last_grant = greatest(0, least(excluded.recipients, $3::bigint - u.recipients))
       RETURNING last_grant)
     UPDATE push_batch b SET granted = used.last_grant
       FROM batch, used WHERE b.app_id = batch.app_id AND b.id = batch.id
     RETURNING b.granted, batch.size`,
    [batch.appId, batch.batchId, cap],
  );
  return rows[0];
}

/**
 * Counts one push call; `callsThisMinute` is what the shared rate limit counted, this one included. The
 * call does not wait for the disk: what a crash of the database could lose is a fraction of a second.
 */
export async function countCall(db: Handle, appId: string, callsThisMinute: number): Promise<void> {
  await db.query(
    `INSERT INTO usage_day AS u (app_id, day, calls, peak_calls_per_minute)
     SELECT $1, ${today}, 1, $2::int FROM (SELECT set_config('synchronous_commit', 'off', true)) AS setting
     ON CONFLICT (app_id, day) DO UPDATE
        SET calls = u.calls + 1,
            peak_calls_per_minute = greatest(u.peak_calls_per_minute, excluded.peak_calls_per_minute)`,
    [appId, callsThisMinute],
  );
}

/** What an app used on a day (`YYYY-MM-DD`, UTC): zeros where nothing was. */
export async function readUsage(db: Handle, appId: string, day: string): Promise<Usage> {
  const { rows } = await db.query<Usage>(
    `SELECT calls, peak_calls_per_minute AS "peakCallsPerMinute", recipients
       FROM usage_day WHERE app_id = $1 AND day = $2::date`,
    [appId, day],
  );
  return rows[0] ?? { calls: 0, peakCallsPerMinute: 0, recipients: 0 };
}

/** Deletes days before `before`; gives how many rows. */
export async function deleteOldUsage(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, day FROM usage_day WHERE day < ($1::timestamptz AT TIME ZONE 'UTC')::date
        ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED)
     DELETE FROM usage_day u USING old WHERE u.app_id = old.app_id AND u.day = old.day`,
    [before, limit],
  );
  return rowCount ?? 0;
}
