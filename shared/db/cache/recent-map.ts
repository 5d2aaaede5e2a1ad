/** Map of a limited number of entries, which drops the oldest one. */
export class RecentMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Sets an entry and makes it the newest one. */
  keep(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#most && !oldest.done) this.#entries.delete(oldest.value);
  }

  forget(key: K): void {
    this.#entries.delete(key);
  }
}
