import { dayMs } from '../../shared/clock.ts';
import { reviewCanary } from '../../shared/db/tables/apps/canary-decisions.ts';
import { forgetPrevious, listCanaries } from '../../shared/db/tables/apps/profile-rotations.ts';
import { judgeCanary } from '../../shared/domain/apps/canary.ts';
import type { DispatcherDeps } from '../deps.ts';

const canariesAtOnce = 500;
/** Time for which replaced credentials are kept, for a rollback. */
const previousMs = 7 * dayMs;

/** Decides on canaries by their age, and forgets credentials that were replaced long ago. Returns the number of changes. */
export async function reviewCanaries({
  db,
  clock,
  log,
}: Pick<DispatcherDeps, 'db' | 'clock' | 'log'>): Promise<number> {
  const nowMs = clock.now();
  let changed = await forgetPrevious(db, new Date(nowMs - previousMs));
  for (const rotation of await listCanaries(db, canariesAtOnce)) {
    if (!judgeCanary(rotation, nowMs - rotation.changedAt.getTime())) continue;
    const state = await reviewCanary(db, rotation, nowMs);
    if (!state) continue;
    changed += 1;
    const { appId, connector, name } = rotation;
    log.info({ appId, connector, profile: name, state }, 'a canary of credentials has ended');
  }
  return changed;
}
