import { PgBoss } from 'pg-boss';
import { systemClock } from '../clock.ts';
import type { Database, Handle } from '../db/pool.ts';
import { type PreparedStatement, PreparedStatements, prepare } from '../db/prepared.ts';
import { isSpread } from '../db/schema/distribution.ts';
import type { BreakerKey } from '../domain/breaker.ts';
import type { Logger } from '../process/logging.ts';
import type { DeliverJob, JobKind } from './jobs.ts';
import { queueSettings } from './settings.ts';
import { QueueSupervision } from './supervision.ts';
import { wakeQueues, wakeTopic, wakingText } from './wake.ts';

/** A job in work. Completing it names the attempt, so that a late worker cannot complete a newer one. */
export interface Job<T> {
  id: string;
  retryCount: number;
  data: T;
}

export interface SendOptions {
  /** The transaction that the job is part of. */
  tx: Handle;
  /** Higher first; a function returns the priority of each job by its place. */
  priority?: number | ((place: number) => number);
  startAfter?: Date;
  /** Name that the consumers to wake listen for; by default that of the queue. */
  wakeName?: string;
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

/** Jobs of a queue that are not done. */
export interface QueueState {
  queue: string;
  ready: number;
  waiting: number;
  active: number;
  oldestSeconds: number;
}

/** Runs pg-boss's statements on a handle of ours. Several statements return a list, which pg-boss can read. */
const adapter = (handle: Handle) => ({
  executeSql: (text: string, values?: unknown[]) => handle.query(text, values),
});

/** The queue is part of the text: for a parameter PostgreSQL would plan each time, which takes longer than the reading. */
export const highestText = ({ queue }: { queue: string }): string =>
  `SELECT max(priority) AS highest FROM pgboss.job
    WHERE name = '${queue}' AND state IN ('created', 'retry') AND start_after <= now()`;

/**
 * Leaves out jobs that another transaction has locked: it ends them as a rule, and many of them in an order of its own, so
 * that a heartbeat that waited for one could deadlock with it.
 */
const heartbeat = prepare(
  `WITH free AS MATERIALIZED (
     SELECT j.id FROM unnest($2::uuid[], $3::int[]) AS held (id, attempt)
       JOIN pgboss.job j ON j.id = held.id AND j.retry_count = held.attempt
      WHERE j.name = $1 AND j.state = 'active' FOR NO KEY UPDATE OF j SKIP LOCKED)
   UPDATE pgboss.job j SET heartbeat_on = pgboss.job_now() FROM free WHERE j.name = $1 AND j.id = free.id`,
);

/** Returns the statement that completes a job, as pg-boss does: `$first` is its id, the next parameter its attempt. */
export const completeText = ({ queue }: { queue: string }, first = 1): string =>
  `UPDATE pgboss.job SET completed_on = pgboss.job_now(), state = 'completed'
    WHERE name = '${queue}' AND id = $${first} AND retry_count = $${first + 1} AND state = 'active'`;

/** Jobs in pg-boss. Only this folder uses that library. */
export class JobQueue {
  readonly #boss: PgBoss;
  readonly #db: Database;
  readonly #statements = new PreparedStatements();
  readonly #supervision: QueueSupervision | undefined;
  #isSpread = false;

  /** `supervise`: maintain the queues (expired heartbeats, deletion), which dispatchers do and api processes do not. */
  constructor(db: Database, log: Logger, options: { supervise: boolean }) {
    this.#db = db;
    this.#boss = new PgBoss({
      db: adapter(db),
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
    this.#isSpread = await isSpread(this.#db);
    await this.#boss.start();
    this.#supervision?.start();
  }

  async stop(): Promise<void> {
    await this.#supervision?.stop();
    await this.#boss.stop({ graceful: false, close: false });
  }

  /**
   * Whether the rows of apps are on other servers than the jobs (operate/distributed.md): then no statement has both, and what
   * is one statement elsewhere is a transaction of several.
   */
  get isSpread(): boolean {
    return this.#isSpread;
  }

