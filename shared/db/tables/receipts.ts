import { storableText } from '../../domain/json.ts';
import type { ConnectorId } from '../../domain/labels.ts';
import { openCode, outcomeCode } from '../../domain/outcome.ts';
import type { ReceiptTotals } from '../../domain/pushes/push.ts';
import type { Handle } from '../pool.ts';
import { listsOf, lockName, type PageAfter, type PageBefore, query, sweepOf } from '../query.ts';
import type { PushKey } from './pushes.ts';

/** App and connector of the receipts in a callback. */
export interface ReceiptSource {
  appId: string;
  connector: ConnectorId;
}

/** Source of receipts that are counted: a gateway, or the app itself. */
type CountedSource = Omit<ReceiptSource, 'connector'> & { connector: ConnectorId | 'app' };

/** Pair of a push and a device, by their internal ids. */
export interface PushDevice {
  pushId: number;
  installation: number;
}

/** What is known of a message on a device. `isClicked`: the user opened it. */
export interface DeviceReceipt extends PushDevice {
  isDelivered: boolean;
  isClicked: boolean;
  isDismissed: boolean;
}

/** Number of devices by what is known of their message. */
type CountedTotals = Record<'delivered' | 'clicked' | 'dismissed', number>;

/** The push of a receipt. */
export interface ReceiptPush {
  id: number;
  objectId: string;
  /** When sending started. An installation that was updated since has a newer token. */
  sentAt: Date;
}

/** Finds pushes by public ids, and locks them against deletion until `tx` ends. */
export const lockPushes = (tx: Handle, appId: string, objectIds: readonly string[]) =>
  query(tx).rows<ReceiptPush>(
    `SELECT id, object_id AS "objectId", coalesce(first_sent_at, push_time) AS "sentAt"
      FROM notification
      WHERE app_id = $1 AND object_id = ANY ($2) ORDER BY id FOR KEY SHARE`,
    [appId, objectIds],
  );

/**
 * Finds the installation of each registration id. If several have the same id, finds the oldest.
 */
export async function findByRegistrationIds(
  db: Handle,
  { appId, connector }: ReceiptSource,
  registrationIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await query(db).rows<{ registrationId: string; id: number }>(
    `SELECT registration_id AS "registrationId", min(id) AS id FROM installation
      WHERE app_id = $1 AND registration_id = ANY ($2) AND vendor = $3 GROUP BY registration_id`,
    [appId, registrationIds, connector],
  );
  return new Map(rows.map(({ registrationId, id }) => [registrationId, id]));
}

const marks = `unnest($3::bigint[], $4::bigint[], $5::boolean[], $6::boolean[], $7::boolean[])
  AS m (push_id, installation, delivered, clicked, dismissed)`;

/** Bits of the devices that have a mark, by block of 512 devices. */
const bitsOf = (mark: string) =>
  `bit_or(set_bit(0::bit(512), (m.installation % 512)::int, m.${mark}::int)) AS ${mark}`;

/** A receipt that was not counted before. */
export interface NewReceipt extends DeviceReceipt {
  objectId: string;
}

/** SQL that is true if a mark is new: its bit is not set yet. */
const isNew = (mark: string) => `m.${mark} AND get_bit(r.${mark}, (m.installation % 512)::int) = 0`;

/**
 * Counts receipts: sets the bits of their devices, and adds the bits that were not set before to
 * the totals of the pushes. Returns the ids of the pushes with new receipts. With `isListed`, also
 * returns the new receipts. Locks blocks in a fixed order. Needs a transaction.
 */
export async function countReceipts(
  tx: Handle,
  { appId, connector }: CountedSource,
  receipts: readonly DeviceReceipt[],
  { isListed }: { isListed: boolean },
): Promise<{ pushIds: number[]; fresh: NewReceipt[] }> {
  const values = [
    appId,
    connector,
    ...listsOf(receipts, 'pushId', 'installation', 'isDelivered', 'isClicked', 'isDismissed'),
  ];
  await tx.query(
    `INSERT INTO push_receipt (app_id, push_id, connector, block)
     SELECT DISTINCT $1, m.push_id, $2, m.installation / 512 FROM ${marks}
      ORDER BY m.push_id, m.installation / 512 ON CONFLICT DO NOTHING`,
    values,
  );
  await tx.query(
    `SELECT FROM push_receipt
      WHERE app_id = $1 AND connector = $2
        AND (push_id, block) IN (SELECT m.push_id, m.installation / 512 FROM ${marks})
      ORDER BY push_id, block FOR UPDATE`,
    values,
  );
  const fresh = isListed ? await query(tx).rows<NewReceipt>(newReceipts, values) : [];
  const added = await query(tx).rows<CountedTotals & { pushId: number }>(markReceipts, values);
  if (added.length > 0)
    await tx.query(addTotals, [
      appId,
      connector,
      Math.floor(Math.random() * slots),
      ...listsOf(added, 'pushId', 'delivered', 'clicked', 'dismissed'),
    ]);
  return { pushIds: added.map(({ pushId }) => pushId), fresh };
}

