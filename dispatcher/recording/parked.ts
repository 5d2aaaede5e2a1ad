import { markBatchParked } from '../../shared/db/tables/pushes/control.ts';
import type { DispatcherDeps } from '../deps.ts';
import { type BatchInWork, completeJob } from './batch-in-work.ts';

/** Parks a batch of a paused push without a job, until the push is resumed. Returns false when it is not paused any more. */
export function recordParked(deps: DispatcherDeps, batch: BatchInWork): Promise<boolean> {
  const { appId, pushId, batchId } = batch.ids;
  return deps.db.transaction(async (tx) => {
    if (!(await markBatchParked(tx, { appId, pushId, id: batchId }))) return false;
    await completeJob(deps, tx, batch);
    return true;
  });
}
