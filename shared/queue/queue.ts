import { PgBoss } from 'pg-boss';
import { z } from 'zod';
import { Batcher } from '../batcher.ts';
import { type Clock, isDoneWithin, sleep, systemClock } from '../clock.ts';
import type { Database, Handle } from '../db/pool.ts';
import { PreparedStatements } from '../db/prepared.ts';
import type { Logger } from '../process/logging.ts';
import { type JobKind, queueSettings } from './jobs.ts';
import { type QueueState, readQueueStates, touchJobs } from './queue-sql.ts';
import { wakeConsumers } from './waking.ts';

/**
 * A job in work. `retryCount` identifies the attempt, so that a late worker cannot end a newer
 * attempt.
 */
export interface Job<T> {
  id: string;
  retryCount: number;
  data: T;
}

/** When, and in which order, jobs are taken. */
export interface SendOptions {
  /** The transaction that writes the jobs. */
  tx: Handle;
  /**
   * Higher priorities first. A function returns the priority of each job by its index. Default 0.
   */
  priority?: number | ((index: number) => number);
  startAfter?: Date;
  /**
   * NOTIFY wakes the consumers that listen for this name. Default: the name of the queue. Null: the
   * caller wakes the consumers after the commit (`wake`).
   */
  wakeName?: string | null;
}

/** Range of priorities that a consumer takes, both ends included. */
export interface PriorityRange {
  minPriority?: number;
  maxPriority?: number;
}

/** Which jobs are taken. */
export interface FetchFilter extends PriorityRange {
  /** Groups (`groupOf`) whose jobs stay in the queue. */
  ignoreGroups?: string[];
}

const statements = new PreparedStatements();

/**
 * Runs the statements of pg-boss on our database handle, so that they are part of its transaction.
 * Connections prepare each text once.
 */
const adapter = (handle: Handle) => ({
  executeSql: (text: string, values?: unknown[]) => handle.query(statements.of(text), values),
});

/** Maximum calls of `wake` that share a NOTIFY. */
const maxSharedWakes = 1000;
/**
 * Minimum pause between two NOTIFYs, in ms. Busy planners fetch at most every 24 ms, so more
 * NOTIFYs would only cost CPU time.
 */
const wakePauseMs = 8;

/** Result of pg-boss's `deleteJob`. The types of pg-boss do not declare it. */
const ended = z.object({ affected: z.number() });

/** The jobs of all processes, stored by pg-boss. No other folder uses pg-boss. */
export class JobQueue {
  readonly #boss: PgBoss;
  readonly #db: Database;
  readonly #supervision: QueueSupervision | undefined;
  readonly #wakes: Batcher<string>;

