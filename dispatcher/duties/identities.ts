import { dayMs } from '../../shared/clock.ts';
import { listAppIds } from '../../shared/db/tables/apps/apps.ts';
import { continueRegistrationWalk, rewriteTokens } from '../../shared/db/tables/installations/identities.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Interval of walks over the registration ids of a large app: each one reads them all. */
const walkEveryMs = dayMs;

/**
 * Leaves one installation of each device (`tables/installations/identities.ts`), at most `limit`
 * tokens and a page of each app at a time. Returns `limit` if there is more to do, else the number
 * of tokens.
 */
export async function mergeDevices(
  { db, clock }: Pick<DispatcherDeps, 'db' | 'clock'>,
  limit: number,
): Promise<number> {
  const tokens = await rewriteTokens(db, limit);
  let isMore = false;
  for (const appId of await listAppIds(db)) {
    const now = clock.now();
    const walk = { appId, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    if (await continueRegistrationWalk(db, walk)) isMore = true;
  }
  return isMore ? limit : tokens;
}
