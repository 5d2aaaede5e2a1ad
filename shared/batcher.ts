import { QueueFull } from './semaphore.ts';

export interface BatcherOptions<T, R> {
  /**
   * Maximum number of items in a batch. With `weightOf`, the maximum total weight of a batch with
   * several items.
   */
  size: number;
  /** Maximum number of batches that run at the same time. */
  concurrency: number;
  /**
   * Runs a batch. Resolves with the results in the order of `items`, or with an empty list if `R`
   * is `void`.
   */
  run(items: T[]): Promise<R[]>;
  /** Returns the key of an item, such as its app. A batch takes one item of each key in turn. */
  fairBy?(item: T): string;
  /** Returns whether the items of a key must not share a batch with other keys. */
  isApart?(key: string): boolean;
  /** Returns a value of an item. Two items with the same value are never in the same batch. */
  uniqueBy?(item: T): string;
  /** Returns the weight of an item; 1 by default. */
  weightOf?(item: T): number;
  /** Maximum total weight of waiting items per key; unlimited by default. */
  maxWaiting?: number;
  /** Maximum time that an item waits for its batch to start; unlimited by default. */
  maxWaitMs?: number;
  /** Time that a batch waits for more items if it is not full. */
  delayMs?: number;
  /**
   * Runs one item alone. Called for each item of a failed batch, so that one bad item does not fail
   * the others.
   */
  runOne?(item: T): Promise<R>;
  /** Returns whether an error concerns all items of a batch. The items are then not run alone. */
  isShared?(error: unknown): boolean;
  /** Repeats a failed batch after this time until it succeeds. For writes that must not be lost. */
  retry?: { afterMs: number; onError(error: unknown): void };
}

interface Waiting<T, R> {
  item: T;
  key: string;
  weight: number;
  timer: NodeJS.Timeout | undefined;
  resolve(result: R): void;
  reject(error: unknown): void;
}

/** Waiting items of one key. */
interface KeyItems<T, R> {
  items: Set<Waiting<T, R>>;
  weight: number;
}

/**
 * Runs items in batches, because one statement for many rows is cheaper than many statements. Items
 * of one tick share a batch. If all batches are running, arriving items wait for the next batch.
 */
export class Batcher<T, R = void> {
  readonly #options: BatcherOptions<T, R>;
  /** Keys with waiting items, in the order of their turns. */
  readonly #keys = new Map<string, KeyItems<T, R>>();
  #running = 0;
  /** Cancels the planned start of the next batch; undefined if no start is planned. */
  #cancelStart: (() => void) | undefined;
  #isDraining = false;
  #onDrained: (() => void) | undefined;

  constructor(options: BatcherOptions<T, R>) {
    this.#options = options;
  }

