import { askForApproval, findApproval } from '../../shared/db/tables/pushes/starts/approvals.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { type PlanJob, planJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { PlannedPage } from './pages.ts';

/**
 * Pauses a push to more devices than `approvalAboveDevices` of its app before anything of it is sent, until a second person
 * approves it (protocol/admin-api.md#approvals). Counts only where the app has that option, and no further than needed.
 * Returns true when the push waits and its job is completed.
 */
export async function waitForApproval(
  deps: DispatcherDeps,
  { push, app, job }: { push: Push; app: App; job: Job<PlanJob> },
  targets: () => AsyncGenerator<PlannedPage>,
): Promise<boolean> {
  const { approvalAboveDevices: limit } = app.options;
  // An expired push is not sent: its devices are counted.
  if (limit === null || push.expiresAt.getTime() <= deps.clock.now()) return false;
  if ((await findApproval(deps.db, push))?.givenAt || !(await isAbove(limit, targets()))) return false;
  return deps.db.transaction(async (tx) => {
    if (!(await askForApproval(tx, push, limit))) return false;
    await deps.queue.complete(planJob, job, tx);
    return true;
  });
}

async function isAbove(limit: number, pages: AsyncGenerator<PlannedPage>): Promise<boolean> {
  let devices = 0;
  for await (const { page } of pages) {
    devices += page.size;
    if (devices > limit) return true;
  }
  return false;
}
