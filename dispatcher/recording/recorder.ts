import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from './batch-in-work.ts';
import { countCalls } from './counts.ts';
import { recordPartial } from './partial.ts';
import { endSpentTries } from './retried.ts';
import type { SentBatch } from './sent-batch.ts';
import { recordSettled } from './settled.ts';

/**
 * Records the result of a sent batch. Returns true when the batch is settled, false when some of its recipients are
 * unsent: then the outcomes so far are stored, and the batch goes back.
 */
export async function recordResult(
  deps: DispatcherDeps,
  batch: BatchInWork,
  { result: reported, isCounted }: SentBatch,
): Promise<boolean> {
  const result = isCounted ? endSpentTries(reported, batch.stored.tries) : reported;
  countCalls(deps, result);
  const isSettled = !result.states.hasOpen;
  if (isSettled) await recordSettled(deps, batch, { result, isCounted });
  else await recordPartial(deps, batch, { result, isCounted });
  return isSettled;
}