  /**
   * Runs an item in a batch and resolves with its result. Rejects with the error of the batch.
   * Rejects with `QueueFull` if too many items of its key wait, or if the batch does not start in
   * time.
   */
  run(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      if (!this.#push(item, { resolve, reject })) reject(new QueueFull({ isOfKey: true }));
    });
  }

  /**
   * Runs an item in a batch without waiting for the result. Drops the item if too many items of its
   * key wait.
   */
  add(item: T): void {
    this.#push(item, ignored);
  }

  /**
   * Runs the waiting items without delay. Resolves when all batches have ended. Failed batches are
   * not retried.
   */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#cancelStart?.();
    this.#cancelStart = undefined;
    this.#start(0);
    if (this.#running > 0 || this.#keys.size > 0)
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
  }

  #push(item: T, { resolve, reject }: Pick<Waiting<T, R>, 'resolve' | 'reject'>): boolean {
    const { fairBy, weightOf, maxWaiting = Number.POSITIVE_INFINITY, maxWaitMs } = this.#options;
    const key = fairBy?.(item) ?? '';
    const weight = weightOf?.(item) ?? 1;
    const own = this.#keys.get(key) ?? { items: new Set(), weight: 0 };
    if (own.weight > 0 && own.weight + weight > maxWaiting) return false;
    const waiting: Waiting<T, R> = { item, key, weight, timer: undefined, resolve, reject };
    if (maxWaitMs !== undefined) waiting.timer = setTimeout(() => this.#giveUp(waiting), maxWaitMs);
    own.items.add(waiting);
    own.weight += weight;
    this.#keys.set(key, own);
    this.#start();
    return true;
  }

  #giveUp(waiting: Waiting<T, R>): void {
    const own = this.#keys.get(waiting.key);
    if (!own) return;
    remove(own, waiting);
    if (own.items.size === 0) this.#keys.delete(waiting.key);
    waiting.reject(new QueueFull({ isOfKey: false }));
  }

  /**
   * Plans the start of the next batch, unless a start is planned or `concurrency` batches are
   * running.
   */
  #start(pauseMs = this.#pauseMs()): void {
    if (this.#cancelStart || this.#running >= this.#options.concurrency || this.#keys.size === 0)
      return;
    const begin = () => {
      this.#cancelStart = undefined;
      const batch = this.#take();
      if (batch.length === 0) return;
      void this.#run(batch);
      this.#start();
    };
    if (pauseMs > 0) {
      const timer = setTimeout(begin, pauseMs);
      this.#cancelStart = () => clearTimeout(timer);
    } else {
      const immediate = setImmediate(begin);
      this.#cancelStart = () => clearImmediate(immediate);
    }
  }

  #pauseMs(): number {
    const { delayMs = 0, size } = this.#options;
    if (delayMs === 0 || this.#isDraining) return 0;
    let weight = 0;
    for (const own of this.#keys.values()) weight += own.weight;
    return weight >= size ? 0 : delayMs;
  }

  /**
   * Removes the items of the next batch: one item of each key in turn until the batch is full.
   * Without `fairBy`, all items have the same key, and the oldest items are taken.
   */
  #take(): Waiting<T, R>[] {
    const { size, fairBy, isApart } = this.#options;
    const batch: Waiting<T, R>[] = [];
    const unique = new Set<string>();
    let room = size;
    // A key with more items is deleted and added again, so the loop reaches it once more.
    for (const [key, own] of this.#keys) {
      if (room <= 0) break;
      const isAlone = isApart?.(key) ?? false;
      if (isAlone && batch.length > 0) continue;
      const takesTurns = fairBy && !isAlone && this.#keys.size > 1;
      const items = this.#takeOf(own, { count: takesTurns ? 1 : size, room, unique });
      if (items.length === 0) continue;
      for (const { weight } of items) room -= weight;
      batch.push(...items);
      this.#keys.delete(key);
      if (own.items.size > 0) this.#keys.set(key, own);
      if (isAlone || !fairBy) break;
    }
    return batch;
  }

  /**
   * Takes the oldest items of a key that fit into `room`. An item that is larger than a batch gets
   * a batch of its own.
   */
  #takeOf(
    own: KeyItems<T, R>,
    { count, room, unique }: { count: number; room: number; unique: Set<string> },
  ): Waiting<T, R>[] {
    const { size, uniqueBy } = this.#options;
    const taken: Waiting<T, R>[] = [];
    let left = room;
    for (const waiting of own.items) {
      if (taken.length >= count || left <= 0) break;
      if (waiting.weight > left && left < size) break;
      const value = uniqueBy?.(waiting.item);
      if (value !== undefined) {
        if (unique.has(value)) continue;
        unique.add(value);
      }
      left -= waiting.weight;
      clearTimeout(waiting.timer);
      remove(own, waiting);
      taken.push(waiting);
    }
    return taken;
  }

  async #run(batch: Waiting<T, R>[]): Promise<void> {
    this.#running += 1;
    let pauseMs: number | undefined;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as R);
      });
    } catch (error) {
      pauseMs = this.#onFailure(batch, error);
    } finally {
      this.#running -= 1;
      this.#start(pauseMs);
      if (this.#running === 0 && this.#keys.size === 0) this.#onDrained?.();
    }
  }

  /**
   * Handles a failed batch and returns the pause before the next batch. Does not wait for items
   * that run alone, because a hanging item must not delay the next batches.
   */
  #onFailure(batch: Waiting<T, R>[], error: unknown): number | undefined {
    const { retry, runOne, isShared } = this.#options;
    if (retry) {
      retry.onError(error);
      if (!this.#isDraining) {
        this.#putBack(batch);
        return retry.afterMs;
      }
      // All waiting items would fail too.
      for (const { items } of this.#keys.values()) batch.push(...items);
      this.#keys.clear();
    }
    for (const { item, resolve, reject } of batch) {
      if (!runOne || isShared?.(error)) reject(error);
      else runOne(item).then(resolve, reject);
    }
    return undefined;
  }

  /** Puts the items of a failed batch before the waiting items. */
  #putBack(batch: Waiting<T, R>[]): void {
    for (const [key, items] of Map.groupBy(batch, (waiting) => waiting.key)) {
      const own = this.#keys.get(key) ?? { items: new Set(), weight: 0 };
      own.items = new Set([...items, ...own.items]);
      for (const { weight } of items) own.weight += weight;
      this.#keys.set(key, own);
    }
  }
}

const ignored = { resolve: () => undefined, reject: () => undefined };

function remove<T, R>(own: KeyItems<T, R>, waiting: Waiting<T, R>): void {
  own.items.delete(waiting);
  own.weight -= waiting.weight;
}
