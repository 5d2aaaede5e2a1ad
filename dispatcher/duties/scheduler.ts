import { msToNextPush, takeDuePushes } from '../../shared/db/tables/pushes/schedule.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Pause after a pass that fired pushes: those that become due in it are fired together. */
const busyRestMs = 100;
/** Longest pause: an entry whose time is moved to an earlier one is found in time (protocol/delivery.md#promise-8). */
const longestRestMs = 500;

/**
 * Fires the scheduled pushes whose time has come. The table is the only schedule, so no job can be lost or left over: deleting
 * the entry decides between sending and cancelling a push. The database's clock decides for all dispatchers, since hosts may
 * disagree on the time. Remembers the next time, so that a pass begins with it.
 */
export class Scheduler {
  #restMs = longestRestMs;

  /** Pause after the last pass, in milliseconds. */
  get restMs(): number {
    return this.#restMs;
  }

  /** Fires at most `limit` pushes; returns how many. Where nothing is due it is one small query. */
  async fireDue(deps: DispatcherDeps, limit: number): Promise<number> {
    this.#restMs = longestRestMs;
    const waitMs = await msToNextPush(deps.db);
    if (waitMs > 0) {
      this.#restMs = Math.min(Math.ceil(waitMs), longestRestMs);
      return 0;
    }
    this.#restMs = busyRestMs;
    return deps.db.transaction(async (tx) => {
      const due = await takeDuePushes(tx, limit);
      await deps.queue.send(planJob, due, { tx });
      return due.length;
    });
  }
}
