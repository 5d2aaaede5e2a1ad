import type { Handle } from '../../../../shared/db/pool.ts';
import { findRestoration } from '../../../../shared/db/tables/restorations.ts';
import { type Finding, warn } from './finding.ts';

/** Tells about pushes that a restore has paused. */
export async function checkRestoration(db: Handle): Promise<Finding[]> {
  const restoration = await findRestoration(db);
  if (!restoration || restoration.paused === 0) return [];
  const { asOf, paused } = restoration;
  return [
    warn(
      'restore',
      `the database was restored to ${asOf.toISOString()}; ${paused} pushes are still paused by that`,
      'Resume or cancel each: what was sent between that time and the restore is sent again by a resume.',
    ),
  ];
}
