import { dayMs } from '../../../../shared/clock.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { listRotations } from '../../../../shared/db/tables/profiles.ts';
import { type Finding, found } from './finding.ts';

const name = 'credential rotations';
/** Time for which a rollback is told, and rotations that are looked at. */
const toldMs = 7 * dayMs;
const maxRotations = 100;

/** Tells about candidates of credentials that their check or their canary refused. */
export async function checkRotations({ db, nowMs }: { db: Handle; nowMs: number }): Promise<Finding[]> {
  const rotations = await listRotations(db, new Date(nowMs - toldMs), maxRotations);
  return rotations.flatMap(({ appId, connector, name: profile, state, reason, detail }) => {
    const params = { app: appId, connector, profile, detail: detail ?? reason ?? '' };
    if (state === 'staged' && reason !== null)
      return [found({ name, status: 'warn', code: 'candidateUnchecked', params })];
    if (state !== 'rolled_back' || reason === 'operator' || reason === 'replaced') return [];
    return [found({ name, status: 'warn', code: 'candidateRolledBack', params })];
  });
}
