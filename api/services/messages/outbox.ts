import { listOutboxMessages, type SentMessage } from '../../../shared/db/tables/messages/outbox.ts';
import { parsePhone } from '../../../shared/domain/messages/phone.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';

/** Largest number of messages in a reply; a filter by recipient finds older ones. */
const maxMessages = 1000;

/** Lists mails and SMS messages, also unsent ones (protocol/admin-api.md#outbox). */
export class OutboxService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists the newest messages first. Throws 404 when there is no such app. */
  async list(
    appId: string,
    filter: { kind?: 'sms' | 'mail' | undefined; to?: string | undefined },
  ): Promise<SentMessage[]> {
    await requireApp(this.#deps, appId);
    // A phone number matches in any notation.
    const to = parsePhone(filter.to)?.e164 ?? filter.to;
    return listOutboxMessages(this.#deps.db, this.#deps.vault, appId, {
      ...filter,
      to,
      limit: maxMessages,
    });
  }
}
