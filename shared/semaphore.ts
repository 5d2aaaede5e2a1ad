/** Work was rejected: too much work is waiting, or it waited too long. */
export class QueueFull extends Error {
  override name = 'QueueFull';
  /** True if the key has used up its own share; false if it waited because of other keys. */
  readonly isOfKey: boolean;

  constructor({ isOfKey }: { isOfKey: boolean }) {
    super('too much work waits');
    this.isOfKey = isOfKey;
  }
}

export interface SemaphoreLimits {
  /** Maximum number of tasks that run at the same time. */
  concurrency: number;
  /** Maximum number of running tasks per key; `concurrency` by default. */
  perKey?: number;
  /** Maximum number of waiting tasks per key. */
  maxWaiting: number;
  /** Maximum time that a task waits; unlimited by default. */
  maxWaitMs?: number;
}

interface Waiting {
  begin(): void;
}

/** Tasks of one key. */
interface KeyTasks {
  running: number;
  waiting: Set<Waiting>;
}

/**
 * Limits the number of tasks that run at the same time. Keys (apps) take turns, so that many tasks
 * of one key do not delay the others. If there is capacity, a task starts within the call.
 */
export class Semaphore {
  readonly #limits: Required<SemaphoreLimits>;
  /** Keys with tasks, in the order of their turns. */
  readonly #keys = new Map<string, KeyTasks>();
  #running = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = { perKey: limits.concurrency, maxWaitMs: 0, ...limits };
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    let waiting = 0;
    for (const key of this.#keys.values()) waiting += key.waiting.size;
    return waiting;
  }

  /**
   * Runs `work` when it is the turn of its key, and resolves with its result. `maxWaitMs` overrides
   * the limit of the semaphore. Rejects with `QueueFull` if the key has `maxWaiting` waiting tasks,
   * or after `maxWaitMs`.
   */
  async run<T>(
    key: string,
    work: () => Promise<T>,
    maxWaitMs = this.#limits.maxWaitMs,
  ): Promise<T> {
    const own = this.#keys.get(key) ?? { running: 0, waiting: new Set() };
    this.#keys.set(key, own);
    // If there is capacity, only keys that have used up their share have waiting tasks.
    if (this.#running < this.#limits.concurrency && own.running < this.#limits.perKey)
      this.#acquire(own);
    else await this.#wait(key, own, maxWaitMs);
    try {
      return await work();
    } finally {
      this.#release(key, own);
    }
  }

  #acquire(own: KeyTasks): void {
    own.running += 1;
    this.#running += 1;
  }

  #wait(key: string, own: KeyTasks, maxWaitMs: number): Promise<void> {
    if (own.waiting.size >= this.#limits.maxWaiting) {
      this.#drop(key, own);
      return Promise.reject(new QueueFull({ isOfKey: true }));
    }
    if (own.waiting.size === 0) this.#moveToEnd(key, own);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        own.waiting.delete(waiting);
        this.#drop(key, own);
        reject(new QueueFull({ isOfKey: own.running >= this.#limits.perKey }));
      };
      const timer = maxWaitMs > 0 ? setTimeout(giveUp, maxWaitMs) : undefined;
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      const waiting = { begin };
      own.waiting.add(waiting);
    });
  }

  #release(key: string, own: KeyTasks): void {
    own.running -= 1;
    this.#running -= 1;
    this.#drop(key, own);
    this.#next();
  }

  /** Removes a key if it has no tasks. */
  #drop(key: string, { running, waiting }: KeyTasks): void {
    if (running === 0 && waiting.size === 0) this.#keys.delete(key);
  }

  #moveToEnd(key: string, own: KeyTasks): void {
    this.#keys.delete(key);
    this.#keys.set(key, own);
  }

  /**
   * Starts waiting tasks of keys that are below their share. Moves each of these keys to the end.
   */
  #next(): void {
    for (const [key, own] of this.#keys) {
      if (this.#running >= this.#limits.concurrency) return;
      const [first] = own.waiting;
      if (!first || own.running >= this.#limits.perKey) continue;
      own.waiting.delete(first);
      this.#moveToEnd(key, own);
      this.#acquire(own);
      first.begin();
    }
  }
}
