import { guardFrom } from '../../../domain/pushes/invalid-tokens.ts';
import type { Handle } from '../../pool.ts';
import type { ReceiptSource } from '../pushes/receipts.ts';

/** Report of an invalid device token in a gateway's receipt. */
export interface InvalidTokenNotice {
  pushId: number;
  registrationId: string;
  /** The report does not apply to an installation updated after this. */
  asOf: Date;
  /** False if the gateway only suspects it; a second push must confirm it. */
  isSure: boolean;
}

/**
 * Records invalid tokens of receipts for installations that were not updated since. A suspicion becomes certain when
 * another push reports the same for an installation that was not updated in between.
 */
export async function recordInvalidTokens(
  tx: Handle,
  { appId, connector }: ReceiptSource,
  notices: readonly InvalidTokenNotice[],
): Promise<void> {
  if (notices.length === 0) return;
  await tx.query(
    `INSERT INTO dead_notice AS n (app_id, installation, push_id, connector, saved_at, is_sure)
     SELECT DISTINCT ON (i.id) $1, i.id, t.push_id, $2, i.updated_at, t.is_sure
       FROM unnest($3::bigint[], $4::text[], $5::timestamptz[], $6::boolean[]) AS t (push_id, registration_id, as_of, is_sure)
       JOIN installation i ON i.app_id = $1 AND i.registration_id = t.registration_id AND i.vendor = $2
                          AND i.updated_at <= t.as_of
      ORDER BY i.id, t.is_sure DESC, t.push_id
     ON CONFLICT (app_id, installation) DO UPDATE
        SET is_sure = excluded.is_sure
                   OR (n.saved_at = excluded.saved_at AND n.connector = excluded.connector
                       AND (n.is_sure OR n.push_id <> excluded.push_id)),
            push_id = excluded.push_id, connector = excluded.connector, saved_at = excluded.saved_at,
            noted_at = excluded.noted_at`,
    [
      appId,
      connector,
      notices.map((notice) => notice.pushId),
      notices.map((notice) => notice.registrationId),
      notices.map((notice) => notice.asOf),
      notices.map((notice) => notice.isSure),
    ],
  );
}

/** Deletes the reports of devices that a message has reached. */
export async function clearInvalidTokens(
  tx: Handle,
  appId: string,
  installations: readonly number[],
): Promise<void> {
  if (installations.length === 0) return;
  await tx.query('DELETE FROM dead_notice WHERE app_id = $1 AND installation = ANY ($2::bigint[])', [
    appId,
    installations,
  ]);
}

/**
 * Deletes the installations with certain reports of these pushes, if they were not updated since
 * and the push reached some device of the connector (protocol/delivery.md#promise-7). In a push to
 * many it must have reached at least the number that is reported: receipts come one after the other, and may
 * never come for some devices, so their share is unknown. Keeps the public ids in the push's
 * failures.
 */
export async function deleteReportedInvalid(
  tx: Handle,
  { appId, connector }: ReceiptSource,
  pushIds: readonly number[],
): Promise<void> {
  if (pushIds.length === 0) return;
  const { rows } = await tx.query<{ push_id: number }>(
    `SELECT t.push_id FROM push_receipt_total t JOIN notification p ON p.app_id = $1 AND p.id = t.push_id
      WHERE t.app_id = $1 AND t.connector = $2 AND t.push_id = ANY ($3::bigint[]) AND t.delivered > 0
        AND (p.devices < ${guardFrom} OR t.delivered >= t.deleted +
               (SELECT count(*) FROM dead_notice n
                 WHERE n.app_id = $1 AND n.push_id = t.push_id AND n.connector = $2 AND n.is_sure))`,
    [appId, connector, pushIds],
  );
  for (const { push_id: pushId } of rows) {
    const deleted = await deleteReported(tx, { appId, connector, pushId });
    await tx.query(
      `UPDATE push_receipt_total SET deleted = deleted + $4
        WHERE $4 > 0 AND app_id = $1 AND push_id = $2 AND connector = $3`,
      [appId, pushId, connector, deleted],
    );
  }
}

/**
 * Deletes the installations with certain reports of a push, of one connector or of all. Returns
 * their number.
 */
export async function deleteReported(
  tx: Handle,
  { appId, connector, pushId }: { appId: string; connector?: ReceiptSource['connector']; pushId: number },
): Promise<number> {
  const { rowCount } = await tx.query(
    `WITH due AS (
       DELETE FROM dead_notice
        WHERE app_id = $1 AND push_id = $2 AND is_sure AND ($3::text IS NULL OR connector = $3)
       RETURNING installation, saved_at, connector),
     gone AS (
       DELETE FROM installation i USING due
        WHERE i.app_id = $1 AND i.id = due.installation AND i.updated_at = due.saved_at
       RETURNING i.id, i.object_id, due.connector)
     INSERT INTO push_failure (app_id, push_id, installation, object_id, connector, outcome, status, reason)
     SELECT $1, $2, id, object_id, connector, 'sent', 0, 'dead_by_receipt' FROM gone ON CONFLICT DO NOTHING`,
    [appId, pushId, connector ?? null],
  );
  return rowCount ?? 0;
}

/** Deletes reports older than `before`; returns their number. */
export async function deleteOldInvalidTokenNotices(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, installation FROM dead_notice WHERE noted_at < $1 ORDER BY noted_at LIMIT $2)
     DELETE FROM dead_notice n USING old
      WHERE n.app_id = old.app_id AND n.installation = old.installation AND n.noted_at < $1`,
    [before, limit],
  );
  return rowCount ?? 0;
}
