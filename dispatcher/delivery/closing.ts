import { sweepDeadInstallations } from '../../shared/db/tables/dead-installations.ts';
import { closeIfSettled, findSettledPushes } from '../../shared/db/tables/push-progress.ts';
import type { Means } from '../means.ts';

/**
 * Closes a push if all of it is settled. Called after each batch; whoever comes last finds it so. Dead
 * tokens that had to wait for a success elsewhere in the push go now (protocol/delivery.md#promise-7).
 */
export async function closePush(
  means: Pick<Means, 'db' | 'clock' | 'metrics'>,
  appId: string,
  pushId: number,
): Promise<void> {
  const closed = await closeIfSettled(means.db, appId, pushId);
  if (!closed) return;
  const beganAtMs = Math.max(closed.createdAt.getTime(), closed.pushTime.getTime());
  means.metrics.pushCompleteSeconds.observe(Math.max(0, means.clock.now() - beganAtMs) / 1000);
  await sweepDeadInstallations(means.db, appId, pushId);
}

const reapedAtOnce = 100;

/** Closes what a crash between the last batch and its closing left open; gives how many. */
export async function reap(means: Pick<Means, 'db' | 'clock' | 'metrics'>): Promise<number> {
  const found = await findSettledPushes(means.db, reapedAtOnce);
  for (const { appId, id } of found) await closePush(means, appId, id);
  return found.length;
}
