import { deleteInvalid, noteKeptTokens, readInvalidAnswers } from '../../shared/db/tables/invalid-tokens.ts';
import { type ClosedPush, findSettledPushes } from '../../shared/db/tables/push-progress.ts';
import { noteFailureCount } from '../../shared/db/tables/pushes.ts';
import { sumTotals } from '../../shared/domain/outcome.ts';
import { deletableOf, type KeptTokens, keptOf } from '../../shared/domain/pushes/invalid-tokens.ts';
import { allTotals, pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { PlanJob } from '../../shared/queue/jobs.ts';
import type { Job } from '../../shared/queue/queue.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Failures from which a push counts towards the bound of its app: those of smaller ones are as few as their records. */
const countedFrom = 100;

type ClosingDeps = Pick<DispatcherDeps, 'db' | 'queries' | 'clock' | 'metrics' | 'log'>;

/**
 * Closes a push if all its batches are settled; called after each of them. Also deletes the
 * installations with invalid tokens. `job`: the planning job of the push, which ends then.
 */
export async function closePush(
  deps: ClosingDeps,
  ids: { appId: string; pushId: number },
  job?: Job<PlanJob>,
): Promise<void> {
  const closed = await deps.queries.end({ appId: ids.appId, id: ids.pushId, job });
  if (closed) await finishClosed(deps, ids, closed);
}

/** Counts a push that was closed, and deletes the installations with invalid tokens. */
export async function finishClosed(
  deps: ClosingDeps,
  { appId, pushId }: { appId: string; pushId: number },
  closed: ClosedPush,
): Promise<void> {
  const tookMs = Math.max(0, deps.clock.now() - pushBeganAtMs(closed));
  deps.metrics.pushCompleteSeconds.observe(tookMs / 1000);
  const outcomes = allTotals(closed.totals);
  const unreached = sumTotals(outcomes) - (outcomes.sent ?? 0);
  if (unreached >= countedFrom) await noteFailureCount(deps.db, { appId, id: pushId }, unreached);
  if ((outcomes.invalid_token ?? 0) > 0) await deleteInvalidTokens(deps, { appId, pushId });
}

/**
 * Deletes the installations of a finished push whose tokens are invalid, or notes on the record
 * that most of a profile are called so (protocol/delivery.md#promise-7). Only the whole push tells
 * whether they are most.
 */
async function deleteInvalidTokens(
  { db, log }: Pick<DispatcherDeps, 'db' | 'log'>,
  push: { appId: string; pushId: number },
): Promise<void> {
  const kept: KeptTokens[] = [];
  for (const { successes, ...answers } of await readInvalidAnswers(db, push)) {
    const deletable = deletableOf(answers);
    if (deletable.called || deletable.proven)
      await deleteInvalid(db, { ...push, profile: answers, deletable, successes });
    const ofProfile = keptOf(answers);
    if (!ofProfile) continue;
    kept.push(ofProfile);
    log.warn({ app: push.appId, ...ofProfile }, 'most tokens are called invalid: their devices are kept');
  }
  if (kept.length > 0) await noteKeptTokens(db, push, kept);
}

const closedAtOnce = 100;

/** Closes the pushes that a crash left open between their last batch and the closing; returns how many. */
export async function closeSettledPushes(deps: ClosingDeps): Promise<number> {
  const found = await findSettledPushes(deps.db, closedAtOnce);
  for (const { appId, id } of found) await closePush(deps, { appId, pushId: id });
  return found.length;
}
