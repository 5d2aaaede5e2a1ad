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
import { threadMemory } from '../../shared/process/memory.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import { interrupt, interruptBytes, interruptCount } from './shared-memory.ts';
import type { DeliverResult, DeliverTask, ThreadData, ThreadReport, ThreadResult } from './task.ts';

// What worker threads report for a scrape: their metrics and heaps, which the main thread adds up.

/** Metrics of a thread that end with it; all others are counts. */
const isGauge = ({ type }: MetricValues[number]): boolean => String(type) === 'gauge';

/** The latest report of each thread, and the counts of threads that have ended. */
export class ThreadReports {
  readonly #latest = new Map<number, ThreadReport>();
  #ended: MetricValues = [];

  set(thread: number, report: ThreadReport): void {
    this.#latest.set(thread, report);
  }

  /** Keeps only the counts of threads that do not run. */
  async keepEnded(running: ReadonlySet<number>): Promise<void> {
    for (const [thread, { values }] of this.#latest) {
      if (running.has(thread)) continue;
      this.#latest.delete(thread);
      const counts = values.filter((metric) => !isGauge(metric));
      this.#ended = await mergedMetrics([this.#ended, counts]);
    }
  }

  /** Metrics of all threads, by thread. */
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
 * Maximum tasks at once in a bulk thread: while some wait for a gateway, others load and render.
 * This is more than the batches that the consumers hold for a thread, so that piscina never queues
 * one.
 */
const tasksPerBulkThread = 128;
/** Likewise for the express thread, which also has all pushes to one device (`singlesAtOnce`). */
const tasksPerExpressThread = 512;

/**
 * Threads of a batch. Pushes to up to 1,000 devices, and the first batch of a larger push, use the
 * express thread. In the bulk threads they would wait behind the batches of large pushes.
 */
export type Lane = 'bulk' | 'express';

interface PoolOptions {
  /** Threads of the bulk lane (DISPATCHER_THREADS). */
  threads: number;
  data: Omit<ThreadData, 'stopFlag' | 'interrupts'>;
}

/**
 * nice(2) increment of the bulk threads (Linux counts it by thread): where CPU time is short,
 * planning, recording and the express thread go first.
 */
const bulkNiceness = 5;

/** Prepared senders count as open for this time, which is less than that of an idle sender. */
const preparedProfiles = { maxAgeMs: 60_000, maxEntries: 1000 };

/** Time in which a thread answers for a scrape; after it, its last report counts. */
const reportWithinMs = 1000;

/** Exports of `worker.ts` that run in each thread. */
type ThreadFunction = 'warmUp' | 'prepare' | 'report';

interface ThreadOptions {
  count: number;
  /** Maximum tasks at once in one thread. */
  tasks: number;
  niceIncrement: number;
  workerData: ThreadData;
}

/** Equal threads with one queue of tasks. */
class Threads {
  readonly #pool: Piscina;

