import type { ProviderResult } from '../../connectors/provider.ts';
import {
  openProviders,
  type ProviderSettings,
  type Providers,
} from '../../connectors/providers.ts';
import { minRetryMs, retryMs } from '../../shared/backoff.ts';
import { hourMs, minuteMs } from '../../shared/clock.ts';
import { SealError } from '../../shared/crypto.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import { dueIn } from '../../shared/db/query.ts';
import {
  countTry,
  findWaitingMessage,
  type MessageResult,
  settleMessage,
  type WaitingMessage,
} from '../../shared/db/tables/outbox.ts';
import type { WebhookEvents } from '../../shared/db/webhook-events.ts';
import { readReason, reasonText } from '../../shared/domain/reasons.ts';
import type { ClosingStack } from '../../shared/process/lifecycle.ts';
import { Consumer, type JobContext, type JobEnd } from '../../shared/queue/consumer.ts';
import { type MessageJob, messageJob } from '../../shared/queue/jobs.ts';
import { messagePriority } from '../../shared/queue/message-jobs.ts';
import type { Job, PriorityRange } from '../../shared/queue/queue.ts';
import type { Waking } from '../../shared/queue/waking.ts';
import type { DispatcherDeps } from '../deps.ts';
import { findProviderTemplate } from './provider-template.ts';

/**
 * Maximum mails, and maximum SMS, that are in progress at the same time. With 16 of them an app
 * counts as busy (`Consumer`), so messages of other apps get the next free slot.
 */
const maxConcurrent = 24;
/**
 * Priorities of SMS and of mails. Each has its own consumer, because mails that wait for a slow
 * server must not delay SMS codes.
 */
const ranges: PriorityRange[] = [
  { minPriority: messagePriority('sms') },
  { maxPriority: messagePriority('mail') },
];
/**
 * Time for messages in progress to finish when the dispatcher stops. After it, their jobs return to
 * the queue.
 */
const graceMs = 3000;

/**
 * Waits between the tries of one message. `maxRequestedMs` limits a wait that the provider
 * requests.
 */
const waits = { firstMs: 1000, maxMs: 10 * minuteMs, maxRequestedMs: hourMs };

export type MessengerDeps = Pick<
  DispatcherDeps,
  'db' | 'vault' | 'queue' | 'clock' | 'log' | 'metrics'
> & { webhooks: Pick<WebhookEvents, 'emit'> };

/** Opens the providers and starts to send messages. `stack` closes both. */
export async function startMessenger(
  deps: MessengerDeps,
  settings: ProviderSettings,
  { stack, listener, duePoll }: Waking & { stack: ClosingStack },
): Promise<void> {
  const providers = openProviders(settings, deps);
  stack.add('providers', () => Promise.all([providers.mail?.close(), providers.sms?.close()]));
  const consumers = ranges.map(
    (range) =>
      new Consumer({
        queue: deps.queue,
        listener,
        log: deps.log,
        kind: messageJob,
        capacity: maxConcurrent,
        range,
        duePoll,
        handle: (job, context) => sendMessage(deps, providers, job, context),
      }),
  );
  stack.add('messages', () => Promise.all(consumers.map((consumer) => consumer.stop(graceMs))));
  await Promise.all(consumers.map((consumer) => consumer.start()));
}

/**
 * Sends one message through its provider, and records the result in one transaction with the end of
 * the job. Retries a message until it expires. If the process crashes between sending and
 * recording, the message is sent twice with the same id. Returns `again` if the dispatcher stops
 * before the provider answers.
 */
export async function sendMessage(
  deps: MessengerDeps,
  providers: Providers,
  job: Job<MessageJob>,
  { signal }: Pick<JobContext, 'signal'>,
): Promise<JobEnd> {
  const { appId, messageId } = job.data;
  const message = await readMessage(deps, job);
  if (!message) {
    await deps.queue.end(messageJob, job, deps.db);
    return 'done';
  }
  const outcome = await trySend(deps, providers, message, { id: `${messageId}`, appId, signal });
  if (outcome === 'stopped') return 'again';
  await record(deps, job, { message, outcome, host: providers[message.kind]?.host });
  return 'done';
}

/**
 * Reads the message. Returns undefined if there is nothing to send. Fails a message that was
 * encrypted with a retired key.
 */
async function readMessage(
  { db, vault, log, webhooks }: MessengerDeps,
  { data: { appId, messageId } }: Job<MessageJob>,
): Promise<WaitingMessage | undefined> {
  try {
    return await findWaitingMessage(db, vault, appId, messageId);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    log.error({ err: error, app: appId, messageId }, 'cannot decrypt a message');
    const result = { state: 'failed', reason: 'unreadable' } as const;
    await db.transaction((tx) => settle(webhooks, tx, { appId, messageId }, result));
    return undefined;
  }
}

/** Final result of a message. `isSetting` is true if a setting of the operator made it fail. */
type FinalOutcome = MessageResult & { isSetting?: boolean };
type SendOutcome = FinalOutcome | Extract<ProviderResult, { kind: 'retry' }>;

