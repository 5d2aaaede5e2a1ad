import { QueueFull } from './semaphore.ts';

export interface BatcherOptions<T, R> {
  /** Most items of a batch; with `weightOf`, the most weight of a batch of several items. */
  size: number;
  /** Batches that run at the same time. */
  concurrency: number;
  /**
   * Runs a batch. Resolves with the results in the order of `items`; of `void`, with an empty list.
   */
  run(items: T[]): Promise<R[]>;
  /** Key of an item, such as its app. A batch takes one item of each key in turn. */
  fairBy?(item: T): string;
  /** Whether the items of a key of `fairBy` share no batch with other keys. */
  isApart?(key: string): boolean;
  /** Two items with equal values are never in the same batch. */
  uniqueBy?(item: T): string;
  /** Weight of an item; 1 by default. */
  weightOf?(item: T): number;
  /** Weight of the waiting items of one key; unlimited by default. */
  maxWaiting?: number;
  /** Time limit of waiting for a batch; none by default. */
  maxWaitMs?: number;
  /** Delay of a batch that is not full, in which further items join it. */
  delayMs?: number;
  /** Runs each item of a failed batch alone, so that one item does not fail the others. */
  runOne?(item: T): Promise<R>;
  /** Whether an error of a batch is the error of every item; then no item runs alone. */
  isShared?(error: unknown): boolean;
  /**
   * Repeats a failed batch after this time, as often as it fails; for writes that must not be lost.
   */
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
 * Runs items in batches, because one statement for many rows costs a fraction of many statements.
 * Items of one tick share a batch. Items that arrive while all batches run share the next one.
 */
export class Batcher<T, R = void> {
  readonly #options: BatcherOptions<T, R>;
  /** Keys with waiting items; the next in turn is first. */
  readonly #keys = new Map<string, KeyItems<T, R>>();
  #running = 0;
  /** Cancels the start of the next batch; undefined while none is planned. */
  #cancelStart: (() => void) | undefined;
  #isDraining = false;
  #onDrained: (() => void) | undefined;

  constructor(options: BatcherOptions<T, R>) {
    this.#options = options;
  }

  /**
   * Runs an item in a batch and resolves with its result. Rejects with the error of the batch, or
   * with `QueueFull` if its key has too many items or its batch does not begin in time.
   */
  run(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      if (!this.#push(item, { resolve, reject })) reject(new QueueFull({ isOfKey: true }));
    });
  }

  /** Runs an item in a batch without waiting for it. Drops the item if its key has too many. */
  add(item: T): void {
    this.#push(item, ignored);
  }

  /**
   * Runs the waiting items without delay, and resolves when all batches have ended. Nothing is
   * retried.
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

  /** Plans the next batch, unless one is planned or `concurrency` batches run. */
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
   * Removes the items of the next batch: one of each key, then another one of each, until it is
   * full. Without `fairBy` all items have the same key, and the oldest are taken.
   */
  #take(): Waiting<T, R>[] {
    const { size, fairBy, isApart } = this.#options;
    const batch: Waiting<T, R>[] = [];
    const unique = new Set<string>();
    let room = size;
    // A key with further items moves to the end, where the loop meets it again.
    for (const [key, own] of this.#keys) {
      if (room <= 0) break;
      const isAlone = isApart?.(key) ?? false;
      if (isAlone && batch.length > 0) continue;
      const taken = this.#takeOf(own, { count: fairBy && !isAlone ? 1 : size, room, unique });
      if (taken.length === 0) continue;
      for (const { weight } of taken) room -= weight;
      batch.push(...taken);
      this.#keys.delete(key);
      if (own.items.size > 0) this.#keys.set(key, own);
      if (isAlone || !fairBy) break;
    }
    return batch;
  }

  /**
   * Takes the oldest items of a key that fit into `room`; an item that is larger than a batch has
   * its own.
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
   * Returns the pause before the next batch. Does not wait for items that run alone, because one
   * that hangs must not hold up further batches.
   */
  #onFailure(batch: Waiting<T, R>[], error: unknown): number | undefined {
    const { retry, runOne, isShared } = this.#options;
    if (retry) {
      retry.onError(error);
      if (!this.#isDraining) {
        this.#putBack(batch);
        return retry.afterMs;
      }
      // Every further batch would fail as well.
      for (const { items } of this.#keys.values()) batch.push(...items);
      this.#keys.clear();
    }
    for (const { item, resolve, reject } of batch) {
      if (!runOne || isShared?.(error)) reject(error);
      else runOne(item).then(resolve, reject);
    }
    return undefined;
  }

  /** Puts the items of a batch before those that wait. */
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
