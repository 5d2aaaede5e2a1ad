/** Use of memory and database connections by the threads: each posts it every second, and the main thread adds it up. */
import { getHeapStatistics } from 'node:v8';
import { z } from 'zod';
import type { Database } from '../../../shared/db/pool.ts';
import type { Metrics } from '../../../shared/metrics.ts';
import { addDurations, noDurations } from '../../../shared/process/durations.ts';

const usage = z.object({
  heapUsed: z.number(),
  heapLimit: z.number(),
  /** Waits for a connection since the last message. */
  waits: z.object({ counts: z.array(z.number()), sumSeconds: z.number() }),
});

/** Use by one thread. */
export type ThreadUsage = z.infer<typeof usage>;

/** Message of a thread. */
const usageMessage = z.object({ thread: z.number(), usage });

/** Returns the use by the calling thread. */
export function readUsage(db: Database): ThreadUsage {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  return { heapUsed: used_heap_size, heapLimit: heap_size_limit, waits: db.takeWaits() };
}

const pool = 'dispatcher thread';

/** The use by all threads, in the main thread. */
export class ThreadUsages {
  readonly #heaps = new Map<number, { used: number; limit: number }>();
  #waits = noDurations();

  /** Takes a message of a thread; ignores other messages. */
  take(message: unknown): void {
    const { success, data } = usageMessage.safeParse(message);
    if (!success) return;
    const { heapUsed, heapLimit, waits } = data.usage;
    this.#heaps.set(data.thread, { used: heapUsed, limit: heapLimit });
    addDurations(this.#waits, waits);
  }

  /** Reports the use by the threads that run, by their ids. */
  reportTo({ workerHeapBytes, poolWaitSeconds }: Metrics, running: readonly number[]): void {
    for (const thread of this.#heaps.keys()) if (!running.includes(thread)) this.#heaps.delete(thread);
    const heaps = [...this.#heaps.values()];
    const used = heaps.map((heap) => heap.used);
    workerHeapBytes.set(
      { kind: 'used' },
      used.reduce((sum, bytes) => sum + bytes, 0),
    );
    workerHeapBytes.set({ kind: 'largest' }, Math.max(0, ...used));
    workerHeapBytes.set({ kind: 'limit' }, Math.max(0, ...heaps.map(({ limit }) => limit)));
    poolWaitSeconds.add(pool, this.#waits);
    this.#waits = noDurations();
  }
}
