import type { Clock } from '../../shared/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import type { JobQueue } from '../../shared/queue/queue.ts';

/** Largest backlog: more than 90 minutes of one app's highest call rate (9600 a minute). Running dispatchers leave far less. */
const defaultMaxWaiting = 1_000_000;

/** Lifetime of a count, and the time after which a refused caller may try again. */
const countCacheMs = 1000;
const retryAfterSeconds = 10;

/** Options of the backlog check. */
export interface PushBacklogOptions {
  queue: JobQueue;
  /** Connections on which the queue is counted. */
  db: Handle;
  clock: Clock;
  maxWaiting?: number;
}

/**
 * Refuses pushes while too many wait for a dispatcher (protocol/known-problems.md#backlog): accepted pushes are stored, and
 * callers that are faster than all dispatchers would fill the disk.
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
    if (await this.isFull()) throw new Refusal('tooManyRequests', { retryAfterSeconds });
  }

  /** Tells whether too many pushes wait, by a count at most a second old. */
  isFull(): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#countedAtMs >= countCacheMs) {
      this.#countedAtMs = nowMs;
      // All callers of this second share one count.
      this.#isFull = this.#options.queue.hasWaiting(planJob, this.#maxWaiting, this.#options.db);
    }
    return this.#isFull;
  }
}
