import type { Handle } from '../../pool.ts';

/** What a gateway called one message (or one request's messages), and to how many devices it went. */
export interface GatewayMessage {
  messageId: string;
  devices: number;
}

/** Keeps the ids that a gateway gave for a batch, for questions to its support. */
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

/** The ids of a push, by connector, in the order they came; at most `limit`. */
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

/** Deletes what is older than `before`; gives how many rows. */
export async function deleteOldGatewayMessages(db: Handle, before: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `DELETE FROM gateway_message WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM gateway_message WHERE created_at < $1 ORDER BY created_at LIMIT $2))`,
    [before, limit],
  );
  return rowCount ?? 0;
}
