import type { Handle } from '../../../shared/db/pool.ts';
import { insertOutboxMessage, type OutboxMessage } from '../../../shared/db/tables/messages/outbox.ts';
import { messageJob } from '../../../shared/queue/jobs.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Stores a message and the job that sends it within `tx`, so that it is sent if and only if `tx` commits. Without a
 * provider it stays in the outbox.
 */
export async function enqueueMessage(
  { vault, queue }: Pick<ApiDeps, 'vault' | 'queue'>,
  tx: Handle,
  appId: string,
  message: OutboxMessage & { expiresAt?: Date },
): Promise<void> {
  const messageId = await insertOutboxMessage(tx, vault, appId, message);
  // Users wait for a code, so it is sent before mails.
  await queue.send(messageJob, [{ appId, messageId }], { tx, priority: message.kind === 'sms' ? 1 : 0 });
}
