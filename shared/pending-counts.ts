/**
 * Numbers that are added up in memory by key, and written now and then. The callers would otherwise
 * wait for each other on one row. A crash loses what is not written yet.
 */
export class PendingCounts<K extends object> {
  readonly #write: (key: K, numbers: readonly number[]) => Promise<void>;
  #entries = new Map<string, { key: K; numbers: readonly number[] }>();

  /** `write` adds the numbers of a key to a row. */
  constructor(write: (key: K, numbers: readonly number[]) => Promise<void>) {
    this.#write = write;
  }

  /** Adds to the numbers of a key. */
  add(key: K, ...numbers: readonly number[]): void {
    const id = JSON.stringify(key);
    const before = this.#entries.get(id)?.numbers ?? [];
    this.#entries.set(id, { key, numbers: numbers.map((n, i) => n + (before[i] ?? 0)) });
  }

  /** Writes all numbers. If a write fails, rejects and keeps what is not written. */
  async flush(): Promise<void> {
    const entries = this.#entries;
    this.#entries = new Map();
    for (const [id, { key, numbers }] of entries) {
      try {
        await this.#write(key, numbers);
        entries.delete(id);
      } catch (error) {
        for (const unwritten of entries.values()) this.add(unwritten.key, ...unwritten.numbers);
        throw error;
      }
    }
  }
}
