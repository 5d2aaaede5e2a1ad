import type { Handle } from '../../../../shared/db/pool.ts';
import { findRestoration } from '../../../../shared/db/tables/restorations.ts';
import { type Finding, found } from './finding.ts';

/** Tells about pushes that a restore has paused. */
export async function checkRestoration(db: Handle): Promise<Finding[]> {
  const restoration = await findRestoration(db);
  if (!restoration || restoration.paused === 0) return [];
  const { asOf, paused } = restoration;
  return [
    found({
      name: 'restore',
      status: 'warn',
      code: 'restored',
      params: { asOf: asOf.toISOString(), paused },
    }),
  ];
}
