import { Batcher } from '../../shared/batcher.ts';
import type { Clock } from '../../shared/clock.ts';
import { runForApp } from '../../shared/db/limits/client-pool.ts';
import { isConnectionFailure } from '../../shared/db/limits/database-errors.ts';
import type { Database, Handle } from '../../shared/db/pool.ts';
import { countCalls, extendCallWindow } from '../../shared/db/tables/usage.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import { countReady } from '../../shared/queue/queue-sql.ts';

/**
 * Maximum backlog. It exceeds 90 minutes of one app's highest call rate (9600 a minute). Running
 * dispatchers keep the backlog far smaller.
 */
const defaultMaxWaiting = 1_000_000;

/** Minimum and maximum age of a count, and the time after which a refused caller may retry. */
const minCountMs = 1000;
const maxCountMs = 30_000;
const retryAfterSeconds = 10;
/**
 * Upper limit of the pushes per second that all api processes of one database accept. A short
 * backlog need not be counted again for some time.
 */
const maxPerSecond = 20_000;

/** Options of the backlog check. */
interface PushBacklogOptions {
  /** Connections that are used to count the queue. */
  db: Handle;
  clock: Clock;
  maxWaiting?: number;
}

/**
 * Refuses pushes if too many wait for a dispatcher (protocol/known-problems.md#backlog). Accepted
 * pushes are stored, so callers that are faster than all dispatchers would fill the disk.
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

  /** Throws error 429 with the seconds to wait if the backlog is full. */
  async check(): Promise<void> {
    if (await this.isFull()) throw new Refusal('tooManyRequests', { retryAfterSeconds });
  }

  /**
   * Returns whether too many pushes wait. The count is one second old, or older if the backlog is
   * far from full.
   */
  isFull(): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs >= this.#countAgainMs) {
      // All callers until then share one count.
      this.#countAgainMs = nowMs + minCountMs;
      this.#isFull = this.#count(nowMs);
    }
    return this.#isFull;
  }

  /**
   * Counts the backlog. A count reads all its rows. A long backlog is counted often, a short
   * backlog rarely.
   */
  async #count(nowMs: number): Promise<boolean> {
    const waiting = await countReady(this.#options.db, planJob, this.#maxWaiting);
    const fullAfterMs = ((this.#maxWaiting - waiting) / maxPerSecond) * 1000;
    this.#countAgainMs = nowMs + Math.min(Math.max(fullAfterMs, minCountMs), maxCountMs);
    return waiting >= this.#maxWaiting;
  }
}

const windowMs = 60_000;

/** Limits of batches. One statement counts the calls of a batch. */
const batchLimits = { size: 500, concurrency: 1, maxWaiting: 1000, maxWaitMs: 5000 };
/**
 * Key under which batches take database connections, where each app has a key. A batch belongs to
 * no app, so its key contains a blank, which app ids do not.
 */
const batchKey = 'push calls';
/**
 * Timeout of a row lock in a batch. After the timeout, the calls of the batch are counted one by
 * one, so that a locked row delays only its own app.
 */
const lockTimeoutMs = 100;

/** Maximum number of apps over their rate that are kept in memory. */
const maxBlocked = 10_000;

/** App over its rate. */
interface Block {
  callsPerMinute: number;
  untilMs: number;
}

/** Position of a call among the calls of its app in this window. */
interface CountedCall {
  position: number;
  msLeft: number;
}

/**
 * Limits the push calls of an app per minute. The count is in the database, so that all api
 * processes share it. One statement counts calls that arrive together. Above the rate, calls are
 * refused for one minute (protocol/push.md#call-rate).
 */
export class PushCallLimit {
  readonly #db: Database;
  readonly #backlog: PushBacklog;
  readonly #clock: Clock;
  /** Apps whose calls are refused for the rest of the minute without a query. */
  readonly #blocked = new Map<string, Block>();
  readonly #batcher: Batcher<App, CountedCall>;

  constructor({ db, backlog, clock }: { db: Database; backlog: PushBacklog; clock: Clock }) {
    this.#db = db;
    this.#backlog = backlog;
    this.#clock = clock;
    this.#batcher = new Batcher({
      ...batchLimits,
      fairBy: ({ appId }) => appId,
      run: (apps) => runForApp(batchKey, () => this.#count(apps, lockTimeoutMs)),
      runOne: async (app) => {
        const [counted] = await runForApp(app.appId, () => this.#count([app], 0));
        if (!counted) throw new Error('the call was not counted');
        return counted;
      },
      isShared: isConnectionFailure,
    });
  }

  /**
   * Counts one call against the rate and for the usage of the day. The day's peak is the largest
   * count of a window. Throws error 429 with the seconds to wait if the rate is exceeded or too
   * many pushes wait.
   */
  async consume(app: App): Promise<void> {
    const { pushCallsPerMinute } = app.options;
    const blockedMs = this.#blockedMs(app);
    if (blockedMs > 0) throw tooManyCalls(blockedMs);
    const { position, msLeft } = await this.#batcher.run(app);
    if (position > pushCallsPerMinute) {
      this.#block(app, msLeft);
      throw tooManyCalls(msLeft);
    }
    await this.#backlog.check();
  }

  /** Counts calls, given one app per call. Returns the position of each call. */
  async #count(apps: App[], lockMs: number): Promise<CountedCall[]> {
    const callsByApp = new Map<string, { app: App; calls: number }>();
    const offsets = apps.map((app) => {
      const own = callsByApp.get(app.appId) ?? { app, calls: 0 };
      callsByApp.set(app.appId, own);
      own.calls += 1;
      return own.calls;
    });
    const counted = [...callsByApp].map(([appId, { app, calls }]) => ({
      appId,
      calls,
      perWindow: app.options.pushCallsPerMinute,
    }));
    const isUsage = !(await this.#backlog.isFull());
    const windows = await countCalls(this.#db, counted, {
      windowMs,
      isUsage,
      lockTimeoutMs: lockMs,
    });
    for (const { appId, calls, perWindow } of counted) {
      const window = windows.get(appId);
      // The first call above the rate starts the minute in which calls are refused.
      if (!window || window.calls <= perWindow || window.calls - calls > perWindow) continue;
      await extendCallWindow(this.#db, appId, windowMs);
      window.msLeft = windowMs;
    }
    return apps.map(({ appId }, i) => {
      const { calls = 0, msLeft = 0 } = windows.get(appId) ?? {};
      return { position: calls - (callsByApp.get(appId)?.calls ?? 0) + (offsets[i] ?? 0), msLeft };
    });
  }

  #blockedMs({ appId, options }: App): number {
    const block = this.#blocked.get(appId);
    if (!block) return 0;
    const leftMs = block.untilMs - this.#clock.monotonicMs();
    // A raised rate applies at once.
    if (leftMs > 0 && block.callsPerMinute >= options.pushCallsPerMinute) return leftMs;
    this.#blocked.delete(appId);
    return 0;
  }

  #block({ appId, options }: App, msLeft: number): void {
    if (this.#blocked.size >= maxBlocked) this.#blocked.clear();
    const untilMs = this.#clock.monotonicMs() + msLeft;
    this.#blocked.set(appId, { callsPerMinute: options.pushCallsPerMinute, untilMs });
  }
}

const tooManyCalls = (waitMs: number): Refusal =>
  new Refusal('tooManyRequests', { retryAfterSeconds: Math.ceil(waitMs / 1000) });
