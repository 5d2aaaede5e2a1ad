import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { sleep } from '../../shared/clock.ts';
import type { RecentProfile } from '../../shared/db/tables/recipients.ts';
import { RecipientStates } from '../../shared/domain/outcome.ts';
import {
  type Metrics,
  type MetricValues,
  mergedMetrics,
  textOfMetrics,
} from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { threadMemory } from '../../shared/process/memory.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { interrupt, interruptBytes, interruptCount } from './shared-memory.ts';
import type { DeliverResult, DeliverTask, ThreadData, ThreadReport, ThreadResult } from './task.ts';

/**
 * The latest report of each thread, and the counters of threads that have ended. The gauges of a
 * thread end with it.
 */
export class ThreadReports {
  readonly #latest = new Map<number, ThreadReport>();
  #ended: MetricValues = [];

  set(report: ThreadReport): void {
    this.#latest.set(report.thread, report);
  }

  /** Keeps only the counters of threads that no longer run. */
  async keepEnded(running: ReadonlySet<number>): Promise<void> {
    for (const [thread, { values }] of this.#latest) {
      if (running.has(thread)) continue;
      this.#latest.delete(thread);
      const counts = values.filter(({ type }) => String(type) !== 'gauge');
      this.#ended = await mergedMetrics([this.#ended, counts]);
    }
  }

