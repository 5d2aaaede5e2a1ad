import { PgBoss } from 'pg-boss';
import { z } from 'zod';
import { systemClock } from '../clock.ts';
import type { Database, Handle } from '../db/pool.ts';
import type { BreakerKey } from '../domain/breaker.ts';
import type { Logger } from '../process/logging.ts';
import type { DeliverJob, JobKind } from './jobs.ts';

/** Channel that wakes consumers; the payload is the queue's name. */
export const wakeTopic = 'carillon_queue';

/** A job as a consumer holds it: settling names the attempt, so a late worker cannot settle a newer one. */
export interface Job<T> {
  id: string;
  retryCount: number;
  data: T;
}

export interface SendOptions {
  /** The transaction that the job is part of. */
  tx: Handle;
  /** Higher first; a function gives each job its own, by its place. */
  priority?: number | ((place: number) => number);
  startAfter?: Date;
}

/** Priorities a consumer takes, both ends included. */
export interface PriorityRange {
  minPriority?: number;
  maxPriority?: number;
}

export interface QueueDepth {
  queue: string;
  depth: number;
  oldestSeconds: number;
}

/** Seconds without a sign of life after which a job is handed out again; pg-boss allows no fewer than 10. */
const heartbeatSeconds = 10;

/** Results go back as they are: statements in a row come as a list, which pg-boss knows how to read. */
const adapter = (handle: Handle) => ({
  executeSql: (text: string, values?: unknown[]) => handle.query(text, values),
});

const commandAnswer = z.object({ affected: z.number() });

/** Our jobs in pg-boss. The only home of that library. */
export class JobQueue {
  readonly #boss: PgBoss;
  readonly #db: Database;

