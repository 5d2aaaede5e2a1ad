import type { Grant } from '../../shared/db/tables/apps/usage.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import { recordCapped } from '../recording/unsent.ts';

/**
 * Counts the recipients of a batch towards the app's daily cap (protocol/push.md#daily-recipients), once however often
 * the batch is taken; a retry batch was counted with its first one. Recipients beyond the cap end `capped`. Returns the
 * reason when no recipient is left.
 */
export async function checkDailyCap(
  deps: Pick<DispatcherDeps, 'db' | 'appCache' | 'queries'>,
  { ids, stored }: BatchInWork,
): Promise<string | undefined> {
  if (stored.attempt > 0) return undefined;
  const app = await deps.appCache.app(ids.appId);
  if (!app) return undefined;
  const cap = app.options.dailyRecipientCap;
  const grant = stored.grant ?? (await deps.queries.grant({ ...ids, cap })) ?? (await readGrant(deps, ids));
  if (!grant || grant.granted >= grant.size) return undefined;
  const reason = `the daily recipient cap of ${cap} is reached`;
  if (grant.granted === 0) return reason;
  await recordCapped(deps, ids, { granted: grant.granted, reason });
  return undefined;
}

/** Reads the grant that another take of the batch got after this one had loaded it. */
async function readGrant(
  { queries }: Pick<DispatcherDeps, 'queries'>,
  ids: DeliverJob,
): Promise<Grant | null> {
  const batch = await queries.readSnapshot(ids);
  return batch?.grant ?? null;
}
