import { sleep } from '../../shared/clock.ts';
import type { Logger } from '../../shared/process/logging.ts';

export interface WriteBufferOptions<T> {
  name: string;
  /** Delay before a write, in which further items join it. */
  delayMs: number;
  write(items: T[]): Promise<void>;
  log: Logger;
}

/** Most items of one write; with as many waiting, the next write does not wait. */
const writeSize = 4000;
/** Items kept while the database is away. Dropping more is safe: devices get those messages again. */
export const maxWaiting = 100_000;
const retryAfterMs = 500;

/**
 * Combines small writes of many connections into few statements, so that a thousand devices that acknowledge one
 * push do not queue for its row. Runs one write at a time and repeats a failed one.
 */
export class WriteBuffer<T> {
  readonly #options: WriteBufferOptions<T>;
  readonly #flush = new AbortController();
  #waiting: T[] = [];
  #work: Promise<void> | undefined;

  constructor(options: WriteBufferOptions<T>) {
    this.#options = options;
  }

  add(item: T): void {
    if (this.#waiting.length >= maxWaiting) return;
    this.#waiting.push(item);
    this.#work ??= this.#writeAll().finally(() => {
      this.#work = undefined;
    });
  }

  /** Writes the waiting items without delay; tries only once. */
  async drain(): Promise<void> {
    this.#flush.abort();
    await this.#work;
  }

  async #writeAll(): Promise<void> {
    let pauseMs = this.#options.delayMs;
    while (this.#waiting.length > 0) {
      if (pauseMs > 0) await sleep(pauseMs, this.#flush.signal);
      const isWritten = await this.#write(this.#waiting.splice(0, writeSize));
      if (!isWritten && this.#flush.signal.aborted) return;
      const isFull = this.#waiting.length >= writeSize;
      pauseMs = !isWritten ? retryAfterMs : isFull ? 0 : this.#options.delayMs;
    }
  }

  async #write(items: T[]): Promise<boolean> {
    try {
      await this.#options.write(items);
      return true;
    } catch (error) {
      this.#options.log.warn({ err: error, buffer: this.#options.name }, 'write failed, will retry');
      this.#waiting = [...items, ...this.#waiting];
      return false;
    }
  }
}
