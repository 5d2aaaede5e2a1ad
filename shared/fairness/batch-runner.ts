/** Item that waits for its batch. */
export interface Pending<T, R> {
  item: T;
  resolve(result: R): void;
  reject(error: unknown): void;
}

export interface BatchRunnerOptions<P extends Pending<T, R>, T, R> {
  /** Batches at the same time. */
  atOnce: number;
  /** Removes the items of the next batch from those that wait; empty if no item waits. */
  take(): P[];
  /** Runs a batch. Returns the results in the order of `items`. */
  runAll(items: T[]): Promise<R[]>;
  /** Settles the items of a batch that failed. The next batch may have to wait for the promise. */
  onFailure(batch: P[], error: unknown): Promise<void> | void;
}

/**
 * Runs waiting items in batches, because one statement for many rows costs a fraction of many statements. Items of one turn
 * of the event loop share a batch, and those that arrive while all batches run share the next one.
 */
export class BatchRunner<P extends Pending<T, R>, T, R> {
  readonly #options: BatchRunnerOptions<P, T, R>;
  #running = 0;
  #isTurnAwaited = false;

  constructor(options: BatchRunnerOptions<P, T, R>) {
    this.#options = options;
  }

  /** Begins a batch after this turn of the event loop, or when one ends. To be called after an item was added. */
  begin(): void {
    if (this.#isTurnAwaited || this.#running >= this.#options.atOnce) return;
    this.#isTurnAwaited = true;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      const batch = this.#options.take();
      if (batch.length === 0) return;
      void this.#run(batch);
      this.begin();
    });
  }

  async #run(batch: P[]): Promise<void> {
    const { runAll, onFailure } = this.#options;
    this.#running += 1;
    try {
      const results = await runAll(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as R);
      });
    } catch (error) {
      await onFailure(batch, error);
    } finally {
      this.#running -= 1;
      this.begin();
    }
  }
}
