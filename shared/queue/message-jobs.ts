/** Writes the jobs that send messages of the outbox: mails and SMS. */
import type { Vault } from '../crypto.ts';
import type { Handle } from '../db/pool.ts';
import { insertOutboxMessage, type OutboxMessage } from '../db/tables/outbox.ts';
import { messageJob } from './jobs.ts';
import type { JobQueue } from './queue.ts';

/**
 * Returns the priority of a message's job. SMS codes are sent before mails, because users wait for
 * them.
 */
export const messagePriority = (kind: OutboxMessage['kind']): number => (kind === 'sms' ? 1 : 0);

/**
 * Stores a message and the job that sends it as part of `tx`. The message is sent if and only if
 * `tx` commits. Without a provider, the message stays in the outbox.
 */
export async function enqueueMessage(
  { vault, queue }: { vault: Vault; queue: JobQueue },
  tx: Handle,
  appId: string,
  message: OutboxMessage & { expiresAt?: Date },
): Promise<void> {
  const messageId = await insertOutboxMessage(tx, vault, appId, message);
  await queue.send(messageJob, [{ appId, messageId }], {
    tx,
    priority: messagePriority(message.kind),
  });
}
