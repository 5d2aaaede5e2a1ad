import type { ConnectorId } from '../../../domain/labels.ts';
import type { Handle } from '../../pool.ts';

/** A gateway's id of a message (or of one request's messages), and its number of devices. */
export interface GatewayMessage {
  messageId: string;
  devices: number;
}

/** Messages of one batch. */
export interface BatchMessages {
  batch: { appId: string; pushId: number; batchId: number; connector: string };
  messages: readonly GatewayMessage[];
}

/** Saves the message ids of batches, for questions to the gateway's support. */
export async function insertGatewayMessages(tx: Handle, list: readonly BatchMessages[]): Promise<void> {
  const rows = list.flatMap(({ batch, messages }) => messages.map((message) => ({ ...batch, ...message })));
  if (rows.length === 0) return;
  await tx.query(
    `INSERT INTO gateway_message (app_id, push_id, batch_id, connector, message_id, devices)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::int[])`,
    [
      rows.map(({ appId }) => appId),
      rows.map(({ pushId }) => pushId),
      rows.map(({ batchId }) => batchId),
      rows.map(({ connector }) => connector),
      rows.map(({ messageId }) => messageId),
      rows.map(({ devices }) => devices),
    ],
  );
}

/** Message of a gateway in the list of a push. */
export interface ListedGatewayMessage extends GatewayMessage {
  /** Position in the list. */
  id: number;
  connector: ConnectorId;
  at: Date;
}

/** Lists message ids of a push, oldest first. */
export async function listGatewayMessages(
  db: Handle,
  push: { appId: string; id: number },
  page: { after: number | null; limit: number },
): Promise<ListedGatewayMessage[]> {
  const { rows } = await db.query<ListedGatewayMessage>(
    `SELECT id, connector, message_id AS "messageId", devices, created_at AS at FROM gateway_message
      WHERE app_id = $1 AND push_id = $2 AND ($3::bigint IS NULL OR id > $3) ORDER BY id LIMIT $4`,
    [push.appId, push.id, page.after, page.limit],
  );
  return rows;
}

/** Deletes rows older than `before`; returns their number. */
export async function deleteOldGatewayMessages(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, id FROM gateway_message WHERE created_at < $1 ORDER BY created_at LIMIT $2)
     DELETE FROM gateway_message m USING old WHERE m.app_id = old.app_id AND m.id = old.id`,
    [before, limit],
  );
  return rowCount ?? 0;
}
