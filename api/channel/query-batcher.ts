import { setImmediate } from 'node:timers/promises';

export interface QueryBatcherOptions<T, R> {
  /** Batches at the same time: a share of the database pool. */
  concurrency: number;
  /** Items of one batch. */
  size: number;
  /** Items of one key do not meet in a batch. */
  keyOf(item: T): string;
  /** Answers in the order of `items`. */
  run(items: T[]): Promise<R[]>;
}

interface PendingQuery<T, R> {
  item: T;
  resolve(answer: R): void;
  reject(error: unknown): void;
}

/**
 * Answers many small questions by few statements. One alone is asked at once; what comes while all lanes are
 * busy is asked together: when all devices return, thousands of them are a hundred statements.
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
      if (this.#busy < this.#options.concurrency) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#busy += 1;
    while (this.#waiting.length > 0) {
      // What is asked in the same breath goes along.
      await setImmediate();
      await this.#answer(this.#take());
    }
    this.#busy -= 1;
  }

  async #answer(batch: PendingQuery<T, R>[]): Promise<void> {
    if (batch.length === 0) return;
    try {
      const answers = await this.#options.run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, i) => {
        resolve(answers[i] as R);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  /** The oldest, but one of each key: the others wait at the head for the next batch. */
  #take(): PendingQuery<T, R>[] {
    const { size, keyOf } = this.#options;
    const batch = new Map<string, PendingQuery<T, R>>();
    const later: PendingQuery<T, R>[] = [];
    let read = 0;
    for (; read < this.#waiting.length && batch.size < size; read += 1) {
      const question = this.#waiting[read];
      if (!question) break;
      const key = keyOf(question.item);
      if (batch.has(key)) later.push(question);
      else batch.set(key, question);
    }
    this.#waiting = [...later, ...this.#waiting.slice(read)];
    return [...batch.values()];
  }
}
