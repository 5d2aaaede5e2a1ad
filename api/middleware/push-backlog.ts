import type { Clock } from '../../shared/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import { countReady } from '../../shared/queue/queue-sql.ts';

/**
 * Largest backlog: more than 90 minutes of one app's highest call rate (9600 a minute). Running dispatchers leave far
 * less.
 */
const defaultMaxWaiting = 1_000_000;

/** Shortest and longest lifetime of a count, and the time after which a refused caller may try again. */
const minCountMs = 1000;
const maxCountMs = 30_000;
const retryAfterSeconds = 10;
/** More pushes than all api processes of one database accept: a short backlog need not be counted for a while. */
const mostPerSecond = 20_000;

/** Options of the backlog check. */
export interface PushBacklogOptions {
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
  #countAgainMs = Number.NEGATIVE_INFINITY;
  #isFull: Promise<boolean> = Promise.resolve(false);

  constructor(options: PushBacklogOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? defaultMaxWaiting;
  }

  /** Throws 429 with the seconds to wait. */
  async check(): Promise<void> {
    if (await this.isFull()) throw new Refusal('tooManyRequests', { retryAfterSeconds });
  }

  /** Tells whether too many pushes wait, by a count that is a second old, or older while the backlog is far from full. */
  isFull(): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs >= this.#countAgainMs) {
      // All callers until then share one count.
      this.#countAgainMs = nowMs + minCountMs;
      this.#isFull = this.#count(nowMs);
    }
    return this.#isFull;
  }

  /** Counts the backlog. Its rows are read, so a long one is counted often and a short one rarely. */
  async #count(nowMs: number): Promise<boolean> {
    const waiting = await countReady(this.#options.db, planJob, this.#maxWaiting);
    const fullAfterMs = ((this.#maxWaiting - waiting) / mostPerSecond) * 1000;
    this.#countAgainMs = nowMs + Math.min(Math.max(fullAfterMs, minCountMs), maxCountMs);
    return waiting >= this.#maxWaiting;
  }
}
