import type { Handle } from '../../pool.ts';
import { prepare } from '../../prepared.ts';
import { AppStatement } from '../../sharding.ts';
import type { InboxNotification } from './messages.ts';

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

/** Message of a push, as devices get it. */
export interface DeviceMessage {
  pushId: number;
  /** JSON text of the content. */
  content: string;
  expiresAtMs: number;
}

/** Pending message of a device. */
export interface InboxMessage extends DeviceMessage {
  /** Place among the messages of the device: id of the inbox row or of the group. */
  position: number;
  /** Group that holds the message; undefined for a message of the inbox. */
  groupId: number | undefined;
}

/** Condition: group `g` holds an installation. The range is compared first, since few groups need their list read. */
export const holds = (installation: string) =>
  `${installation} BETWEEN g.lowest AND g.highest AND ${installation} = ANY (g.pending)`;

interface MessageRow {
  push_id: number;
  content: string;
  expires_at: Date;
}

function toMessage(row: MessageRow): DeviceMessage {
  return { pushId: row.push_id, content: row.content, expiresAtMs: row.expires_at.getTime() };
}

/**
 * Reads a page of the pending messages of an installation, oldest first. `except` lists the pushes already sent to it.
 * Excluding them, instead of reading after the last position, also finds messages whose transactions committed late.
 */
export async function readInbox(
  db: Handle,
  appId: string,
  installation: number,
  page: { except: number[]; now: Date; limit: number },
): Promise<InboxMessage[]> {
  const { rows } = await db.query<MessageRow & { position: number; group_id: number | null }>(
    `SELECT p.position, p.group_id, p.push_id, m.content::text AS content, m.expires_at
       FROM (SELECT coalesce(i.position, i.id) AS position, NULL::bigint AS group_id, i.push_id, i.message_id
               FROM channel_inbox i WHERE i.app_id = $1 AND i.installation = $2
              UNION ALL
             SELECT g.id, g.id, g.push_id, g.message_id
               FROM channel_group g WHERE g.app_id = $1 AND ${holds('$2')}) p
       JOIN channel_message m ON m.app_id = $1 AND m.id = p.message_id
      WHERE p.push_id <> ALL ($3::bigint[]) AND m.expires_at > $4
      ORDER BY p.position LIMIT $5`,
    [appId, installation, page.except, page.now, page.limit],
  );
  return rows.map((row) => ({
    ...toMessage(row),
    position: row.position,
    groupId: row.group_id ?? undefined,
  }));
}

/** Whether a device has pending messages: none, some, or more than its inbox may hold. */
export type PendingState = 'none' | 'some' | 'too many';

const pendingStatement = new AppStatement(
  3,
  (andApp) => `
    SELECT n, EXISTS (SELECT FROM channel_inbox i
                       WHERE i.app_id = d.app_id AND i.installation = d.installation${andApp('i')}
                      OFFSET ${maxPendingMessages}) AS "isCrowded"
      FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS d (app_id, installation, n)
     WHERE EXISTS (SELECT FROM channel_inbox i
                    WHERE i.app_id = d.app_id AND i.installation = d.installation${andApp('i')})
        OR EXISTS (SELECT FROM channel_group g
                    WHERE g.app_id = d.app_id AND ${holds('d.installation')}${andApp('g')})`,
);

/** Returns for each device whether it has pending messages; expired ones count until they are deleted. */
export async function findPendingStates(
  db: Handle,
  devices: { appId: string; installation: number }[],
): Promise<PendingState[]> {
  const parts = await pendingStatement.run<{ n: number; isCrowded: boolean }, (typeof devices)[number]>(
    db,
    devices,
    (part) => [part.map(({ appId }) => appId), part.map(({ installation }) => installation)],
  );
  const states = new Map<object, PendingState>();
  for (const { part, found } of parts)
    for (const { n, isCrowded } of found) states.set(part[n - 1] ?? part, isCrowded ? 'too many' : 'some');
  return devices.map((device) => states.get(device) ?? 'none');
}

/** Devices of one node in a page of inbox rows, and the id of the message for each. */
export interface NodePage {
  installations: number[];
  messageIds: number[];
  /** First row id of the next page; undefined after the last. */
  nextId: number | undefined;
}

/**
 * Reads up to `limit` inbox rows of a notification and returns those of devices connected to this node. The lateral
 * subquery keeps the planner from joining whole tables, which it does with stale statistics and which takes a second
 * instead of milliseconds.
 */
export async function messagesForNode(
  db: Handle,
  nodeId: string,
  notification: InboxNotification,
  limit: number,
): Promise<NodePage> {
  const { rows } = await db.query<{
    read: number;
    lastId: number | null;
    installations: number[] | null;
    messageIds: number[] | null;
  }>(
    `WITH page AS MATERIALIZED (
       SELECT id, installation, message_id FROM channel_inbox
        WHERE app_id = $2 AND id BETWEEN $3 AND $4 ORDER BY id LIMIT $5
     )
     SELECT count(*) AS read, max(p.id) AS "lastId",
            array_agg(p.installation ORDER BY p.id) FILTER (WHERE s.node_id = $1) AS installations,
            array_agg(p.message_id ORDER BY p.id) FILTER (WHERE s.node_id = $1) AS "messageIds"
       FROM page p LEFT JOIN LATERAL (
         SELECT c.node_id FROM channel_session c
          WHERE c.app_id = $2 AND c.installation = p.installation LIMIT 1) s ON true`,
    [nodeId, notification.appId, notification.fromId, notification.toId, limit],
  );
  const { read = 0, lastId = null, installations, messageIds } = rows[0] ?? {};
  return {
    installations: installations ?? [],
    messageIds: messageIds ?? [],
    nextId: read === limit && lastId !== null ? lastId + 1 : undefined,
  };
}

/** Returns messages by id; deleted ones are missing. */
export async function findMessages(
  db: Handle,
  appId: string,
  ids: number[],
): Promise<Map<number, DeviceMessage>> {
  const { rows } = await db.query<MessageRow & { id: number }>(
    `SELECT id, push_id, content::text AS content, expires_at
       FROM channel_message WHERE app_id = $1 AND id = ANY ($2::bigint[])`,
    [appId, ids],
  );
  return new Map(rows.map((row) => [row.id, toMessage(row)]));
}

/** Returns the devices of this node that have messages in their inboxes, with their number, 1000 at most. */
export async function devicesWithMessages(
  db: Handle,
  nodeId: string,
): Promise<{ appId: string; installation: number; messages: number }[]> {
  const { rows } = await db.query<{ appId: string; installation: number; messages: number }>(
    `SELECT s.app_id AS "appId", s.installation, waiting.messages
       FROM channel_session s CROSS JOIN LATERAL (
         SELECT count(*) AS messages FROM (
           SELECT FROM channel_inbox i
            WHERE i.app_id = s.app_id AND i.installation = s.installation LIMIT 1000) found) waiting
      WHERE s.node_id = $1 AND waiting.messages > 0`,
    [nodeId],
  );
  return rows;
}