  /**
   * `supervise`: maintain the queues (expired heartbeats). Dispatchers do this, api processes do
   * not.
   */
  constructor(db: Database, log: Logger, options: { supervise: boolean }) {
    this.#db = db;
    this.#wakes = new Batcher({
      concurrency: 1,
      size: maxSharedWakes,
      run: async (queues) => {
        await wakeConsumers(db, [...new Set(queues)]);
        await sleep(wakePauseMs);
        return [];
      },
    });
    this.#boss = new PgBoss({
      // Maintenance runs texts of several statements, which cannot be prepared.
      db: { executeSql: (text, values) => db.query(text, values) },
      schema: 'pgboss',
      migrate: false,
      schedule: false,
      supervise: false,
      monitorIntervalSeconds: 2,
      reindex: false,
    });
    this.#boss.on('error', (error) => log.warn({ err: error }, 'queue error'));
    if (!options.supervise) return;
    const probe = () => db.query('SELECT 1');
    this.#supervision = new QueueSupervision({ probe, pass: () => this.#boss.supervise(), log });
  }

  /** Starts. Rejects if the database is not migrated. */
  async start(): Promise<void> {
    await this.#boss.start();
    this.#supervision?.start();
  }

  async stop(): Promise<void> {
    await this.#supervision?.stop();
    await this.#boss.stop({ graceful: false, close: false });
  }

  /** Writes jobs in `tx`, and wakes the consumers when it commits. */
  async send<T extends object>(
    kind: JobKind<T>,
    jobs: readonly T[],
    options: SendOptions,
  ): Promise<void> {
    if (jobs.length === 0) return;
    const { tx, priority = 0, startAfter, wakeName = kind.queue } = options;
    const priorityOf = typeof priority === 'function' ? priority : () => priority;
    const rows = jobs.map((data, index) => ({
      data,
      priority: priorityOf(index),
      ...(kind.groupOf ? { group: { id: kind.groupOf(data) } } : {}),
      ...(startAfter ? { startAfter } : {}),
    }));
    await this.#boss.insert(kind.queue, rows, { db: adapter(tx) });
    if (wakeName !== null) await wakeConsumers(tx, [wakeName]);
  }

  /**
   * Takes up to `count` jobs, highest priority first. With `filter` it takes only matching jobs.
   */
  async fetch<T extends object>(
    kind: JobKind<T>,
    count: number,
    filter: FetchFilter = {},
  ): Promise<Job<T>[]> {
    const db = adapter(this.#db);
    const jobs = await this.#boss.fetch<T>(kind.queue, { batchSize: count, ...filter, db });
    return jobs.map((job) => ({
      id: job.id,
      retryCount: job.retryCount,
      data: kind.data.parse(job.data),
    }));
  }

  /**
   * Ends a job in `tx`. Deletes it, which costs less than marking it as completed. Returns false if
   * another consumer has taken over the job.
   */
  async end<T extends object>(kind: JobKind<T>, job: Job<T>, tx: Handle): Promise<boolean> {
    return (await this.endAll(kind, [job], tx)) > 0;
  }

  /** Ends several jobs like `end`. Returns their number. */
  async endAll<T extends object>(
    kind: JobKind<T>,
    jobs: readonly Job<T>[],
    tx: Handle,
  ): Promise<number> {
    if (jobs.length === 0) return 0;
    const attempts = jobs.map(({ id, retryCount }) => ({ id, retryCount }));
    return ended.parse(await this.#boss.deleteJob(kind.queue, attempts, { db: adapter(tx) }))
      .affected;
  }

  /** Returns a job to the queue, which hands it out again after its back-off. */
  async putBack<T extends object>(kind: JobKind<T>, job: Job<T>, reason: string): Promise<void> {
    await this.#boss.fail(kind.queue, { id: job.id, retryCount: job.retryCount }, { reason });
  }

  /** Writes a heartbeat for jobs in work (`touchJobs`). */
  touch<T extends object>(kind: JobKind<T>, jobs: readonly Job<T>[]): Promise<void> {
    return touchJobs(this.#db, kind.queue, jobs);
  }

  /**
   * Wakes the consumers of a queue. Resolves some milliseconds later. Calls within this time share
   * one NOTIFY. If the NOTIFY fails, the consumers find the jobs by their poll.
   */
  wake({ queue }: { queue: string }): Promise<void> {
    return this.#wakes.run(queue);
  }

  /** Counts the jobs of each queue that contains any (`readQueueStates`). */
  states(): Promise<QueueState[]> {
    return readQueueStates(this.#db);
  }

  /**
   * Counts the jobs of all queues that have not ended, as of the last maintenance by a dispatcher.
   */
  async countJobs(): Promise<number> {
    const queues = await this.#boss.getQueues();
    return queues.reduce((n, { queuedCount, activeCount }) => n + queuedCount + activeCount, 0);
  }
}

const intervalMs = 2000;
const stopMs = 1000;
const heartbeatMs = queueSettings.heartbeatSeconds * 1000;

interface Supervised {
  /** Rejects, or hangs, if the database is unavailable. */
  probe: () => Promise<unknown>;
  /** Hands out jobs without a heartbeat again, and deletes ended jobs. */
  pass: () => Promise<void>;
  log: Logger;
  clock?: Clock;
}

/**
 * Maintains the queues every two seconds. After an outage of the database it waits for the duration
 * of a heartbeat. No dispatcher could write heartbeats during the outage. Without the wait, jobs of
 * a dispatcher that still works would be given to another dispatcher and sent twice.
 */
export class QueueSupervision {
  readonly #supervised: Supervised;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wasAway = false;
  #nextPassAtMs = 0;

  constructor(supervised: Supervised) {
    this.#supervised = supervised;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Waits for a pass in progress, but not if the database is unavailable. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await isDoneWithin(this.#running, stopMs);
  }

  /** Checks the database, and maintains the queues if it may. Never rejects. */
  async tick(): Promise<void> {
    const { probe, pass, log, clock = systemClock } = this.#supervised;
    const startedAtMs = clock.monotonicMs();
    try {
      await probe();
      const nowMs = clock.monotonicMs();
      if (this.#wasAway || nowMs - startedAtMs > heartbeatMs / 2)
        this.#nextPassAtMs = nowMs + heartbeatMs;
      this.#wasAway = false;
      if (nowMs >= this.#nextPassAtMs) await pass();
    } catch (error) {
      this.#wasAway = true;
      if (!this.#stopping.signal.aborted) log.warn({ err: error }, 'queue error');
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(intervalMs, signal);
      if (signal.aborted) return;
      await this.tick();
    }
  }
}
