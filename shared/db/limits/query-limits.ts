import { setImmediate as nextTurn } from 'node:timers/promises';
import type { App } from '../../domain/apps/app.ts';
import { FairQueue, type FairQueueLimits } from '../../fairness/fair-queue.ts';
import type { Database, Handle } from '../pool.ts';
import type { TransactionOptions } from './transaction.ts';

/** Who asks: an app by its app key, or by its master key (also the operator for it). */
export interface QueryCaller {
  app: Pick<App, 'appId'>;
  isMaster: boolean;
}

/** Transactions at a time in one process that answer conditions of app keys, and of master keys. */
export interface QueryLimits {
  client: Required<FairQueueLimits>;
  master: Required<FairQueueLimits>;
}

/** Each that waits may hold a condition of 64 KB. */
export const queryLimits: QueryLimits = {
  client: { atOnce: 4, perLane: 2, maxWaiting: 100, maxWaitMs: 5000 },
  master: { atOnce: 4, perLane: 3, maxWaiting: 100, maxWaitMs: 10_000 },
};

/** Connections that a pool for these transactions needs. */
export const queryConnections = queryLimits.client.atOnce + queryLimits.master.atOnce;

/** A statement with a condition of an app key ends after this, one of the master key later (protocol/queries.md#query-time). */
const clientTimeoutMs = 1500;
const masterTimeoutMs = 10_000;
/**
 * All rows that one call reads, and all that its reply includes. Parsed, the worst JSON takes sixteen times its text in
 * memory, and a client's device has no use for more.
 */
const clientBytes = 4 * 1024 * 1024;
const masterBytes = 16 * 1024 * 1024;

/** The most that a reply to this key holds, in bytes. */
export const replyBytes = ({ isMaster }: Pick<QueryCaller, 'isMaster'>): number =>
  isMaster ? masterBytes : clientBytes;

export interface QueryPools {
  /** Pools of their own: what waits here takes no connection of other calls. */
  primary: Database;
  /** Where lists read; the primary's when there is no standby. */
  standby: Database;
  limits?: QueryLimits;
}

/**
 * The part of the database that answers what clients put together themselves: `where`, `include`, lists, scans and
 * dry runs. An app has a few transactions at a time, the rest of its calls waits for its own turn, and all apps
 * together have a few more: a statement may keep a core busy until it is ended. All methods throw `QueueFull`,
 * `ResultTooLarge`, or PostgreSQL's error for a statement that was ended.
 */
export class QueryLimiter {
  readonly #pools: QueryPools;
  readonly #clients: FairQueue;
  readonly #masters: FairQueue;

  constructor(pools: QueryPools) {
    const { client, master } = pools.limits ?? queryLimits;
    this.#pools = pools;
    this.#clients = new FairQueue(client);
    this.#masters = new FairQueue(master);
  }

  /**
   * Reads in one snapshot, from the standby if there is one, what `prepare` asks for. That is called when the turn has
   * come: a condition as SQL takes many times the memory of its text, and its parsing takes the app's time.
   */
  async readPrepared<T>(asker: QueryCaller, prepare: () => (tx: Handle) => Promise<T>): Promise<T> {
    return this.#run(asker, async () => {
      try {
        return await this.#pools.standby.transaction(prepare(), { ...termsFor(asker), isSnapshot: true });
      } catch (error) {
        // A condition that is refused asks nobody: without a pause all that wait would be refused in one go.
        await nextTurn();
        throw error;
      }
    });
  }

  /** Reads in one snapshot, from the standby if there is one. */
  read<T>(
    asker: QueryCaller,
    work: (tx: Handle) => Promise<T>,
    limit: { timeoutMs?: number; maxWaitMs?: number } = {},
  ): Promise<T> {
    const terms = { ...termsFor(asker), isSnapshot: true };
    if (limit.timeoutMs !== undefined) terms.statementTimeoutMs = limit.timeoutMs;
    return this.#run(asker, () => this.#pools.standby.transaction(work, terms), limit.maxWaitMs);
  }

  /** As `read`, from the primary: what was just written is seen. */
  readFresh<T>(asker: QueryCaller, work: (tx: Handle) => Promise<T>): Promise<T> {
    const terms = { ...termsFor(asker), isSnapshot: true };
    return this.#run(asker, () => this.#pools.primary.transaction(work, terms));
  }

  /** A change that depends on a condition. */
  change<T>(asker: QueryCaller, work: (tx: Handle) => Promise<T>): Promise<T> {
    return this.#run(asker, () => this.#pools.primary.transaction(work, termsFor(asker)));
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
