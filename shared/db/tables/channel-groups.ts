import type { Database, Handle } from '../pool.ts';
import { prepare } from '../prepared.ts';
import { dueIn, listsOf, query } from '../query.ts';
import { AppStatement } from '../sharding.ts';

/**
 * A message of a push for all devices that were connected when it was stored. One row serves all
 * these devices, instead of one inbox row per device. The row lists the devices that have not
 * acknowledged the message. A group exists for seconds, until `moveToInboxes` ends it.
 */
export interface MessageGroup {
  id: number;
  messageId: number;
  /** Internal ids of the installations that have not acknowledged, sorted. */
  pending: number[];
}

const readStatement = prepare(
  `SELECT id, message_id AS "messageId", pending FROM channel_group
    WHERE app_id = $1 AND id = ANY ($2::bigint[]) ORDER BY id`,
);

/** Returns groups by id, oldest first. Groups that are acknowledged or moved are missing. */
export const readGroups = (db: Handle, appId: string, ids: number[]) =>
  query(db).rows<MessageGroup>(readStatement, [appId, ids]);

/** A device's acknowledgement of the message of a push. */
export interface Acknowledgement {
  appId: string;
  installation: number;
  pushId: number;
  /**
   * Group from which the message was read. Undefined if it is in the inbox, or if the group is
   * unknown.
   */
  groupId?: number | undefined;
}

/** A device's acknowledgement of a message in a group. */
export interface GroupAcknowledgement extends Acknowledgement {
  groupId: number;
}

/**
 * Returns CTEs that add the numbers `n` of the CTE `counts` to a column of push records. Locks the
 * records in one order. `andApp`: condition that names the app of the table `n`.
 */
export const addToRecords = (column: 'acked' | 'displaced', andApp: string): string =>
  `records AS MATERIALIZED (
     SELECT n.app_id, n.id, c.n AS added FROM notification n
       JOIN counts c ON n.app_id = c.app_id AND n.id = c.push_id${andApp}
      ORDER BY n.app_id, n.id FOR NO KEY UPDATE OF n
   ), counted AS (
     UPDATE notification n SET ${column} = n.${column} + r.added FROM records r
      WHERE n.app_id = r.app_id AND n.id = r.id${andApp}
   )`;

/**
 * Removes acknowledged devices from groups. Locks rows in one order, so that concurrent calls do
 * not deadlock. The commit does not wait for the disk. If the database crashes, lost
 * acknowledgements are delivered again with the same id, and count when they are acknowledged
 * again.
 */
const acknowledgeStatement = new AppStatement(
  4,
  (andApp) => `WITH asked AS MATERIALIZED (
     SELECT app_id, id, list::bigint[] AS installations
       FROM unnest($1::text[], $2::bigint[], $3::text[]) AS a (app_id, id, list)
   ), locked AS MATERIALIZED (
     SELECT g.app_id, g.id, g.push_id, g.pending, a.installations
       FROM channel_group g JOIN asked a ON g.app_id = a.app_id AND g.id = a.id${andApp('g')}
      ORDER BY g.app_id, g.id FOR UPDATE OF g
   ), parted AS MATERIALIZED (
     SELECT app_id, id, push_id, pending, installations, cardinality(pending) AS before,
            ARRAY(SELECT unnest(pending) EXCEPT SELECT unnest(installations) ORDER BY 1) AS rest
       FROM locked
   ), emptied AS (
     DELETE FROM channel_group g USING parted p
      WHERE p.rest = '{}' AND g.app_id = p.app_id AND g.id = p.id${andApp('g')}
   ), reduced AS (
     UPDATE channel_group g SET pending = p.rest FROM parted p
      WHERE p.rest <> '{}' AND g.app_id = p.app_id AND g.id = p.id${andApp('g')}
   ), counts AS (
     SELECT app_id, push_id, sum(before - cardinality(rest)) AS n FROM parted
      GROUP BY app_id, push_id
   ), ${addToRecords('acked', andApp('n'))}
   SELECT app_id AS "appId", id, before - cardinality(rest) AS acked,
          CASE WHEN before - cardinality(rest) < cardinality(installations)
            THEN ARRAY(SELECT unnest(installations) EXCEPT SELECT unnest(pending))
            ELSE '{}' END AS missing,
          set_config('synchronous_commit', 'off', true)
     FROM parted`,
  { isPrepared: true },
);

interface GroupResult {
  acked: number;
  /**
   * Acknowledgements of devices that are not in their group, because they are repeated or their
   * message was moved.
   */
  others: GroupAcknowledgement[];
}

/**
 * Returns for each group its app, its id, and its devices in the text format of an array, which is
 * cheaper than a list.
 */
