import { BatchRunner, type Pending } from './batch-runner.ts';
import { QueueFull } from './fair-queue.ts';

export interface FairBatcherOptions<T, R> {
  /** Most items of one batch. */
  size: number;
  /** Batches at the same time. */
  atOnce: number;
  /** Waiting items of one lane. */
  maxWaiting: number;
  /** Time limit of waiting for a batch. */
  maxWaitMs: number;
  /** Runs a batch. Returns the results in the order of `items`. */
  runAll(items: T[]): Promise<R[]>;
  /** Runs one item of a batch that failed. */
  runOne(item: T): Promise<R>;
  /** Tells whether the items of a lane share no batch with those of other lanes. */
  isApart?(lane: string): boolean;
  /** Tells whether an error of a batch is every item's error; then no item runs alone. */
  isShared?(error: unknown): boolean;
}

interface Waiting<T, R> extends Pending<T, R> {
  timer: NodeJS.Timeout;
}

/**
 * Runs items of many lanes in batches (`batch-runner.ts`). A batch takes one item of each lane in turn, so that a lane with
 * many items delays no other. After a batch fails, its items run alone: an item that fails rejects its own caller only.
 */
export class FairBatcher<T, R> {
  readonly #options: FairBatcherOptions<T, R>;
  /** Lanes with waiting items; the next in turn is first. */
  readonly #lanes = new Map<string, Set<Waiting<T, R>>>();
  readonly #runner: BatchRunner<Waiting<T, R>, T, R>;

  constructor(options: FairBatcherOptions<T, R>) {
    this.#options = options;
    this.#runner = new BatchRunner({
      atOnce: options.atOnce,
      take: () => this.#take(),
      runAll: (items) => options.runAll(items),
      onFailure: (batch, error) => this.#onFailure(batch, error),
    });
  }

  /** Runs an item with others. Throws `QueueFull` when its lane has too many or its batch does not begin in time. */
  run(lane: string, item: T): Promise<R> {
    const own = this.#lanes.get(lane) ?? new Set();
    if (own.size >= this.#options.maxWaiting) return Promise.reject(new QueueFull({ isOfLane: true }));
    this.#lanes.set(lane, own);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        own.delete(waiting);
        if (own.size === 0) this.#lanes.delete(lane);
        reject(new QueueFull({ isOfLane: false }));
      };
      const waiting = { item, timer: setTimeout(giveUp, this.#options.maxWaitMs), resolve, reject };
      own.add(waiting);
      this.#runner.begin();
    });
  }

  /**
   * Removes the items of the next batch: one of each lane, then another one of each, until it is full; or those of one lane
   * that stays apart.
   */
  #take(): Waiting<T, R>[] {
    const { size, isApart } = this.#options;
    const batch: Waiting<T, R>[] = [];
    // A lane with further items moves to the end, where the loop meets it again.
    for (const [lane, own] of this.#lanes) {
      if (batch.length >= size) break;
      const isAlone = isApart?.(lane) ?? false;
      if (isAlone && batch.length > 0) continue;
      this.#lanes.delete(lane);
      for (const waiting of own) {
        own.delete(waiting);
        clearTimeout(waiting.timer);
        batch.push(waiting);
        if (!isAlone || batch.length >= size) break;
      }
      if (own.size > 0) this.#lanes.set(lane, own);
      if (isAlone) break;
    }
    return batch;
  }

  /** Does not wait for the items, because one that hangs must not hold up further batches. */
  #onFailure(batch: Waiting<T, R>[], error: unknown): void {
    for (const { item, resolve, reject } of batch) {
      if (this.#options.isShared?.(error)) reject(error);
      else this.#options.runOne(item).then(resolve, reject);
    }
  }
}
