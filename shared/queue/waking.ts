import { sleep } from '../clock.ts';
import type { Listener } from '../db/listener.ts';
import type { Handle } from '../db/pool.ts';
import type { Logger } from '../process/logging.ts';
import { findDueQueues } from './queue-sql.ts';

/**
 * NOTIFY channel that wakes consumers. The payload is the name for which they listen, usually the
 * name of their queue.
 */
export const wakeTopic = 'carillon_queue';

/** Wakes the consumers with these names when `db` commits. */
export async function wakeConsumers(db: Handle, names: readonly string[]): Promise<void> {
  if (names.length > 0)
    await db.query('SELECT pg_notify($1, name) FROM unnest($2::text[]) AS consumer (name)', [
      wakeTopic,
      names,
    ]);
}

/** Sources that notify consumers of due jobs. */
export interface Waking {
  listener: Listener;
  /** Reports jobs whose start time has come, and jobs whose NOTIFY was lost. */
  duePoll: Pick<DuePoll, 'add'>;
}

/** Poll interval in ms. Each poll reads the index entries of all postponed jobs. */
const everyMs = 1000;

/**
 * Finds the queues with due jobs: jobs whose start time has come, and jobs whose NOTIFY was lost.
 * One statement serves all consumers of a process, and most of them have nothing to do for hours.
 */
export class DuePoll {
  readonly #db: Handle;
  readonly #log: Logger;
  readonly #wakes = new Map<string, Set<() => void>>();
  readonly #stop = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(db: Handle, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Calls `wake` while the queue contains due jobs. Returns a function that ends this. */
  add(queue: string, wake: () => void): () => void {
    const wakes = this.#wakes.get(queue) ?? new Set();
    this.#wakes.set(queue, wakes.add(wake));
    this.#loop ??= this.#run();
    return () => wakes.delete(wake);
  }

  /** Ends the loop, and waits for its statement. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    for (;;) {
      await sleep(everyMs, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      await this.#poll().catch((error: unknown) =>
        this.#log.warn({ err: error }, 'could not look for due jobs'),
      );
    }
  }

  async #poll(): Promise<void> {
    const due = await findDueQueues(this.#db, [...this.#wakes.keys()]);
    for (const name of due) for (const wake of this.#wakes.get(name) ?? []) wake();
  }
}
