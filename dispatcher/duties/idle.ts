import { dayMs } from '../../shared/clock.ts';
import { listAppIds } from '../../shared/db/tables/apps/apps.ts';
import { deleteIdleInstallations } from '../../shared/db/tables/installations/installations.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Deletes installations that were neither updated nor imported within their app's validity
 * (protocol/installations.md#idle-installations), at most `limit` per app; returns the largest number of one app.
 */
export async function deleteIdle({ db, appCache, clock }: DispatcherDeps, limit: number): Promise<number> {
  let most = 0;
  for (const appId of await listAppIds(db)) {
    const app = await appCache.app(appId);
    if (!app) continue;
    const before = new Date(clock.now() - app.options.installationValidityDays * dayMs);
    most = Math.max(most, await deleteIdleInstallations(db, { appId, before, limit }));
  }
  return most;
}
