import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Handle } from '../../shared/db/pool.ts';
import { PreparedStatements } from '../../shared/db/prepared.ts';
import { countCall } from '../../shared/db/tables/apps/usage.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import type { PushBacklog } from './push-backlog.ts';

const windowSeconds = 60;

/**
 * Limits the push calls of an app per minute. The count is in the database, so that all api processes share it. Above the
 * rate, calls are refused for one minute (protocol/push.md#call-rate).
 */
export class PushCallLimit {
  readonly #db: Handle;
  readonly #backlog: PushBacklog;
  /** The statements of the library: one with a few texts. */
  readonly #statements = new PreparedStatements();
  readonly #limiters = new Map<number, RateLimiterPostgres>();

  constructor(db: Handle, backlog: PushBacklog) {
    this.#db = db;
    this.#backlog = backlog;
  }

  /**
   * Counts one call for the rate and for the usage of the day, whose peak is the largest count of one window. Throws 429
   * with the seconds to wait, also when too many pushes wait already.
   */
  async consume(app: App): Promise<void> {
    const calls = await this.#take(app);
    await this.#backlog.check();
    await countCall(this.#db, app.appId, calls);
  }

  /** Counts a call and returns the number of calls in this minute. */
  async #take(app: App): Promise<number> {
    try {
      const taken = await this.#limiter(app.options.pushCallsPerMinute).consume(app.appId);
      return taken.consumedPoints;
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      throw new Refusal('tooManyRequests', { retryAfterSeconds: Math.ceil(error.msBeforeNext / 1000) });
    }
  }

  /** Returns the limiter of a rate: the library fixes the rate when a limiter is created. */
  #limiter(callsPerMinute: number): RateLimiterPostgres {
    const known = this.#limiters.get(callsPerMinute);
    if (known) return known;
    const limiter = new RateLimiterPostgres({
      storeClient: {
        query: (q: { text: string; values: unknown[] }) =>
          this.#db.query(this.#statements.of(q.text), q.values),
      },
      storeType: 'client',
      tableName: 'rate_limit',
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: 'push',
      points: callsPerMinute,
      duration: windowSeconds,
      blockDuration: windowSeconds,
      // Refused calls in the rest of the minute do not query the database.
      inMemoryBlockOnConsumed: callsPerMinute + 1,
      inMemoryBlockDuration: windowSeconds,
    });
    this.#limiters.set(callsPerMinute, limiter);
    return limiter;
  }
}