  constructor({ count, tasks, niceIncrement, workerData }: ThreadOptions) {
    this.#pool = new Piscina({
      filename: moduleUrl('./worker.ts', import.meta.url).href,
      minThreads: count,
      maxThreads: count,
      concurrentTasksPerWorker: tasks,
      loadBalancer: balancerOf(tasks),
      // Otherwise an idle thread blocks its event loop in Atomics.wait: until the next batch it
      // would answer no PING of a gateway, receive no GOAWAY and detect no dead connection.
      atomics: 'disabled',
      niceIncrement,
      resourceLimits: threadMemory,
      workerData,
    });
  }

  get workers(): Worker[] {
    return this.#pool.threads;
  }

  run(task: DeliverTask): Promise<ThreadResult> {
    return this.#pool.run(task);
  }

  /** Runs a function once in each thread; `settled` has undefined for a thread that failed. */
  runInEach<R>(
    name: ThreadFunction,
    task: object,
  ): { thread: number; settled: Promise<R | undefined> }[] {
    return this.workers.map(({ threadId: thread }) => ({
      thread,
      settled: this.#pool
        .run({ ...task, [Piscina.queueOptionsSymbol]: { thread } }, { name })
        .catch(() => undefined),
    }));
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

type Balancer = NonNullable<NonNullable<ConstructorParameters<typeof Piscina>[0]>['loadBalancer']>;

/**
 * Returns piscina's choice of a thread: the one that the task names, otherwise the thread with the
 * fewest tasks. A task for a thread that has ended runs in another one, since it would block the
 * queue.
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

/** The worker threads that send. Only this file uses piscina. */
export class SenderPool {
  readonly #bulk: Threads;
  readonly #express: Threads;
  readonly #stopFlag = new SharedArrayBuffer(4);
  readonly #interrupts = new SharedArrayBuffer(interruptBytes);
  readonly #threads: number;
  readonly #reports = new ThreadReports();
  readonly #busyMs = new Map<number, number>();
  /** Profiles whose senders were prepared a short time ago. */
  readonly #prepared = new TtlCache<string, true>(preparedProfiles);
  #reading: Promise<void> | undefined;
  #active = 0;

  constructor({ threads, data }: PoolOptions) {
    this.#threads = threads;
    const workerData: ThreadData = {
      ...data,
      stopFlag: this.#stopFlag,
      interrupts: this.#interrupts,
    };
    const bulk = { count: threads, tasks: tasksPerBulkThread, niceIncrement: bulkNiceness };
    this.#bulk = new Threads({ ...bulk, workerData });
    this.#express = new Threads({
      count: 1,
      tasks: tasksPerExpressThread,
      niceIncrement: 0,
      workerData,
    });
  }

  /** Sends one batch in a thread. Rejects when the thread failed: the batch is then taken again. */
  async run(task: DeliverTask, lane: Lane = 'bulk'): Promise<DeliverResult> {
    if (lane === 'express') return toResult(await this.#express.run(task));
    this.#active += 1;
    try {
      return toResult(await this.#bulk.run(task));
    } finally {
      this.#active -= 1;
    }
  }

  /** Prepares all threads for their first batches, until the signal aborts. Never rejects. */
  async warmUp(profiles: RecentProfile[], signal: AbortSignal): Promise<void> {
    const all = [this.#bulk, this.#express].flatMap((threads) =>
      threads.runInEach('warmUp', { profiles }),
    );
    const aborted = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([Promise.all(all.map(({ settled }) => settled)), aborted]);
  }

  /**
   * Opens the sender of a profile in all threads of a lane while its next batches are written,
   * unless that was done a short time ago. Never rejects; a batch does without.
   */
  prepare(profile: RecentProfile, lane: Lane): void {
    const key = JSON.stringify({ ...profile, lane });
    if (this.#prepared.get(key)) return;
    this.#prepared.set(key, true);
    (lane === 'express' ? this.#express : this.#bulk).runInEach('prepare', profile);
  }

  /** Returns the number of open HTTP/2 connections to gateways. */
  async connections(): Promise<number> {
    await this.#readReports();
    return this.#reports.connections;
  }

  /** Tells the threads to send no more; batches in flight return with their outcomes. */
  stopSending(): void {
    Atomics.store(new Int32Array(this.#stopFlag), 0, 1);
  }

  get isStopping(): boolean {
    return Atomics.load(new Int32Array(this.#stopFlag), 0) === 1;
  }

  /** Makes the threads return the batches of one push, or of all pushes. */
  interrupt(pushId?: number): void {
    interrupt(new Int32Array(this.#interrupts), pushId);
  }

  /**
   * Returns the number of interrupts of a push, for a batch whose push is read before it gets to a
   * thread.
   */
  interruptCount(pushId: number): number {
    return interruptCount(new Int32Array(this.#interrupts), pushId);
  }

  /**
   * Returns the metrics of this process, those of its threads included, as the text of a scrape.
   */
  async metricsText(metrics: Metrics): Promise<string> {
    await this.#readReports();
    const busy = Math.min(this.#active, this.#threads);
    metrics.workerThreads.set({ state: 'busy' }, busy);
    metrics.workerThreads.set({ state: 'idle' }, this.#threads - busy);
    metrics.workerBusySeconds.inc(this.#newBusySeconds());
    this.#reports.reportHeaps(metrics);
    return textOfMetrics(metrics.registry, this.#reports.values);
  }

  /** Reads the reports of all threads; concurrent callers share one reading. */
  #readReports(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const timer = new AbortController();
    const timeUp = sleep(reportWithinMs, timer.signal);
    const all = [this.#bulk, this.#express].flatMap((threads) =>
      threads.runInEach<ThreadReport>('report', {}),
    );
    await Promise.all(
      all.map(async ({ thread, settled }) => {
        const report = await Promise.race([settled, timeUp]);
        if (report) this.#reports.set(thread, report);
      }),
    );
    timer.abort();
    await this.#reports.keepEnded(new Set(this.#workers.map(({ threadId }) => threadId)));
  }

  get #workers(): Worker[] {
    return [...this.#bulk.workers, ...this.#express.workers];
  }

  /** Returns the time that the event loops of the threads were busy since the last call. */
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
