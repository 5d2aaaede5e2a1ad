import { sweepInvalidInstallations } from '../../shared/db/tables/installations/invalid-tokens.ts';
import { closeIfSettled, findSettledPushes } from '../../shared/db/tables/pushes/progress.ts';
import { noteFailureCount } from '../../shared/db/tables/pushes/retention.ts';
import { sumTotals } from '../../shared/domain/outcome.ts';
import { allTotals, pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Failures from which a push counts towards the bound of its app: those of smaller ones are as few as their records. */
const countedFrom = 100;

/**
 * Closes a push if all its batches are settled; called after the last one in work (`PushCloser`). Also deletes the
 * installations with dead tokens that had to wait for a success of another batch (protocol/delivery.md#promise-7).
 */
export async function closePush(
  deps: Pick<DispatcherDeps, 'db' | 'clock' | 'metrics'>,
  appId: string,
  pushId: number,
): Promise<void> {
  const closed = await closeIfSettled(deps.db, appId, pushId);
  if (!closed) return;
  const tookMs = Math.max(0, deps.clock.now() - pushBeganAtMs(closed));
  deps.metrics.pushCompleteSeconds.observe(tookMs / 1000);
  const outcomes = allTotals(closed.totals);
  const unreached = sumTotals(outcomes) - (outcomes.sent ?? 0);
  if (unreached >= countedFrom) await noteFailureCount(deps.db, { appId, id: pushId }, unreached);
  // Invalid tokens are among the failures.
  if (unreached > 0) await sweepInvalidInstallations(deps.db, appId, pushId);
}

const closedAtOnce = 100;

/** Closes the pushes that a crash left open between their last batch and the closing; returns how many. */
export async function closeSettledPushes(
  deps: Pick<DispatcherDeps, 'db' | 'clock' | 'metrics'>,
): Promise<number> {
  const found = await findSettledPushes(deps.db, closedAtOnce);
  for (const { appId, id } of found) await closePush(deps, appId, id);
  return found.length;
}
