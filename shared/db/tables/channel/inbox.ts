import type { Handle } from '../../pool.ts';
import type { InboxNotification } from './messages.ts';

/** A message as devices get it. */
export interface DeviceMessage {
  pushId: number;
  /** JSON text of the content. */
  content: string;
  expiresAtMs: number;
}

/** A message that lies in a device's inbox, and its place there. */
export interface InboxMessage extends DeviceMessage {
  inboxId: number;
}

interface LetterRow {
  push_id: number;
  content: string;
  expires_at: Date;
}

function toLetter(row: LetterRow): DeviceMessage {
  return { pushId: row.push_id, content: row.content, expiresAtMs: row.expires_at.getTime() };
}

/**
 * One page of what waits for an installation, oldest first. `except` are the pushes that are on their way
 * to it: leaving them out instead of reading behind the last one finds letters that were committed late.
 */
export async function readInbox(
  db: Handle,
  appId: string,
  installation: number,
  page: { except: number[]; now: Date; limit: number },
): Promise<InboxMessage[]> {
  const { rows } = await db.query<LetterRow & { id: number }>(
    `SELECT i.id, i.push_id, m.content::text AS content, m.expires_at
       FROM channel_inbox i JOIN channel_message m ON m.app_id = i.app_id AND m.id = i.message_id
      WHERE i.app_id = $1 AND i.installation = $2 AND i.push_id <> ALL ($3::bigint[]) AND m.expires_at > $4
      ORDER BY i.id LIMIT $5`,
    [appId, installation, page.except, page.now, page.limit],
  );
  return rows.map((row) => ({ ...toLetter(row), inboxId: row.id }));
}

/** Whether letters wait for the devices, in their order; expired ones count until they are deleted. */
export async function havePendingMessages(
  db: Handle,
  devices: { appId: string; installation: number }[],
): Promise<boolean[]> {
  const { rows } = await db.query<{ n: number }>(
    `SELECT n FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS d (app_id, installation, n)
      CROSS JOIN LATERAL (SELECT FROM channel_inbox i
                           WHERE i.app_id = d.app_id AND i.installation = d.installation LIMIT 1) found`,
    [devices.map(({ appId }) => appId), devices.map(({ installation }) => installation)],
  );
  const found = new Set(rows.map(({ n }) => n));
  return devices.map((_, i) => found.has(i + 1));
}

/** The devices of a page of letters that are connected to one node, with their messages, by letter. */
export interface NodePage {
  installations: number[];
  messageIds: number[];
  /** Where the next page begins; undefined after the last. */
  nextId: number | undefined;
}

/**
 * Reads `limit` letters of a notice and gives those whose devices are connected to this node. The lateral
 * look-ups keep the planner from joining the tables as a whole, which it does by stale statistics and
 * which costs a second instead of milliseconds.
 */
export async function messagesForNode(
  db: Handle,
  nodeId: string,
  notice: InboxNotification,
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
    [nodeId, notice.appId, notice.fromId, notice.toId, limit],
  );
  const { read = 0, lastId = null, installations, messageIds } = rows[0] ?? {};
  return {
    installations: installations ?? [],
    messageIds: messageIds ?? [],
    nextId: read === limit && lastId !== null ? lastId + 1 : undefined,
  };
}

/** Messages by their id; those that were deleted are missing. */
export async function findMessages(
  db: Handle,
  appId: string,
  ids: number[],
): Promise<Map<number, DeviceMessage>> {
  const { rows } = await db.query<LetterRow & { id: number }>(
    `SELECT id, push_id, content::text AS content, expires_at
       FROM channel_message WHERE app_id = $1 AND id = ANY ($2::bigint[])`,
    [appId, ids],
  );
  return new Map(rows.map((row) => [row.id, toLetter(row)]));
}

/** Devices connected to this node that have letters, and how many: for when notices may have been missed. */
export async function devicesWithMessages(
  db: Handle,
  nodeId: string,
): Promise<{ appId: string; installation: number; letters: number }[]> {
  const { rows } = await db.query<{ appId: string; installation: number; letters: number }>(
    `SELECT s.app_id AS "appId", s.installation, waiting.letters
       FROM channel_session s CROSS JOIN LATERAL (
         SELECT count(*) AS letters FROM (
           SELECT FROM channel_inbox i
            WHERE i.app_id = s.app_id AND i.installation = s.installation LIMIT 1000) found) waiting
      WHERE s.node_id = $1 AND waiting.letters > 0`,
    [nodeId],
  );
  return rows;
}
