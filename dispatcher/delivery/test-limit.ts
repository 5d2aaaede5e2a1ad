import { type TestLimit, toPushMessage } from '../../connectors/contract/connector.ts';
import { connectors } from '../../connectors/registry.ts';
import { grantTest } from '../../shared/db/tables/gateways/daily-use.ts';
import { findPush } from '../../shared/db/tables/pushes/pushes.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import { recordCapped } from '../recording/unsent.ts';

/**
 * Applies the limits of a push that is marked as a test (protocol/push.md#test-pushes): recipients beyond them end
 * `capped`. Returns the reason when no recipient is left.
 */
export async function checkTestLimit(
  deps: Pick<DispatcherDeps, 'db'>,
  { ids, stored }: BatchInWork,
): Promise<string | undefined> {
  const connector = connectors.get(stored.connector);
  if (!connector?.testLimit || stored.attempt > 0) return undefined;
  const push = await findPush(deps.db, ids.appId, ids.pushId);
  const limit = push && connector.testLimit(toPushMessage(push));
  if (!limit) return undefined;
  const devices = stored.size;
  const test = { ...ids, connector: stored.connector, devices };
  const granted = await deps.db.transaction((tx) => grantTest(tx, test, limit));
  if (granted >= devices) return undefined;
  const reason = reasonOf(limit);
  if (granted === 0) return reason;
  await recordCapped(deps, ids, { granted, reason });
  return undefined;
}

const reasonOf = ({ pushesPerDay, devicesPerPush }: TestLimit): string =>
  `test pushes go to at most ${devicesPerPush} devices, ${pushesPerDay} times a day`;
