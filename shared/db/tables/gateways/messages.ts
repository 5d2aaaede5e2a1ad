import type { Handle } from '../../pool.ts';

/** A gateway's id of a message (or of one request's messages), and its number of devices. */
export interface GatewayMessage {
  messageId: string;
  devices: number;
}

/** Saves the message ids of a batch, for questions to the gateway's support. */
export async function insertGatewayMessages(
  tx: Handle,
  batch: { appId: string; pushId: number; batchId: number; connector: string },
  messages: readonly GatewayMessage[],
): Promise<void> {
  if (messages.length === 0) return;
  await tx.query(
    `INSERT INTO gateway_message (app_id, push_id, batch_id, connector, message_id, devices)
     SELECT $1, $2, $3, $4, * FROM unnest($5::text[], $6::int[])`,
    [
      batch.appId,
      batch.pushId,
      batch.batchId,
      batch.connector,
      messages.map(({ messageId }) => messageId),
      messages.map(({ devices }) => devices),
    ],
  );
}

/** Lists up to `limit` message ids of a push, oldest first. */
export async function listGatewayMessages(
  db: Handle,
  push: { appId: string; id: number },
  limit: number,
): Promise<(GatewayMessage & { connector: string; createdAt: Date })[]> {
  const { rows } = await db.query<GatewayMessage & { connector: string; createdAt: Date }>(
    `SELECT connector, message_id AS "messageId", devices, created_at AS "createdAt" FROM gateway_message
      WHERE app_id = $1 AND push_id = $2 ORDER BY id LIMIT $3`,
    [push.appId, push.id, limit],
  );
  return rows;
}

/** Deletes rows older than `before`; returns their number. */
export async function deleteOldGatewayMessages(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `DELETE FROM gateway_message WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM gateway_message WHERE created_at < $1 ORDER BY created_at LIMIT $2))`,
    [before, limit],
  );
  return rowCount ?? 0;
}
