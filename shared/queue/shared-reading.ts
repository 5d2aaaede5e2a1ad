import { z } from 'zod';
import type { Handle } from '../db/pool.ts';
import type { JobQueue } from './queue.ts';

/** Share of the time that reading may take, over all processes: a reading that took 1 s is repeated after 20 s. */
const restPerReading = 20;
const leastRestMs = 25;
/** Time after which another process reads, if this one did not come back. */
const claimMs = 10_000;

const count = z.number();
const sharedReading = z.object({
  queues: z.array(
    z.object({ queue: z.string(), ready: count, waiting: count, active: count, oldestSeconds: count }),
  ),
  pushes: z.array(z.object({ state: z.string(), count, oldestSeconds: count })),
  scheduled: z.object({ count, lateSeconds: count }),
});

/** State of the queues and of open pushes, which all processes share. */
export type SharedReading = z.infer<typeof sharedReading>;

/** A reading and its age. */
export interface AgedReading {
  reading: SharedReading;
  ageSeconds: number;
}

/**
 * Returns the newest reading; undefined before the first one. One process at a time reads, and the larger the queue, the
 * less often: a count of a million jobs takes a second of a core, and every process is scraped.
 */
export async function readSharedState(db: Handle, queue: JobQueue): Promise<AgedReading | undefined> {
  const claimed = await db.query(
    `INSERT INTO shared_reading (id, next_at) VALUES (true, clock_timestamp() + $1 * interval '1 ms')
     ON CONFLICT (id) DO UPDATE SET next_at = excluded.next_at WHERE shared_reading.next_at <= clock_timestamp()
     RETURNING id`,
    [claimMs],
  );
  if (claimed.rows.length > 0) await store(db, queue);
  const { rows } = await db.query<{ reading: unknown; age: number }>(
    `SELECT reading, extract(epoch FROM clock_timestamp() - read_at)::float8 AS age
       FROM shared_reading WHERE reading IS NOT NULL`,
  );
  const parsed = sharedReading.safeParse(rows[0]?.reading);
  return parsed.success && rows[0] ? { reading: parsed.data, ageSeconds: rows[0].age } : undefined;
}

async function store(db: Handle, queue: JobQueue): Promise<void> {
  const startedAtMs = performance.now();
  const reading: SharedReading = {
    queues: await queue.states(),
    pushes: await readOpenPushes(db),
    scheduled: await readScheduled(db),
  };
  const restMs = Math.max(leastRestMs, (performance.now() - startedAtMs) * restPerReading);
  await db.query(
    `UPDATE shared_reading SET reading = $1, read_at = clock_timestamp(),
            next_at = clock_timestamp() + $2 * interval '1 ms'`,
    [JSON.stringify(reading), restMs],
  );
}

async function readOpenPushes(db: Handle): Promise<SharedReading['pushes']> {
  const { rows } = await db.query<SharedReading['pushes'][number]>(
    `SELECT state, count(*) AS count,
            greatest(0, extract(epoch FROM now() - min(coalesce(push_time, created_at))))::float8 AS "oldestSeconds"
       FROM notification WHERE state IN ('queued', 'sending', 'paused') GROUP BY state`,
  );
  return rows;
}

async function readScheduled(db: Handle): Promise<SharedReading['scheduled']> {
  const { rows } = await db.query<SharedReading['scheduled']>(
    `SELECT count(*) AS count,
            coalesce(greatest(0, extract(epoch FROM now() - min(push_time))), 0)::float8 AS "lateSeconds"
       FROM scheduled_push`,
  );
  return rows[0] ?? { count: 0, lateSeconds: 0 };
}
