import { dayMs } from '../../shared/clock.ts';
import { listAppIds } from '../../shared/db/tables/apps/apps.ts';
import { continueIdleWalk } from '../../shared/db/tables/installations/idle.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Interval of walks over the installations of a large app: each one reads them all. */
const walkEveryMs = dayMs;

/**
 * Deletes installations that were neither updated nor imported within their app's validity
 * (protocol/installations.md#idle-installations), at most `limit` per app and pass; returns the largest number of one app, or
 * `limit` where a walk goes on.
 */
export async function deleteIdle({ db, appCache, clock }: DispatcherDeps, limit: number): Promise<number> {
  let most = 0;
  for (const appId of await listAppIds(db)) {
    const app = await appCache.app(appId);
    if (!app) continue;
    const now = clock.now();
    const before = new Date(now - app.options.installationValidityDays * dayMs);
    const walk = { appId, before, limit, now: new Date(now), nextAt: new Date(now + walkEveryMs) };
    most = Math.max(most, await continueIdleWalk(db, walk));
  }
  return most;
}
