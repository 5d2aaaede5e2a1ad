import { setImmediate as nextTurn } from 'node:timers/promises';
import type { App } from '../../domain/apps/app.ts';
import { Semaphore, type SemaphoreLimits } from '../../semaphore.ts';
import type { Database, Handle } from '../pool.ts';
import { isConnectionFailure, isRecoveryConflict } from './database-errors.ts';
import type { TransactionOptions } from './transaction.ts';

/**
 * Caller of a query: an app with its app key, or with its master key. The operator counts as master
 * key.
 */
export interface QueryCaller {
  app: Pick<App, 'appId'>;
  isMaster: boolean;
}

/** Maximum concurrent query transactions per process, for app keys and for master keys. */
interface QueryLimits {
  client: Required<SemaphoreLimits>;
  master: Required<SemaphoreLimits>;
}

/**
 * Returns the limits for a number of connections. App keys get half of them, and one app gets half
 * of these. Master keys get the other half, and one app gets three quarters of these. The number of
 * waiting calls is limited too, because each may hold a condition of 64 KB.
 */
export function queryLimitsFor(connections: number): QueryLimits {
  const client = Math.floor(connections / 2);
  const master = connections - client;
  return {
    client: {
      concurrency: client,
      perKey: Math.ceil(client / 2),
      maxWaiting: 100,
      maxWaitMs: 5000,
    },
    master: {
      concurrency: master,
      perKey: Math.ceil((master * 3) / 4),
      maxWaiting: 100,
      maxWaitMs: 10_000,
    },
  };
}

/**
 * Timeouts of a statement in ms, with an app key and with the master key
 * (protocol/queries.md#query-time).
 */
const clientTimeoutMs = 1500;
const masterTimeoutMs = 10_000;
/**
 * Maximum bytes of rows that one call reads, including its included documents. Parsed JSON takes up
 * to 16 times the memory of its text.
 */
const clientBytes = 4 * 1024 * 1024;
const masterBytes = 16 * 1024 * 1024;

/** Returns the size limit of a response, in bytes. */
export const replyBytes = ({ isMaster }: Pick<QueryCaller, 'isMaster'>): number =>
  isMaster ? masterBytes : clientBytes;

/**
 * Time without another attempt after a standby was unreachable. Connecting to a standby that drops
 * packets takes seconds.
 */
const standbyPauseMs = 5000;

interface QueryPools {
  /** Separate pools, so that waiting queries occupy no connection of other calls. */
  primary: Database;
  /** Pool of the standby for lists. Without a standby, the pool of the primary. */
  standby: Database;
  limits: QueryLimits;
}

/**
 * Limits queries that clients compose: `where`, `include`, lists, scans and dry runs. A statement
 * may occupy a CPU until its timeout, so each app has a few concurrent transactions, and all apps
 * together have a few more. Further calls wait in a fair queue. All methods throw `QueueFull`,
 * `ResultTooLarge`, or PostgreSQL's timeout error.
 */
export class QueryLimiter {
  readonly #pools: QueryPools;
  readonly #clients: Semaphore;
  readonly #masters: Semaphore;
  #standbyAwayUntilMs = 0;

  constructor(pools: QueryPools) {
    const { client, master } = pools.limits;
    this.#pools = pools;
    this.#clients = new Semaphore(client);
    this.#masters = new Semaphore(master);
  }

  /** Pools that the queries use. */
  get databases(): Database[] {
    return [...new Set([this.#pools.primary, this.#pools.standby])];
  }

  /**
   * Reads in one snapshot, from the standby if possible. Calls `prepare` when the app's call leaves
   * the queue: compiled SQL takes much more memory than its condition, and the parsing counts as
   * the app's time.
   */
  async readPrepared<T>(
    caller: QueryCaller,
    prepare: () => (tx: Handle) => Promise<T>,
  ): Promise<T> {
    return this.#run(caller, async () => {
      try {
        return await this.#snapshot(prepare(), {
          ...transactionOptionsFor(caller),
          isSnapshot: true,
        });
      } catch (error) {
        // A refused condition never awaits the database: yield, so that a queue of them does not
        // block the event loop.
        await nextTurn();
        throw error;
      }
    });
  }

  /** Reads in one snapshot, from the standby if possible. */
  read<T>(
    caller: QueryCaller,
    work: (tx: Handle) => Promise<T>,
    limit: { timeoutMs?: number; maxWaitMs?: number; signal?: AbortSignal } = {},
  ): Promise<T> {
    const options: TransactionOptions = { ...transactionOptionsFor(caller), isSnapshot: true };
    if (limit.signal) options.signal = limit.signal;
    if (limit.timeoutMs !== undefined) options.statementTimeoutMs = limit.timeoutMs;
    return this.#run(caller, () => this.#snapshot(work, options), limit.maxWaitMs);
  }

  /** Like `read`, but from the primary, to see the latest writes. */
  readFresh<T>(caller: QueryCaller, work: (tx: Handle) => Promise<T>): Promise<T> {
    const options = { ...transactionOptionsFor(caller), isSnapshot: true };
    return this.#run(caller, () => this.#pools.primary.transaction(work, options));
  }

  /** Runs an update with a condition. */
  change<T>(caller: QueryCaller, work: (tx: Handle) => Promise<T>): Promise<T> {
    return this.#run(caller, () =>
      this.#pools.primary.transaction(work, transactionOptionsFor(caller)),
    );
  }

  /**
   * Reads from the standby. Reads from the primary instead while the standby is unavailable, or if
   * the standby cancels the statement because of a recovery conflict.
   */
  async #snapshot<T>(work: (tx: Handle) => Promise<T>, options: TransactionOptions): Promise<T> {
    const { primary, standby } = this.#pools;
    if (standby !== primary && performance.now() >= this.#standbyAwayUntilMs)
      try {
        return await standby.transaction(work, options);
      } catch (error) {
        if (isConnectionFailure(error))
          this.#standbyAwayUntilMs = performance.now() + standbyPauseMs;
        else if (!isRecoveryConflict(error)) throw error;
      }
    return primary.transaction(work, options);
  }

  #run<T>({ app, isMaster }: QueryCaller, work: () => Promise<T>, maxWaitMs?: number): Promise<T> {
    return (isMaster ? this.#masters : this.#clients).run(app.appId, work, maxWaitMs);
  }
}

const transactionOptionsFor = ({ isMaster }: QueryCaller): TransactionOptions => ({
  statementTimeoutMs: isMaster ? masterTimeoutMs : clientTimeoutMs,
  maxBytes: replyBytes({ isMaster }),
  isSingle: !isMaster,
});
