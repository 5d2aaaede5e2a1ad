import { type BatchSnapshot, readBatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import { markFirstSend } from '../../shared/db/tables/pushes/progress.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import {
  completeJob,
  type DeliverOptions,
  postpone,
  recordResult,
  settleUnsent,
} from '../recording/recorder.ts';
import type { SendSlot } from '../sending/task.ts';
import { passGates } from './gates.ts';
import { parkBatch } from './pause.ts';

/**
 * Sends one batch and records what became of it. True when the batch is settled or postponed (and the job
 * it came by completed), false when the dispatcher was told to stop before all of it was sent.
 */
export async function deliverBatch(
  deps: DispatcherDeps,
  task: DeliverJob,
  signal: AbortSignal,
  options: DeliverOptions = {},
): Promise<boolean> {
  for (;;) {
    const isDone = await deliverOnce(deps, task, signal, options);
    if (isDone !== 'ask again') return isDone;
  }
}

/** In so long a slot a batch waits more than it works, and its push has two or three batches at a time at the most. */
const longSlotMs = 250;

/** One round; `ask again` when the push was stopped or taken up again meanwhile: the gates know what follows. */
async function deliverOnce(
  deps: DispatcherDeps,
  task: DeliverJob,
  signal: AbortSignal,
  options: DeliverOptions,
): Promise<boolean | 'ask again'> {
  const batch = await readBatchSnapshot(deps.db, task.appId, task.batchId);
  if (!batch || batch.isSettled) {
    await completeJob(deps, deps.db, options);
    return true;
  }
  const verdict = await passGates(deps, task, batch);
  if (verdict.kind === 'settle') {
    const { outcome, reason } = verdict;
    await settleUnsent(deps, task, { batch, outcome, reason, ...options });
    return true;
  }
  if (verdict.kind === 'postpone') {
    await postpone(deps, task, { batch, afterMs: verdict.afterMs, at: verdict.at, ...options });
    return true;
  }
  if (verdict.kind === 'hold') return (await parkBatch(deps, task, options)) || 'ask again';
  if (signal.aborted) return false;
  await noteFirstSend(deps, task, batch);
  return sendThroughBreaker(deps, task, { batch, slot: verdict.slot, signal, ...options });
}

interface Departure extends DeliverOptions {
  batch: BatchSnapshot;
  slot: SendSlot | undefined;
  signal: AbortSignal;
}

/** A probe sends a slice of the batch; when it went well, the rest follows at once. */
async function sendThroughBreaker(
  deps: DispatcherDeps,
  task: DeliverJob,
  { batch, slot, signal, ...options }: Departure,
): Promise<boolean | 'ask again'> {
  if (slot && slot.durationMs >= longSlotMs) options.permit?.release();
  const key = { connector: batch.connector, appId: task.appId, profile: batch.profile };
  for (;;) {
    const passage = await deps.breakers.send(
      key,
      (slice, flight) =>
        deps.pool.run(
          { ...task, slice, progressMemory: flight, slot: slice === undefined ? slot : undefined },
          options.kind ? 'bulk' : 'express',
        ),
      options.permit,
    );
    if (passage.kind === 'wait') {
      await postpone(deps, task, { batch, afterMs: passage.afterMs, ...options });
      return true;
    }
    const { result, isCounted } = passage;
    const isRecorded = await recordResult(deps, task, { batch, result, isCounted, ...options });
    const isStopping = signal.aborted || deps.pool.isStopping;
    if (!isRecorded && result.isInterrupted && !isStopping) return 'ask again';
    if (isRecorded || !result.isSlice || signal.aborted) return isRecorded;
  }
}

async function noteFirstSend(
  deps: DispatcherDeps,
  { appId, pushId }: DeliverJob,
  batch: BatchSnapshot,
): Promise<void> {
  if (batch.firstSentAt) return;
  const now = new Date(deps.clock.now());
  if (!(await markFirstSend(deps.db, appId, pushId, now))) return;
  const beganAtMs = Math.max(batch.createdAt.getTime(), batch.pushTime.getTime());
  deps.metrics.pushFirstSendSeconds.observe(Math.max(0, now.getTime() - beganAtMs) / 1000);
}
