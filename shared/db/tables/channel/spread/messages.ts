import type { Database, Handle } from '../../../pool.ts';
import { notify } from './notify.ts';

/** Message for installations of an app, `ids` sorted and without repeats. */
interface SpreadMessage {
  appId: string;
  pushId: number;
  digest: Buffer;
  /** JSON text. */
  content: string;
  expiresAt: Date;
  ids: number[];
}

const findMessage = 'SELECT id FROM channel_message WHERE app_id = $1 AND push_id = $2 AND digest = $3';
const insertMessage = `
  INSERT INTO channel_message (app_id, push_id, digest, content, expires_at)
  VALUES ($1, $2, $3, $4::json, $5) ON CONFLICT DO NOTHING RETURNING id`;
const findPast = `
  SELECT unnest(installations) AS installation FROM channel_deposit
   WHERE app_id = $1 AND push_id = $2 AND highest >= $3 AND lowest <= $4`;
const findConnected = `
  SELECT s.installation FROM channel_session s JOIN channel_node n ON n.id = s.node_id
   WHERE s.app_id = $1 AND s.installation = ANY ($2::bigint[]) AND n.takes_groups ORDER BY s.installation`;
const insertDeposit = `
  INSERT INTO channel_deposit (app_id, push_id, lowest, highest, installations, expires_at)
  VALUES ($1, $2, $3, $4, $5::bigint[], $6)`;
const insertGroup = `
  INSERT INTO channel_group (app_id, id, push_id, message_id, lowest, highest, pending, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7::bigint[], $8)`;
const insertInboxes = `
  INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
  SELECT $1, installation, $2, $3 FROM unnest($4::bigint[]) AS installation ORDER BY installation
  ON CONFLICT (app_id, installation, push_id) DO NOTHING RETURNING id`;

const listText = (ids: readonly number[]) => `{${ids.join()}}`;

/** Stores a message as `enqueueMessage` does, in a transaction. Returns undefined if a concurrent call stores it. */
export function enqueueInSpread(
  db: Database,
  topic: string,
  message: SpreadMessage,
): Promise<number | undefined> {
  return db.transaction(async (tx) => {
    const { appId, pushId, digest, content, expiresAt } = message;
    const known = await tx.query<{ id: number }>(findMessage, [appId, pushId, digest]);
    const made = known.rows[0]
      ? known
      : await tx.query<{ id: number }>(insertMessage, [appId, pushId, digest, content, expiresAt]);
    const messageId = made.rows[0]?.id;
    if (messageId === undefined) return undefined;
    const wanted = await findNew(tx, message);
    if (wanted.length === 0) return 0;
    const { rows } = await tx.query<{ installation: number }>(findConnected, [appId, listText(wanted)]);
    const connected = new Set(rows.map(({ installation }) => installation));
    const [lowest, highest] = [wanted[0], wanted.at(-1)];
    await tx.query(insertDeposit, [appId, pushId, lowest, highest, listText(wanted), expiresAt]);
    const push = { ...message, messageId };
    const group = wanted.filter((id) => connected.has(id));
    const others = wanted.filter((id) => !connected.has(id));
    return (await addGroup(tx, topic, push, group)) + (await addInboxes(tx, topic, push, others));
  });
}

/** Returns the installations that never got a message of the push. */
async function findNew(tx: Handle, { appId, pushId, ids }: SpreadMessage): Promise<number[]> {
  const values = [appId, pushId, ids[0], ids.at(-1)];
  const { rows } = await tx.query<{ installation: number }>(findPast, values);
  const past = new Set(rows.map(({ installation }) => installation));
  return ids.filter((id) => !past.has(id));
}

interface StoredMessage extends SpreadMessage {
  messageId: number;
}

async function addGroup(
  tx: Handle,
  topic: string,
  { appId, pushId, messageId, expiresAt }: StoredMessage,
  ids: number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  const { rows } = await tx.query<{ id: number }>(`SELECT nextval('channel_inbox_id_seq') AS id`);
  const groupId = rows[0]?.id;
  const values = [appId, groupId, pushId, messageId, ids[0], ids.at(-1), listText(ids), expiresAt];
  await tx.query(insertGroup, values);
  await notify(tx, topic, [{ appId, groupId }]);
  return ids.length;
}

async function addInboxes(
  tx: Handle,
  topic: string,
  { appId, pushId, messageId }: StoredMessage,
  ids: number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  const { rows } = await tx.query<{ id: number }>(insertInboxes, [appId, pushId, messageId, listText(ids)]);
  const added = rows.map(({ id }) => id);
  if (added.length > 0)
    await notify(tx, topic, [{ appId, fromId: Math.min(...added), toId: Math.max(...added) }]);
  return added.length;
}
