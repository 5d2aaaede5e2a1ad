import { dayMs, hourMs } from '../../../shared/clock.ts';
import { openOrUndefined } from '../../../shared/crypto.ts';
import {
  listOutboxPage,
  lockMessage,
  type OutboxPageFilter,
  openListed,
  readSmsState,
  reopenMessages,
} from '../../../shared/db/tables/outbox.ts';
import { hasRole, type Operator } from '../../../shared/domain/admin/operator.ts';
import { meaningOf } from '../../../shared/domain/admin/reasons/meaning.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { parsePhone } from '../../../shared/domain/messages/phone.ts';
import { freeMessages } from '../../../shared/domain/messages/sms.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { messageJob } from '../../../shared/queue/jobs.ts';
import { messagePriority } from '../../../shared/queue/message-jobs.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';
import { type ReadAudit, recordChange } from '../operator/audit/audit.ts';
import { type PageRequest, toPage } from '../operator/lists/page.ts';

/** Maximum number of messages in a reply. Use a filter by recipient to find older messages. */
const maxMessages = 1000;

/** Lists mails and SMS messages, including unsent ones (protocol/admin-api.md#outbox). */
export class OutboxService {
  readonly #deps: ApiDeps;
  readonly #reads: ReadAudit;

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
  }

  /**
   * Lists messages with their texts, newest first. The text is empty if no key decrypts it. Throws
   * error 404 if the app does not exist.
   */
  async list(appId: string, filter: Pick<OutboxPageFilter, 'kind' | 'to'>) {
    const { db, vault } = this.#deps;
    await requireApp(this.#deps, appId);
    await this.#recordRead(appId);
    // A phone number matches in any notation.
    const to = parsePhone(filter.to)?.e164 ?? filter.to;
    const page = { before: null, limit: maxMessages };
    const messages = await listOutboxPage(db, appId, { ...filter, to }, page);
    return messages.map((message) => {
      const { kind, to, type, createdAt } = message;
      const opened = openOrUndefined(() => openListed(vault, appId, message)) ?? { text: '' };
      return { kind, to, type, createdAt, ...opened };
    });
  }

  /**
   * Lists a page of messages with their delivery state, newest first. Only owners see the texts.
   * Throws error 404 if the app does not exist.
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
    if (isOwner) await this.#recordRead(appId);
    const documents = results.map(({ body, ...row }) => ({
      ...row,
      id: String(row.id),
      ...(row.reason === null
        ? {}
        : { reason: reasonText(row.reason), meaning: meaningOf(row.reason) }),
      ...(row.deliveryReason === null
        ? {}
        : {
            deliveryReason: reasonText(row.deliveryReason),
            deliveryMeaning: meaningOf(row.deliveryReason),
          }),
      ...(isOwner ? openOrUndefined(() => openListed(vault, appId, { ...row, body })) : {}),
    }));
    return { results: documents, next };
  }

  /** Audits that the operator reads codes, links and texts of messages. */
  #recordRead(appId: string): Promise<void> {
    return this.#reads.record({ action: 'outbox.read', appId, target: appId });
  }

  /**
   * Sends a message again that failed or had no provider. An expired message gets another day.
   * Throws error 404 if the message does not exist. Throws error 409 if it is in another state,
   * contains an expired code, or cannot be decrypted.
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
      const now = new Date(clock.now());
      if (message.expiresAt <= now && opened.code !== undefined)
        throw refuse('conflict', 'The code has expired.');
      const expiresAt = new Date(now.getTime() + dayMs);
      await reopenMessages(tx, appId, [message.id], { now, expiresAt });
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

  /**
   * Returns the balance, budgets and suspended countries of an app's SMS. Throws error 404 if the
   * app does not exist.
   */
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
