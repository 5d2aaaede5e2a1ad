import { hasDuePushes, takeDuePushes } from '../../shared/db/tables/pushes/schedule.ts';
import { planJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Fires the scheduled pushes whose time has come; returns how many. The table is the only schedule, so no job can be lost
 * or left over: deleting the entry decides between sending and cancelling a push. The database's clock decides for all
 * dispatchers, since hosts may disagree on the time.
 */
export async function fireDue(deps: DispatcherDeps, limit: number): Promise<number> {
  // One round trip where nothing is due: this runs ten times a second.
  if (!(await hasDuePushes(deps.db))) return 0;
  return deps.db.transaction(async (tx) => {
    const due = await takeDuePushes(tx, limit);
    await deps.queue.send(planJob, due, { tx });
    return due.length;
  });
}
