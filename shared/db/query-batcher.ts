import { setImmediate } from 'node:timers/promises';

export interface QueryBatcherOptions<T, R> {
  /** Batches at the same time. */
  concurrency: number;
  /** Most items of one batch. */
  size: number;
  /** Two items with the same key are never in the same batch; absent: all items may be. */
  keyOf?(item: T): string;
  /** Whether each item of a batch that failed with this error runs again on its own, so that one does not fail the others. */
  isOfOneItem?(error: unknown): boolean;
  /** Returns the results in the order of `items`. */
  run(items: T[]): Promise<R[]>;
}

interface PendingQuery<T, R> {
  item: T;
  resolve(result: R): void;
  reject(error: unknown): void;
}

/**
 * Combines many small queries into few statements. A single query runs at once; queries that arrive while all
 * slots are busy run together: when thousands of devices return, they cost a hundred statements.
 */
export class QueryBatcher<T, R> {
  readonly #options: QueryBatcherOptions<T, R>;
  #waiting: PendingQuery<T, R>[] = [];
  #busy = 0;

  constructor(options: QueryBatcherOptions<T, R>) {
    this.#options = options;
  }

  /** Rejects when the batch fails. */
  load(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#busy < this.#options.concurrency) void this.#runBatches();
    });
  }

  async #runBatches(): Promise<void> {
    this.#busy += 1;
    while (this.#waiting.length > 0) {
      // Yield once so that requests queued in this tick join the batch.
      await setImmediate();
      await this.#runBatch(this.#takeBatch());
    }
    this.#busy -= 1;
  }

  async #runBatch(batch: PendingQuery<T, R>[]): Promise<void> {
    if (batch.length === 0) return;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as R);
      });
    } catch (error) {
      if (batch.length > 1 && this.#options.isOfOneItem?.(error))
        for (const query of batch) await this.#runBatch([query]);
      else for (const { reject } of batch) reject(error);
    }
  }

  /** Takes the oldest queries, one of each key; the others stay at the head for the next batch. */
  #takeBatch(): PendingQuery<T, R>[] {
    const { size, keyOf } = this.#options;
    if (!keyOf) return this.#waiting.splice(0, size);
    const batch = new Map<string, PendingQuery<T, R>>();
    const later: PendingQuery<T, R>[] = [];
    let read = 0;
    for (; read < this.#waiting.length && batch.size < size; read += 1) {
      const query = this.#waiting[read];
      if (!query) break;
      const key = keyOf(query.item);
      if (batch.has(key)) later.push(query);
      else batch.set(key, query);
    }
    this.#waiting = [...later, ...this.#waiting.slice(read)];
    return [...batch.values()];
  }
}
