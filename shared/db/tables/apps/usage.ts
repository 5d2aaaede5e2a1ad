import type { Usage } from '../../../domain/apps/usage.ts';
import type { Handle } from '../../pool.ts';
import { AppStatement } from '../../sharding.ts';
import { batchKeyValues } from '../pushes/batches.ts';

/** Today in UTC, by the clock of the database, which all processes share. */
export const today = `(now() AT TIME ZONE 'UTC')::date`;

/** Number of a batch's recipients within the daily cap. */
export interface Grant {
  granted: number;
  size: number;
}

/** A batch to charge, and the daily cap of its app. */
export interface ChargedBatch {
  appId: string;
  batchId: number;
  cap: number;
}

/** Rows of `usage_day` are locked in the order of apps, so that two such statements do not deadlock. */
const grantStatement = new AppStatement(
  4,
  (andApp) => `WITH batch AS MATERIALIZED (
     SELECT b.app_id, b.id, coalesce(b.size, cardinality(b.recipients)) AS size, k.cap
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS k (app_id, id, cap)
       JOIN push_batch b ON b.app_id = k.app_id AND b.id = k.id
      WHERE b.granted IS NULL AND NOT b.is_settled${andApp('b')} ORDER BY b.app_id, b.id FOR UPDATE OF b),
   wanted AS MATERIALIZED (SELECT app_id, sum(size)::bigint AS size, min(cap) AS cap FROM batch GROUP BY app_id),
   used AS (
     INSERT INTO usage_day AS u (app_id, day, recipients, last_grant)
     SELECT app_id, ${today}, least(size, cap), least(size, cap) FROM wanted ORDER BY app_id
     ON CONFLICT (app_id, day) DO UPDATE
        SET (recipients, last_grant) =
            (SELECT u.recipients + g.granted, g.granted
               FROM (SELECT greatest(0, least(w.size, w.cap - u.recipients)) AS granted
                       FROM wanted w WHERE w.app_id = u.app_id) AS g)
     RETURNING app_id, last_grant),
   share AS (
     SELECT b.app_id, b.id, b.size,
            greatest(0, least(b.size, u.last_grant - (sum(b.size) OVER (PARTITION BY b.app_id ORDER BY b.id) - b.size)))::int
              AS granted
       FROM batch b JOIN used u USING (app_id))
   UPDATE push_batch b SET granted = s.granted
     FROM share s WHERE b.app_id = s.app_id AND b.id = s.id${andApp('b')}
   RETURNING b.id, b.granted, s.size`,
  { isPrepared: true },
);

/**
 * Charges the recipients of batches to the daily caps of their apps and saves the grants on the batches: of each batch
 * min(n, cap − used), the oldest first. One statement reads and charges, so that any number of dispatchers stays within
 * the cap (protocol/delivery.md#promise-6). Undefined for a batch that has a grant already, from an earlier take or a
 * late worker.
 */
export async function grantRecipients(
  db: Handle,
  batches: readonly ChargedBatch[],
): Promise<(Grant | undefined)[]> {
  const done = await grantStatement.run<Grant & { id: number }, ChargedBatch>(db, batches, (part) => [
    ...batchKeyValues(part),
    part.map(({ cap }) => cap),
  ]);
  const grants = new Map(done.flatMap(({ found }) => found).map(({ id, ...grant }) => [id, grant]));
  return batches.map(({ batchId }) => grants.get(batchId));
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
