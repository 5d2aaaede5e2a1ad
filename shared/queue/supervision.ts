import { type Clock, sleep, systemClock } from '../clock.ts';
import type { Logger } from '../process/logging.ts';
import { queueSettings } from './jobs.ts';

const intervalMs = 2000;
const stopMs = 1000;
const heartbeatMs = queueSettings.heartbeatSeconds * 1000;

interface Supervised {
  /** Rejects, or hangs, if the database is unavailable. */
  probe: () => Promise<unknown>;
  /** Hands out jobs without a heartbeat again, and deletes ended jobs. */
  pass: () => Promise<void>;
  log: Logger;
  clock?: Clock;
}

/**
 * Maintains the queues every two seconds. After an outage of the database it waits for the duration
 * of a heartbeat. No dispatcher could write heartbeats during the outage. Without the wait, jobs of
 * a dispatcher that still works would be given to another dispatcher and sent twice.
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

  /** Waits for a pass in progress, but not if the database is unavailable. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.race([this.#running, sleep(stopMs)]);
  }

  /** Checks the database, and maintains the queues if it may. Never rejects. */
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
