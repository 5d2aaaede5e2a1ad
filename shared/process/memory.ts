/**
 * Memory of all processes: V8 flags, heap limits of threads, and memory that idle threads return.
 */
import { Session } from 'node:inspector/promises';
import { flushCompileCache } from 'node:module';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';

/**
 * Node flags of a dispatcher. By default V8 gives every thread of a large machine 134 MB for new
 * objects and lets old garbage grow to gigabytes before it collects. The limits keep a dispatcher
 * under 400 MB. The second one also applies to each worker thread, in place of that of
 * `threadMemory`; for the first one see `tuneDispatcherThreads`.
 */
export const dispatcherFlags = ['--max-semi-space-size=16', '--max-old-space-size=512'];

/**
 * Environment of a dispatcher: glibc otherwise opens an arena for allocations for each thread, and
 * keeps in each what was freed. With 4 threads two arenas save 30 MB. Other C libraries ignore the
 * variable; a value of the operator goes first.
 */
export const dispatcherMemory = { MALLOC_ARENA_MAX: '2' };

/**
 * Node flags of an api. It holds up to 20,000 device channels and sends replies of several
 * megabytes, so its limits are wider. They make V8 collect the garbage of large replies before it
 * takes more memory.
 */
export const apiFlags = ['--max-semi-space-size=8', '--max-old-space-size=1024'];

/**
 * Node flags of an import. Its objects live for one batch: with a small space for new ones, the
 * installations of a large file take a fifth less memory and no more CPU time.
 */
export const importFlags = ['--max-semi-space-size=4'];

/**
 * Heap limits of a worker thread of a dispatcher that was started without `dispatcherFlags`.
 * Without a limit V8 lets garbage grow to gigabytes, while the recipients and requests of the
 * batches use a tenth of this.
 */
export const threadMemory = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 256 };

/**
 * With more threads than this, heaps that double between two full collections would need more than
 * 400 MB.
 */
const doublingThreads = 2;
/**
 * MB of a semi-space (half of the young generation) of a thread, with few threads and with many.
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

/** Interval at which the load of the event loop is read. */
const readingEveryMs = 10_000;
/** Load below which a thread is idle; health checks, metrics and duties stay below it. */
const idleBelow = 0.05;
/** Load of an interval after which the heap is worth another collection. */
const busyAbove = 0.2;

/**
 * Decides when a thread returns memory: in the first idle interval after its start, and after each
 * busy interval that follows. Without work in between, a second collection would find nothing.
 */
export class IdlePeriods {
  #isDue = true;

  /** Takes the load of the last interval, 0 to 1. Tells whether to collect now. */
  take(load: number): boolean {
    if (load >= busyAbove) this.#isDue = true;
    if (!this.#isDue || load >= idleBelow) return false;
    this.#isDue = false;
    return true;
  }
}

/**
 * Returns memory to the operating system while the event loop of this thread is idle. V8 collects
 * when the heap grows; an idle thread keeps the garbage of its start, and young generation at
 * its largest size: 10 to 20 MB of each. A collection takes about 0.1 s.
 */
export function returnMemoryWhenIdle(): void {
  const periods = new IdlePeriods();
  let before = performance.eventLoopUtilization();
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    // Without the inspector the process works as before, with more memory.
    if (periods.take(utilization)) collect().catch(() => undefined);
  }, readingEveryMs).unref();
}

/**
 * Collects all garbage. Compiled code stays, so that the next request is as fast as the last one.
 */
async function collect(): Promise<void> {
  // Node writes it at a clean exit only; a start without it takes 10 MB more in each thread.
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
