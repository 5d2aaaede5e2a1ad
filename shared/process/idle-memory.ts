import { Session } from 'node:inspector/promises';
import { flushCompileCache } from 'node:module';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';

/** Interval at which the load of the event loop is read. */
const readingEveryMs = 10_000;
/** Load below which a thread is idle; health checks, metrics and duties stay below it. */
const idleBelow = 0.05;
/** Load of an interval after which the heap is worth another collection. */
const busyAbove = 0.2;

/**
 * Decides when a thread returns memory: in the first idle interval after its start, and after each busy interval that
 * follows. Without work in between, a second collection would find nothing.
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
 * Returns memory to the operating system while the event loop of this thread is idle. V8 collects when the heap grows; an
 * idle thread keeps the garbage of its start, and space for new objects at its largest size: 10 to 20 MB of each. A
 * collection takes about 0.1 s.
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

/** Collects all garbage. Compiled code stays, so that the next request is as fast as the last one. */
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
