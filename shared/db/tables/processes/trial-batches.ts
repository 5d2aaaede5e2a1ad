/**
 * Rows of a push that does not exist, made by PostgreSQL: a fresh process reads them in place of a batch, so that its code is
 * compiled before the first push (dispatcher/startup/warm-up.ts). Nothing is written.
 */
import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';
import { type Batch, type BatchRow, toBatch } from '../pushes/batches.ts';
import { loadRecipientsFrom, type RecipientGroup } from '../pushes/recipients.ts';

/** Ids have as many digits as those of a large table. */
const firstId = 1_000_000;

/** App, connector, profile and topic of a trial batch. */
export const trial = { appId: '', connector: 'apns', profile: '_default', topic: 'trial' } as const;

const batchStatement = prepare(
  `SELECT '' AS app_id, 0::bigint AS id, 0::bigint AS push_id, 'apns' AS connector, '_default' AS profile,
          array_agg($1::bigint + i) AS recipients, NULL::int[] AS badges, NULL::bytea AS settled, NULL::int[] AS moved,
          false AS is_settled, 0 AS attempt, 0 AS tries, 0 AS unanswered
     FROM generate_series(1, $2::int) AS i`,
);

const installations = `(SELECT $1::bigint + i AS id, 'ios' AS device_type, NULL::text AS vendor_name, 'trial' AS topic,
          NULL::text AS team_id, lpad(to_hex(i), 64, '0') AS device_token, now() AS updated_at
     FROM generate_series(1, $2::int) AS i) AS trial`;

/** Returns a batch of `size` iOS installations. */
export async function findTrialBatch(db: Handle, size: number): Promise<Batch | undefined> {
  const { rows } = await db.query<BatchRow>(batchStatement, [firstId, size]);
  return rows.map(toBatch)[0];
}

/** Loads the recipients of such a batch. */
export const loadTrialRecipients = (db: Handle, size: number): Promise<RecipientGroup[]> =>
  loadRecipientsFrom(db, 'deviceToken', { from: installations, values: [firstId, size] });
