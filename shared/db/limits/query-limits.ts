import { setImmediate as nextTurn } from 'node:timers/promises';
import type { App } from '../../domain/apps/app.ts';
import { Semaphore, type SemaphoreLimits } from '../../semaphore.ts';
import type { Database, Handle } from '../pool.ts';
import { isConnectionFailure, isRecoveryConflict } from './database-errors.ts';
import type { TransactionOptions } from './transaction.ts';

/** Caller of a query: an app with its app key, or with its master key (also the operator). */
export interface QueryCaller {
  app: Pick<App, 'appId'>;
  isMaster: boolean;
}

/** Limits of concurrent query transactions per process, for app keys and for master keys. */
interface QueryLimits {
  client: Required<SemaphoreLimits>;
  master: Required<SemaphoreLimits>;
}

/**
 * Returns the limits for a number of connections: half are for app keys, of which one app has half,
 * and half for master keys, of which one app has three quarters. Each waiting call may hold a
 * condition of 64 KB.
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
 * Time limits of a statement with an app key and with the master key
 * (protocol/queries.md#query-time).
 */
const clientTimeoutMs = 1500;
const masterTimeoutMs = 10_000;
/**
 * Limits of the rows that one call reads and of its included documents. Parsed, the worst JSON
 * takes sixteen times its text in memory.
 */
const clientBytes = 4 * 1024 * 1024;
const masterBytes = 16 * 1024 * 1024;

/** Returns the size limit of a reply, in bytes. */
export const replyBytes = ({ isMaster }: Pick<QueryCaller, 'isMaster'>): number =>
  isMaster ? masterBytes : clientBytes;

/**
 * Time without further tries after a standby was unreachable: one that drops packets takes seconds
 * to fail.
 */
const standbyPauseMs = 5000;

interface QueryPools {
  /** Separate pools: waiting queries take no connection of other calls. */
  primary: Database;
  /** Pool of the standby for lists; the primary's without a standby. */
  standby: Database;
  limits: QueryLimits;
}

/**
 * Limits queries that clients compose: `where`, `include`, lists, scans and dry runs. An app has a
 * few transactions at a time, all apps together a few more, because a statement may occupy a core
 * until its time limit; further calls queue fairly. All methods throw `QueueFull`,
 * `ResultTooLarge`, or PostgreSQL's error of a statement over its time limit.
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
   * Reads in one snapshot, from the standby if it can. Calls `prepare` in the app's turn: compiled
   * SQL takes many times the memory of its condition, and the parsing counts as the app's time.
   */
  async readPrepared<T>(asker: QueryCaller, prepare: () => (tx: Handle) => Promise<T>): Promise<T> {
    return this.#run(asker, async () => {
      try {
        return await this.#snapshot(prepare(), { ...termsFor(asker), isSnapshot: true });
      } catch (error) {
        // A refused condition never awaits the database: yield, so that a queue of them does not
        // block the event loop.
        await nextTurn();
        throw error;
      }
    });
  }

  /** Reads in one snapshot, from the standby if it can. */
  read<T>(
    asker: QueryCaller,
    work: (tx: Handle) => Promise<T>,
    limit: { timeoutMs?: number; maxWaitMs?: number; signal?: AbortSignal } = {},
  ): Promise<T> {
    const terms: TransactionOptions = { ...termsFor(asker), isSnapshot: true };
    if (limit.signal) terms.signal = limit.signal;
    if (limit.timeoutMs !== undefined) terms.statementTimeoutMs = limit.timeoutMs;
    return this.#run(asker, () => this.#snapshot(work, terms), limit.maxWaitMs);
  }

  /** As `read`, from the primary, to see the latest writes. */
  readFresh<T>(asker: QueryCaller, work: (tx: Handle) => Promise<T>): Promise<T> {
    const terms = { ...termsFor(asker), isSnapshot: true };
    return this.#run(asker, () => this.#pools.primary.transaction(work, terms));
  }

  /** Runs a conditional change. */
  change<T>(asker: QueryCaller, work: (tx: Handle) => Promise<T>): Promise<T> {
    return this.#run(asker, () => this.#pools.primary.transaction(work, termsFor(asker)));
  }

  /**
   * Reads from the standby; from the primary while the standby is away, and when it ends a
   * statement to go on replaying.
   */
  async #snapshot<T>(work: (tx: Handle) => Promise<T>, terms: TransactionOptions): Promise<T> {
    const { primary, standby } = this.#pools;
    if (standby !== primary && performance.now() >= this.#standbyAwayUntilMs)
      try {
        return await standby.transaction(work, terms);
      } catch (error) {
        if (isConnectionFailure(error))
          this.#standbyAwayUntilMs = performance.now() + standbyPauseMs;
        else if (!isRecoveryConflict(error)) throw error;
      }
    return primary.transaction(work, terms);
  }

  #run<T>({ app, isMaster }: QueryCaller, work: () => Promise<T>, maxWaitMs?: number): Promise<T> {
    return (isMaster ? this.#masters : this.#clients).run(app.appId, work, maxWaitMs);
  }
}

const termsFor = ({ isMaster }: QueryCaller): TransactionOptions => ({
  statementTimeoutMs: isMaster ? masterTimeoutMs : clientTimeoutMs,
  maxBytes: replyBytes({ isMaster }),
  isSingle: !isMaster,
});
