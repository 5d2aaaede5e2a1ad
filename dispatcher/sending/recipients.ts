import type { PushMessage, Recipient } from '../../connectors/contract/connector.ts';
import type { Database } from '../../shared/db/pool.ts';
import type { Batch } from '../../shared/db/tables/pushes/batches.ts';
import { incrementBadges, setBadges } from '../../shared/db/tables/pushes/delivery.ts';
import { loadRecipients, type RecipientGroup, savedAtMs } from '../../shared/db/tables/pushes/recipients.ts';
import type { Lease } from './sender-cache.ts';
import type { Tally } from './tally.ts';
import type { LoadedBatch } from './task.ts';

/** A batch that is being sent, with its results so far. */
export interface OpenBatch {
  batch: Batch;
  tally: Tally;
}

/** Recipients that a connector gets group by group; an array of them is one too. */
export interface RecipientSource {
  readonly length: number;
  /** Returns the recipients from one place up to, but without, another. */
  slice(from: number, to: number): Recipient[];
}

const noGroup = 0xffff;

/** The open recipients of a batch as they were loaded; objects are made only for those that are sent to now. */
export class OpenRecipients implements RecipientSource {
  readonly #batch: Batch;
  readonly #groups: RecipientGroup[];
  readonly #badges: (number | null)[] | null;
  /** By place in the batch: the group of a recipient, and its place there. */
  readonly #groupOf: Uint16Array;
  readonly #placeOf: Uint16Array;
  /** Places in the batch of those that are sent to. */
  readonly #indexes: number[] = [];

  constructor(batch: Batch, groups: RecipientGroup[], badges: (number | null)[] | null) {
    this.#batch = batch;
    this.#groups = groups;
    this.#badges = badges;
    const size = batch.recipients.length;
    this.#groupOf = new Uint16Array(size).fill(noGroup);
    this.#placeOf = new Uint16Array(size);
    const indexOf = new Map(batch.recipients.map((id, index) => [id, index]));
    for (const [group, { ids, tokens }] of groups.entries())
      for (const [place, id] of ids.entries()) {
        const index = indexOf.get(id);
        if (index === undefined || tokens[place] === '') continue;
        this.#groupOf[index] = group;
        this.#placeOf[index] = place;
      }
  }

  get length(): number {
    return this.#indexes.length;
  }

  /** Adds a recipient to those that are sent to; false if its installation was deleted or has no token. */
  add(index: number): boolean {
    if (this.#groupOf[index] === noGroup) return false;
    this.#indexes.push(index);
    return true;
  }

  /** Keeps the first `count` recipients. */
  limit(count: number): void {
    this.#indexes.length = Math.min(count, this.#indexes.length);
  }

  slice(from: number, to: number): Recipient[] {
    return this.#indexes.slice(from, to).flatMap((index) => this.#recipient(index) ?? []);
  }

  /** Returns when the installation of a recipient was last saved, in epoch ms. */
  savedAtMs(index: number): number | undefined {
    const group = this.#groups[this.#groupOf[index] ?? noGroup];
    return group && savedAtMs(group, this.#placeOf[index] ?? 0);
  }

  #recipient(index: number): Recipient | undefined {
    const group = this.#groups[this.#groupOf[index] ?? noGroup];
    if (!group) return undefined;
    const { deviceType, vendor, topic, teamId, tokens } = group;
    return {
      index,
      id: String(this.#batch.recipients[index]),
      deviceToken: tokens[this.#placeOf[index] ?? 0] ?? '',
      deviceType,
      vendor,
      topic,
      teamId,
      badge: this.#badges?.[index] ?? null,
    };
  }
}

/**
 * Loads the open recipients of a batch, unless the main thread has; ends those whose installation was deleted as
 * `dropped`.
 */
export async function loadOpenRecipients(
  db: Database,
  { batch, tally }: OpenBatch,
  {
    message,
    connector,
    loaded,
  }: Pick<Lease, 'connector'> & {
    message: PushMessage;
    loaded: LoadedBatch | undefined;
  },
): Promise<OpenRecipients> {
  const open = batch.recipients.filter((_, i) => tally.isOpen(i));
  const groups =
    loaded?.groups.map(received) ?? (await loadRecipients(db, batch.appId, open, connector.tokenField));
  const badges = await badgesOf(db, batch, connector.badge?.(message) ?? null);
  const recipients = new OpenRecipients(batch, groups, badges);
  for (const index of batch.recipients.keys())
    if (tally.isOpen(index) && !recipients.add(index))
      tally.fail(index, { outcome: 'dropped', status: 0, reason: 'the installation was deleted' });
  return recipients;
}

/** A group as another thread sent it: a clone has no Buffer. */
const received = (group: RecipientGroup): RecipientGroup => ({
  ...group,
  savedAt: Buffer.from(group.savedAt),
});

async function badgesOf(
  db: Database,
  batch: Batch,
  change: 'Increment' | number | null,
): Promise<(number | null)[] | null> {
  if (change === null) return null;
  if (change === 'Increment') {
    batch.badges ??= await db.transaction((tx) => incrementBadges(tx, batch));
    return batch.badges;
  }
  if (batch.attempt === 0) await setBadges(db, batch.appId, batch.recipients, change);
  return null;
}
