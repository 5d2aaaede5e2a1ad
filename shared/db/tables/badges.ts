import { againAfterDeadlock } from '../limits/database-errors.ts';
import type { Handle } from '../pool.ts';
import { type PreparedStatement, prepare } from '../prepared.ts';
import { query } from '../query.ts';
import type { Batch } from './batches.ts';

type BatchKey = Pick<Batch, 'appId' | 'id'>;

/**
 * SQL condition of the recipients of a batch. Rows are locked in the order of the scan, usually the
 * order of their ids. Locking them in a fixed order first would cost half as much again, so a rare
 * deadlock is repeated instead.
 */
const ofBatch = (recipients: string) =>
  `i.app_id = $1 AND i.id = ANY((SELECT recipients FROM ${recipients})::bigint[])`;

/** Maximum tries of a statement that ends in deadlocks. */
const maxTries = 5;
const largestBadge = 2 ** 31 - 1;

/** Increments all badges or none. The updated row must fit into its page (migration 0031). */
const incrementStatement = prepare(
  `WITH held AS MATERIALIZED (
     SELECT recipients FROM push_batch WHERE app_id = $1 AND id = $2
       AND badges IS NULL FOR NO KEY UPDATE),
   counted AS (
     UPDATE installation i SET badge = least(coalesce(i.badge, 0), ${largestBadge - 1}) + 1
      WHERE ${ofBatch('held')} RETURNING i.id, i.badge),
   listed AS (
     SELECT array_agg(c.badge ORDER BY r.place) AS badges
       FROM held, unnest(held.recipients) WITH ORDINALITY AS r (id, place) LEFT JOIN counted c
         ON c.id = r.id),
   saved AS (
     UPDATE push_batch b SET badges = listed.badges FROM listed
      WHERE b.app_id = $1 AND b.id = $2 AND EXISTS (SELECT FROM held) RETURNING b.badges)
   SELECT array_to_string(badges, ',', '') AS badges FROM saved`,
);

const countedStatement = prepare(
  `SELECT array_to_string(badges, ',', '') AS badges FROM push_batch WHERE app_id = $1 AND id = $2`,
);

/**
 * Increments the badge of every recipient of a batch, only once even if the batch is delivered
 * again. Returns the numbers in the order of its recipients, null for a deleted one
 * (protocol/apns.md#badge: a retry sends the same number).
 */
export async function incrementBadges(
  db: Handle,
  { appId, id }: BatchKey,
): Promise<(number | null)[]> {
  const increment = () => readBadges(db, incrementStatement, { appId, id });
  const counted = await againAfterDeadlock(increment, maxTries);
  // Undefined if another delivery has incremented them. That delivery may have committed after this
  // statement began, so a second statement reads the numbers.
  const badges = counted ?? (await readBadges(db, countedStatement, { appId, id }));
  if (!badges) throw new Error('the batch was deleted');
  return badges;
}

async function readBadges(
  db: Handle,
  statement: PreparedStatement,
  { appId, id }: BatchKey,
): Promise<(number | null)[] | undefined> {
  const badges = await query(db).value<string | null>(statement, [appId, id]);
  return badges?.split(',').map((badge) => (badge === '' ? null : Number(badge)));
}

const setStatement = prepare(
  `UPDATE installation i SET badge = $3
    WHERE ${ofBatch('push_batch WHERE app_id = $1 AND id = $2')} AND i.badge IS DISTINCT FROM $3`,
);

/** Saves the badge that a push sets, so that a later `Increment` continues from it. */
export async function setBadges(db: Handle, { appId, id }: BatchKey, badge: number): Promise<void> {
  await againAfterDeadlock(() => db.query(setStatement, [appId, id, badge]), maxTries);
}
