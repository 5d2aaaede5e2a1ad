import { randomInt } from 'node:crypto';
import type { ProviderResult } from '../../connectors/provider.ts';
import { openProviders, type ProviderSettings, type Providers } from '../../connectors/providers.ts';
import type { Clock } from '../../shared/clock.ts';
import { SealError, type Vault } from '../../shared/crypto.ts';
import type { Listener } from '../../shared/db/listener.ts';
import type { Database } from '../../shared/db/pool.ts';
import {
  countTry,
  findWaitingMessage,
  type MessageResult,
  settleMessage,
  type WaitingMessage,
} from '../../shared/db/tables/messages/outbox.ts';
import { dueIn } from '../../shared/db/tables/pushes/delivery.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { ClosingStack } from '../../shared/process/lifecycle.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { Consumer, type JobContext } from '../../shared/queue/consumer.ts';
import { type MessageJob, messageJob } from '../../shared/queue/jobs.ts';
import type { Job, JobQueue } from '../../shared/queue/queue.ts';

/** Messages in work at the same time. */
const messagesAtOnce = 16;
/** Finds messages whose time to be tried again has come; NOTIFY tells of new ones. */
const pollMs = 1000;
/** What messages in work get at the end before they are put back. */
const graceMs = 3000;

/** Back-off: doubled from try to try. */
const firstBackoffMs = 1000;
const maxBackoffMs = 10 * 60_000;

export interface MessengerDeps {
  db: Database;
  vault: Vault;
  queue: JobQueue;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}

/** Opens the suppliers and takes messages; both end with the stack. */
export async function startMessenger(
  deps: MessengerDeps,
  settings: ProviderSettings,
  { stack, listener }: { stack: ClosingStack; listener: Listener },
): Promise<void> {
  const providers = openProviders(settings, deps);
  stack.add('suppliers', () => Promise.all([providers.mail?.close(), providers.sms?.close()]));
  const consumer = new Consumer({
    queue: deps.queue,
    listener,
    log: deps.log,
    kind: messageJob,
    capacity: messagesAtOnce,
    pollMs,
    handle: (job, shift) => sendMessage(deps, providers, job, shift),
  });
  stack.add('messages', () => consumer.stop(graceMs));
  await consumer.start();
}

/**
 * Hands one message to its supplier and records what became of it, in one transaction with the end of the job.
 * A message that cannot be sent now is tried again until it expires. A process that dies in between sends it
 * twice, under the same id. False when it is told to stop before there is an answer.
 */
export async function sendMessage(
  deps: MessengerDeps,
  providers: Providers,
  job: Job<MessageJob>,
  { signal }: Pick<JobContext, 'signal'>,
): Promise<boolean> {
  const { appId, messageId } = job.data;
  const message = await readMessage(deps, job);
  if (!message) {
    await deps.queue.complete(messageJob, job, deps.db);
    return true;
  }
  const ending = await tryOnce(deps, providers, message, { id: `${messageId}`, appId, signal });
  if (ending === 'stopped') return false;
  await record(deps, job, message, ending);
  return true;
}

/** Undefined when there is nothing to send; one that was sealed with a key that is gone is given up. */
async function readMessage(
  { db, vault, log }: MessengerDeps,
  { data: { appId, messageId } }: Job<MessageJob>,
): Promise<WaitingMessage | undefined> {
  try {
    return await findWaitingMessage(db, vault, appId, messageId);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    log.error({ err: error, app: appId, messageId }, 'a message cannot be read');
    await settleMessage(db, appId, messageId, { state: 'failed', reason: 'unreadable' });
    return undefined;
  }
}

type SendOutcome = MessageResult | Extract<ProviderResult, { kind: 'retry' }>;

async function tryOnce(
  { clock }: MessengerDeps,
  providers: Providers,
  message: WaitingMessage,
  { id, appId, signal }: { id: string; appId: string; signal: AbortSignal },
): Promise<SendOutcome | 'stopped'> {
  const send = senderFor(providers, message, { id, appId });
  if (!send) return { state: 'kept', reason: null };
  if (message.expiresAt.getTime() <= clock.now()) return { state: 'failed', reason: 'expired' };
  const sending = await Promise.race([send(), aborted(signal)]);
  if (sending === 'stopped' || sending.kind === 'retry') return sending;
  return sending.kind === 'sent'
    ? { state: 'sent', reason: null }
    : { state: 'failed', reason: sending.reason };
}

/** How this message is sent; undefined when no supplier is set for its kind. */
function senderFor(
  providers: Providers,
  message: WaitingMessage,
  ids: { id: string; appId: string },
): (() => Promise<ProviderResult>) | undefined {
  const { kind, to, type, text, code, mail, sms, expiresAt } = message;
  const { mail: mailProvider, sms: smsProvider } = providers;
  const envelope = { ...ids, to, type, text };
  if (kind === 'mail' && mailProvider && mail) return () => mailProvider.send({ ...envelope, ...mail });
  if (kind === 'sms' && smsProvider && sms)
    return () => smsProvider.send({ ...envelope, code, ...sms, expiresAtMs: expiresAt.getTime() });
  return undefined;
}

function aborted(signal: AbortSignal): Promise<'stopped'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('stopped');
    else signal.addEventListener('abort', () => resolve('stopped'), { once: true });
  });
}

async function record(
  deps: MessengerDeps,
  job: Job<MessageJob>,
  message: WaitingMessage,
  ending: SendOutcome,
): Promise<void> {
  const { appId, messageId } = job.data;
  const { db, queue, metrics, log } = deps;
  const settlement = 'state' in ending ? ending : expiredResult(deps, message, ending);
  await db.transaction(async (tx) => {
    if (!(await queue.complete(messageJob, job, tx))) return;
    if (settlement) await settleMessage(tx, appId, messageId, settlement);
    else if ('kind' in ending && (await countTry(tx, appId, messageId, ending.reason)))
      await queue.send(messageJob, [job.data], {
        tx,
        startAfter: await dueIn(tx, retryDelay(message, ending)),
        priority: message.kind === 'sms' ? 1 : 0,
      });
  });
  const outcome = settlement?.state ?? 'retried';
  metrics.messages.inc({ kind: message.kind, outcome });
  if (outcome === 'failed' || outcome === 'retried')
    log.warn(
      { app: appId, messageId, messageKind: message.kind, outcome, reason: ending.reason },
      'a message was not taken',
    );
}

/** A message that would be tried again after it has expired is given up. */
function expiredResult(
  { clock }: MessengerDeps,
  message: WaitingMessage,
  ending: Extract<SendOutcome, { kind: 'retry' }>,
): MessageResult | undefined {
  const isOver =
    clock.now() + retryDelay(message, { ...ending, isLeast: true }) >= message.expiresAt.getTime();
  return isOver ? { state: 'failed', reason: ending.reason } : undefined;
}

/** What the supplier asked for, else a back-off of which half is left to chance. */
function retryDelay(
  { attempts }: Pick<WaitingMessage, 'attempts'>,
  { afterMs, isLeast = false }: { afterMs: number | null; isLeast?: boolean },
): number {
  if (afterMs !== null) return Math.min(Math.max(afterMs, firstBackoffMs), maxBackoffMs * 6);
  const full = Math.min(firstBackoffMs * 2 ** Math.min(attempts, 20), maxBackoffMs);
  return isLeast ? full / 2 : full / 2 + randomInt(full / 2 + 1);
}
