import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Handle } from '../../shared/db/pool.ts';
import { countCall } from '../../shared/db/tables/apps/usage.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import type { PushBacklog } from './push-backlog.ts';

const windowSeconds = 60;

/**
 * Push calls per minute and app, counted in the database so that all api processes share one count.
 * Above the rate, calls are refused for one minute and then handled again (protocol/push.md#call-rate).
 */
export class PushCallLimit {
  readonly #db: Handle;
  readonly #backlog: PushBacklog;
  readonly #limiters = new Map<number, RateLimiterPostgres>();

  constructor(db: Handle, backlog: PushBacklog) {
    this.#db = db;
    this.#backlog = backlog;
  }

  /**
   * Counts one call, for the rate and for the day's usage: the peak is the most calls that one window of
   * this limit held. Throws 429 with the seconds left of the refusal, or where too many
   * pushes wait already.
   */
  async consume(app: App): Promise<void> {
    const calls = await this.#take(app);
    await this.#backlog.check();
    await countCall(this.#db, app.appId, calls);
  }

  /** Gives how many calls this minute has had, this one included. */
  async #take(app: App): Promise<number> {
    try {
      const taken = await this.#limiter(app.options.pushCallsPerMinute).consume(app.appId);
      return taken.consumedPoints;
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      throw new Refusal('tooManyRequests', { retryAfterSeconds: Math.ceil(error.msBeforeNext / 1000) });
    }
  }

  /** One limiter per rate in use: the library fixes the rate when a limiter is made. */
  #limiter(callsPerMinute: number): RateLimiterPostgres {
    const known = this.#limiters.get(callsPerMinute);
    if (known) return known;
    const limiter = new RateLimiterPostgres({
      storeClient: { query: (q: { text: string; values: unknown[] }) => this.#db.query(q.text, q.values) },
      storeType: 'client',
      tableName: 'rate_limit',
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: 'push',
      points: callsPerMinute,
      duration: windowSeconds,
      blockDuration: windowSeconds,
      // Once refused, the rest of the minute costs the database nothing.
      inMemoryBlockOnConsumed: callsPerMinute + 1,
      inMemoryBlockDuration: windowSeconds,
    });
    this.#limiters.set(callsPerMinute, limiter);
    return limiter;
  }
}
