import type { Recipient } from '../../connectors/contract/connector.ts';
import type { Database } from '../../shared/db/pool.ts';
import { incrementBadges, setBadges } from '../../shared/db/tables/badges.ts';
import type { Batch } from '../../shared/db/tables/batches.ts';
import { type RecipientGroup, savedAtMs } from '../../shared/db/tables/recipients.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { Tally } from './tally.ts';

/** A batch that is being sent, with its results so far. */
export interface OpenBatch {
  batch: Batch;
  tally: Tally;
}

const noGroup = 0xffff;

/**
 * Number of times that `RecipientIndexes` restarts at the first recipient before it builds a map.
 */
const maxRestarts = 4;

/**
 * Finds the indexes of recipients in a batch. Both lists are usually sorted by id, so a cursor
 * finds most of them. A map is built only if they are not.
 */
class RecipientIndexes {
  readonly #recipients: number[];
  #next = 0;
  #lastId = 0;
  #restarts = 0;
  #map: Map<number, number> | undefined;

  constructor(recipients: number[]) {
    this.#recipients = recipients;
  }

  indexOf(id: number): number | undefined {
    if (id < this.#lastId) {
      this.#next = 0;
      this.#restarts += 1;
    }
    this.#lastId = id;
    if (this.#restarts > maxRestarts) return this.#byMap(id);
    while ((this.#recipients[this.#next] ?? id) < id) this.#next += 1;
    return this.#recipients[this.#next] === id ? this.#next : this.#byMap(id);
  }

  #byMap(id: number): number | undefined {
    this.#map ??= new Map(this.#recipients.map((recipient, index) => [recipient, index]));
    return this.#map.get(id);
  }
}

/**
 * The open recipients of a batch, as loaded from the database. Objects are created only for the
 * recipients that are sent to now.
 */
export class OpenRecipients {
  readonly #batch: Batch;
  readonly #groups: RecipientGroup[];
  readonly #badges: (number | null)[] | null;
  /** For each index in the batch: the group of its recipient, and the index in this group. */
  readonly #groupOf: Uint16Array;
  readonly #positionOf: Uint16Array;
  /**
   * Indexes in the batch of the recipients to send to. Only the first `length` entries are used.
   */
  readonly #indexes: Uint16Array;
  #length = 0;

  constructor(batch: Batch, groups: RecipientGroup[], badges: (number | null)[] | null) {
    this.#batch = batch;
    this.#groups = groups;
    this.#badges = badges;
    const size = batch.recipients.length;
    this.#groupOf = new Uint16Array(size).fill(noGroup);
    this.#positionOf = new Uint16Array(size);
    this.#indexes = new Uint16Array(size);
    const recipientIndexes = new RecipientIndexes(batch.recipients);
    for (const [group, { ids, tokens }] of groups.entries())
      for (let position = 0; position < ids.length; position += 1) {
        const index = recipientIndexes.indexOf(ids[position] ?? 0);
        if (index === undefined || tokens[position] === '') continue;
        this.#groupOf[index] = group;
        this.#positionOf[index] = position;
      }
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Selects a recipient for sending. Returns false if its installation was deleted or has no token.
   */
  add(index: number): boolean {
    if (this.#groupOf[index] === noGroup) return false;
    this.#indexes[this.#length] = index;
    this.#length += 1;
    return true;
  }

  /** Keeps the first `count` recipients. */
  limit(count: number): void {
    this.#length = Math.min(count, this.#length);
  }

  /** Returns the recipients from index `from` up to, but not including, `to`. */
  slice(from: number, to: number): Recipient[] {
    const recipients: Recipient[] = [];
    for (const index of this.#indexes.subarray(from, Math.min(to, this.#length))) {
      const recipient = this.#recipient(index);
      if (recipient) recipients.push(recipient);
    }
    return recipients;
  }

  /** Returns when the installation of a recipient was last saved, in epoch ms. */
  savedAtMs(index: number): number | undefined {
    const group = this.#groups[this.#groupOf[index] ?? noGroup];
    return group && savedAtMs(group, this.#positionOf[index] ?? 0);
  }

  #recipient(index: number): Recipient | undefined {
    const group = this.#groups[this.#groupOf[index] ?? noGroup];
    if (!group) return undefined;
    const { deviceType, vendor, topic, teamId, tokens } = group;
    return {
      index,
      id: this.#batch.recipients[index] ?? 0,
      deviceToken: tokens[this.#positionOf[index] ?? 0] ?? '',
      deviceType,
      vendor,
      topic,
      teamId,
      badge: this.#badges?.[index] ?? null,
    };
  }
}

const installationDeleted = reason('installationDeleted');

/**
 * Prepares the open recipients of a batch. Ends recipients without a token as `dropped`, with the
 * reason `withoutToken`: by default their installation was deleted.
 */
export async function openRecipients(
  db: Database,
  { batch, tally }: OpenBatch,
  {
    groups,
    withoutToken = installationDeleted,
  }: { groups: RecipientGroup[]; withoutToken?: string },
  change: BadgeChange,
): Promise<OpenRecipients> {
  const badges = await badgesOf(db, batch, change);
  const recipients = new OpenRecipients(batch, groups, badges);
  for (let index = 0; index < batch.recipients.length; index += 1)
    if (tally.isOpen(index) && !recipients.add(index))
      tally.fail(index, { outcome: 'dropped', status: 0, reason: withoutToken });
  return recipients;
}

/**
 * How a push changes the badge number of a device: `Increment` adds one to the stored number, a
 * number replaces it, and null leaves it unchanged.
 */
type BadgeChange = 'Increment' | number | null;

async function badgesOf(
  db: Database,
  batch: Batch,
  change: BadgeChange,
): Promise<(number | null)[] | null> {
  if (change === null) return null;
  if (change === 'Increment') {
    batch.badges ??= await incrementBadges(db, batch);
    return batch.badges;
  }
  if (batch.attempt === 0) await setBadges(db, batch, change);
  return null;
}
