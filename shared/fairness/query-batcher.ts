import { BatchRunner, type Pending } from './batch-runner.ts';

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

/**
 * Combines many small queries into few statements (`batch-runner.ts`). A single query runs at once; when thousands of
 * devices return, they cost a hundred statements.
 */
export class QueryBatcher<T, R> {
  readonly #options: QueryBatcherOptions<T, R>;
  readonly #runner: BatchRunner<Pending<T, R>, T, R>;
  #waiting: Pending<T, R>[] = [];

  constructor(options: QueryBatcherOptions<T, R>) {
    this.#options = options;
    this.#runner = new BatchRunner({
      atOnce: options.concurrency,
      take: () => this.#takeBatch(),
      runAll: (items) => options.run(items),
      onFailure: (batch, error) => this.#onFailure(batch, error),
    });
  }

  /** Rejects when the batch fails. */
  load(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#runner.begin();
    });
  }

  async #onFailure(batch: Pending<T, R>[], error: unknown): Promise<void> {
    const isOfOne = batch.length > 1 && this.#options.isOfOneItem?.(error);
    if (!isOfOne) for (const { reject } of batch) reject(error);
    else for (const query of batch) await this.#runAlone(query);
  }

  async #runAlone({ item, resolve, reject }: Pending<T, R>): Promise<void> {
    try {
      const [result] = await this.#options.run([item]);
      resolve(result as R);
    } catch (error) {
      reject(error);
    }
  }

  /** Takes the oldest queries, one of each key; the others stay at the head for the next batch. */
  #takeBatch(): Pending<T, R>[] {
    const { size, keyOf } = this.#options;
    if (!keyOf) return this.#waiting.splice(0, size);
    const batch = new Map<string, Pending<T, R>>();
    const later: Pending<T, R>[] = [];
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
