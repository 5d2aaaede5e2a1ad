import { takeDuePushes } from '../../shared/db/tables/pushes/schedule.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Fires the scheduled pushes whose time has come; gives how many. The table is the only schedule there
 * is: no job lies in the queue meanwhile, so nothing there can be lost, kept too short or left over, and
 * whoever deletes the entry, this or a cancelling call, decides what becomes of the push. The database's
 * clock decides for all: hosts may disagree on the time.
 */
export function fireDue(deps: DispatcherDeps, limit: number): Promise<number> {
  return deps.db.transaction(async (tx) => {
    const due = await takeDuePushes(tx, limit);
    await deps.queue.send(planJob, due, { tx });
    return due.length;
  });
}
