import type { Clock } from '../../clock.ts';

/**
 * How old an answer may be. A change counts within one second on every process (protocol/admin-api.md#changes),
 * so half of that leaves room for the query itself.
 */
const maxAgeMs = 500;

/** Answers that nobody asked for lately are dropped, so that made-up keys do not fill the memory. */
const defaultMaxEntries = 10_000;

/** Remembers an answer for a moment; callers at the same time share one question. */
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

  /** How many answers it holds now. */
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

  /** Drops every answer whose key begins so. */
  forgetBeginning(text: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(text)) this.#entries.delete(key);
  }
}