  /** Runs what is one statement with its jobs, and so needs no transaction, unless the database is spread. */
  withJobs<T>(db: Database, work: (handle: Handle) => Promise<T>): Promise<T> {
    return this.#isSpread ? db.transaction(work) : work(db);
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
        ...(kind.groupOf ? { group: { id: kind.groupOf(data) } } : {}),
        ...(options.startAfter ? { startAfter: options.startAfter, ...keepUntil(options.startAfter) } : {}),
      })),
      { db: this.#preparing(options.tx, wakingText(options.wakeName ?? kind.queue)), returnId: false },
    );
  }

  /** As `adapter`, with prepared statements: pg-boss writes and takes jobs with a few texts, which `textOf` changes. */
  #preparing(tx: Handle, textOf = (text: string) => text) {
    return {
      executeSql: (text: string, values?: unknown[]) => tx.query(this.#statements.of(textOf(text)), values),
    };
  }

  /**
   * Returns a statement that runs `parts` and writes a job for each row of the part `written`, in one round trip; the
   * consumers wake when it commits. `parts` are those of WITH, `job` has SQL expressions over the columns of `written` for
   * the payload of a job, its priority, and its group, as `groupOf` of its kind returns it. The text is pg-boss's own, with
   * the jobs as an expression in place of its parameter.
   */
  async statementWithJobs(
    kind: { queue: string },
    parts: string,
    { data, group = 'NULL', priority = '0' }: { data: string; group?: string; priority?: string },
  ): Promise<PreparedStatement | string> {
    let around: string[] = [];
    const reader = {
      executeSql: (sql: string) => {
        around = sql.split('$1::text');
        return Promise.resolve({ rows: [] });
      },
    };
    await this.#boss.insert(kind.queue, [], { db: reader, returnId: false });
    if (around.length !== 2)
      throw new Error('the queue library writes its jobs in another way than expected');
    return this.#statements.of(
      `WITH ${parts},
        payloads AS MATERIALIZED (SELECT coalesce(json_agg(json_build_object('data', ${data}, 'groupId', ${group}, 'priority', ${priority})), '[]')::text AS all_jobs FROM written),
        jobs AS (${around.join('(SELECT all_jobs FROM payloads)')}),
        woken AS MATERIALIZED (SELECT pg_notify('${wakeTopic}', '${kind.queue}'))
       SELECT written.* FROM written, woken`,
    );
  }

  /**
   * Makes the batches due now whose slots a changed rate of the push has made void, so that they reserve new ones. The
   * caller changes the rate first, in the same transaction or earlier.
   */
  async rescheduleVoidSlots(tx: Handle, appId: string, pushId: number): Promise<void> {
    const { rows: woken } = await tx.query<{ name: string }>(
      `WITH void AS (
         SELECT b.id, 'deliver-' || b.connector AS queue
           FROM push_batch b JOIN notification n ON n.app_id = b.app_id AND n.id = b.push_id
          WHERE b.app_id = $1 AND b.push_id = $2 AND NOT b.is_settled
            AND b.slot_epoch <> n.pace_epoch AND b.slot_at >= n.pace_epoch_at),
       due AS (
         UPDATE pgboss.job j SET start_after = now()
           FROM void WHERE j.name = void.queue AND j.state IN ('created', 'retry') AND j.start_after > now()
                       AND (j.data ->> 'batchId')::bigint = void.id AND j.data ->> 'appId' = $1
         RETURNING j.name)
       SELECT DISTINCT name FROM due`,
      [appId, pushId],
    );
    await wakeQueues(
      tx,
      woken.map(({ name }) => name),
    );
  }

  /** Makes the batches due now that wait for the gateway of one profile; not those with a slot or a retry time ahead. */
  async wakeWaiting(kind: JobKind<DeliverJob>, { appId, profile }: BreakerKey): Promise<void> {
    const { rowCount } = await this.#db.query(
      `UPDATE pgboss.job j SET start_after = now()
         FROM push_batch b
        WHERE j.name = $1 AND j.state = 'created' AND j.start_after > now() AND j.data ->> 'appId' = $2
          AND b.app_id = $2 AND b.id = (j.data ->> 'batchId')::bigint AND b.profile = $3 AND NOT b.is_settled
          AND (b.not_before IS NULL OR b.not_before <= now()) AND (b.slot_at IS NULL OR b.slot_at <= now())`,
      [kind.queue, appId, profile],
    );
    if ((rowCount ?? 0) > 0) await this.wake(kind);
  }

  /** Wakes the consumers of a queue. */
  async wake(kind: { queue: string }): Promise<void> {
    await wakeQueues(this.#db, [kind.queue]);
  }

  /** Takes up to `count` jobs, highest priority first; those of `filter` only, if there is one. */
  async fetch<T extends object>(
    kind: JobKind<T>,
    count: number,
    filter: FetchFilter = {},
  ): Promise<Job<T>[]> {
    const db = this.#preparing(this.#db);
    const jobs = await this.#boss.fetch<T>(kind.queue, { batchSize: count, ...filter, db });
    return jobs.map((job) => ({ id: job.id, retryCount: job.retryCount, data: kind.data.parse(job.data) }));
  }

  /** Completes a job as part of `tx`. Returns false when another consumer has taken it over. */
  async complete<T extends object>(kind: JobKind<T>, job: Job<T>, tx: Handle): Promise<boolean> {
    const statement = this.#statements.of(completeText(kind));
    const { rowCount } = await tx.query(statement, [job.id, job.retryCount]);
    return (rowCount ?? 0) > 0;
  }

  /** Puts a job back: it is handed out again after the queue's back-off. */
  async putBack<T extends object>(kind: JobKind<T>, job: Job<T>, reason: string): Promise<void> {
    await this.#boss.fail(kind.queue, { id: job.id, retryCount: job.retryCount }, { reason });
  }

  /** Writes a heartbeat for jobs in work; waits for no lock, so that one which is being ended gets none. */
  async touch<T extends object>(kind: JobKind<T>, jobs: Job<T>[]): Promise<void> {
    if (jobs.length === 0) return;
    const ids = jobs.map(({ id }) => id);
    await this.#db.query(heartbeat, [kind.queue, ids, jobs.map(({ retryCount }) => retryCount)]);
  }

  /** Returns the highest priority of the jobs that could be taken now; 0 without any. */
  async highestPriority<T extends object>(kind: JobKind<T>, tx: Handle): Promise<number> {
    const { rows } = await tx.query<{ highest: number | null }>(this.#statements.of(highestText(kind)));
    return rows[0]?.highest ?? 0;
  }

  /** Returns the number of jobs that could be taken now, at most `most`. */
  async countWaiting(kind: { queue: string }, most: number, db: Handle): Promise<number> {
    const { rows } = await db.query<{ waiting: number }>(
      `SELECT count(*) AS waiting FROM (
         SELECT FROM pgboss.job
          WHERE name = $1 AND state IN ('created', 'retry') AND start_after <= now() LIMIT $2) AS ready`,
      [kind.queue, most],
    );
    return rows[0]?.waiting ?? 0;
  }

  /** Returns the jobs of each queue that has any, and the age of the oldest one that could be taken now. */
  async states(): Promise<QueueState[]> {
    const { rows } = await this.#db.query<QueueState>(
      `SELECT name AS queue,
              count(*) FILTER (WHERE state <> 'active' AND start_after <= now()) AS ready,
              count(*) FILTER (WHERE state <> 'active' AND start_after > now()) AS waiting,
              count(*) FILTER (WHERE state = 'active') AS active,
              coalesce(extract(epoch FROM now() - min(greatest(created_on, start_after))
                FILTER (WHERE state <> 'active' AND start_after <= now())), 0)::float8 AS "oldestSeconds"
         FROM pgboss.job WHERE state IN ('created', 'retry', 'active') GROUP BY name ORDER BY name`,
    );
    return rows.map((row) => ({ ...row, oldestSeconds: Math.max(0, row.oldestSeconds) }));
  }
}

/** Keeps a job that starts later: by default pg-boss deletes a waiting one after two weeks. */
function keepUntil(startAfter: Date): { retentionSeconds: number } {
  const leadSeconds = Math.max(0, Math.ceil((startAfter.getTime() - systemClock.now()) / 1000));
  return { retentionSeconds: leadSeconds + queueSettings.retentionSeconds };
}
