import { Piscina } from 'piscina';
import { sleep, systemClock } from '../../shared/clock.ts';
import type { RecentProfile } from '../../shared/db/tables/pushes/recent-profiles.ts';
import { RecipientStates } from '../../shared/domain/recipient-states.ts';
import type { Metrics } from '../../shared/metrics.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { interrupt, interruptBytes, interruptCount } from './interrupts.ts';
import {
  type DeliverResult,
  type DeliverTask,
  type ThreadData,
  type ThreadResult,
  type WarmUpTask,
  warmUpCounts,
} from './task.ts';
import { TransportReadings } from './threads/transports.ts';
import { ThreadUsages } from './threads/usage.ts';

/**
 * Batches of one thread at a time: while some wait for a gateway, others load and render. This is more than all job
 * permits and parked jobs of a thread, so that no batch waits for the gateway of another one.
 */
const batchesPerThread = 128;
/** The same of the express thread, which also has all small pushes (`singlesAtOnce`). */
const expressBatches = 512;

/**
 * Threads of a batch: pushes to up to 1000 devices, and the first batch of a larger one, use the express thread, since every
 * query, request and answer of theirs would wait behind those of large pushes in the bulk threads.
 */
export type Lane = 'bulk' | 'express';

export interface PoolOptions {
  /** Threads of the bulk lane (DISPATCHER_THREADS). */
  threads: number;
  data: Omit<ThreadData, 'stopFlag' | 'interrupts'>;
}

/**
 * nice(2) increment of the bulk threads (Linux counts it by thread): where processor time is short, planning, recording
 * and the express thread go first.
 */
const bulkNiceness = 5;

/**
 * Heap limits of a thread; without one V8 lets garbage grow to gigabytes, while recipients and requests of the batches
 * use a tenth of this. They are for dispatchers without the flags of `dispatcher/main.ts` and `ops/local/node-flags.ts`, which apply
 * to threads too.
 */
const threadMemory = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 256 };

/** Time for which prepared senders count as open, and most profiles that are remembered. */
const preparedForMs = 60_000;
const maxPrepared = 1000;

type Threads = Piscina<DeliverTask | WarmUpTask | RecentProfile, ThreadResult>;

function openThreads(
  threads: number,
  workerData: ThreadData,
  { batches, niceIncrement }: { batches: number; niceIncrement: number },
): Threads {
  return new Piscina({
    filename: moduleUrl('./worker.ts', import.meta.url).href,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: batches,
    // Otherwise an idle thread blocks its event loop in Atomics.wait: until the next batch it would answer no PING of a
    // gateway, receive no GOAWAY and detect no dead connection.
    atomics: 'disabled',
    niceIncrement,
    resourceLimits: threadMemory,
    workerData,
  });
}

/** Interval at which the counts of a warm-up are read. */
const warmUpPollMs = 20;

/** Prepares all threads of a lane. The first one that is started may take several tasks, so those that got none get more. */
async function warmUpThreads(
  threads: Threads,
  { count, profiles, signal }: { count: number; profiles: RecentProfile[]; signal: AbortSignal },
): Promise<void> {
  const counts = new SharedArrayBuffer(Object.keys(warmUpCounts).length * Int32Array.BYTES_PER_ELEMENT);
  const read = (place: number) => Atomics.load(new Int32Array(counts), place);
  while (read(warmUpCounts.ended) < count && !signal.aborted) {
    const missing = threads.queueSize === 0 ? count - read(warmUpCounts.started) : 0;
    for (let i = 0; i < missing; i += 1)
      threads.run({ profiles, counts }, { name: 'warmUp' }).catch(() => undefined);
    await sleep(warmUpPollMs, signal);
  }
}

/** The worker threads that send. Only this file uses piscina. */
export class SenderPool {
  readonly #bulk: Threads;
  readonly #express: Threads;
  readonly #stopFlag = new SharedArrayBuffer(4);
  readonly #interrupts = new SharedArrayBuffer(interruptBytes);
  readonly #threads: number;
  readonly #transports = new TransportReadings(() => systemClock.monotonicMs());
  readonly #usages = new ThreadUsages();
  readonly #busyMs = new Map<number, number>();
  /** When the senders of a profile were last prepared, by the profile. */
  readonly #preparedAtMs = new Map<string, number>();
  #active = 0;

  constructor({ threads, data }: PoolOptions) {
    this.#threads = threads;
    const workerData: ThreadData = { ...data, stopFlag: this.#stopFlag, interrupts: this.#interrupts };
    this.#bulk = openThreads(threads, workerData, { batches: batchesPerThread, niceIncrement: bulkNiceness });
    this.#express = openThreads(1, workerData, { batches: expressBatches, niceIncrement: 0 });
    for (const threads of [this.#bulk, this.#express])
      threads.on('message', (message: unknown) => {
        this.#transports.take(message);
        this.#usages.take(message);
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
    await Promise.all([
      warmUpThreads(this.#bulk, { count: this.#threads, profiles, signal }),
      warmUpThreads(this.#express, { count: 1, profiles, signal }),
    ]);
  }

  /**
   * Opens the sender of a profile in all threads of a lane while its next batches are written, unless that was done a short
   * time ago. Never rejects; a batch does without.
   */
  prepare(profile: RecentProfile, lane: Lane): void {
    const nowMs = systemClock.monotonicMs();
    const key = JSON.stringify({ ...profile, lane });
    if (nowMs - (this.#preparedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < preparedForMs) return;
    if (this.#preparedAtMs.size >= maxPrepared) this.#preparedAtMs.clear();
    this.#preparedAtMs.set(key, nowMs);
    // One task for each thread: piscina gives a task to the thread that has the fewest.
    const [threads, count] = lane === 'express' ? [this.#express, 1] : [this.#bulk, this.#threads];
    for (let i = 0; i < count; i += 1) threads.run(profile, { name: 'prepare' }).catch(() => undefined);
  }

  /** HTTP/2 connections to gateways that are open. */
  get connections(): number {
    return this.#transports.connections;
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

  /** Returns the number of interrupts of a push, for a batch whose push is read before it gets to a thread. */
  interruptCount(pushId: number): number {
    return interruptCount(new Int32Array(this.#interrupts), pushId);
  }

  reportTo(metrics: Metrics): void {
    const busy = Math.min(this.#active, this.#threads);
    metrics.workerThreads.set({ state: 'busy' }, busy);
    metrics.workerThreads.set({ state: 'idle' }, this.#threads - busy);
    this.#transports.reportTo(metrics);
    const running = [...this.#bulk.threads, ...this.#express.threads].map(({ threadId }) => threadId);
    this.#usages.reportTo(metrics, running);
    metrics.workerBusySeconds.inc(this.#newBusySeconds());
  }

  /** Returns the time that the event loops of the threads were busy since the last call. */
  #newBusySeconds(): number {
    let newMs = 0;
    for (const { threadId, performance } of [...this.#bulk.threads, ...this.#express.threads]) {
      const { active } = performance.eventLoopUtilization();
      newMs += Math.max(0, active - (this.#busyMs.get(threadId) ?? 0));
      this.#busyMs.set(threadId, active);
    }
    return newMs / 1000;
  }

  async close(): Promise<void> {
    this.stopSending();
    await Promise.all([this.#bulk.destroy(), this.#express.destroy()]);
  }
}

const toResult = ({ stateBytes, ...result }: ThreadResult): DeliverResult => ({
  ...result,
  states: new RecipientStates(stateBytes),
});
