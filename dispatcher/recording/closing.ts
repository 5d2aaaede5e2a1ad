import { sweepInvalidInstallations } from '../../shared/db/tables/installations/invalid-tokens.ts';
import { closeIfSettled, findSettledPushes } from '../../shared/db/tables/pushes/progress.ts';
import type { DispatcherDeps } from '../deps.ts';

/**
 * Closes a push if all of it is settled. Called after each batch; whoever comes last finds it so. Dead
 * tokens that had to wait for a success elsewhere in the push go now (protocol/delivery.md#promise-7).
 */
export async function closePush(
  deps: Pick<DispatcherDeps, 'db' | 'clock' | 'metrics'>,
  appId: string,
  pushId: number,
): Promise<void> {
  const closed = await closeIfSettled(deps.db, appId, pushId);
  if (!closed) return;
  const beganAtMs = Math.max(closed.createdAt.getTime(), closed.pushTime.getTime());
  deps.metrics.pushCompleteSeconds.observe(Math.max(0, deps.clock.now() - beganAtMs) / 1000);
  await sweepInvalidInstallations(deps.db, appId, pushId);
}

const reapedAtOnce = 100;

/** Closes what a crash between the last batch and its closing left open; gives how many. */
export async function reap(deps: Pick<DispatcherDeps, 'db' | 'clock' | 'metrics'>): Promise<number> {
  const found = await findSettledPushes(deps.db, reapedAtOnce);
  for (const { appId, id } of found) await closePush(deps, appId, id);
  return found.length;
}
