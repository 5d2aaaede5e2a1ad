import { createHash } from 'node:crypto';
import type { JsonObject } from '../../domain/json.ts';
import { violatedConstraint } from '../limits/database-errors.ts';
import type { Database, Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { query } from '../query.ts';
import { isSharded } from '../sharding.ts';

/**
 * A message of a push for devices of the device channel. It is stored before delivery and kept
 * until it expires. The acknowledgement of a device deletes it from the inbox of this device
 * (protocol/channel.md#delivery-on-the-channel). A device has at most one message of a push, so the
 * message id on the wire is the push id at every delivery.
 */
interface MessageToEnqueue {
  appId: string;
  /** Internal id of the push. */
  pushId: number;
  content: JsonObject;
  expiresAt: Date;
  /** Internal ids of the installations, at most about 1,000. */
  installations: number[];
}

/** Payload of `inboxTopic`: inbox rows `fromId` to `toId` of an app are new. */
export interface InboxNotification {
  appId: string;
  fromId: number;
  toId: number;
}

/** Payload of `inboxTopic`: a group of an app is new. */
export interface GroupNotification {
  appId: string;
  groupId: number;
}

/**
 * NOTIFY channel that wakes api processes. The payload is an `InboxNotification` or a
 * `GroupNotification` as JSON.
 */
export const inboxTopic = 'carillon_inbox';

const enqueueTries = 3;

const listText = (ids: readonly number[]) => `{${ids.join()}}`;

/**
 * Stores a message in one statement. Requires sorted ids without duplicates. In the usual case all
 * devices are new and connected. The lists of past recipients and of the group are then the list
 * that was passed, without a sort or a set operation.
 */
const enqueueStatement = prepare(`
  WITH known AS (
    SELECT id FROM channel_message WHERE app_id = $1 AND push_id = $2 AND digest = $3
  ), made AS (
    INSERT INTO channel_message (app_id, push_id, digest, content, expires_at)
    SELECT $1, $2, $3, $4::json, $5 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING RETURNING id
  ), message AS (
    SELECT id FROM known UNION ALL SELECT id FROM made LIMIT 1
  ), past AS MATERIALIZED (
    SELECT unnest(d.installations) AS installation FROM channel_deposit d
     WHERE d.app_id = $1 AND d.push_id = $2 AND d.highest >= $7 AND d.lowest <= $8
  ), wanted AS MATERIALIZED (
    SELECT m.id AS message_id,
           CASE WHEN EXISTS (SELECT FROM past)
             THEN ARRAY(SELECT unnest($6::bigint[]) EXCEPT SELECT installation FROM past ORDER BY 1)
             ELSE $6::bigint[] END AS ids
      FROM message m
  ), reachable AS MATERIALIZED (
    SELECT message_id, ids,
           ARRAY(SELECT s.installation FROM channel_session s
                  WHERE s.app_id = $1 AND s.installation = ANY (w.ids)
                    AND s.node_id = ANY (ARRAY(SELECT n.id FROM channel_node n
                      WHERE n.takes_groups))
                  ORDER BY s.installation) AS connected
      FROM wanted w WHERE ids <> '{}'
  ), noted AS (
    INSERT INTO channel_deposit (app_id, push_id, lowest, highest, installations, expires_at)
    SELECT $1, $2, ids[1], ids[cardinality(ids)], ids, $5 FROM reachable
  ), grouped AS (
    INSERT INTO channel_group (app_id, id, push_id, message_id, lowest, highest, pending,
      expires_at)
    SELECT $1, nextval('channel_inbox_id_seq'), $2, message_id, connected[1],
           connected[cardinality(connected)], connected, $5
      FROM reachable WHERE connected <> '{}'
    RETURNING id, cardinality(pending) AS enqueued
  ), added AS (
    INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
    SELECT $1, o.installation, $2, r.message_id
      FROM reachable r CROSS JOIN LATERAL (
        SELECT unnest(r.ids) AS installation EXCEPT SELECT unnest(r.connected) ORDER BY 1) o
     WHERE cardinality(r.connected) < cardinality(r.ids)
    ON CONFLICT (app_id, installation, push_id) DO NOTHING RETURNING id
  ), span AS (
    SELECT count(*) AS enqueued, min(id) AS from_id, max(id) AS to_id FROM added
  )
  SELECT CASE WHEN EXISTS (SELECT FROM message)
           THEN s.enqueued + coalesce(g.enqueued, 0) END AS enqueued,
         CASE WHEN s.enqueued > 0 THEN pg_notify('${inboxTopic}',
           json_build_object('appId', $1::text, 'fromId', from_id, 'toId', to_id)::text) END,
         CASE WHEN g.enqueued > 0 THEN pg_notify('${inboxTopic}',
           json_build_object('appId', $1::text, 'groupId', g.id)::text) END
    FROM span s LEFT JOIN grouped g ON true`);

/**
 * Stores a message for installations, and wakes the api processes. It is one statement, so all or
 * nothing is stored. Connected devices share one group. Other devices get an inbox row each. Skips
 * installations that ever got a message of this push, so the call can be repeated after any
 * failure. Returns the number of devices for which the message is new.
 */
export async function enqueueMessage(db: Database, message: MessageToEnqueue): Promise<number> {
  const { appId, pushId, expiresAt } = message;
  const ids = [...new Set(message.installations)].sort((a, b) => a - b);
  const [lowest] = ids;
  const highest = ids.at(-1);
  if (lowest === undefined) return 0;
  const content = JSON.stringify(message.content);
  const digest = createHash('sha256').update(content).digest();
  const values = [appId, pushId, digest, content, expiresAt, listText(ids), lowest, highest];
  const sharded = await isSharded(db);
  // A concurrent call may insert the same message or group. The next try finds it.
  for (let i = 0; i < enqueueTries; i += 1)
    try {
      const enqueued = sharded
        ? await enqueueSharded(db, { appId, pushId, digest, content, expiresAt, ids })
        : await query(db).value<number | null>(enqueueStatement, values);
      if (enqueued !== undefined && enqueued !== null) return enqueued;
    } catch (error) {
      if (violatedConstraint(error) !== 'channel_group_batch') throw error;
    }
  throw new Error('the message of a push could neither be written nor found');
}

/**
 * Sends notifications when `tx` commits. Needed for a sharded database: pg_notify in a statement on
 * tables would run on the server of the app, where no process listens. Here it runs on the
 * coordinator.
 */
export async function notify(tx: Handle, topic: string, payloads: object[]): Promise<void> {
  if (payloads.length === 0) return;
  await tx.query('SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload', [
    topic,
    payloads.map((payload) => JSON.stringify(payload)),
  ]);
}

// On a sharded database (operate/distributed.md): a transaction of one app with a statement for
// each step.

/** Message for installations of an app. `ids` are sorted, without duplicates. */
interface ShardedMessage {
  appId: string;
  pushId: number;
  digest: Buffer;
  /** JSON text. */
  content: string;
  expiresAt: Date;
  ids: number[];
}

const findMessage =
  'SELECT id FROM channel_message WHERE app_id = $1 AND push_id = $2 AND digest = $3';
const insertMessage = `
  INSERT INTO channel_message (app_id, push_id, digest, content, expires_at)
  VALUES ($1, $2, $3, $4::json, $5) ON CONFLICT DO NOTHING RETURNING id`;
const findPast = `
  SELECT unnest(installations) AS installation FROM channel_deposit
   WHERE app_id = $1 AND push_id = $2 AND highest >= $3 AND lowest <= $4`;
const findConnected = `
  SELECT s.installation FROM channel_session s JOIN channel_node n ON n.id = s.node_id
   WHERE s.app_id = $1 AND s.installation = ANY ($2::bigint[]) AND n.takes_groups
     ORDER BY s.installation`;
const insertPastRecipients = `
  INSERT INTO channel_deposit (app_id, push_id, lowest, highest, installations, expires_at)
  VALUES ($1, $2, $3, $4, $5::bigint[], $6)`;
const insertGroup = `
  INSERT INTO channel_group (app_id, id, push_id, message_id, lowest, highest, pending, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7::bigint[], $8)`;
const insertInboxes = `
  INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
  SELECT $1, installation, $2, $3 FROM unnest($4::bigint[]) AS installation ORDER BY installation
  ON CONFLICT (app_id, installation, push_id) DO NOTHING RETURNING id`;

/** Stores a message in a transaction. Returns undefined if a concurrent call stores it. */
const enqueueSharded = (db: Database, message: ShardedMessage): Promise<number | undefined> =>
  db.transaction(async (tx) => {
    const { appId, pushId, digest, content, expiresAt, ids } = message;
    const messageId =
      (await query(tx).value<number>(findMessage, [appId, pushId, digest])) ??
      (await query(tx).value<number>(insertMessage, [appId, pushId, digest, content, expiresAt]));
    if (messageId === undefined) return undefined;
    const past = new Set(
      await query(tx).column<number>(findPast, [appId, pushId, ids[0], ids.at(-1)]),
    );
    const fresh = ids.filter((id) => !past.has(id));
    if (fresh.length === 0) return 0;
    const connected = new Set(
      await query(tx).column<number>(findConnected, [appId, listText(fresh)]),
    );
    const list = [fresh[0], fresh.at(-1), listText(fresh), expiresAt];
    await tx.query(insertPastRecipients, [appId, pushId, ...list]);
    const stored = { appId, pushId, messageId, expiresAt };
    const group = fresh.filter((id) => connected.has(id));
    const others = fresh.filter((id) => !connected.has(id));
    return (await addGroup(tx, stored, group)) + (await addInboxes(tx, stored, others));
  });

interface StoredMessage extends Pick<ShardedMessage, 'appId' | 'pushId' | 'expiresAt'> {
  messageId: number;
}

async function addGroup(
  tx: Handle,
  { appId, pushId, messageId, expiresAt }: StoredMessage,
  ids: number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  const groupId = await query(tx).value<number>(`SELECT nextval('channel_inbox_id_seq')`);
  const values = [appId, groupId, pushId, messageId, ids[0], ids.at(-1), listText(ids), expiresAt];
  await tx.query(insertGroup, values);
  await notify(tx, inboxTopic, [{ appId, groupId }]);
  return ids.length;
}

async function addInboxes(
  tx: Handle,
  { appId, pushId, messageId }: StoredMessage,
  ids: number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  const values = [appId, pushId, messageId, listText(ids)];
  const added = await query(tx).column<number>(insertInboxes, values);
  if (added.length > 0)
    await notify(tx, inboxTopic, [{ appId, fromId: Math.min(...added), toId: Math.max(...added) }]);
  return added.length;
}
