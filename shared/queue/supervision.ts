import { type Clock, sleep, systemClock } from '../clock.ts';
import type { Logger } from '../process/logging.ts';
import { queueSettings } from './jobs.ts';

const intervalMs = 2000;
const stopMs = 1000;
const heartbeatMs = queueSettings.heartbeatSeconds * 1000;

interface Supervised {
  /** Rejects, or takes long, if the database is away. */
  probe: () => Promise<unknown>;
  /** Hands out jobs without a heartbeat again, and deletes ended jobs. */
  pass: () => Promise<void>;
  log: Logger;
  clock?: Clock;
}

/**
 * Passes over the queues every two seconds. After the database was away it waits for as long as a
 * heartbeat lasts: nobody could write one, and another dispatcher must not get the jobs of one that
 * still works, and send them again.
 */
export class QueueSupervision {
  readonly #supervised: Supervised;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wasAway = false;
  #nextPassAtMs = 0;

  constructor(supervised: Supervised) {
    this.#supervised = supervised;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Waits for a pass in work, but not for a database that is away. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.race([this.#running, sleep(stopMs)]);
  }

  /** Probes the database once and passes over the queues if it may. Never rejects. */
  async tick(): Promise<void> {
    const { probe, pass, log, clock = systemClock } = this.#supervised;
    const startedAtMs = clock.monotonicMs();
    try {
      await probe();
      const nowMs = clock.monotonicMs();
      if (this.#wasAway || nowMs - startedAtMs > heartbeatMs / 2)
        this.#nextPassAtMs = nowMs + heartbeatMs;
      this.#wasAway = false;
      if (nowMs >= this.#nextPassAtMs) await pass();
    } catch (error) {
      this.#wasAway = true;
      if (!this.#stopping.signal.aborted) log.warn({ err: error }, 'queue error');
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(intervalMs, signal);
      if (signal.aborted) return;
      await this.tick();
    }
  }
}
