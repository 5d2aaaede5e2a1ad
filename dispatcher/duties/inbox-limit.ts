import type { Database } from '../../shared/db/pool.ts';
import {
  displaceOldest,
  findCrowdedInboxes,
  firstInbox,
  type InboxPlace,
} from '../../shared/db/tables/channel/inbox.ts';
import type { Metrics } from '../../shared/metrics.ts';

/** Inbox rows that one pass reads: 10 ms of the database. */
const rowsPerPass = 20_000;

interface InboxLimitDeps {
  db: Database;
  metrics: Pick<Metrics, 'channelMessages'>;
}

/**
 * Walks over all inboxes and drops the oldest messages of those over their limit (protocol/channel.md#channel-limits). A
 * check at each new message would cost a third of storing it.
 */
export class InboxLimit {
  #next: InboxPlace = firstInbox;

  /** Reads the next rows, from the beginning again after the last; returns the number of dropped messages. */
  async run({ db, metrics }: InboxLimitDeps, rows = rowsPerPass): Promise<number> {
    const { installations, next } = await findCrowdedInboxes(db, this.#next, rows);
    this.#next = next ?? firstInbox;
    let displaced = 0;
    for (const [appId, inboxes] of installations) displaced += await displaceOldest(db, appId, inboxes);
    metrics.channelMessages.inc({ event: 'displaced' }, displaced);
    return displaced;
  }
}
