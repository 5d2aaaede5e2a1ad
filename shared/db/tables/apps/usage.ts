import type { Usage } from '../../../domain/apps/usage.ts';
import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';

/** Today in UTC, by the clock of the database, which all processes share. */
export const today = `(now() AT TIME ZONE 'UTC')::date`;

/** Number of a batch's recipients within the daily cap. */
export interface Grant {
  granted: number;
  size: number;
}

const grantStatement = prepare(
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
     FROM batch, used WHERE b.app_id = $1 AND b.id = $2
   RETURNING b.granted, batch.size`,
);

/**
 * Charges the recipients of a batch to the app's daily cap and saves the grant on the batch: min(n, cap − used). One
 * statement reads and charges, so that any number of dispatchers stays within the cap (protocol/delivery.md#promise-6).
 * Returns undefined when the batch has a grant already, from an earlier take or a late worker.
 */
export async function grantRecipients(
  db: Handle,
  batch: { appId: string; batchId: number },
  cap: number,
): Promise<Grant | undefined> {
  const { rows } = await db.query<Grant>(grantStatement, [batch.appId, batch.batchId, cap]);
  return rows[0];
}

/** Reads the usage of an app on a day (`YYYY-MM-DD`, UTC); zeros without any. */
export async function readUsage(db: Handle, appId: string, day: string): Promise<Usage> {
  const { rows } = await db.query<Usage>(
    `SELECT calls, peak_calls_per_minute AS "peakCallsPerMinute", recipients
       FROM usage_day WHERE app_id = $1 AND day = $2::date`,
    [appId, day],
  );
  return rows[0] ?? { calls: 0, peakCallsPerMinute: 0, recipients: 0 };
}

/** Deletes days before `before`. Returns the number of rows. */
export async function deleteOldUsage(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, day FROM usage_day WHERE day < ($1::timestamptz AT TIME ZONE 'UTC')::date
        ORDER BY day LIMIT $2)
     DELETE FROM usage_day u USING old WHERE u.app_id = old.app_id AND u.day = old.day`,
    [before, limit],
  );
  return rowCount ?? 0;
}

/**
 * Lists the usage of an app from one day to another (`YYYY-MM-DD`, UTC, both included), oldest first; days without any
 * are missing.
 */
export async function listUsage(
  db: Handle,
  appId: string,
  { from, to }: { from: string; to: string },
): Promise<(Usage & { day: string })[]> {
  const { rows } = await db.query<Usage & { day: string }>(
    `SELECT day::text AS day, calls, peak_calls_per_minute AS "peakCallsPerMinute", recipients
       FROM usage_day WHERE app_id = $1 AND day BETWEEN $2::date AND $3::date ORDER BY day`,
    [appId, from, to],
  );
  return rows;
}
