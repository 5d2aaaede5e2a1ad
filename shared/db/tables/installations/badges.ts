import { isDeadlock } from '../../limits/database-errors.ts';
import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';

/** Key of a batch. */
interface BatchKey {
  appId: string;
  id: number;
}

/**
 * Condition for the recipients of a batch. Rows are locked in the order of the scan, as a rule that of their ids; a lock in a
 * fixed order before the update would cost half as much again, so that a rare deadlock is repeated instead.
 */
const ofBatch = (recipients: string) =>
  `i.app_id = $1 AND i.id = ANY((SELECT recipients FROM ${recipients})::bigint[])`;

const largestBadge = 2 ** 31 - 1;

/**
 * Counts in one statement, so that either all of it is stored or nothing. Each update must fit into its page (migration
 * 0031).
 */
const incrementStatement = prepare(
  `WITH held AS MATERIALIZED (
     SELECT recipients FROM push_batch WHERE app_id = $1 AND id = $2 AND badges IS NULL FOR NO KEY UPDATE),
   counted AS (
     UPDATE installation i SET badge = least(coalesce(i.badge, 0), ${largestBadge - 1}) + 1
      WHERE ${ofBatch('held')} RETURNING i.id, i.badge),
   listed AS (
     SELECT array_agg(c.badge ORDER BY r.place) AS badges
       FROM held, unnest(held.recipients) WITH ORDINALITY AS r (id, place) LEFT JOIN counted c ON c.id = r.id),
   saved AS (
     UPDATE push_batch b SET badges = listed.badges FROM listed
      WHERE b.app_id = $1 AND b.id = $2 AND EXISTS (SELECT FROM held) RETURNING b.badges)
   SELECT array_to_string(badges, ',', '') AS badges FROM saved`,
);

const countedStatement = prepare(
  `SELECT array_to_string(badges, ',', '') AS badges FROM push_batch WHERE app_id = $1 AND id = $2`,
);

/**
 * Increments the badge of every recipient of a batch, once even if the batch is retaken, and returns the numbers in the
 * order of its recipients, null for a deleted one (protocol/apns.md#badge: a retry sends the same number).
 */
export async function incrementBadges(db: Handle, { appId, id }: BatchKey): Promise<(number | null)[]> {
  const counted = await repeatDeadlocked(() => readBadges(db, incrementStatement, { appId, id }));
  // Undefined if another take has counted. A second statement sees what that take committed after the first one began.
  const badges = counted ?? (await readBadges(db, countedStatement, { appId, id }));
  if (!badges) throw new Error('the batch was deleted');
  return badges;
}

async function readBadges(
  db: Handle,
  statement: ReturnType<typeof prepare>,
  { appId, id }: BatchKey,
): Promise<(number | null)[] | undefined> {
  const { rows } = await db.query<{ badges: string | null }>(statement, [appId, id]);
  return rows[0]?.badges?.split(',').map((badge) => (badge === '' ? null : Number(badge)));
}

const setStatement = prepare(
  `UPDATE installation i SET badge = $3
    WHERE ${ofBatch('push_batch WHERE app_id = $1 AND id = $2')} AND i.badge IS DISTINCT FROM $3`,
);

/** Saves the badge that a push sets for the recipients of a batch, so that a later `Increment` continues from it. */
export async function setBadges(db: Handle, { appId, id }: BatchKey, badge: number): Promise<void> {
  await repeatDeadlocked(() => db.query(setStatement, [appId, id, badge]));
}

const mostTries = 5;

/** Repeats a statement that PostgreSQL ended because of a deadlock; it was rolled back. */
async function repeatDeadlocked<T>(work: () => Promise<T>, triesLeft = mostTries): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDeadlock(error) || triesLeft <= 1) throw error;
    return repeatDeadlocked(work, triesLeft - 1);
  }
}
