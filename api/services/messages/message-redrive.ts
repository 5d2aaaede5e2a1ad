import { dayMs } from '../../../shared/clock.ts';
import { openOrUndefined } from '../../../shared/crypto.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  type ListedMessage,
  listUnsent,
  openListed,
  reopenMessages,
  type UnsentFilter,
} from '../../../shared/db/tables/outbox.ts';
import { meaningOf } from '../../../shared/domain/admin/reasons/meaning.ts';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { messageJob } from '../../../shared/queue/jobs.ts';
import { messagePriority } from '../../../shared/queue/message-jobs.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';
import { recordChange } from '../operator/audit/audit.ts';

/** Maximum number of messages of one call, which is one transaction. */
const maxMessages = 1000;

/** Selection of messages, and the cursor from the previous call. */
export interface MessageRedrive extends UnsentFilter {
  cursor?: number | undefined;
}

/** Messages of a page, by what happens to them. */
interface Sorted {
  possible: ListedMessage[];
  /** Number of messages with an expired code. */
  expired: number;
  /** Number of messages that no key decrypts. */
  unreadable: number;
}

/** Sends mails and SMS again that failed or had no provider (protocol/admin-api.md#outbox). */
export class MessageRedriveService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Queues the selected messages for their provider again, oldest first, at most 1000. An expired
   * message gets another day. Skips expired codes and messages that no key decrypts. `next` is the
   * cursor for the next call, or null at the end. Throws error 404 if the app does not exist.
   */
  async redrive(appId: string, request: MessageRedrive) {
    await requireApp(this.#deps, appId);
    const { db, clock, queue, metrics } = this.#deps;
    const now = new Date(clock.now());
    const { sorted, next } = await db.transaction(async (tx) => {
      const page = await this.#page(tx, appId, { request, now, isLocked: true });
      const { possible } = page.sorted;
      if (possible.length === 0) return page;
      const expiresAt = new Date(now.getTime() + dayMs);
      const ids = possible.map(({ id }) => id);
      await reopenMessages(tx, appId, ids, { now, expiresAt });
      const jobs = possible.map(({ id }) => ({ appId, messageId: id }));
      const priority = (index: number) => messagePriority(possible[index]?.kind ?? 'mail');
      await queue.send(messageJob, jobs, { tx, priority });
      const { state, kind, reason } = request;
      const before = {
        state,
        ...(kind === undefined ? {} : { kind }),
        ...(reason === undefined ? {} : { reason }),
      };
      const after = { state: 'waiting', messages: ids.length };
      await recordChange(tx, { action: 'message.redrive', appId, target: 'outbox', before, after });
      return page;
    });
    for (const { kind } of sorted.possible) metrics.redrivenMessages.inc({ kind });
    return { ...countsOf(sorted), next };
  }

  /**
   * Counts by cause what `redrive` would do with the same page, and changes nothing. Throws error
   * 404 if the app does not exist.
   */
  async explain(appId: string, request: MessageRedrive) {
    await requireApp(this.#deps, appId);
    const now = new Date(this.#deps.clock.now());
    const page = { request, now, isLocked: false };
    const { sorted, next } = await this.#page(this.#deps.db, appId, page);
    return { ...countsOf(sorted), causes: causesOf(sorted.possible), next };
  }

  async #page(
    db: Handle,
    appId: string,
    { request, now, isLocked }: { request: MessageRedrive; now: Date; isLocked: boolean },
  ) {
    const { cursor = 0, ...filter } = request;
    const page = { after: cursor, limit: maxMessages, isLocked };
    const messages = await listUnsent(db, appId, filter, page);
    const last = messages.length < maxMessages ? undefined : messages.at(-1);
    const sorted: Sorted = { possible: [], expired: 0, unreadable: 0 };
    for (const message of messages) {
      const opened = openOrUndefined(() => openListed(this.#deps.vault, appId, message));
      if (opened === undefined) sorted.unreadable += 1;
      else if (opened.code !== undefined && message.expiresAt <= now) sorted.expired += 1;
      else sorted.possible.push(message);
    }
    return { sorted, next: last === undefined ? null : String(last.id) };
  }
}

const countsOf = ({ possible, expired, unreadable }: Sorted) => ({
  messages: possible.length,
  expired,
  unreadable,
});

/** Counts messages by kind and reason, most frequent first. */
function causesOf(messages: readonly ListedMessage[]) {
  const counts = Map.groupBy(messages, ({ kind, reason }) => `${kind} ${reasonText(reason ?? '')}`);
  return [...counts.values()]
    .sort((one, other) => other.length - one.length)
    .map((group) => {
      const { kind = 'mail', reason = null } = group[0] ?? {};
      const n = group.length;
      if (reason === null) return { kind, reason, n };
      return { kind, reason: reasonText(reason), n, meaning: meaningOf(reason) };
    });
}