/** Receipts whose bits are not set yet. Their blocks are locked. */
const newReceipts = `
  SELECT * FROM (
    SELECT m.push_id AS "pushId", m.installation, i.object_id AS "objectId",
           ${isNew('delivered')} AS "isDelivered",
           ${isNew('clicked')} AS "isClicked", ${isNew('dismissed')} AS "isDismissed"
      FROM ${marks} JOIN push_receipt r ON r.app_id = $1 AND r.connector = $2
                      AND r.push_id = m.push_id AND r.block = m.installation / 512
      JOIN installation i ON i.app_id = $1 AND i.id = m.installation) AS receipt
   WHERE "isDelivered" OR "isClicked" OR "isDismissed"`;

/**
 * Sets the bits. Returns by push how many were not set before, in the order of pushes. The blocks
 * are locked, so `before` matches the rows that `changed` updates.
 */
const markReceipts = `
  WITH told AS (
    SELECT m.push_id, m.installation / 512 AS block, ${bitsOf('delivered')},
           ${bitsOf('clicked')}, ${bitsOf('dismissed')}
      FROM ${marks} GROUP BY m.push_id, m.installation / 512),
  before AS MATERIALIZED (
    SELECT r.push_id, r.block, r.delivered, r.clicked, r.dismissed FROM push_receipt r
      JOIN told USING (push_id, block)
     WHERE r.app_id = $1 AND r.connector = $2),
  changed AS (
    UPDATE push_receipt r SET delivered = r.delivered | told.delivered,
      clicked = r.clicked | told.clicked, dismissed = r.dismissed | told.dismissed
      FROM told JOIN before USING (push_id, block)
     WHERE r.app_id = $1 AND r.connector = $2 AND r.push_id = told.push_id
       AND r.block = told.block
       AND (before.delivered | told.delivered <> before.delivered
         OR before.clicked | told.clicked <> before.clicked
         OR before.dismissed | told.dismissed <> before.dismissed)
    RETURNING r.push_id, bit_count(r.delivered) - bit_count(before.delivered) AS delivered,
              bit_count(r.clicked) - bit_count(before.clicked) AS clicked,
              bit_count(r.dismissed) - bit_count(before.dismissed) AS dismissed)
  SELECT push_id AS "pushId", sum(delivered)::bigint AS delivered,
         sum(clicked)::bigint AS clicked, sum(dismissed)::bigint AS dismissed
    FROM changed GROUP BY push_id ORDER BY push_id`;

/** Rows per counter, so that concurrent calls rarely update the same row. */
const slots = 16;

const addTotals = `
  INSERT INTO push_receipt_total AS t (app_id, push_id, connector, slot, delivered, clicked,
                                       dismissed)
  SELECT $1, m.push_id, $2, $3, m.delivered, m.clicked, m.dismissed
    FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
      AS m (push_id, delivered, clicked, dismissed)
  ON CONFLICT (app_id, push_id, connector, slot)
  DO UPDATE SET delivered = t.delivered + excluded.delivered,
    clicked = t.clicked + excluded.clicked, dismissed = t.dismissed + excluded.dismissed`;

/**
 * Returns those pairs whose device is a recipient that the push was sent to, or is being sent to.
 * The range of ids excludes most batches, so the recipients of few batches are read.
 */
export const findSentPairs = (db: Handle, appId: string, pairs: readonly PushDevice[]) =>
  query(db).rows<PushDevice>(
    `SELECT m.push_id AS "pushId", m.installation
       FROM unnest($2::bigint[], $3::bigint[]) AS m (push_id, installation)
      WHERE EXISTS (
        SELECT FROM push_batch b, array_position(b.recipients, m.installation) AS place
         WHERE b.app_id = $1 AND b.push_id = m.push_id
           AND m.installation >= coalesce(b.first_recipient, m.installation)
           AND m.installation <= coalesce(b.last_recipient, m.installation)
           AND place IS NOT NULL
           AND coalesce(get_byte(b.settled, place - 1), ${openCode})
             IN (${openCode}, ${outcomeCode('sent')}))`,
    [appId, ...listsOf(pairs, 'pushId', 'installation')],
  );

/**
 * Returns the receipts of pushes, over all connectors and from the app. Pushes without receipts are
 * absent.
 */
export async function readReceipts(
  db: Handle,
  appId: string,
  pushIds: readonly number[],
): Promise<Map<number, ReceiptTotals>> {
  const rows = await query(db).rows<ReceiptTotals & { pushId: number }>(
    `SELECT push_id AS "pushId",
            ${sumIf("<> 'app'", 'delivered')} AS delivered, ${sumIf("<> 'app'", 'clicked')} AS clicked,
            ${sumIf("= 'app'", 'delivered')} AS received, ${sumIf("= 'app'", 'clicked')} AS opened,
            ${sumIf("= 'app'", 'dismissed')} AS dismissed
       FROM push_receipt_total WHERE app_id = $1 AND push_id = ANY ($2::bigint[]) GROUP BY push_id`,
    [appId, pushIds],
  );
  return new Map(rows.map(({ pushId, ...totals }) => [pushId, totals]));
}

const sumIf = (condition: string, column: string): string =>
  `coalesce(sum(${column}) FILTER (WHERE connector ${condition}), 0)::bigint`;