  /** Metrics of all threads, one entry per thread. */
  get values(): MetricValues[] {
    return [this.#ended, ...[...this.#latest.values()].map(({ values }) => values)];
  }

  /** Open HTTP/2 connections of all threads. */
  get connections(): number {
    return [...this.#latest.values()]
      .flatMap(
        ({ values }) =>
          values.find(({ name }) => name === 'carillon_http2_connections')?.values ?? [],
      )
      .reduce((sum, { value }) => sum + value, 0);
  }

  reportHeaps({ workerHeapBytes }: Metrics): void {
    const heaps = [...this.#latest.values()].map(({ heap }) => heap);
    const used = heaps.map((heap) => heap.used);
    workerHeapBytes.set(
      { kind: 'used' },
      used.reduce((sum, bytes) => sum + bytes, 0),
    );
    workerHeapBytes.set({ kind: 'largest' }, Math.max(0, ...used));
    workerHeapBytes.set({ kind: 'limit' }, Math.max(0, ...heaps.map(({ limit }) => limit)));
  }
}

/**
 * Maximum concurrent tasks in a bulk thread. While some tasks wait for a gateway, others load and
 * render. It is higher than the number of batches that the consumers hold for a thread, so piscina
 * never queues a batch.
 */
const tasksPerBulkThread = 128;
/**
 * Maximum concurrent tasks in the express thread, which also sends all single-device pushes
 * (`singlesAtOnce`).
 */
const tasksPerExpressThread = 512;

/**
 * Thread pool of a batch. The express thread sends pushes to up to 1,000 devices and the first
 * batch of a larger push. In the bulk threads these batches would wait behind the batches of large
 * pushes.
 */
export type ThreadPool = 'bulk' | 'express';

interface PoolOptions {
  /** Number of bulk threads (DISPATCHER_THREADS). */
  threads: number;
  data: Omit<ThreadData, 'stopFlag' | 'interrupts'>;
  log: Logger;
}

/**
 * nice(2) increment of the bulk threads. Linux applies it per thread. If CPU time is scarce,
 * planning, recording and the express thread run first.
 */
const bulkNiceness = 5;

/** Maximum time for a thread to answer a scrape. If it is over, the thread's last report counts. */
const reportWithinMs = 1000;

/** Exports of `worker.ts` that piscina calls in each thread. */
type ThreadFunction = 'warmUp' | 'report';

interface ThreadOptions {
  count: number;
  /** Maximum concurrent tasks in one thread. */
  tasks: number;
  niceIncrement: number;
  workerData: ThreadData;
  log: Logger;
}

/** Threads of one kind, with one queue of tasks. */
class Threads {
  readonly #pool: Piscina;

  constructor({ count, tasks, niceIncrement, workerData, log }: ThreadOptions) {
    this.#pool = new Piscina({
      filename: moduleUrl('./worker.ts', import.meta.url).href,
      minThreads: count,
      maxThreads: count,
      concurrentTasksPerWorker: tasks,
      loadBalancer: balancerOf(tasks),
      // By default, piscina blocks the event loop of an idle thread in Atomics.wait. Until the next
      // batch the thread would answer no PING of a gateway, receive no GOAWAY and detect no dead
      // connection.
      atomics: 'disabled',
      niceIncrement,
      resourceLimits: threadMemory,
      workerData,
    });
    // piscina replaces the thread. If the thread had tasks, they reject instead. Without a listener,
    // the error would end the process.
    this.#pool.on('error', (error) => log.error({ err: error }, 'a sending thread failed'));
  }

  get workers(): Worker[] {
    return this.#pool.threads;
  }

  run(task: DeliverTask): Promise<ThreadResult> {
    return this.#pool.run(task);
  }

  /**
   * Calls a function once in each thread. The result is undefined for a thread that failed. Another
   * thread answers for a thread that is still starting.
   */
  runInEach<R>(name: ThreadFunction, task: object): Promise<R | undefined>[] {
    return this.workers.map(({ threadId: thread }) =>
      this.#pool
        .run({ ...task, [Piscina.queueOptionsSymbol]: { thread } }, { name })
        .catch(() => undefined),
    );
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

type Balancer = NonNullable<NonNullable<ConstructorParameters<typeof Piscina>[0]>['loadBalancer']>;

/**
 * Returns a load balancer for piscina. It chooses the thread that the task names, otherwise the
 * thread with the fewest tasks. If the named thread has ended, the task runs in another thread,
 * because it would block the queue.
 */
function balancerOf(tasks: number): Balancer {
  return (task, workers) => {
    const options: unknown = Reflect.get(task, Piscina.queueOptionsSymbol);
    if (typeof options === 'object' && options !== null && 'thread' in options) {
      const named = workers.find(({ id }) => id === options.thread);
      if (named) return named;
    }
    let free: (typeof workers)[number] | null = null;
    for (const worker of workers)
      if (worker.currentUsage < (free?.currentUsage ?? tasks)) free = worker;
    return free;
  };
}

/** The worker threads that send. No other file uses piscina. */
export class SenderPool {
  readonly #bulk: Threads;
  readonly #express: Threads;
  readonly #stopFlag = new Int32Array(new SharedArrayBuffer(4));
  readonly #interrupts = new Int32Array(new SharedArrayBuffer(interruptBytes));
  readonly #threads: number;
  readonly #reports = new ThreadReports();
  readonly #busyMs = new Map<number, number>();
  #pendingRead: Promise<void> | undefined;
  #active = 0;

  constructor({ threads, data, log }: PoolOptions) {
    this.#threads = threads;
    const workerData: ThreadData = {
      ...data,
      stopFlag: this.#stopFlag.buffer,
      interrupts: this.#interrupts.buffer,
    };
    const bulk = { count: threads, tasks: tasksPerBulkThread, niceIncrement: bulkNiceness };
    this.#bulk = new Threads({ ...bulk, workerData, log });
    this.#express = new Threads({
      count: 1,
      tasks: tasksPerExpressThread,
      niceIncrement: 0,
      workerData,
      log,
    });
  }

  /**
   * Sends one batch in a thread. Rejects if the thread failed. The batch is then delivered again.
   */
  async run(task: DeliverTask, threadPool: ThreadPool = 'bulk'): Promise<DeliverResult> {
    if (threadPool === 'express') return toResult(await this.#express.run(task));
    this.#active += 1;
    try {
      return toResult(await this.#bulk.run(task));
    } finally {
      this.#active -= 1;
    }
  }

  /** Prepares all threads for their first batches. Never rejects. */
  async warmUp(profiles: RecentProfile[]): Promise<void> {
    await Promise.all(this.#inEach('warmUp', { profiles }));
  }

  /** Returns the number of open HTTP/2 connections to gateways. */
  async connections(): Promise<number> {
    await this.#readReports();
    return this.#reports.connections;
  }

  /** Makes the threads stop sending. Batches in flight return with their outcomes. */
  stopSending(): void {
    Atomics.store(this.#stopFlag, 0, 1);
  }

  get isStopping(): boolean {
    return Atomics.load(this.#stopFlag, 0) === 1;
  }

  /** Makes the threads return the batches of one push, or of all pushes without `pushId`. */
  interrupt(pushId?: number): void {
    interrupt(this.#interrupts, pushId);
  }

  /** Returns the interrupt count of a push. Read it before the state of the push. */
  interruptCount(pushId: number): number {
    return interruptCount(this.#interrupts, pushId);
  }

  /** Returns the metrics of this process and its threads as the text of a scrape. */
  async metricsText(metrics: Metrics): Promise<string> {
    await this.#readReports();
    const busy = Math.min(this.#active, this.#threads);
    metrics.workerThreads.set({ state: 'busy' }, busy);
    metrics.workerThreads.set({ state: 'idle' }, this.#threads - busy);
    metrics.workerBusySeconds.inc(this.#newBusySeconds());
    this.#reports.reportHeaps(metrics);
    return textOfMetrics(metrics.registry, this.#reports.values);
  }

  /** Reads the reports of all threads. Concurrent callers share the result. */
  #readReports(): Promise<void> {
    this.#pendingRead ??= this.#read().finally(() => {
      this.#pendingRead = undefined;
    });
    return this.#pendingRead;
  }

  async #read(): Promise<void> {
    const timer = new AbortController();
    const timeUp = sleep(reportWithinMs, timer.signal);
    await Promise.all(
      this.#inEach<ThreadReport>('report', {}).map(async (settled) => {
        const report = await Promise.race([settled, timeUp]);
        if (report) this.#reports.set(report);
      }),
    );
    timer.abort();
    await this.#reports.keepEnded(new Set(this.#workers.map(({ threadId }) => threadId)));
  }

  #inEach<R>(name: ThreadFunction, task: object) {
    return [this.#bulk, this.#express].flatMap((threads) => threads.runInEach<R>(name, task));
  }

  get #workers(): Worker[] {
    return [...this.#bulk.workers, ...this.#express.workers];
  }

  /** Returns how long the event loops of the threads were busy since the last call, in seconds. */
  #newBusySeconds(): number {
    let newMs = 0;
    for (const { threadId, performance } of this.#workers) {
      const { active } = performance.eventLoopUtilization();
      newMs += Math.max(0, active - (this.#busyMs.get(threadId) ?? 0));
      this.#busyMs.set(threadId, active);
    }
    return newMs / 1000;
  }

  async close(): Promise<void> {
    this.stopSending();
    await Promise.all([this.#bulk.close(), this.#express.close()]);
  }
}

const toResult = ({ stateBytes, ...result }: ThreadResult): DeliverResult => ({
  ...result,
  states: new RecipientStates(stateBytes),
});
