import type { Handle } from '../../../../shared/db/pool.ts';
import { listWaitingApprovals } from '../../../../shared/db/tables/scheduled-pushes.ts';
import { type Finding, found } from './finding.ts';

/** Apps that are told one by one. */
const mostShown = 20;

/** Tells which apps have pushes that wait for the approval of a second person; they expire as others do. */
export async function checkApprovals(db: Handle): Promise<Finding[]> {
  const waiting = await listWaitingApprovals(db, mostShown);
  return waiting.map(({ appId, pushes, since }) =>
    found({
      name: 'approval',
      status: 'warn',
      code: 'approvalsWait',
      params: { app: appId, n: pushes, since: since.toISOString() },
    }),
  );
}
