import { listOutboxMessages, type SentMessage } from '../../../shared/db/tables/messages/outbox.ts';
import { parsePhone } from '../../../shared/domain/messages/phone.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';

/** The most one reply holds; older ones are found by their recipient. */
const maxMessages = 1000;

/** What was sent by mail and SMS, or would have been (protocol/admin-api.md#outbox). */
export class OutboxService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Newest first. Throws 404 when there is no such app. */
  async list(
    appId: string,
    filter: { kind?: 'sms' | 'mail' | undefined; to?: string | undefined },
  ): Promise<SentMessage[]> {
    await requireApp(this.#deps, appId);
    // A number is found however it is written.
    const to = parsePhone(filter.to)?.e164 ?? filter.to;
    return listOutboxMessages(this.#deps.db, this.#deps.vault, appId, {
      ...filter,
      to,
      limit: maxMessages,
    });
  }
}
