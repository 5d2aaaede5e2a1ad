import { z } from 'zod';
import type { Handle } from '../db/pool.ts';
import { query } from '../db/query.ts';
import type { JobQueue } from './queue.ts';

/**
 * Pause after a sample, as a multiple of its duration: a sample that took 1 s is repeated after 20
 * s. This limits the load of all processes together.
 */
const pausePerDuration = 20;

/** A kind of sample: its columns in the table `shared_reading`, and how often it is taken. */
interface SampleKind {
  column: 'reading' | 'accounts';
  nextAt: 'next_at' | 'accounts_next_at';
  /** Minimum time between two samples of all processes. */
  minIntervalMs: number;
  /**
   * Time after which another process takes the sample, if the first process has not finished it.
   */
  claimMs: number;
}

/**
 * Takes a sample and stores it for all processes, unless a process has done so recently. One
 * process at a time does this. The longer a sample takes, the rarer it is. Returns whether it took
 * one.
 */
export async function refreshSample(
  db: Handle,
  { column, nextAt, minIntervalMs, claimMs }: SampleKind,
  read: () => Promise<object>,
): Promise<boolean> {
  const startedAtMs = performance.now();
  const isClaimed = await query(db).hasRows(
    `INSERT INTO shared_reading AS r (id, next_at, accounts_next_at)
     VALUES (true, clock_timestamp() + $1 * interval '1 ms', clock_timestamp() + $2 * interval '1 ms')
     ON CONFLICT (id) DO UPDATE SET ${nextAt} = excluded.${nextAt}
           WHERE r.${nextAt} IS NULL OR r.${nextAt} <= clock_timestamp()`,
    nextAt === 'next_at' ? [claimMs, 0] : [0, claimMs],
  );
  if (!isClaimed) return false;
  const reading = await read();
  const restMs = Math.max(minIntervalMs, (performance.now() - startedAtMs) * pausePerDuration);
  const readAt = column === 'reading' ? 'read_at = clock_timestamp(),' : '';
  await db.query(
    `UPDATE shared_reading SET ${column} = $1, ${readAt} ${nextAt} = clock_timestamp() + $2 * interval '1 ms'`,
    [JSON.stringify(reading), restMs],
  );
  return true;
}

const count = z.number();
const sharedSample = z.object({
  queues: z.array(
    z.object({
      queue: z.string(),
      ready: count,
      waiting: count,
      active: count,
      oldestSeconds: count,
    }),
  ),
  pushes: z.array(z.object({ state: z.string(), count, oldestSeconds: count })),
  scheduled: z.object({ count, lateSeconds: count }),
});

/** State of the queues and of open pushes. All processes share the sample. */
export type SharedSample = z.infer<typeof sharedSample>;

/** A sample and its age. */
export interface AgedSample {
  reading: SharedSample;
  ageSeconds: number;
}

const stateSample = {
  column: 'reading',
  nextAt: 'next_at',
  minIntervalMs: 25,
  claimMs: 10_000,
} as const;

/**
 * Returns the newest sample, and undefined before the first one. The larger the queue, the rarer
 * the sample: counting a million jobs takes a second of CPU time, and Prometheus scrapes every
 * process.
 */
export async function readSharedState(
  db: Handle,
  queue: JobQueue,
): Promise<AgedSample | undefined> {
  await refreshSample(db, stateSample, async () => ({
    queues: await queue.states(),
    pushes: await readOpenPushes(db),
    scheduled: await readScheduled(db),
  }));
  const row = await query(db).row<{ reading: unknown; age: number }>(
    `SELECT reading, extract(epoch FROM clock_timestamp() - read_at)::float8 AS age
       FROM shared_reading WHERE reading IS NOT NULL`,
  );
  const parsed = sharedSample.safeParse(row?.reading);
  return parsed.success && row ? { reading: parsed.data, ageSeconds: row.age } : undefined;
}

const readOpenPushes = (db: Handle) =>
  query(db).rows<SharedSample['pushes'][number]>(
    `SELECT state, count(*) AS count,
            greatest(0, extract(epoch FROM now() - min(coalesce(push_time, created_at))))::float8 AS "oldestSeconds"
       FROM notification WHERE state IN ('queued', 'sending', 'paused') GROUP BY state`,
  );

const readScheduled = (db: Handle) =>
  query(db).one<SharedSample['scheduled']>(
    `SELECT count(*) AS count,
            coalesce(greatest(0, extract(epoch FROM now() - min(push_time))), 0)::float8 AS "lateSeconds"
       FROM scheduled_push`,
  );
