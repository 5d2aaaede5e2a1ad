import { PgBoss } from 'pg-boss';
import { z } from 'zod';
import { Batcher } from '../batcher.ts';
import { sleep } from '../clock.ts';
import type { Database, Handle } from '../db/pool.ts';
import { PreparedStatements } from '../db/prepared.ts';
import type { Logger } from '../process/logging.ts';
import type { JobKind } from './jobs.ts';
import { type QueueState, readQueueStates, touchJobs } from './queue-sql.ts';
import { QueueSupervision } from './supervision.ts';
import { wakeConsumers } from './waking.ts';

/** A job in work. Ending it names the attempt, so that a late worker cannot end a newer one. */
export interface Job<T> {
  id: string;
  retryCount: number;
  data: T;
}

/** When and in which order jobs are taken. */
export interface SendOptions {
  /** The transaction that the jobs are part of. */
  tx: Handle;
  /** Higher first. A function returns the priority of each job by its index. Default 0. */
  priority?: number | ((index: number) => number);
  startAfter?: Date;
  /**
   * Name that the consumers to wake listen for. Default: the name of the queue. Null: the caller
   * wakes them after the commit (`wake`).
   */
  wakeName?: string | null;
}

/** Priorities that a consumer takes, both ends included. */
export interface PriorityRange {
  minPriority?: number;
  maxPriority?: number;
}

/** Which jobs are taken. */
export interface FetchFilter extends PriorityRange {
  /** Groups (`groupOf`) whose jobs are left in the queue. */
  ignoreGroups?: string[];
}

const statements = new PreparedStatements();

/**
 * Runs the statements of pg-boss on a handle of ours, so that they are part of its transaction.
 * Connections parse each of the few texts once.
 */
const adapter = (handle: Handle) => ({
  executeSql: (text: string, values?: unknown[]) => handle.query(statements.of(text), values),
});

/** Most calls of `wake` that share a NOTIFY. */
const mostWakes = 1000;
/**
 * Shortest pause between two of them. Planners that are busy take jobs every 24 ms at most, so more
 * of them would cost CPU time only.
 */
const wakePauseMs = 8;

/** What `deleteJob` of pg-boss returns: its type says nothing. */
const ended = z.object({ affected: z.number() });

/** The jobs of all processes, in pg-boss. Only this folder uses pg-boss. */
export class JobQueue {
  readonly #boss: PgBoss;
  readonly #db: Database;
  readonly #supervision: QueueSupervision | undefined;
  readonly #wakes: Batcher<string>;

  /**
   * `supervise`: maintain the queues (expired heartbeats), which dispatchers do and api processes
   * do not.
   */
  constructor(db: Database, log: Logger, options: { supervise: boolean }) {
    this.#db = db;
    this.#wakes = new Batcher({
      ...{ concurrency: 1, size: mostWakes },
      run: async (queues) => {
        await wakeConsumers(db, [...new Set(queues)]);
        await sleep(wakePauseMs);
        return [];
      },
    });
    this.#boss = new PgBoss({
      // Maintenance has texts of several statements, which cannot be prepared.
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

  /** Starts; rejects when the database was not migrated. */
  async start(): Promise<void> {
    await this.#boss.start();
    this.#supervision?.start();
  }

  async stop(): Promise<void> {
    await this.#supervision?.stop();
    await this.#boss.stop({ graceful: false, close: false });
  }

  /** Writes jobs as part of `tx` and wakes the consumers when it commits. */
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

  /** Takes up to `count` jobs, highest priority first; those of `filter` only, if there is one. */
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
   * Ends a job as part of `tx`: deletes it, which costs less than to mark it as completed. Returns
   * false when another consumer has taken it over.
   */
  async end<T extends object>(kind: JobKind<T>, job: Job<T>, tx: Handle): Promise<boolean> {
    return (await this.endAll(kind, [job], tx)) > 0;
  }

  /** Ends jobs as `end` does. Returns how many. */
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

  /**
   * Ends a job and writes a new one with other data, as part of `tx`. Returns false, and writes
   * nothing, when another consumer has taken it over.
   */
  async replace<T extends object>(
    kind: JobKind<T>,
    job: Job<T>,
    { data, ...options }: SendOptions & { data: T },
  ): Promise<boolean> {
    if (!(await this.end(kind, job, options.tx))) return false;
    await this.send(kind, [data], options);
    return true;
  }

  /** Puts a job back: it is handed out again after the queue's back-off. */
  async putBack<T extends object>(kind: JobKind<T>, job: Job<T>, reason: string): Promise<void> {
    await this.#boss.fail(kind.queue, { id: job.id, retryCount: job.retryCount }, { reason });
  }

  /** Writes a heartbeat for jobs in work (`touchJobs`). */
  touch<T extends object>(kind: JobKind<T>, jobs: readonly Job<T>[]): Promise<void> {
    return touchJobs(this.#db, kind.queue, jobs);
  }

  /**
   * Wakes the consumers of a queue, and resolves some milliseconds later. Calls until then share
   * the next NOTIFY. If it fails, the consumers find the jobs by their poll.
   */
  wake({ queue }: { queue: string }): Promise<void> {
    return this.#wakes.run(queue);
  }

  /** Counts the jobs of each queue that has any (`readQueueStates`). */
  states(): Promise<QueueState[]> {
    return readQueueStates(this.#db);
  }

  /**
   * Counts the jobs of all queues that are not done, as of the last maintenance by a dispatcher.
   */
  async countJobs(): Promise<number> {
    const queues = await this.#boss.getQueues();
    return queues.reduce((n, { queuedCount, activeCount }) => n + queuedCount + activeCount, 0);
  }
}
