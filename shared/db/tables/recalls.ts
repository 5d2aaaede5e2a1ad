import type { RoutingKey } from '../../domain/installations/installation.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import { outcomeCode } from '../../domain/outcome.ts';
import type { PushState } from '../../domain/pushes/record.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { maxGroups, type SqlCondition } from './audience.ts';
import type { PushKey } from './pushes.ts';
import { routingExpressions, traitColumns } from './routing-keys.ts';

/**
 * Returns the SQL of the recipients that a push was sent to, with the route of each: columns
 * `installation`, `connector` and `profile`. Recipients that moved to a retry batch are read from
 * the retry batch.
 */
export const sentRecipientsSql = (appId: string, pushId: string): string =>
  `SELECT r.installation, b.connector, b.profile
     FROM push_batch b, unnest(b.recipients) WITH ORDINALITY AS r (installation, position)
    WHERE b.app_id = ${appId} AND b.push_id = ${pushId} AND b.settled IS NOT NULL
      AND get_byte(b.settled, r.position::int - 1) = ${outcomeCode('sent')}
      AND NOT (r.position::int - 1 = ANY (coalesce(b.moved, '{}')))`;

/**
 * Returns the routes, as `<connector>/<profile>`, by which a push was sent to these installations.
 * Installations that it was not sent to are absent.
 */
export async function findSentRoutes(
  db: Handle,
  { appId, id }: PushKey,
  installations: readonly number[],
): Promise<Map<number, string>> {
  const rows = await query(db).rows<{ installation: number; route: string }>(
    `SELECT installation, connector || '/' || profile AS route
       FROM (${sentRecipientsSql('$1', '$2')}) AS sent WHERE installation = ANY ($3::bigint[])`,
    [appId, id, `{${installations.join(',')}}`],
  );
  return new Map(rows.map(({ installation, route }) => [installation, route]));
}

/** The newest recall of a push. `pushId` is the recalled push, `id` and `objectId` the recall. */
export interface StoredRecall {
  pushId: number;
  id: number;
  objectId: string;
  state: PushState;
  createdAt: Date;
  finishedAt: Date | null;
  hasReplacement: boolean;
}

/** Returns the newest recall of each push. */
export async function findRecalls(
  db: Handle,
  appId: string,
  pushIds: readonly number[],
): Promise<Map<number, StoredRecall>> {
  if (pushIds.length === 0) return new Map();
  const rows = await query(db).rows<StoredRecall>(
    `SELECT DISTINCT ON (recall_of) recall_of AS "pushId", id, object_id AS "objectId", state,
            created_at AS "createdAt", finished_at AS "finishedAt",
            (request #>> '{recall,hasReplacement}')::boolean AS "hasReplacement"
       FROM notification WHERE app_id = $1 AND recall_of = ANY ($2::bigint[])
      ORDER BY recall_of, id DESC`,
    [appId, `{${pushIds.join(',')}}`],
  );
  return new Map(rows.map((row) => [row.pushId, row]));
}

/** Number of recipients by what a recall did to their message. */
export interface RecallCounts {
  connector: ConnectorId;
  recalled: number;
  replaced: number;
}

/** Counts the recipients of recalls (internal ids) by connector. */
export async function countRecalled(
  db: Handle,
  appId: string,
  recallIds: readonly number[],
): Promise<Map<number, RecallCounts[]>> {
  if (recallIds.length === 0) return new Map();
  const rows = await query(db).rows<RecallCounts & { id: number }>(
    `SELECT push_id AS id, connector,
            coalesce(sum((sent_by ->> 'recalled')::bigint), 0)::bigint AS recalled,
            coalesce(sum((sent_by ->> 'replaced')::bigint), 0)::bigint AS replaced
       FROM push_batch WHERE app_id = $1 AND push_id = ANY ($2::bigint[])
      GROUP BY push_id, connector`,
    [appId, `{${recallIds.join(',')}}`],
  );
  return Map.groupBy(rows, ({ id }) => id);
}

