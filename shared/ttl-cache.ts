import { type Clock, systemClock } from './clock.ts';

export interface TtlCacheOptions {
  clock?: Pick<Clock, 'monotonicMs'>;
  /** Age at which an entry ends; without it, entries stay until newer ones replace them. */
  maxAgeMs?: number;
  /** Maximum number of entries. A further entry replaces the oldest one. */
  maxEntries?: number;
}

/**
 * Maximum age of what operators and other processes change. A change must take effect within one
 * second on every process (protocol/admin-api.md#changes); half of it is left for the query.
 */
export const changeMaxAgeMs = 500;

/** Limit of entries, so that invented keys do not fill the memory. */
const defaultMaxEntries = 10_000;

/** Map of a limited number of entries, each of which ends at an age. */
export class TtlCache<K, V> {
  readonly #options: Required<TtlCacheOptions>;
  /** Entries by their age, the oldest first. */
  readonly #entries = new Map<K, { value: V; setAtMs: number }>();

  constructor(options: TtlCacheOptions) {
    const maxAgeMs = Number.POSITIVE_INFINITY;
    this.#options = { clock: systemClock, maxAgeMs, maxEntries: defaultMaxEntries, ...options };
  }

  /** Number of entries, ended ones included. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a key; undefined if it has none, or an ended one. */
  get(key: K): V | undefined {
    const { clock, maxAgeMs } = this.#options;
    const entry = this.#entries.get(key);
    if (!entry || clock.monotonicMs() - entry.setAtMs >= maxAgeMs) return undefined;
    return entry.value;
  }

  /** Sets the value of a key, and makes it the newest entry. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, setAtMs: this.#options.clock.monotonicMs() });
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#options.maxEntries && !oldest.done)
      this.#entries.delete(oldest.value);
  }

  /**
   * Returns the value of a key, or else the one that `make` returns, which it keeps. Concurrent
   * callers share a promise; one that rejects is dropped, so that the next caller tries again.
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

  /** Drops the entries of all keys that meet a condition. */
  deleteWhere(isDropped: (key: K) => boolean): void {
    for (const key of this.#entries.keys()) if (isDropped(key)) this.#entries.delete(key);
  }
}
