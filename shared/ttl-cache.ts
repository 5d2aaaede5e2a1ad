import { type Clock, systemClock } from './clock.ts';

export interface TtlCacheOptions {
  clock?: Pick<Clock, 'monotonicMs'>;
  /** Age at which an entry expires. If absent, entries stay until newer entries replace them. */
  maxAgeMs?: number;
  /** Maximum number of entries. A further entry evicts the oldest entry. */
  maxEntries?: number;
}

/**
 * Maximum age of data that operators and other processes change. A change must take effect in all
 * processes within one second (protocol/admin-api.md#changes). Half of this time is left for the
 * query.
 */
export const changeMaxAgeMs = 500;

/** Maximum number of entries, so that made-up keys cannot fill the memory. */
const defaultMaxEntries = 10_000;

/** Map with a limited number of entries, which expire at a certain age. */
export class TtlCache<K, V> {
  readonly #options: Required<TtlCacheOptions>;
  /** Entries by age, oldest first. */
  readonly #entries = new Map<K, { value: V; setAtMs: number }>();

  constructor(options: TtlCacheOptions) {
    const maxAgeMs = Number.POSITIVE_INFINITY;
    this.#options = { clock: systemClock, maxAgeMs, maxEntries: defaultMaxEntries, ...options };
  }

  /** Number of entries, including expired entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a key, or undefined if it is missing or expired. */
  get(key: K): V | undefined {
    const { clock, maxAgeMs } = this.#options;
    const entry = this.#entries.get(key);
    if (!entry || clock.monotonicMs() - entry.setAtMs >= maxAgeMs) return undefined;
    return entry.value;
  }

  /** Sets the value of a key and makes it the newest entry. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, setAtMs: this.#options.clock.monotonicMs() });
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#options.maxEntries && !oldest.done)
      this.#entries.delete(oldest.value);
  }

  /**
   * Returns the value of a key. If the key has no value, stores and returns the value that `make` returns.
   * Concurrent callers share a promise. A promise that rejects is removed, so that the next caller
   * tries again.
   */
  getOrMake(key: K, make: () => V): V {
    const found = this.get(key);
    if (found !== undefined) return found;
    const value = make();
    this.set(key, value);
    if (value instanceof Promise)
      value.catch(() => {
        if (this.#entries.get(key)?.value === value) this.#entries.delete(key);
      });
    return value;
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  /** Deletes the entries of all keys that meet a condition. */
  deleteWhere(isDropped: (key: K) => boolean): void {
    for (const key of this.#entries.keys()) if (isDropped(key)) this.#entries.delete(key);
  }
}