/**
 * Locks a push until `tx` ends. Returns the public id of another recall of it that is not finished,
 * or undefined. `ownId` is the public id of the new recall. A cancelled recall never gets totals. It
 * is finished when its batches are settled.
 */
export async function lockForRecall(
  tx: Handle,
  { appId, id }: PushKey,
  ownId: string,
): Promise<string | undefined> {
  await tx.query('SELECT FROM notification WHERE app_id = $1 AND id = $2 FOR UPDATE', [appId, id]);
  return query(tx).value<string>(
    `SELECT n.object_id FROM notification n
      WHERE n.app_id = $1 AND n.recall_of = $2 AND n.object_id <> $3 AND n.totals IS NULL
        AND (n.state <> 'cancelled' OR EXISTS (
          SELECT FROM push_batch b
           WHERE b.app_id = n.app_id AND b.push_id = n.id AND NOT b.is_settled)) LIMIT 1`,
    [appId, id, ownId],
  );
}

/** Deletes messages of the device channel that wait for these devices. Returns the devices. */
export const deleteWaitingMessages = (
  db: Handle,
  { appId, id }: PushKey,
  installations: readonly number[],
) => query(db).column<number>(deleteWaiting, [appId, id, `{${installations.join(',')}}`]);

/**
 * Locks rows in the order of acknowledgements. A group keeps an empty list until it is moved to
 * inboxes.
 */
const deleteWaiting = `
  WITH wanted AS MATERIALIZED (
    SELECT unnest($3::bigint[]) AS installation
  ), groups AS MATERIALIZED (
    SELECT g.id, g.pending FROM channel_group g
     WHERE g.app_id = $1 AND g.push_id = $2 AND g.pending && $3::bigint[] ORDER BY g.id FOR UPDATE
  ), reduced AS (
    UPDATE channel_group g
       SET pending = ARRAY(SELECT unnest(l.pending) EXCEPT SELECT installation FROM wanted
                            ORDER BY 1)
      FROM groups l WHERE g.app_id = $1 AND g.id = l.id
  ), rows AS MATERIALIZED (
    SELECT i.id, i.installation FROM channel_inbox i
     WHERE i.app_id = $1 AND i.push_id = $2 AND i.installation = ANY ($3::bigint[])
     ORDER BY i.id FOR UPDATE
  ), deleted AS (
    DELETE FROM channel_inbox i USING rows r WHERE i.app_id = $1 AND i.id = r.id
  )
  SELECT installation FROM rows
   UNION
  SELECT w.installation FROM wanted w
   WHERE EXISTS (SELECT FROM groups g WHERE w.installation = ANY (g.pending))`;

/** Devices that a push was sent to, by routing key and by the route of the push. */
export interface SentGroup extends RoutingKey {
  connector: ConnectorId;
  profile: string;
  devices: number;
}

/** Counts the devices of a condition that a push was sent to. */
export const countSentDevices = (
  tx: Handle,
  { appId, id }: PushKey,
  { text, values }: SqlCondition,
) => {
  const n = values.length;
  return query(tx).rows<SentGroup>(
    `SELECT ${traitColumns}, sent.connector, sent.profile, count(*) AS devices
       FROM (SELECT * FROM installation WHERE ${text}) AS installation
       JOIN (${sentRecipientsSql(`$${n + 1}`, `$${n + 2}`)}) AS sent
         ON sent.installation = installation.id
      GROUP BY ${routingExpressions}, sent.connector, sent.profile LIMIT ${maxGroups}`,
    [...values, appId, id],
  );
};

/** Counts the devices whose message of a push waits on the device channel. */
export const countWaitingMessages = (db: Handle, { appId, id }: PushKey) =>
  query(db).number(
    `SELECT (SELECT coalesce(sum(cardinality(pending)), 0) FROM channel_group
              WHERE app_id = $1 AND push_id = $2)
          + (SELECT count(*) FROM (${sentRecipientsSql('$1', '$2')}) AS sent
               JOIN channel_inbox i ON i.app_id = $1 AND i.installation = sent.installation
                    AND i.push_id = $2
              WHERE sent.connector = 'channel') AS n`,
    [appId, id],
  );
