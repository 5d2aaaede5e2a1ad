import { hasEndedFreeze } from '../../shared/db/tables/apps/freezes.ts';
import { giveBackHeldJobs, holdJob } from '../../shared/queue/held-jobs.ts';
import type { JobKind } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Result of holding a job: `free`: the freeze has ended, and the job is to be worked on; `lost`: another consumer has it. */
type HoldEnd = 'held' | 'free' | 'lost';

/** Holds a job of a frozen app, so that no consumer takes it until the freeze ends. */
export async function holdFrozen<T extends { appId: string }>(
  { db, freezes }: Pick<DispatcherDeps, 'db' | 'freezes'>,
  kind: JobKind<T>,
  job: Job<T>,
): Promise<HoldEnd> {
  if (await holdJob(db, kind, job)) return 'held';
  freezes.refresh();
  return (await freezes.holds(job.data.appId)) ? 'lost' : 'free';
}

/** Gives back jobs whose freeze has ended; returns how many. Without an ended freeze it is one small query. */
export async function endFreezes({ db }: Pick<DispatcherDeps, 'db'>, limit: number): Promise<number> {
  return (await hasEndedFreeze(db)) ? db.transaction((tx) => giveBackHeldJobs(tx, limit)) : 0;
}