/** A refused callback of a gateway, without its content. */
export interface FailedReceipt {
  id: number;
  connector: ConnectorId;
  /** Status of the response, and the reason. */
  status: number;
  reason: string;
  /** Size of the body in bytes. */
  bytes: number;
  at: Date;
}

/** Encrypted content of a refused callback. */
export interface SealedCall {
  /** Hex text that is equal for equal callbacks. */
  digest: string;
  call: Buffer;
}

/**
 * Stores a refused callback, unless the app has `maxKept` others. Returns whether it is stored.
 * Other calls of the app wait until `tx` ends, so that the limit is exact.
 */
export async function keepFailedReceipt(
  tx: Handle,
  appId: string,
  failed: Pick<FailedReceipt, 'connector' | 'status' | 'reason' | 'bytes'> & SealedCall,
  maxKept: number,
): Promise<boolean> {
  const { connector, digest, status, reason, bytes, call } = failed;
  await lockName(tx, `failed receipts ${appId}`);
  return query(tx).hasRows(
    `INSERT INTO failed_receipt (app_id, connector, digest, status, reason, bytes, call)
     SELECT $1, $2, $3, $4, $5, $6, $7
      WHERE (SELECT count(*) FROM (SELECT FROM failed_receipt WHERE app_id = $1
        LIMIT $8) AS kept) < $8
         OR EXISTS (SELECT FROM failed_receipt WHERE app_id = $1 AND connector = $2 AND digest = $3)
     ON CONFLICT (app_id, connector, digest) DO UPDATE
       SET status = excluded.status, reason = excluded.reason`,
    [appId, connector, digest, status, reason, bytes, call, maxKept],
  );
}

const columns = 'id, connector, status, reason, bytes, created_at AS at';

/** Lists refused callbacks of an app, newest first. */
export const listFailedReceipts = (
  db: Handle,
  appId: string,
  connector: string | undefined,
  page: PageBefore,
) =>
  query(db).rows<FailedReceipt>(
    `SELECT ${columns} FROM failed_receipt
      WHERE app_id = $1 AND ($2::text IS NULL OR connector = $2) AND ($3::bigint IS NULL OR id < $3)
      ORDER BY id DESC LIMIT $4`,
    [appId, connector, page.before, page.limit],
  );

/** Reads a page of refused callbacks with their content, oldest first. */
export const readFailedReceipts = (
  db: Handle,
  appId: string,
  connector: string | undefined,
  page: { after: number; limit: number },
) =>
  query(db).rows<FailedReceipt & SealedCall>(
    `SELECT ${columns}, digest, call FROM failed_receipt
      WHERE app_id = $1 AND ($2::text IS NULL OR connector = $2) AND id > $3 ORDER BY id LIMIT $4`,
    [appId, connector, page.after, page.limit],
  );

/** Deletes refused callbacks that were processed. */
export const deleteFailedReceipts = (tx: Handle, appId: string, ids: readonly number[]) =>
  query(tx).run('DELETE FROM failed_receipt WHERE app_id = $1 AND id = ANY($2::bigint[])', [
    appId,
    `{${ids.join(',')}}`,
  ]);

export const deleteOldFailedReceipts = sweepOf({
  table: 'failed_receipt',
  key: ['app_id', 'id'],
  column: 'created_at',
});

/**
 * Message id of a gateway, and the number of devices that it covers. One id may cover a whole
 * request.
 */
export interface GatewayMessage {
  messageId: string;
  devices: number;
}

/** Messages of one batch. */
export interface BatchMessages {
  batch: { appId: string; pushId: number; batchId: number; connector: string };
  messages: readonly GatewayMessage[];
}

const maxMessageIdChars = 200;

/** Saves the message ids of batches. The gateway's support asks for them. */
export async function insertGatewayMessages(
  tx: Handle,
  list: readonly BatchMessages[],
): Promise<void> {
  const rows = list.flatMap(({ batch, messages }) =>
    messages.map(({ messageId, devices }) => ({
      ...batch,
      messageId: storableText(messageId, maxMessageIdChars),
      devices,
    })),
  );
  if (rows.length === 0) return;
  await tx.query(
    `INSERT INTO gateway_message (app_id, push_id, batch_id, connector, message_id, devices)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[],
       $6::int[])`,
    listsOf(rows, 'appId', 'pushId', 'batchId', 'connector', 'messageId', 'devices'),
  );
}

/** Lists message ids of a push, oldest first. */
export const listGatewayMessages = (db: Handle, push: PushKey, page: PageAfter) =>
  query(db).rows<GatewayMessage & { id: number; connector: ConnectorId; at: Date }>(
    `SELECT id, connector, message_id AS "messageId", devices, created_at AS at FROM gateway_message
      WHERE app_id = $1 AND push_id = $2 AND ($3::bigint IS NULL OR id > $3) ORDER BY id LIMIT $4`,
    [push.appId, push.id, page.after, page.limit],
  );

export const deleteOldGatewayMessages = sweepOf({
  table: 'gateway_message',
  key: ['app_id', 'id'],
  column: 'created_at',
});
