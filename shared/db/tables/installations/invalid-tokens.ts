import type { Handle } from '../../pool.ts';
import type { RecipientFailure } from '../pushes/reports/recipient-failures.ts';

/**
 * Deletes installations whose tokens a gateway reported invalid, unless they were updated since the send (a new token,
 * a re-registration).
 */
export async function deleteInvalidInstallations(
  tx: Handle,
  appId: string,
  failures: RecipientFailure[],
): Promise<void> {
  const invalid = failures.filter((failure) => failure.invalidAsOfMs !== null);
  if (invalid.length === 0) return;
  await tx.query(
    `DELETE FROM installation i
      USING unnest($2::bigint[], $3::float8[]) AS d (id, dead_ms)
      WHERE i.app_id = $1 AND i.id = d.id AND i.updated_at = to_timestamp(d.dead_ms / 1000.0)::timestamptz(3)`,
    [appId, invalid.map((failure) => failure.installation), invalid.map((failure) => failure.invalidAsOfMs)],
  );
}

/**
 * Does the same for a whole push at its end: for batches without a success, if their connector had one elsewhere in the
 * push. Without any success it deletes nothing (protocol/delivery.md#promise-7).
 */
export async function sweepInvalidInstallations(db: Handle, appId: string, pushId: number): Promise<void> {
  await db.query(
    `DELETE FROM installation i
      USING push_failure f
      WHERE f.app_id = $1 AND f.push_id = $2 AND f.dead_as_of IS NOT NULL
        AND i.app_id = f.app_id AND i.id = f.installation AND i.updated_at = f.dead_as_of
        AND EXISTS (SELECT 1 FROM push_batch b
                     WHERE b.app_id = f.app_id AND b.push_id = f.push_id AND b.connector = f.connector
                       AND (b.totals ->> 'sent')::bigint > 0)`,
    [appId, pushId],
  );
}
