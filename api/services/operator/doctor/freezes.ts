import type { Handle } from '../../../../shared/db/pool.ts';
import { listFreezes } from '../../../../shared/db/tables/apps.ts';
import { type Finding, found } from './finding.ts';

/** Freezes that are told one by one. */
const mostShown = 20;

/** Tells which apps are frozen, and whether the whole service is: their pushes wait until somebody releases them. */
export async function checkFreezes(db: Handle): Promise<Finding[]> {
  const freezes = await listFreezes(db);
  return freezes.slice(0, mostShown).map(({ appId, since, reason, by }) =>
    found({
      name: 'freeze',
      status: 'warn',
      code: appId === null ? 'serviceFrozen' : 'appFrozen',
      params: { app: appId ?? '', since: since.toISOString(), by, reason: reason || '-' },
    }),
  );
}