function columnsOf(acknowledgements: GroupAcknowledgement[]): [string[], number[], string[]] {
  const groups = [
    ...Map.groupBy(acknowledgements, ({ appId, groupId }) => `${appId}/${groupId}`).values(),
  ];
  return [
    groups.flatMap(([first]) => first?.appId ?? []),
    groups.flatMap(([first]) => first?.groupId ?? []),
    groups.map((acks) => `{${acks.map(({ installation }) => installation).join()}}`),
  ];
}

/** Removes devices from groups, and adds their number to the push records (`lcSuccesses`). */
export async function acknowledgeGroups(
  db: Handle,
  acks: GroupAcknowledgement[],
): Promise<GroupResult> {
  const rows = await acknowledgeStatement.run<
    { appId: string; id: number; missing: number[]; acked: number },
    GroupAcknowledgement
  >(db, acks, columnsOf);
  const missing = new Map(rows.map((row) => [`${row.appId}/${row.id}`, row.missing]));
  const acked = rows.reduce((sum, row) => sum + row.acked, 0);
  const isMissing = ({ appId, groupId, installation }: GroupAcknowledgement) =>
    missing.get(`${appId}/${groupId}`)?.includes(installation) ?? true;
  return { acked, others: acked === acks.length ? [] : acks.filter(isMissing) };
}

/**
 * Finds the groups of acknowledgements that do not name their group. The result omits
 * acknowledgements that are in no group.
 */
export const findGroups = (db: Handle, acknowledgements: Acknowledgement[]) =>
  query(db).rows<GroupAcknowledgement>(
    `SELECT a.app_id AS "appId", g.id AS "groupId", a.installation, a.push_id AS "pushId"
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (app_id, installation, push_id)
       JOIN channel_group g ON g.app_id = a.app_id AND g.push_id = a.push_id
            AND a.installation BETWEEN g.lowest AND g.highest AND a.installation = ANY (g.pending)`,
    listsOf(acknowledgements, 'appId', 'installation', 'pushId'),
  );

const groupsPerMove = 50;
/** Margin for the rounding of times to milliseconds. */
const roundingMs = 10;

/**
 * Moves messages that were not acknowledged within `afterMs` from their groups to inboxes, so that
 * they no longer enlarge the row that other devices share. A message keeps its position among the
 * messages of its device. Expired messages are deleted. Returns their number, one per device.
 */
export async function moveToInboxes(db: Database, afterMs: number): Promise<number> {
  // Compute the time once, because pushes create new groups all the time.
  const page = { before: await dueIn(db, roundingMs - afterMs), limit: groupsPerMove };
  const apps = await query(db).column<string>(
    'SELECT app_id FROM channel_group WHERE created_at <= $1 GROUP BY app_id ORDER BY app_id',
    [page.before],
  );
  let expired = 0;
  // One transaction for each page of an app, because a sharded database cannot lock rows of several
  // apps.
  for (const appId of apps)
    for (let moved = page.limit; moved === page.limit; ) {
      const result = await db.transaction((tx) => moveGroupsOfApp(tx, appId, page));
      moved = result.moved;
      expired += result.expired;
    }
  return expired;
}

interface OldGroup extends MessageGroup {
  pushId: number;
  isExpired: boolean;
}

const oldGroups = `
  SELECT id, push_id AS "pushId", message_id AS "messageId", pending,
    expires_at <= now() AS "isExpired"
    FROM channel_group WHERE app_id = $1 AND created_at <= $2 ORDER BY id LIMIT $3 FOR UPDATE`;

const addToInboxes = `
  INSERT INTO channel_inbox (app_id, installation, push_id, message_id, position)
  SELECT $1, installation, o.push_id, o.message_id, o.id
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS o (id, push_id, message_id,
         list), unnest(o.list::bigint[]) AS installation
   ORDER BY o.id, installation
  ON CONFLICT (app_id, installation, push_id) DO NOTHING`;

async function moveGroupsOfApp(
  tx: Handle,
  appId: string,
  { before, limit }: { before: Date; limit: number },
): Promise<{ moved: number; expired: number }> {
  const old = await query(tx).rows<OldGroup>(oldGroups, [appId, before, limit]);
  if (old.length === 0) return { moved: 0, expired: 0 };
  const valid = old.filter(({ isExpired }) => !isExpired);
  if (valid.length > 0)
    await tx.query(addToInboxes, [
      appId,
      ...listsOf(valid, 'id', 'pushId', 'messageId'),
      valid.map(({ pending }) => `{${pending.join()}}`),
    ]);
  await tx.query('DELETE FROM channel_group WHERE app_id = $1 AND id = ANY ($2::bigint[])', [
    appId,
    old.map(({ id }) => id),
  ]);
  const lost = old.filter(({ isExpired }) => isExpired);
  return { moved: old.length, expired: lost.reduce((sum, { pending }) => sum + pending.length, 0) };
}
