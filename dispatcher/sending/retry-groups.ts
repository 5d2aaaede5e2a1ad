import type { RetryGroup, Why } from './task.ts';

/** Places of a batch that are tried again at the same time. */
type Places = Omit<RetryGroup, 'recipients' | 'badges'>;

/**
 * Collects the recipients of a batch that are to be tried again: those with about the same wait go
 * together, so that single tokens with waits of their own do not make thousands of tiny batches.
 */
export class RetryGroups {
  readonly #groups = new Map<string, Places>();

  /**
   * `wantedMs`: what the gateway asked for, null leaves it to the dispatcher; `isReached`: it got the request;
   * `isRepeat`: it got the request and nobody knows what became of it.
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

  /** The places of those that the gateway was reached for. */
  get reached(): number[] {
    return [...this.#groups.values()].flatMap(({ isReached, indexes }) => (isReached ? indexes : []));
  }

  /** The groups with their installations, badge numbers taken along. */
  of({ recipients, badges }: { recipients: number[]; badges: (number | null)[] | null }): RetryGroup[] {
    return [...this.#groups.values()].map((group) => ({
      ...group,
      recipients: group.indexes.map((index) => recipients[index] ?? 0),
      badges: badges ? group.indexes.map((index) => badges[index] ?? null) : null,
    }));
  }
}

/** Rounds a wait up by at most a quarter: some sixty different waits from nothing to a day. */
export function bucketOf(afterMs: number | null): number | null {
  if (afterMs === null) return null;
  if (afterMs <= 0) return 0;
  const stepMs = Math.max(25, 2 ** Math.floor(Math.log2(afterMs)) / 4);
  return Math.ceil(afterMs / stepMs) * stepMs;
}
