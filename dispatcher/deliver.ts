import { type DeliverSnapshot, deliverSnapshot } from '../shared/db/tables/delivery.ts';
import { markFirstSend } from '../shared/db/tables/push-progress.ts';
import type { Outcome } from '../shared/domain/outcome.ts';
import type { DeliverJob } from '../shared/queue/jobs.ts';
import type { Means } from './means.ts';
import { completeJob, type DeliverOptions, recordResult, settleUnsent } from './recorder.ts';

/**
 * Sends one batch and records what became of it. True when the batch is settled (and its job completed),
 * false when the dispatcher was told to stop before all of it was sent.
 */
export async function deliverBatch(
  means: Means,
  task: DeliverJob,
  signal: AbortSignal,
  options: DeliverOptions = {},
): Promise<boolean> {
  const batch = await deliverSnapshot(means.db, task.appId, task.batchId);
  if (!batch || batch.isSettled) {
    await completeJob(means, means.db, options);
    return true;
  }
  const unsent = reasonNotToSend(batch, means.clock.now());
  if (unsent) {
    await settleUnsent(means, task, { batch, ...unsent, ...options });
    return true;
  }
  if (signal.aborted) return false;
  await noteFirstSend(means, task, batch);
  const result = await means.pool.run(task);
  return recordResult(means, task, { batch, result, ...options });
}

/** Expired, cancelled, or sent by a profile that this push gave up: counted without being sent. */
function reasonNotToSend(
  batch: DeliverSnapshot,
  nowMs: number,
): { outcome: Outcome; reason: string } | undefined {
  if (batch.state === 'cancelled') return { outcome: 'dropped', reason: 'cancelled' };
  if (batch.expiresAt.getTime() <= nowMs) return { outcome: 'expired', reason: 'expired before it was sent' };
  const halt = batch.halts[`${batch.connector}/${batch.profile}`];
  return halt === undefined ? undefined : { outcome: 'failed', reason: halt };
}

async function noteFirstSend(
  means: Means,
  { appId, pushId }: DeliverJob,
  batch: DeliverSnapshot,
): Promise<void> {
  if (batch.firstSentAt) return;
  const now = new Date(means.clock.now());
  if (!(await markFirstSend(means.db, appId, pushId, now))) return;
  const beganAtMs = Math.max(batch.createdAt.getTime(), batch.pushTime.getTime());
  means.metrics.pushFirstSendSeconds.observe(Math.max(0, now.getTime() - beganAtMs) / 1000);
}