async function trySend(
  { clock, db }: MessengerDeps,
  providers: Providers,
  message: WaitingMessage,
  { id, appId, signal }: { id: string; appId: string; signal: AbortSignal },
): Promise<SendOutcome | 'stopped'> {
  const send = senderFor({ db, providers }, message, { id, appId });
  if (!send) return { state: 'kept', reason: null };
  if (message.expiresAt.getTime() <= clock.now()) return { state: 'failed', reason: 'expired' };
  const result = await sendUntil(signal, send);
  if (result === 'stopped' || result.kind === 'retry') return result;
  if (result.kind === 'sent') return { state: 'sent', reason: null, providerId: result.providerId };
  const { reason, isSetting = false } = result;
  return { state: 'failed', reason, isSetting };
}

/** Returns the function that sends this message. Returns undefined if its kind has no provider. */
function senderFor(
  { db, providers }: { db: Database; providers: Providers },
  message: WaitingMessage,
  ids: { id: string; appId: string },
): (() => Promise<ProviderResult>) | undefined {
  const { kind, to, type, text, code, mail, sms, expiresAt } = message;
  const { mail: mailProvider, sms: smsProvider } = providers;
  const envelope = { ...ids, to, type, text };
  if (kind === 'mail' && mailProvider && mail)
    return () => mailProvider.send({ ...envelope, ...mail });
  if (kind === 'sms' && smsProvider && sms)
    return async () => {
      const template = await findProviderTemplate(db, smsProvider, {
        appId: ids.appId,
        to,
        name: sms.template,
      });
      const expiresAtMs = expiresAt.getTime();
      return smsProvider.send({ ...envelope, code, ...sms, ...template, expiresAtMs });
    };
  return undefined;
}

/** Sends a message. Does not wait for the provider any longer when `signal` aborts. */
async function sendUntil(
  signal: AbortSignal,
  send: () => Promise<ProviderResult>,
): Promise<ProviderResult | 'stopped'> {
  const stopped = Promise.withResolvers<'stopped'>();
  const stop = () => stopped.resolve('stopped');
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  try {
    return await Promise.race([send(), stopped.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

async function record(
  deps: MessengerDeps,
  job: Job<MessageJob>,
  {
    message,
    outcome,
    host,
  }: { message: WaitingMessage; outcome: SendOutcome; host: string | undefined },
): Promise<void> {
  const { appId, messageId } = job.data;
  const { db, queue, metrics, log, webhooks } = deps;
  const result = 'state' in outcome ? outcome : expiredResult(deps, message, outcome);
  const isRecorded = await db.transaction(async (tx) => {
    if (!(await queue.end(messageJob, job, tx))) return false;
    if (result) await settle(webhooks, tx, job.data, result);
    else if ('kind' in outcome && (await countTry(tx, appId, messageId, outcome.reason)))
      await queue.send(messageJob, [job.data], {
        tx,
        startAfter: await dueIn(tx, retryMs(message.attempts, outcome.afterMs, waits)),
        priority: messagePriority(message.kind),
      });
    return true;
  });
  // Another consumer has taken over the job, and counts its own result.
  if (!isRecorded) return;
  const label = result?.state ?? 'retried';
  metrics.messages.inc({ kind: message.kind, outcome: label });
  const isSetting = 'isSetting' in outcome && outcome.isSetting === true;
  if (isSetting && outcome.reason)
    metrics.messageSettingErrors.inc({
      kind: message.kind,
      reason: readReason(outcome.reason).code,
    });
  if (label === 'failed' || label === 'retried')
    log[isSetting ? 'error' : 'warn'](
      {
        app: appId,
        messageId,
        messageKind: message.kind,
        outcome: label,
        host,
        reason: outcome.reason && reasonText(outcome.reason),
      },
      isSetting ? 'a setting makes the provider refuse messages' : 'a message was not taken',
    );
}

/** Saves the final result of a message, and reports a failure to webhooks. */
async function settle(
  webhooks: Pick<WebhookEvents, 'emit'>,
  tx: Handle,
  { appId, messageId }: MessageJob,
  result: MessageResult,
): Promise<void> {
  const message = await settleMessage(tx, appId, messageId, result);
  if (!message || result.state !== 'failed') return;
  const reason = reasonText(result.reason ?? '');
  const data = { message: String(messageId), ...message, reason };
  await webhooks.emit(tx, { appId, type: 'message.failed', data });
}

/**
 * Returns the failure of a message that expires before its next try. Returns undefined for other
 * messages.
 */
function expiredResult(
  { clock }: MessengerDeps,
  message: WaitingMessage,
  retry: Extract<SendOutcome, { kind: 'retry' }>,
): MessageResult | undefined {
  const nextMs = clock.now() + minRetryMs(message.attempts, retry.afterMs, waits);
  return nextMs >= message.expiresAt.getTime()
    ? { state: 'failed', reason: retry.reason }
    : undefined;
}
