import type { Handle } from '../../../shared/db/pool.ts';
import { insertOutboxMessage, type OutboxMessage } from '../../../shared/db/tables/messages/outbox.ts';
import { messageJob } from '../../../shared/queue/jobs.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Writes a message and the job that sends it as part of `tx`: it leaves when that commits, or never. Where no
 * supplier is set it stays in the outbox.
 */
export async function postMessage(
  { vault, queue }: Pick<ApiDeps, 'vault' | 'queue'>,
  tx: Handle,
  appId: string,
  message: OutboxMessage & { expiresAt?: Date },
): Promise<void> {
  const messageId = await insertOutboxMessage(tx, vault, appId, message);
  // A code is waited for; a mail is not.
  await queue.send(messageJob, [{ appId, messageId }], { tx, priority: message.kind === 'sms' ? 1 : 0 });
}
