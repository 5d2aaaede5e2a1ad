import { Piscina } from 'piscina';
import type { Metrics } from '../shared/metrics.ts';
import type { DeliverJob } from '../shared/queue/jobs.ts';
import type { DeliverResult, ThreadData } from './task.ts';

/** Batches one thread holds at a time: while some wait for a gateway, others load and render. */
const batchesPerThread = 16;

export interface PoolOptions {
  threads: number;
  data: Omit<ThreadData, 'stopFlag'>;
}

/** The worker threads that send. The only home of piscina. */
export class SenderPool {
  readonly #piscina: Piscina<DeliverJob, DeliverResult>;
  readonly #stopFlag = new SharedArrayBuffer(4);
  readonly #threads: number;
  #active = 0;

  constructor({ threads, data }: PoolOptions) {
    this.#threads = threads;
    const workerData: ThreadData = { ...data, stopFlag: this.#stopFlag };
    this.#piscina = new Piscina({
      filename: new URL('./worker.ts', import.meta.url).href,
      minThreads: threads,
      maxThreads: threads,
      concurrentTasksPerWorker: batchesPerThread,
      workerData,
    });
  }

  /** Has a thread send one batch. Rejects when the thread failed: the batch is then taken again. */
  async run(task: DeliverJob): Promise<DeliverResult> {
    this.#active += 1;
    try {
      return await this.#piscina.run(task);
    } finally {
      this.#active -= 1;
    }
  }

  /** Tells the threads to send no more; what is in flight comes back with its outcomes. */
  stopSending(): void {
    Atomics.store(new Int32Array(this.#stopFlag), 0, 1);
  }

  reportTo(metrics: Metrics): void {
    const busy = Math.min(this.#active, this.#threads);
    metrics.workerThreads.set({ state: 'busy' }, busy);
    metrics.workerThreads.set({ state: 'idle' }, this.#threads - busy);
  }

  async close(): Promise<void> {
    this.stopSending();
    await this.#piscina.destroy();
  }
}
