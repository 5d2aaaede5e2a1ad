import { systemClock } from '../../clock.ts';
import type { JobKind } from '../jobs.ts';
import type { Job } from '../queue.ts';

/** Jobs in work from which on a group counts as busy. */
const busyFrom = 16;

/**
 * Shortest interval of fetches that skip busy groups, and its multiple of their duration: thousands of skipped jobs
 * take time.
 */
const intervalMs = 25;
const timesDuration = 10;

/**
 * Decides when a consumer looks behind the waiting jobs of groups that it is busy with: the queue is ordered by time, and a
 * group with thousands of waiting jobs would delay the others by all of them.
 */
export class GroupTurns<T extends object> {
  readonly #kind: JobKind<T>;
  #nextAtMs = 0;

  constructor(kind: JobKind<T>) {
    this.#kind = kind;
  }

  /** Returns the groups to skip in one fetch; undefined while it is too early, or none is busy. */
  busyGroups(active: Iterable<{ job: Job<T> }>): string[] | undefined {
    const { groupOf } = this.#kind;
    if (!groupOf || systemClock.monotonicMs() < this.#nextAtMs) return undefined;
    const counts = new Map<string, number>();
    for (const { job } of active) {
      const group = groupOf(job.data);
      counts.set(group, (counts.get(group) ?? 0) + 1);
    }
    const busy = [...counts.keys()].filter((group) => (counts.get(group) ?? 0) >= busyFrom);
    return busy.length > 0 ? busy : undefined;
  }

  /**
   * Runs such a fetch, which resolves whether no further job was due. After one that found none the next has to wait for a
   * multiple of its duration; where more may be due, only for the interval.
   */
  async measure(fetch: () => Promise<boolean>): Promise<void> {
    const beganAtMs = systemClock.monotonicMs();
    const isDrained = await fetch();
    const endedAtMs = systemClock.monotonicMs();
    const restMs = isDrained ? timesDuration * (endedAtMs - beganAtMs) : 0;
    this.#nextAtMs = endedAtMs + Math.max(intervalMs, restMs);
  }
}
