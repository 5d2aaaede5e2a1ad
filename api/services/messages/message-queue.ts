import type { Handle } from '../../../shared/db/pool.ts';
import { insertOutboxMessage, type OutboxMessage } from '../../../shared/db/tables/outbox.ts';
import { messageJob } from '../../../shared/queue/jobs.ts';
import type { ApiDeps } from '../deps.ts';

/** Returns the priority of a message's job: users wait for a code, so it is sent before mails. */
export const messagePriority = (kind: OutboxMessage['kind']): number => (kind === 'sms' ? 1 : 0);

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
  await queue.send(messageJob, [{ appId, messageId }], { tx, priority: messagePriority(message.kind) });
}
