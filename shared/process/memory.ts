/**
 * Memory settings of all processes: V8 flags, heap limits of threads, and returning the memory of
 * idle threads.
 */
import { Session } from 'node:inspector/promises';
import { flushCompileCache } from 'node:module';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';

/**
 * Node.js flags of a dispatcher. They keep it below 400 MB. By default, V8 gives each thread of a
 * large machine a young generation of 134 MB, and lets garbage grow to gigabytes. The second flag
 * also applies to each worker thread and replaces the limit in `threadMemory`. For the first flag
 * see `tuneDispatcherThreads`.
 */
export const dispatcherFlags = ['--max-semi-space-size=16', '--max-old-space-size=512'];

/**
 * Environment of a dispatcher. Without it, glibc opens an allocation arena per thread and keeps
 * freed memory in each. With 4 threads, a limit of two arenas saves 30 MB. Other C libraries ignore
 * the variable. A value set by the operator takes precedence.
 */
export const dispatcherMemory = { MALLOC_ARENA_MAX: '2' };

/**
 * Node.js flags of an api process. Its heap may become larger, because it has up to 20,000 device
 * channels and sends responses of several megabytes. The flags make V8 collect the garbage of large
 * responses before it takes more memory.
 */
export const apiFlags = ['--max-semi-space-size=16', '--max-old-space-size=1024'];

/**
 * Node.js flags of an import. Its objects live only for one batch. With a small young generation,
 * importing a large file needs a fifth less memory and no more CPU time.
 */
export const importFlags = ['--max-semi-space-size=4'];

/**
 * Heap limits of a worker thread in a dispatcher that was started without `dispatcherFlags`.
 * Without a limit, V8 lets garbage grow to gigabytes. The recipients and requests of the batches
 * need a tenth of this.
 */
export const threadMemory = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 256 };

/**
 * Maximum number of threads whose heaps may double between two full collections. More threads would
 * need more than 400 MB.
 */
const doublingThreads = 2;
/**
 * Size of a thread's semi-space (half of the young generation) in MB, with few and with many
 * threads.
 */
const semiSpaceMb = { few: 16, many: 2 };

/**
 * Sets the V8 flags of the worker threads that this process starts later. With few threads, heaps
 * may double between two full collections, and most objects of a batch are garbage before the young
 * generation is full (docs/develop/speed.md).
 */
export function tuneDispatcherThreads(threads: number): void {
  const areFew = threads <= doublingThreads;
  if (areFew) setFlagsFromString('--heap-growing-percent=100');
  setFlagsFromString(`--max-semi-space-size=${areFew ? semiSpaceMb.few : semiSpaceMb.many}`);
}

/** Interval at which the load of the event loop is measured. */
const sampleEveryMs = 10_000;
/**
 * Load below which a thread counts as idle. Health checks, metrics and background jobs stay below
 * it.
 */
const idleBelow = 0.05;
/**
 * Load above which an interval counts as busy. After a busy interval, another collection is useful.
 */
const busyAbove = 0.2;

/**
 * Decides when a thread returns memory: in the first idle interval after its start, and in the
 * first idle interval after each busy interval. Without work in between, a second collection would
 * find nothing.
 */
export class IdlePeriods {
  #isDue = true;

  /**
   * Takes the load of the last interval, from 0 to 1. Returns true if the thread should collect
   * garbage now.
   */
  take(load: number): boolean {
    if (load >= busyAbove) this.#isDue = true;
    if (!this.#isDue || load >= idleBelow) return false;
    this.#isDue = false;
    return true;
  }
}

/**
 * Returns memory to the operating system when the event loop of this thread is idle. V8 collects
 * garbage only when the heap grows. So an idle thread keeps the garbage of its start and a young
 * generation of maximum size, 10 to 20 MB each. A collection takes about 0.1 s.
 */
export function returnMemoryWhenIdle(): void {
  const periods = new IdlePeriods();
  let before = performance.eventLoopUtilization();
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    // If the inspector is not available, the thread only keeps more memory.
    if (periods.take(utilization)) collect().catch(() => undefined);
  }, sampleEveryMs).unref();
}

/** Collects all garbage. Keeps compiled code, so that the next request is not slower. */
async function collect(): Promise<void> {
  // Node.js writes the compile cache only at a clean exit. Without the cache, each thread needs 10
  // MB more at its start.
  flushCompileCache();
  const session = new Session();
  session.connect();
  setFlagsFromString('--no-flush-bytecode');
  try {
    await session.post('HeapProfiler.collectGarbage');
  } finally {
    setFlagsFromString('--flush-bytecode');
    session.disconnect();
  }
}
