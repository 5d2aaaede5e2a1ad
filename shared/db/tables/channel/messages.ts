import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../domain/json.ts';
import type { Handle } from '../../pool.ts';

/**
 * Letters of our own channel: stored before a device is woken, deleted by its acknowledgement, kept for
 * the next connection until they expire (protocol/channel.md#delivery-on-the-channel). A device has at most one letter of a push, so
 * the push's id is the letter's id on the wire, the same however often it is delivered or deposited.
 */
export interface MessageToEnqueue {
  appId: string;
  /** Internal id of the push record. */
  pushId: number;
  /** What the devices get, rendered. */
  content: JsonObject;
  expiresAt: Date;
  /** Internal ids of the installations, at most some 1000. */
  installations: number[];
}

/** That a device has read its letter of a push. */
export interface Acknowledgement {
  appId: string;
  installation: number;
  pushId: number;
}

/** Letters `fromId` to `toId` of an app were deposited: the payload of `inboxNotices`. */
export interface InboxNotification {
  appId: string;
  fromId: number;
  toId: number;
}

/** NOTIFY channel that wakes the api processes; the payload is an `InboxNotice` in JSON. */
export const inboxTopic = 'carillon_inbox';

const depositStatement = `
  WITH known AS (
    SELECT id FROM channel_message WHERE app_id = $1 AND push_id = $2 AND digest = $3
  ), made AS (
    INSERT INTO channel_message (app_id, push_id, digest, content, expires_at)
    SELECT $1, $2, $3, $4::json, $5 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING RETURNING id
  ), message AS (
    SELECT id FROM known UNION ALL SELECT id FROM made
  ), fresh AS (
    SELECT m.id AS message_id, wanted.installation
      FROM message m, (SELECT unnest($6::bigint[]) AS installation
                       EXCEPT
                       SELECT unnest(d.installations) FROM channel_deposit d
                        WHERE d.app_id = $1 AND d.push_id = $2 AND d.highest >= $7 AND d.lowest <= $8) wanted
  ), noted AS (
    INSERT INTO channel_deposit (app_id, push_id, lowest, highest, installations, expires_at)
    SELECT $1, $2, min(installation), max(installation), array_agg(installation ORDER BY installation), $5
      FROM fresh HAVING count(*) > 0
  ), letters AS (
    INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
    SELECT $1, installation, $2, message_id FROM fresh ORDER BY installation
    ON CONFLICT (app_id, installation, push_id) DO NOTHING RETURNING id
  ), span AS (
    SELECT count(*) AS deposited, min(id) AS from_id, max(id) AS to_id FROM letters
  )
  SELECT EXISTS (SELECT FROM message) AS has_message, deposited,
         CASE WHEN deposited > 0 THEN pg_notify('${inboxTopic}',
           json_build_object('appId', $1::text, 'fromId', from_id, 'toId', to_id)::text) END
    FROM span`;

/**
 * Deposits one letter for each installation and wakes the api processes, in one statement: all or
 * nothing. Installations that this push was deposited for before are passed over, their letters read or
 * not, so that it can be repeated after any failure. Gives the number of new letters.
 */
export async function enqueueMessage(db: Handle, letters: MessageToEnqueue): Promise<number> {
  const { appId, pushId, expiresAt, installations } = letters;
  if (installations.length === 0) return 0;
  const content = JSON.stringify(letters.content);
  const digest = createHash('sha256').update(content).digest();
  let lowest = Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  for (const id of installations) {
    lowest = Math.min(lowest, id);
    highest = Math.max(highest, id);
  }
  const values = [appId, pushId, digest, content, expiresAt, installations, lowest, highest];
  // Another deposit may write the message while ours runs; our next try finds it.
  for (let i = 0; i < 3; i += 1) {
    const { rows } = await db.query<{ has_message: boolean; deposited: number }>(depositStatement, values);
    if (rows[0]?.has_message) return rows[0].deposited;
  }
  throw new Error('the message of a push could neither be written nor found');
}

/**
 * Deletes read letters and counts them on their push records (`lcSuccesses`, protocol/push-records.md#successes), however far
 * the record is. A letter counts once, whoever acknowledges it how often: only a deleted row is counted.
 * Rows are locked in one order, so that processes that do this at the same time do not block each other.
 */
export async function acknowledgeMessages(db: Handle, receipts: Acknowledgement[]): Promise<number> {
  const { rows } = await db.query<{ acked: number }>(
    `WITH asked AS (
       SELECT DISTINCT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (app_id, installation, push_id)
     ), found AS MATERIALIZED (
       SELECT i.app_id, i.id FROM channel_inbox i JOIN asked USING (app_id, installation, push_id)
        ORDER BY i.app_id, i.id FOR UPDATE OF i
     ), deleted AS (
       DELETE FROM channel_inbox i USING found f WHERE i.app_id = f.app_id AND i.id = f.id
       RETURNING i.app_id, i.push_id
     ), counts AS (
       SELECT app_id, push_id, count(*) AS acked FROM deleted GROUP BY app_id, push_id
     ), records AS MATERIALIZED (
       SELECT n.app_id, n.id, c.acked FROM notification n JOIN counts c ON n.app_id = c.app_id AND n.id = c.push_id
        ORDER BY n.app_id, n.id FOR NO KEY UPDATE OF n
     ), counted AS (
       UPDATE notification n SET acked = n.acked + r.acked FROM records r
        WHERE n.app_id = r.app_id AND n.id = r.id
     )
     SELECT count(*) AS acked FROM deleted`,
    [
      receipts.map((receipt) => receipt.appId),
      receipts.map((receipt) => receipt.installation),
      receipts.map((receipt) => receipt.pushId),
    ],
  );
  return rows[0]?.acked ?? 0;
}

/** A deposit under way when its message expires must not lose the message: statements end long before. */
const graceMs = 10 * 60_000;

/** Not as IN (…): a plan may run that several times, and the limit would hold for each run. */
const expiredStatements = [
  `WITH old AS MATERIALIZED (
     SELECT i.app_id, i.id FROM channel_message m
       JOIN channel_inbox i ON i.app_id = m.app_id AND i.message_id = m.id
      WHERE m.expires_at <= $1 LIMIT $2 FOR UPDATE OF i SKIP LOCKED)
   DELETE FROM channel_inbox i USING old WHERE i.app_id = old.app_id AND i.id = old.id`,
  `WITH old AS MATERIALIZED (
     SELECT app_id, id FROM channel_deposit WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
   DELETE FROM channel_deposit d USING old WHERE d.app_id = old.app_id AND d.id = old.id`,
  `WITH old AS MATERIALIZED (
     SELECT app_id, id FROM channel_message WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
   DELETE FROM channel_message m USING old WHERE m.app_id = old.app_id AND m.id = old.id`,
];

/**
 * Deletes letters that expired ten minutes ago or earlier, and what belongs to them: at most `limit` rows.
 * Gives their number; fewer than `limit` means that nothing is left to do.
 */
export async function deleteExpiredMessages(db: Handle, now: Date, limit: number): Promise<number> {
  const before = new Date(now.getTime() - graceMs);
  let deleted = 0;
  for (const statement of expiredStatements) {
    if (deleted >= limit) break;
    const { rowCount } = await db.query(statement, [before, limit - deleted]);
    deleted += rowCount ?? 0;
  }
  return deleted;
}
