/** Runs at most `width` tasks at a time, the others in the order they came: a share of the database pool. */
export class ConcurrencyLimiter {
  #free: number;
  readonly #queue: (() => void)[] = [];

  constructor(width: number) {
    this.#free = width;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
