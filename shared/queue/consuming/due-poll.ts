import { sleep } from '../../clock.ts';
import type { Handle } from '../../db/pool.ts';
import { prepare } from '../../db/prepared.ts';
import type { Logger } from '../../process/logging.ts';

/** Interval in which the queues are looked at: each look reads the index entries of all jobs that wait for a later time. */
const everyMs = 1000;

/** Returns those of the queues `$1` with a job that could be taken now; by the index that pg-boss takes jobs by. */
export const dueText = `SELECT name FROM unnest($1::text[]) AS queue (name)
    WHERE EXISTS (SELECT FROM pgboss.job j
                   WHERE j.name = queue.name AND j.state < 'active' AND NOT j.blocked AND j.start_after <= now())`;

const dueStatement = prepare(dueText);

/**
 * Finds the queues with jobs that could be taken: those whose start time has come, and those whose NOTIFY was lost. One statement
 * for all consumers of a process; most of them find nothing for hours.
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

  /** Calls `wake` while the queue has such jobs; returns a function that ends this. */
  add(queue: string, wake: () => void): () => void {
    const wakes = this.#wakes.get(queue) ?? new Set();
    this.#wakes.set(queue, wakes.add(wake));
    this.#loop ??= this.#run();
    return () => wakes.delete(wake);
  }

  /** Ends the loop and waits for its statement. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    for (;;) {
      await sleep(everyMs, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      await this.#look().catch((error: unknown) =>
        this.#log.warn({ err: error }, 'could not look for due jobs'),
      );
    }
  }

  async #look(): Promise<void> {
    const { rows } = await this.#db.query<{ name: string }>(dueStatement, [[...this.#wakes.keys()]]);
    for (const { name } of rows) for (const wake of this.#wakes.get(name) ?? []) wake();
  }
}
