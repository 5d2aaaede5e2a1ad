import type { Clock } from '../../clock.ts';

/**
 * Maximum age of an entry. A change must take effect within one second on every process
 * (protocol/admin-api.md#changes); half of that is left for the query.
 */
const maxAgeMs = 500;

/** Limit of entries, so that invented keys do not fill the memory. */
const defaultMaxEntries = 10_000;

/** Short-lived cache; concurrent callers share one query. */
export class ShortCache<V> {
  readonly #entries = new Map<string, { value: Promise<V>; askedAtMs: number }>();
  readonly #clock: Clock;
  readonly #ask: (key: string) => Promise<V>;
  readonly #maxEntries: number;

  constructor(clock: Clock, ask: (key: string) => Promise<V>, maxEntries = defaultMaxEntries) {
    this.#clock = clock;
    this.#ask = ask;
    this.#maxEntries = maxEntries;
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Promise<V> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#entries.get(key);
    if (known && nowMs - known.askedAtMs < maxAgeMs) return known.value;
    if (this.#entries.size >= this.#maxEntries) this.#entries.clear();
    const value = this.#ask(key);
    const entry = { value, askedAtMs: nowMs };
    this.#entries.set(key, entry);
    value.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    return value;
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }

  /** Drops every entry whose key has this prefix. */
  forgetBeginning(text: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(text)) this.#entries.delete(key);
  }
}