  /** `supervise` keeps the queue in order (expired heartbeats, deletion): dispatchers do, api processes need not. */
  constructor(db: Database, log: Logger, options: { supervise: boolean }) {
    this.#db = db;
    this.#boss = new PgBoss({
      db: adapter(db),
      schema: 'pgboss',
      migrate: false,
      schedule: false,
      supervise: options.supervise,
      superviseIntervalSeconds: 2,
      monitorIntervalSeconds: 2,
      reindex: false,
    });
    this.#boss.on('error', (error) => log.warn({ err: error }, 'queue error'));
  }

  /** Refuses to start on a database that was not migrated. */
  async start(): Promise<void> {
    await this.#boss.start();
  }

  async stop(): Promise<void> {
    await this.#boss.stop({ graceful: false, close: false });
  }

  /** Writes jobs as part of `tx` and wakes the consumers when it commits. */
  async send<T extends object>(kind: JobKind<T>, jobs: T[], options: SendOptions): Promise<void> {
    if (jobs.length === 0) return;
    const priorityOf = typeof options.priority === 'function' ? options.priority : () => fixedPriority;
    const fixedPriority = typeof options.priority === 'number' ? options.priority : 0;
    await this.#boss.insert(
      kind.queue,
      jobs.map((data, place) => ({
        data,
        priority: priorityOf(place),
        ...(options.startAfter ? { startAfter: options.startAfter, ...keepUntil(options.startAfter) } : {}),
      })),
      { db: adapter(options.tx), returnId: false },
    );
    await options.tx.query('SELECT pg_notify($1, $2)', [wakeTopic, kind.queue]);
  }

  /**
   * Brings batches of a push whose slots became void by a changed pace to the dispatchers now, to reserve
   * anew. To be called after `changePace`, in its transaction or later.
   */
  async rescheduleVoidSlots(tx: Handle, appId: string, pushId: number): Promise<void> {
    await tx.query(
      `WITH void AS (
         SELECT b.id, 'deliver-' || b.connector AS queue
           FROM push_batch b JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
          WHERE b.app_id = $1 AND b.push_id = $2 AND NOT b.is_settled
            AND b.slot_epoch <> n.pace_epoch AND b.slot_at >= n.pace_epoch_at),
       hurried AS (
         UPDATE pgboss.job j SET start_after = now()
           FROM void WHERE j.name = void.queue AND j.state IN ('created', 'retry') AND j.start_after > now()
                       AND (j.data ->> 'batchId')::bigint = void.id AND j.data ->> 'appId' = $1
         RETURNING j.name)
       SELECT pg_notify($3, name) FROM (SELECT DISTINCT name FROM hurried) AS queues`,
      [appId, pushId, wakeTopic],
    );
  }

  /**
   * Brings the batches of one profile that wait for its gateway to the dispatchers now; those that wait for
   * their slot, or for what the gateway asked for, stay.
   */
  async wakeWaiting(kind: JobKind<DeliverJob>, { appId, profile }: BreakerKey): Promise<void> {
    await this.#db.query(
      `WITH called AS (
         UPDATE pgboss.job j SET start_after = now()
           FROM push_batch b
          WHERE j.name = $1 AND j.state = 'created' AND j.start_after > now() AND j.data ->> 'appId' = $2
            AND b.app_id = $2 AND b.id = (j.data ->> 'batchId')::bigint AND b.profile = $3 AND NOT b.is_settled
            AND coalesce(b.not_before <= now(), true) AND coalesce(b.slot_at <= now(), true)
         RETURNING 1)
       SELECT pg_notify($4, $1) WHERE EXISTS (SELECT FROM called)`,
      [kind.queue, appId, profile, wakeTopic],
    );
  }

  /** Has the consumers of a queue look into it now. */
  async wake(kind: { queue: string }): Promise<void> {
    await this.#db.query('SELECT pg_notify($1, $2)', [wakeTopic, kind.queue]);
  }

  /** Takes up to `count` jobs, the highest priority first; `range` leaves others to another consumer. */
  async fetch<T extends object>(
    kind: JobKind<T>,
    count: number,
    range: PriorityRange = {},
  ): Promise<Job<T>[]> {
    const jobs = await this.#boss.fetch<T>(kind.queue, { batchSize: count, ...range });
    return jobs.map((job) => ({ id: job.id, retryCount: job.retryCount, data: kind.data.parse(job.data) }));
  }

  /** Marks a job done as part of `tx`; false when the attempt is no longer ours. */
  async complete<T extends object>(kind: JobKind<T>, job: Job<T>, tx: Handle): Promise<boolean> {
    const attempt = { id: job.id, retryCount: job.retryCount };
    const answer = await this.#boss.complete(kind.queue, attempt, null, { db: adapter(tx) });
    // The library's types leave out what it answers with.
    return commandAnswer.parse(answer).affected > 0;
  }

  /** Puts a job back: it is handed out again after the queue's back-off. */
  async putBack<T extends object>(kind: JobKind<T>, job: Job<T>, reason: string): Promise<void> {
    await this.#boss.fail(kind.queue, { id: job.id, retryCount: job.retryCount }, { reason });
  }

  /** A sign of life for jobs in work. */
  async touch<T extends object>(kind: JobKind<T>, jobs: Job<T>[]): Promise<void> {
    if (jobs.length === 0) return;
    await this.#boss.touch(
      kind.queue,
      jobs.map(({ id, retryCount }) => ({ id, retryCount })),
    );
  }

  /** Returns the highest priority of the jobs that could be taken now; 0 when there are none. */
  async highestPriority<T extends object>(kind: JobKind<T>, tx: Handle): Promise<number> {
    const { rows } = await tx.query<{ highest: number | null }>(
      `SELECT max(priority) AS highest FROM pgboss.job
        WHERE name = $1 AND state IN ('created', 'retry') AND start_after <= now()`,
      [kind.queue],
    );
    return rows[0]?.highest ?? 0;
  }

  /** Whether at least `count` jobs could be taken now; counts no further. */
  async hasWaiting(kind: { queue: string }, count: number, db: Handle = this.#db): Promise<boolean> {
    const { rows } = await db.query<{ waiting: number }>(
      `SELECT count(*) AS waiting FROM (
         SELECT FROM pgboss.job
          WHERE name = $1 AND state IN ('created', 'retry') AND start_after <= now() LIMIT $2) AS ready`,
      [kind.queue, count],
    );
    return (rows[0]?.waiting ?? 0) >= count;
  }

  /** Jobs that could be taken now, by queue, and how long the oldest has waited. */
  async depths(): Promise<QueueDepth[]> {
    const { rows } = await this.#db.query<{ queue: string; depth: number; oldest: number }>(
      `SELECT name AS queue, count(*) AS depth,
              coalesce(extract(epoch FROM now() - min(greatest(created_on, start_after))), 0)::float8 AS oldest
         FROM pgboss.job
        WHERE state IN ('created', 'retry') AND start_after <= now()
        GROUP BY name`,
    );
    return rows.map((row) => ({ queue: row.queue, depth: row.depth, oldestSeconds: row.oldest }));
  }
}

/** pg-boss deletes waiting jobs after two weeks by default: one that is to start later must outlive that. */
function keepUntil(startAfter: Date): { retentionSeconds: number } {
  const leadSeconds = Math.max(0, Math.ceil((startAfter.getTime() - systemClock.now()) / 1000));
  return { retentionSeconds: leadSeconds + queueSettings.retentionSeconds };
}

/** Settings of every queue. Retries are practically unlimited: what bounds them is the push's expiry. */
export const queueSettings = {
  heartbeatSeconds,
  expireInSeconds: 3600,
  retryLimit: 100_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 30,
  retentionSeconds: 60 * 60 * 24 * 30,
  deleteAfterSeconds: 300,
} as const;
