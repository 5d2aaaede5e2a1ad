import type { Clock } from '../../shared/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';

/** Over an hour and a half of one app's highest call rate (9600 a minute): dispatchers that run leave far less. */
export const defaultMaxWaiting = 1_000_000;

/** How old a count may be, and how soon a refused caller may ask again. */
const countCacheMs = 1000;
const retryAfterSeconds = 10;

export interface PushBacklogOptions {
  queue: JobQueue;
  /** Where the queue is counted. */
  db: Handle;
  clock: Clock;
  maxWaiting?: number;
}

/**
 * Refuses pushes while too many wait for a dispatcher (protocol/known-problems.md#backlog): what is accepted is kept, so a
 * caller who is faster than all dispatchers together must be told, before the disk tells him.
 */
export class PushBacklog {
  readonly #options: PushBacklogOptions;
  readonly #maxWaiting: number;
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #isFull: Promise<boolean> = Promise.resolve(false);

  constructor(options: PushBacklogOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
  }

  /** Throws 429 with the seconds to wait. */
  async check(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#countedAtMs >= countCacheMs) {
      this.#countedAtMs = nowMs;
      // One count at a time, for all callers of that second.
      this.#isFull = this.#options.queue.hasWaiting(planJob, this.#maxWaiting, this.#options.db);
    }
    if (await this.#isFull) throw new Refusal('tooManyRequests', { retryAfterSeconds });
  }
}
