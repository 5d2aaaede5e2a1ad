import { sleep } from '../../shared/clock.ts';
import type { Logger } from '../../shared/process/logging.ts';

export interface WriteBufferOptions<T> {
  name: string;
  /** Items wait this long for company. */
  delayMs: number;
  write(items: T[]): Promise<void>;
  log: Logger;
}

/** Items of one write. */
const writeSize = 1000;
/** Beyond this many the database has been gone for long: what is dropped is delivered again some day. */
const maxWaiting = 100_000;
const retryAfterMs = 500;

/**
 * Gathers small writes of many connections into few statements: a thousand devices that acknowledge one
 * push would else queue for the same row. One write at a time; a failed one is tried again.
 */
export class WriteBuffer<T> {
  readonly #options: WriteBufferOptions<T>;
  readonly #hurry = new AbortController();
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

  /** Writes what waits without further delay, and tries only once. */
  async drain(): Promise<void> {
    this.#hurry.abort();
    await this.#work;
  }

  async #writeAll(): Promise<void> {
    let pauseMs = this.#options.delayMs;
    while (this.#waiting.length > 0) {
      await sleep(pauseMs, this.#hurry.signal);
      const isWritten = await this.#write(this.#waiting.splice(0, writeSize));
      if (!isWritten && this.#hurry.signal.aborted) return;
      pauseMs = isWritten ? 0 : retryAfterMs;
    }
  }

  async #write(items: T[]): Promise<boolean> {
    try {
      await this.#options.write(items);
      return true;
    } catch (error) {
      this.#options.log.warn({ err: error, what: this.#options.name }, 'could not write, trying again');
      this.#waiting = [...items, ...this.#waiting];
      return false;
    }
  }
}
