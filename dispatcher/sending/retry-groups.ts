import type { RetryGroup, Why } from './task.ts';

/** Retry group before its recipients are filled in. */
type PlaceGroup = Omit<RetryGroup, 'recipients' | 'badges'>;

/**
 * Groups the recipients of a batch that are tried again. Recipients with about the same wait share a group, so that
 * tokens with waits of their own do not become thousands of small batches.
 */
export class RetryGroups {
  readonly #groups = new Map<string, PlaceGroup>();

  /**
   * Adds the recipient at a place. `wantedMs`: the shortest wait, null without one, 0 for a cause
   * of our own; `isReached`: the gateway got the request, so that the try counts; `isRepeat`: it
   * got the request and its answer is unknown.
   */
  add(
    index: number,
    wantedMs: number | null,
    isReached: boolean,
    { status, reason, isRepeat = false }: Why & { isRepeat?: boolean },
  ): void {
    const afterMs = bucketOf(wantedMs);
    const key = `${afterMs} ${isReached} ${isRepeat}`;
    const group = this.#groups.get(key) ?? { afterMs, isReached, isRepeat, indexes: [], why: [] };
    this.#groups.set(key, group);
    group.indexes.push(index);
    group.why.push({ status, reason });
  }

  /** Places of the recipients whose request reached the gateway. */
  get reached(): number[] {
    return [...this.#groups.values()].flatMap(({ isReached, indexes }) => (isReached ? indexes : []));
  }

  /** Returns the groups with the installations and badges of a batch. */
  of({ recipients, badges }: { recipients: number[]; badges: (number | null)[] | null }): RetryGroup[] {
    return [...this.#groups.values()].map((group) => ({
      ...group,
      recipients: group.indexes.map((index) => recipients[index] ?? 0),
      badges: badges ? group.indexes.map((index) => badges[index] ?? null) : null,
    }));
  }
}

/** Rounds a wait up by at most a quarter, to one of some sixty waits between nothing and a day. */
function bucketOf(afterMs: number | null): number | null {
  if (afterMs === null) return null;
  if (afterMs <= 0) return 0;
  const stepMs = Math.max(25, 2 ** Math.floor(Math.log2(afterMs)) / 4);
  return Math.ceil(afterMs / stepMs) * stepMs;
}
