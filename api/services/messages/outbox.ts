import { dayMs, hourMs } from '../../../shared/clock.ts';
import { openOrUndefined } from '../../../shared/crypto.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  insertOutboxMessage,
  listOutboxMessages,
  listOutboxPage,
  lockMessage,
  type OutboxMessage,
  type OutboxPageFilter,
  openListed,
  readSmsState,
  reopenMessage,
  type SentMessage,
} from '../../../shared/db/tables/outbox.ts';
import { hasRole, type Operator } from '../../../shared/domain/admin/operator.ts';
import { meaningOf } from '../../../shared/domain/admin/reasons/meaning.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { parsePhone } from '../../../shared/domain/messages/phone.ts';
import { freeMessages } from '../../../shared/domain/messages/sms.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { messageJob } from '../../../shared/queue/jobs.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';
import { type ReadAudit, recordChange } from '../operator/audit/audit.ts';
import { type PageRequest, toPage } from '../operator/lists/page.ts';

/** Returns the priority of a message's job: users wait for a code, so it is sent before mails. */
export const messagePriority = (kind: OutboxMessage['kind']): number => (kind === 'sms' ? 1 : 0);

/**
 * Stores a message and the job that sends it within `tx`, so that it is sent if and only if `tx`
 * commits. Without a provider it stays in the outbox.
 */
export async function enqueueMessage(
  { vault, queue }: Pick<ApiDeps, 'vault' | 'queue'>,
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

/** Largest number of messages in a reply; a filter by recipient finds older ones. */
const maxMessages = 1000;

/** Lists mails and SMS messages, also unsent ones (protocol/admin-api.md#outbox). */
export class OutboxService {
  readonly #deps: ApiDeps;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
  }

  /** Lists the newest messages first. Throws 404 when there is no such app. */
  async list(
    appId: string,
    filter: { kind?: 'sms' | 'mail' | undefined; to?: string | undefined },
  ): Promise<SentMessage[]> {
    await requireApp(this.#deps, appId);
    await this.#noteTexts(appId);
    // A phone number matches in any notation.
    const to = parsePhone(filter.to)?.e164 ?? filter.to;
    return listOutboxMessages(this.#deps.db, this.#deps.vault, appId, {
      ...filter,
      to,
      limit: maxMessages,
    });
  }

  /**
   * Lists a page of messages with the state of their delivery, newest first; their texts for owners
   * only. Throws 404.
   */
  async page(
    operator: Operator,
    appId: string,
    { before, limit, ...filter }: OutboxPageFilter & PageRequest,
  ) {
    await requireApp(this.#deps, appId);
    const { db, vault } = this.#deps;
    const to = parsePhone(filter.to)?.e164 ?? filter.to;
    const rows = await listOutboxPage(db, appId, { ...filter, to }, { before, limit: limit + 1 });
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    const isOwner = hasRole(operator.role, 'owner');
    if (isOwner) await this.#noteTexts(appId);
    const shown = results.map(({ body, ...row }) => ({
      ...row,
      id: String(row.id),
      ...(row.reason === null
        ? {}
        : { reason: reasonText(row.reason), meaning: meaningOf(row.reason) }),
      ...(isOwner ? openOrUndefined(() => openListed(vault, appId, { ...row, body })) : {}),
    }));
    return { results: shown, next };
  }

  /** Audits that somebody reads codes, links and texts of messages. */
  #noteTexts(appId: string): Promise<void> {
    return this.#reads.note({ action: 'outbox.read', appId, target: appId });
  }

  /**
   * Sends a message again that failed or found no provider; one whose time is over gets another
   * day. Throws 404, 409 for a message in another state, with a code that has expired, or that
   * cannot be decrypted.
   */
  async retry(appId: string, id: number | undefined): Promise<void> {
    await requireApp(this.#deps, appId);
    const { clock, db, queue, vault } = this.#deps;
    await db.transaction(async (tx) => {
      const message = id === undefined ? undefined : await lockMessage(tx, appId, id);
      if (!message) throw refuse('notFound', 'There is no such message.');
      if (message.state !== 'failed' && message.state !== 'kept')
        throw refuse('conflict', `The message is ${message.state}.`);
      const opened = openOrUndefined(() => openListed(vault, appId, message));
      if (opened === undefined)
        throw refuse('conflict', 'No key of CARILLON_SECRET decrypts the message.');
      const isOver = message.expiresAt.getTime() <= clock.now();
      if (isOver && opened.code !== undefined) throw refuse('conflict', 'The code has expired.');
      const expiresAt = isOver ? new Date(clock.now() + dayMs) : message.expiresAt;
      await reopenMessage(tx, appId, { id: message.id, expiresAt });
      const priority = messagePriority(message.kind);
      await queue.send(messageJob, [{ appId, messageId: message.id }], { tx, priority });
      const { state, reason } = message;
      await recordChange(tx, {
        action: 'message.retry',
        appId,
        target: String(message.id),
        before: { state, reason: reason && reasonText(reason) },
        after: { state: 'waiting' },
      });
    });
  }

  /** Returns the balance, budgets and suspended countries of an app's SMS. Throws 404. */
  async smsState(appId: string) {
    const { options } = await requireApp(this.#deps, appId);
    const { clock, db } = this.#deps;
    const nowMs = clock.now();
    const state = await readSmsState(db, appId, {
      now: new Date(nowMs),
      hourAgo: new Date(nowMs - hourMs),
    });
    return {
      balance: options.smsBalance,
      free: { used: Math.min(state.freeUsed, freeMessages), limit: freeMessages },
      day: {
        used: state.day && state.day.since.getTime() > nowMs - dayMs ? state.day.used : 0,
        limit: options.smsPerAppPerDay,
      },
      suspended: state.suspended,
      conversion: state.conversion,
    };
  }
}
