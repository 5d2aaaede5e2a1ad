import type { Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { listsOf, query } from '../query.ts';
import { AppStatement, sweepText } from '../sharding.ts';
import type { InboxNotification } from './channel-enqueue.ts';
import {
  type Acknowledgement,
  acknowledgeGroups,
  addToRecords,
  findGroups,
  type GroupAcknowledgement,
} from './channel-groups.ts';

const isOfGroup = (ack: Acknowledgement): ack is GroupAcknowledgement => ack.groupId !== undefined;

/**
 * Deletes acknowledged messages from groups and inboxes, and adds their number to the push records
 * (`lcSuccesses`, protocol/push-records.md#successes), whatever the state of the push. Counts only
 * pending messages, so a repeated acknowledgement counts once. If the group of an acknowledgement
 * is unknown or does not contain the device, searches the inbox first and then all groups.
 */
export async function acknowledgeMessages(
  db: Handle,
  acknowledgements: Acknowledgement[],
): Promise<number> {
  const grouped = acknowledgements.filter(isOfGroup);
  const first =
    grouped.length === 0 ? { acked: 0, others: [] } : await acknowledgeGroups(db, grouped);
  const rest = [...acknowledgements.filter((ack) => !isOfGroup(ack)), ...first.others];
  if (rest.length === 0) return first.acked;
  const fromInboxes = await acknowledgeInboxes(db, rest);
  if (fromInboxes === rest.length) return first.acked + fromInboxes;
  const found = await findGroups(db, rest);
  const last = found.length === 0 ? 0 : (await acknowledgeGroups(db, found)).acked;
  return first.acked + fromInboxes + last;
}

/**
 * Deletes acknowledged inbox rows. Locks rows in one order, so that concurrent calls do not
 * deadlock.
 */
const acknowledgeInboxesStatement = new AppStatement(
  4,
  (andApp) => `
     WITH asked AS (
       SELECT DISTINCT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (app_id,
         installation, push_id)
     ), found AS MATERIALIZED (
       SELECT i.app_id, i.id FROM channel_inbox i JOIN asked USING (app_id, installation, push_id)
        WHERE true${andApp('i')}
        ORDER BY i.app_id, i.id FOR UPDATE OF i
     ), deleted AS (
       DELETE FROM channel_inbox i USING found f WHERE i.app_id = f.app_id
         AND i.id = f.id${andApp('i')}
       RETURNING i.app_id, i.push_id
     ), counts AS (
       SELECT app_id, push_id, count(*) AS n FROM deleted GROUP BY app_id, push_id
     ), ${addToRecords('acked', andApp('n'))}
     SELECT count(*) AS acked FROM deleted`,
);

async function acknowledgeInboxes(
  db: Handle,
  acknowledgements: Acknowledgement[],
): Promise<number> {
  const counts = await acknowledgeInboxesStatement.run<{ acked: number }, Acknowledgement>(
    db,
    acknowledgements,
    (part) => listsOf(part, 'appId', 'installation', 'pushId'),
  );
  return counts.reduce((sum, { acked }) => sum + acked, 0);
}

/**
 * Grace period. An `enqueueMessage` that is in progress at the expiry must still find its message.
 */
const graceMs = 10 * 60_000;

const deleteExpired = (table: string) =>
  `WITH old AS MATERIALIZED (
     SELECT app_id, id FROM ${table} WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
   DELETE FROM ${table} t USING old WHERE t.app_id = old.app_id AND t.id = old.id`;

/**
 * Delete expired rows, one statement per table. Each limit is in a joined CTE, because PostgreSQL
 * may run a subquery of IN several times, each time with its own limit.
 */
const expiredStatements = [
  `WITH old AS MATERIALIZED (
     SELECT i.app_id, i.id FROM channel_message m
       JOIN channel_inbox i ON i.app_id = m.app_id AND i.message_id = m.id
      WHERE m.expires_at <= $1 LIMIT $2 FOR UPDATE OF i SKIP LOCKED)
   DELETE FROM channel_inbox i USING old WHERE i.app_id = old.app_id AND i.id = old.id
     RETURNING 1 AS messages`,
  `${deleteExpired('channel_group')} RETURNING cardinality(t.pending) AS messages`,
  deleteExpired('channel_deposit'),
  deleteExpired('channel_message'),
];

/**
 * Deletes messages that expired at least ten minutes ago, with their inbox rows, groups and lists
 * of recipients, at most `limit` rows. Returns their number. If it is less than `limit`, none is
 * left. `count` gets the number of messages that devices did not acknowledge, one per device.
 */
export async function deleteExpiredMessages(
  db: Handle,
  now: Date,
  limit: number,
  count: (messages: number) => void = () => undefined,
): Promise<number> {
  const before = new Date(now.getTime() - graceMs);
  let deleted = 0;
  for (const statement of expiredStatements) {
    if (deleted >= limit) break;
    const text = await sweepText(db, statement);
    const { rowCount, rows } = await db.query<{ messages: number }>(text, [
      before,
      limit - deleted,
    ]);
    deleted += rowCount ?? 0;
    if (rows.length > 0) count(rows.reduce((sum, { messages }) => sum + messages, 0));
  }
  return deleted;
}

/**
 * Maximum messages in the inbox of a device (protocol/channel.md#channel-limits). A device that
 * stays offline takes no more space, and gets the newest messages when it returns.
 */
export const maxPendingMessages = 100;

/** Position in a scan over all inboxes, in the order of the unique index. */
export interface InboxPosition {
  appId: string;
  installation: number;
}

export const firstInbox: InboxPosition = { appId: '', installation: 0 };

/** Inboxes over their limit in one step of a scan. */
interface FullInboxes {
  installations: Map<string, number[]>;
  /** Start of the next step. Undefined after the last one. */
  next: InboxPosition | undefined;
}

/**
 * Finds full inboxes in a page of inbox rows. The last inbox of the page may continue on the next
 * page, so the next page begins with this inbox.
 */
const fullInboxesStatement = `
  WITH page AS MATERIALIZED (
    SELECT app_id, installation FROM channel_inbox WHERE (app_id, installation) >= ($1, $2::bigint)
     ORDER BY app_id, installation LIMIT $3
  ), inboxes AS MATERIALIZED (
    SELECT app_id, installation, count(*) AS messages FROM page GROUP BY app_id, installation
  ), last AS (
    SELECT app_id, installation FROM inboxes ORDER BY app_id DESC, installation DESC LIMIT 1
  )
  SELECT app_id AS "appId", installation, true AS "isFull" FROM inboxes
    WHERE messages > ${maxPendingMessages}
   UNION ALL
  SELECT app_id, installation, false FROM last WHERE (SELECT count(*) FROM page) = $3`;

/**
 * Reads up to `rows` inbox rows from a position on. Returns the inboxes that are over their limit.
 */
export async function findFullInboxes(
  db: Handle,
  { appId, installation }: InboxPosition,
  rows: number,
): Promise<FullInboxes> {
  const values = [appId, installation, rows];
  const found = await query(db).rows<InboxPosition & { isFull: boolean }>(
    fullInboxesStatement,
    values,
  );
  const installations = new Map<string, number[]>();
  let next: InboxPosition | undefined;
  for (const row of found) {
    const inboxes = installations.get(row.appId) ?? [];
    if (row.isFull) installations.set(row.appId, [...inboxes, row.installation]);
    else next = { appId: row.appId, installation: row.installation };
  }
  return { installations, next };
}

/**
 * Evicts the oldest messages of full inboxes. Locks in the same order as acknowledgements, to avoid
 * deadlocks. Skips locked rows, because they are being acknowledged.
 */
const evictStatement = prepare(`
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
    DELETE FROM channel_inbox i USING locked l WHERE i.app_id = $1 AND i.id = l.id
      RETURNING i.app_id, i.push_id
  ), counts AS (
    SELECT app_id, push_id, count(*) AS n FROM deleted GROUP BY app_id, push_id
  ), ${addToRecords('displaced', ' AND n.app_id = $1')}
  SELECT count(*) AS displaced FROM deleted`);

/** Deletes the oldest messages of inboxes over their limit, and counts them on the push records. */
export const evictOldest = (db: Handle, appId: string, installations: number[]) =>
  query(db).number(evictStatement, [appId, `{${installations.join()}}`]);

/** A message of a push as devices get it. */
export interface DeviceMessage {
  pushId: number;
  /** Content as JSON text. */
  content: string;
  expiresAtMs: number;
}

/** A pending message of a device. */
export interface InboxMessage extends DeviceMessage {
  /** Position among the messages of the device: id of the inbox row or of the group. */
  position: number;
  /** Group that contains the message. Undefined for a message of the inbox. */
  groupId: number | undefined;
}

/**
 * Returns the SQL condition that group `g` contains an installation. Compares the range first, so
 * that few lists are read.
 */
export const isPendingInGroup = (installation: string) =>
  `${installation} BETWEEN g.lowest AND g.highest AND ${installation} = ANY (g.pending)`;

/** SQL of the expiry of `channel_message m` in epoch ms. */
const expiresAtMs = `floor(extract(epoch FROM m.expires_at) * 1000)::float8 AS "expiresAtMs"`;

/**
 * Reads a page of the pending messages of an installation, oldest first. `except` lists the pushes
 * that were already sent to it. A cursor would miss messages whose transactions committed late.
 */
export async function readInbox(
  db: Handle,
  appId: string,
  installation: number,
  page: { except: number[]; now: Date; limit: number },
): Promise<InboxMessage[]> {
  const rows = await query(db).rows<Omit<InboxMessage, 'groupId'> & { groupId: number | null }>(
    `SELECT p.position, p.group_id AS "groupId", p.push_id AS "pushId", m.content::text AS content,
      ${expiresAtMs}
       FROM (SELECT coalesce(i.position, i.id) AS position, NULL::bigint AS group_id, i.push_id,
         i.message_id
               FROM channel_inbox i WHERE i.app_id = $1 AND i.installation = $2
              UNION ALL
             SELECT g.id, g.id, g.push_id, g.message_id
               FROM channel_group g WHERE g.app_id = $1 AND ${isPendingInGroup('$2')}) p
       JOIN channel_message m ON m.app_id = $1 AND m.id = p.message_id
      WHERE p.push_id <> ALL ($3::bigint[]) AND m.expires_at > $4
      ORDER BY p.position LIMIT $5`,
    [appId, installation, page.except, page.now, page.limit],
  );
  return rows.map((row) => ({ ...row, groupId: row.groupId ?? undefined }));
}

/** Whether a device has pending messages: none, some, or more than its inbox may contain. */
export type PendingState = 'none' | 'some' | 'too many';

const pendingStatement = new AppStatement(
  4,
  (andApp) => `
    SELECT place, EXISTS (SELECT FROM channel_inbox i
                           WHERE i.app_id = d.app_id
                             AND i.installation = d.installation${andApp('i')}
                          OFFSET ${maxPendingMessages}) AS "isFull"
      FROM unnest($1::text[], $2::bigint[], $3::int[]) AS d (app_id, installation, place)
     WHERE EXISTS (SELECT FROM channel_inbox i
                    WHERE i.app_id = d.app_id AND i.installation = d.installation${andApp('i')})
        OR EXISTS (SELECT FROM channel_group g
                    WHERE g.app_id = d.app_id
                      AND ${isPendingInGroup('d.installation')}${andApp('g')})`,
);

/**
 * Returns for each device whether it has pending messages. Expired messages count until they are
 * deleted.
 */
export async function findPendingStates(
  db: Handle,
  devices: { appId: string; installation: number }[],
): Promise<PendingState[]> {
  const placed = devices.map((device, place) => ({ ...device, place }));
  const found = await pendingStatement.run<
    { place: number; isFull: boolean },
    (typeof placed)[number]
  >(db, placed, (part) => listsOf(part, 'appId', 'installation', 'place'));
  const states = devices.map((): PendingState => 'none');
  for (const { place, isFull } of found) states[place] = isFull ? 'too many' : 'some';
  return states;
}

/** Devices of one node in a page of inbox rows, with the id of the message for each. */
interface NodePage {
  installations: number[];
  messageIds: number[];
  /** First row id of the next page. Undefined after the last page. */
  nextId: number | undefined;
}

/**
 * Reads up to `limit` inbox rows of a notification. Returns the devices that are connected to this
 * node. With stale statistics PostgreSQL would join whole tables, which takes a second instead of
 * milliseconds. The lateral subquery prevents this.
 */
export async function messagesForNode(
  db: Handle,
  nodeId: string,
  notification: InboxNotification,
  limit: number,
): Promise<NodePage> {
  const { read, lastId, ...page } = await query(db).one<
    NodePage & { read: number; lastId: number | null }
  >(
    `WITH page AS MATERIALIZED (
       SELECT id, installation, message_id FROM channel_inbox
        WHERE app_id = $2 AND id BETWEEN $3 AND $4 ORDER BY id LIMIT $5
     )
     SELECT count(*) AS read, max(p.id) AS "lastId",
            coalesce(array_agg(p.installation ORDER BY p.id)
            FILTER (WHERE s.node_id = $1), '{}') AS installations,
            coalesce(array_agg(p.message_id ORDER BY p.id)
            FILTER (WHERE s.node_id = $1), '{}') AS "messageIds"
       FROM page p LEFT JOIN LATERAL (
         SELECT c.node_id FROM channel_session c
          WHERE c.app_id = $2 AND c.installation = p.installation LIMIT 1) s ON true`,
    [nodeId, notification.appId, notification.fromId, notification.toId, limit],
  );
  return { ...page, nextId: read === limit && lastId !== null ? lastId + 1 : undefined };
}

/** Returns messages by id. Deleted messages are missing. */
export async function findMessages(
  db: Handle,
  appId: string,
  ids: number[],
): Promise<Map<number, DeviceMessage>> {
  const rows = await query(db).rows<DeviceMessage & { id: number }>(
    `SELECT id, push_id AS "pushId", content::text AS content, ${expiresAtMs}
       FROM channel_message m WHERE app_id = $1 AND id = ANY ($2::bigint[])`,
    [appId, ids],
  );
  return new Map(rows.map(({ id, ...message }) => [id, message]));
}

/**
 * Lists the devices of this node with messages in their inboxes, and the pushes of at most 1,000
 * messages of each.
 */
export const devicesWithMessages = (db: Handle, nodeId: string) =>
  query(db).rows<{ appId: string; installation: number; pushIds: number[] }>(
    `SELECT s.app_id AS "appId", s.installation, waiting.ids AS "pushIds"
       FROM channel_session s CROSS JOIN LATERAL (
         SELECT array_agg(push_id) AS ids FROM (
           SELECT i.push_id FROM channel_inbox i
            WHERE i.app_id = s.app_id AND i.installation = s.installation LIMIT 1000) found) waiting
      WHERE s.node_id = $1 AND waiting.ids IS NOT NULL`,
    [nodeId],
  );
