import type { Handle } from '../../shared/db/pool.ts';
import { countOpenPushes } from '../../shared/db/tables/pushes/progress.ts';
import type { DeliverJob, JobKind } from '../../shared/queue/jobs.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';

/**
 * Start-time fair queueing of the batches of one push (develop/architecture.md#fairness). Its first batch gets the
 * priority at the front of the queue; each further one is as many steps lower as its app has open pushes. So apps share
 * a gateway equally, the pushes of an app share its part, and a small push never waits for the end of a large one.
 */
export class FairPriorities {
  readonly #queue: JobQueue;
  readonly #appId: string;
  /** Priority of the last batch, by queue. */
  readonly #last = new Map<string, number>();

  constructor(queue: JobQueue, appId: string) {
    this.#queue = queue;
    this.#appId = appId;
  }

  /** Returns the priorities of `count` further batches on a queue, by their place. */
  async next(tx: Handle, kind: JobKind<DeliverJob>, count: number): Promise<(place: number) => number> {
    const front = await this.#queue.highestPriority(kind, tx);
    const step = Math.max(1, await countOpenPushes(tx, this.#appId));
    const last = this.#last.get(kind.queue);
    // Behind its own earlier batches, unless the queue has moved past them.
    const first = last === undefined ? front : Math.min(front, last - step);
    this.#last.set(kind.queue, first - (count - 1) * step);
    return (place) => first - place * step;
  }

  /** Returns the priority of the last batch on a queue; null before the first one. */
  lastOf({ queue }: { queue: string }): number | null {
    return this.#last.get(queue) ?? null;
  }

  /** Notes the priorities of batches that a statement has chosen in the same way (`queueBatches`). */
  note({ queue }: { queue: string }, last: number): void {
    this.#last.set(queue, last);
  }
}
