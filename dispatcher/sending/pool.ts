import { Piscina } from 'piscina';
import { systemClock } from '../../shared/clock.ts';
import type { Metrics } from '../../shared/metrics.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { interrupt, interruptBytes } from './interrupts.ts';
import type { DeliverResult, DeliverTask, ThreadData } from './task.ts';
import { TransportReadings } from './transports.ts';

/**
 * Batches one thread holds at a time: while some wait for a gateway, others load and render. More than the
 * places of all connectors and those that wait without one: a thread keeps nobody waiting for another's gateway.
 */
const batchesPerThread = 128;

/**
 * Pushes to few have a thread of their own: those to millions keep the others so busy that every step of a
 * small one, a look-up, a request, an answer, would wait for its turn there.
 */
export type Lane = 'bulk' | 'express';

export interface PoolOptions {
  /** Threads of the bulk lane (DISPATCHER_THREADS). */
  threads: number;
  data: Omit<ThreadData, 'stopFlag' | 'interrupts'>;
}

/**
 * How far the bulk threads stand back where processor time is short (Linux counts it by thread): planning,
 * recording and the express lane go first, and a machine that has time to spare notices nothing.
 */
const bulkNiceness = 5;

/**
 * Left to itself V8 lets old garbage grow to gigabytes. What a thread really holds, recipients and requests of its
 * batches, is a tenth of this. New objects are bounded for all threads by a flag (ops/local/node-flags.ts), which
 * a number here could not change; it stands for dispatchers that are started without.
 */
const threadMemory = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 256 };

function openThreads(
  threads: number,
  workerData: ThreadData,
  niceIncrement = 0,
): Piscina<DeliverTask, DeliverResult> {
  return new Piscina({
    filename: moduleUrl('./worker.ts', import.meta.url).href,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: batchesPerThread,
    // Otherwise an idle thread sleeps in Atomics.wait and its event loop stands still: no PING of a gateway would
    // be answered, no GOAWAY heard, no dead connection found until the next batch.
    atomics: 'disabled',
    niceIncrement,
    resourceLimits: threadMemory,
    workerData,
  });
}

/** The worker threads that send. The only home of piscina. */
export class SenderPool {
  readonly #bulk: Piscina<DeliverTask, DeliverResult>;
  readonly #express: Piscina<DeliverTask, DeliverResult>;
  readonly #stopFlag = new SharedArrayBuffer(4);
  readonly #interrupts = new SharedArrayBuffer(interruptBytes);
  readonly #threads: number;
  readonly #transports = new TransportReadings(() => systemClock.monotonicMs());
  #active = 0;

  constructor({ threads, data }: PoolOptions) {
    this.#threads = threads;
    const workerData: ThreadData = { ...data, stopFlag: this.#stopFlag, interrupts: this.#interrupts };
    this.#bulk = openThreads(threads, workerData, bulkNiceness);
    this.#express = openThreads(1, workerData);
    for (const threads of [this.#bulk, this.#express])
      threads.on('message', (message: unknown) => this.#transports.take(message));
  }

  /** Has a thread send one batch. Rejects when the thread failed: the batch is then taken again. */
  async run(task: DeliverTask, lane: Lane = 'bulk'): Promise<DeliverResult> {
    if (lane === 'express') return this.#express.run(task);
    this.#active += 1;
    try {
      return await this.#bulk.run(task);
    } finally {
      this.#active -= 1;
    }
  }

  /** Tells the threads to send no more; what is in flight comes back with its outcomes. */
  stopSending(): void {
    Atomics.store(new Int32Array(this.#stopFlag), 0, 1);
  }

  get isStopping(): boolean {
    return Atomics.load(new Int32Array(this.#stopFlag), 0) === 1;
  }

  /** Has the threads hand back what they have in hand of a push, or of all of them. */
  interrupt(pushId?: number): void {
    interrupt(new Int32Array(this.#interrupts), pushId);
  }

  reportTo(metrics: Metrics): void {
    const busy = Math.min(this.#active, this.#threads);
    metrics.workerThreads.set({ state: 'busy' }, busy);
    metrics.workerThreads.set({ state: 'idle' }, this.#threads - busy);
    this.#transports.reportTo(metrics);
  }

  async close(): Promise<void> {
    this.stopSending();
    await Promise.all([this.#bulk.destroy(), this.#express.destroy()]);
  }
}
