import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';

/**
 * Limit of the inbox of a device (protocol/channel.md#channel-limits): a device that stays away takes no more room, and gets
 * the newest messages when it returns.
 */
export const maxPendingMessages = 100;

/** Place in a walk over all inboxes, in the order of the unique index. */
export interface InboxPlace {
  appId: string;
  installation: number;
}

export const firstInbox: InboxPlace = { appId: '', installation: 0 };

/** Inboxes over their limit in one step of a walk. */
export interface CrowdedInboxes {
  /** Installations by app. */
  installations: Map<string, number[]>;
  /** Start of the next step; undefined after the last one. */
  next: InboxPlace | undefined;
}

/** The last inbox of a page may go on in the next one: that page begins with it. */
const crowdedStatement = `
  WITH page AS MATERIALIZED (
    SELECT app_id, installation FROM channel_inbox WHERE (app_id, installation) >= ($1, $2::bigint)
     ORDER BY app_id, installation LIMIT $3
  ), inboxes AS MATERIALIZED (
    SELECT app_id, installation, count(*) AS messages FROM page GROUP BY app_id, installation
  ), last AS (
    SELECT app_id, installation FROM inboxes ORDER BY app_id DESC, installation DESC LIMIT 1
  )
  SELECT app_id AS "appId", installation, true AS "isCrowded" FROM inboxes WHERE messages > ${maxPendingMessages}
   UNION ALL
  SELECT app_id, installation, false FROM last WHERE (SELECT count(*) FROM page) = $3`;

/** Reads up to `rows` inbox rows from a place on, and returns the inboxes among them that are over their limit. */
export async function findCrowdedInboxes(
  db: Handle,
  { appId, installation }: InboxPlace,
  rows: number,
): Promise<CrowdedInboxes> {
  const found = await db.query<InboxPlace & { isCrowded: boolean }>(crowdedStatement, [
    appId,
    installation,
    rows,
  ]);
  const installations = new Map<string, number[]>();
  let next: InboxPlace | undefined;
  for (const row of found.rows) {
    const inboxes = installations.get(row.appId) ?? [];
    if (row.isCrowded) installations.set(row.appId, [...inboxes, row.installation]);
    else next = { appId: row.appId, installation: row.installation };
  }
  return { installations, next };
}

/** Locks rows in the order of acknowledgements, to avoid deadlocks; a row that is locked is being acknowledged. */
const displaceStatement = prepare(`
  WITH crowded AS MATERIALIZED (
    SELECT installation, count(*) - ${maxPendingMessages} AS excess FROM channel_inbox
     WHERE app_id = $1 AND installation = ANY ($2::bigint[])
     GROUP BY installation HAVING count(*) > ${maxPendingMessages}
  ), oldest AS MATERIALIZED (
    SELECT o.id FROM crowded c CROSS JOIN LATERAL (
      SELECT id FROM channel_inbox i WHERE i.app_id = $1 AND i.installation = c.installation
       ORDER BY coalesce(i.position, i.id) LIMIT c.excess) o
  ), locked AS MATERIALIZED (
    SELECT i.id FROM channel_inbox i JOIN oldest o ON i.app_id = $1 AND i.id = o.id
     ORDER BY i.id FOR UPDATE OF i SKIP LOCKED
  ), deleted AS (
    DELETE FROM channel_inbox i USING locked l WHERE i.app_id = $1 AND i.id = l.id RETURNING i.push_id
  ), counts AS (
    SELECT push_id, count(*) AS displaced FROM deleted GROUP BY push_id
  ), records AS MATERIALIZED (
    SELECT n.id, c.displaced FROM notification n JOIN counts c ON n.app_id = $1 AND n.id = c.push_id
     ORDER BY n.id FOR NO KEY UPDATE OF n
  ), counted AS (
    UPDATE notification n SET displaced = n.displaced + r.displaced FROM records r
     WHERE n.app_id = $1 AND n.id = r.id
  )
  SELECT count(*) AS displaced FROM deleted`);

/**
 * Deletes the oldest messages of inboxes with more than `maxPendingMessages`, and adds their number to the push records.
 * Returns the number.
 */
export async function displaceOldest(db: Handle, appId: string, installations: number[]): Promise<number> {
  const { rows } = await db.query<{ displaced: number }>(displaceStatement, [
    appId,
    `{${installations.join()}}`,
  ]);
  return rows[0]?.displaced ?? 0;
}
