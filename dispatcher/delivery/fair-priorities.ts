import type { Handle } from '../../shared/db/pool.ts';
import { countOpenPushes } from '../../shared/db/tables/pushes/progress.ts';
import type { DeliverJob, JobKind } from '../../shared/queue/jobs.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';

/**
 * Turns over apps and pushes on one delivery queue (develop/architecture.md#fairness), by virtual time: the first
 * batch of a push stands where the queue's front is now, and each further one as many steps behind as its
 * app has pushes open. So apps share a gateway equally, pushes of one app share the app's part, a push to
 * few is through after its first turns, and nobody waits for the end of a push to millions.
 */
export class FairPriorities {
  readonly #queue: JobQueue;
  readonly #appId: string;
  /** Where the last batch of this push was put, by queue. */
  readonly #last = new Map<string, number>();

  constructor(queue: JobQueue, appId: string) {
    this.#queue = queue;
    this.#appId = appId;
  }

  /** Priorities for `count` further batches of the push on this queue, in their order. */
  async next(tx: Handle, kind: JobKind<DeliverJob>, count: number): Promise<(place: number) => number> {
    const front = await this.#queue.highestPriority(kind, tx);
    const step = Math.max(1, await countOpenPushes(tx, this.#appId));
    const last = this.#last.get(kind.queue);
    // Behind its own earlier batches, unless the queue has moved past them.
    const first = last === undefined ? front : Math.min(front, last - step);
    this.#last.set(kind.queue, first - (count - 1) * step);
    return (place) => first - place * step;
  }
}
