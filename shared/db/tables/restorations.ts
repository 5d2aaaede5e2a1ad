import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { insertOwnAudit } from './console.ts';

/**
 * Minimum age of a waiting message that is dropped after a restore. It was probably sent after the
 * backup.
 */
const droppedAfter = "interval '10 minutes'";

/** Number of ids to skip. Devices remember ids of messages that were sent after the backup. */
const skippedIds = 1_000_000;

/** Open work that a restore found, and held. */
export interface PausedWork {
  /** Pushes that were waiting or being sent. They are paused now. */
  pushes: number;
  /** Scheduled pushes whose time has passed. They are paused now. */
  scheduled: number;
  /** Mails and SMS that are dropped. */
  messages: number;
  /** Messages that waited on the device channel and are dropped: one per push and text. */
  channelMessages: number;
}

/**
 * Holds everything in a restored database that may have been sent after the backup: pauses open and
 * overdue pushes, drops old messages, and skips ids. Saves a report. Runs in one transaction before
 * any api or dispatcher starts.
 */
export async function pauseRestoredWork(tx: Handle, asOf: Date): Promise<PausedWork> {
  const insertion = "INSERT INTO restoration (as_of, report) VALUES ($1, '{}') RETURNING id";
  const id = await query(tx).value<number>(insertion, [asOf]);
  const held: PausedWork = {
    pushes: await query(tx).rowCount(pauseOpen, [id]),
    scheduled: await query(tx).rowCount(pauseOverdue, [id]),
    messages: await query(tx).rowCount(dropMessages),
    channelMessages: await query(tx).rowCount(dropChannelMessages),
  };
  await tx.query(skipPastStarts);
  await tx.query(moveIds);
  await tx.query('UPDATE restoration SET report = $2 WHERE id = $1', [id, held]);
  const after = { asOf: asOf.toISOString(), ...held };
  await insertOwnAudit(tx, {
    by: 'restore',
    appId: null,
    action: 'service.restore',
    target: 'service',
    after,
  });
  return held;
}

/** A push that an earlier restore held belongs to the new restore. */
const insertHeld = `
  INSERT INTO restored_push (app_id, push_id, restoration_id) SELECT app_id, id, $1 FROM paused
  ON CONFLICT (app_id, push_id) DO UPDATE SET restoration_id = excluded.restoration_id`;

const pauseOpen = `
  WITH paused AS (
    UPDATE notification SET state = 'paused', updated_at = now()
      WHERE state IN ('queued', 'sending')
    RETURNING app_id, id)${insertHeld}`;

/**
 * Their planning has no job yet. A resume gives it a job, as for planning that a pause has held.
 */
const pauseOverdue = `
  WITH overdue AS (DELETE FROM scheduled_push WHERE push_time <= now() RETURNING app_id, push_id),
  paused AS (
    UPDATE notification n SET state = 'paused', is_plan_held = true, updated_at = now()
      FROM overdue o WHERE n.app_id = o.app_id AND n.id = o.push_id AND n.state = 'scheduled'
    RETURNING n.app_id, n.id)${insertHeld}`;

const dropMessages = `
  UPDATE outbox SET state = 'failed', reason = 'dropped after a restore', settled_at = now()
   WHERE state = 'waiting' AND created_at < now() - ${droppedAfter}`;

const dropChannelMessages = `
  UPDATE channel_message m SET expires_at = now()
    FROM notification n
   WHERE n.app_id = m.app_id AND n.id = m.push_id AND m.expires_at > now()
     AND greatest(n.created_at, n.push_time) < now() - ${droppedAfter}`;

/** Recurring runs whose time has passed were probably made after the backup. */
const skipPastStarts = 'UPDATE recurring_push SET skip_before = now() WHERE next_at <= now()';

const moveIds = `
  SELECT setval(name, nextval(name) + ${skippedIds})
    FROM (SELECT unnest(ARRAY[pg_get_serial_sequence('notification', 'id'),
                              pg_get_serial_sequence('channel_message', 'id'),
                                pg_get_serial_sequence('channel_inbox',
                                  'id')])::regclass AS name) AS sequences`;

/** The last restore of a database. */
interface Restoration {
  asOf: Date;
  restoredAt: Date;
  /** Pushes that the restore paused and that nobody has resumed or cancelled yet. */
  paused: number;
}

/** Returns the last restore. Returns undefined if the database was never restored. */
export async function findRestoration(db: Handle): Promise<Restoration | undefined> {
  const last = await query(db).row<Omit<Restoration, 'paused'> & { id: number }>(
    'SELECT id, as_of AS "asOf", restored_at AS "restoredAt" FROM restoration ORDER BY id DESC LIMIT 1',
  );
  if (!last) return undefined;
  const paused = await query(db).number(
    `SELECT count(*) FROM restored_push p JOIN notification n ON n.app_id = p.app_id
      AND n.id = p.push_id
      WHERE p.restoration_id = $1 AND n.state = 'paused'`,
    [last.id],
  );
  return { asOf: last.asOf, restoredAt: last.restoredAt, paused };
}
