import { dueIn } from '../../shared/db/clock.ts';
import { markJobCreated } from '../../shared/db/tables/pushes/batches.ts';
import { recordQuietWait } from '../../shared/db/tables/pushes/reports/quiet.ts';
import { deliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from './batch-in-work.ts';

/** When a batch is taken again. */
export interface Postponement {
  afterMs: number;
  /** The same time by the database's clock, for a batch that has to start on time. */
  at?: Date | undefined;
  /** The end of the quiet hours that it waits for. */
  quietUntil?: Date | undefined;
}

/**
 * Puts a batch back with a new job for later; this costs no try. Does nothing when another consumer has
 * taken over its job.
 */
export async function recordPostponed(
  deps: DispatcherDeps,
  batch: BatchInWork,
  { afterMs, at, quietUntil }: Postponement,
): Promise<void> {
  const { ids, stored } = batch;
  const startAfter = at ?? (await dueIn(deps.db, afterMs));
  const kind = deliverJob(stored.connector);
  const data = { ...ids, waitedUntilMs: startAfter.getTime() };
  await deps.db.transaction(async (tx) => {
    if (batch.job && !(await deps.queue.end(kind, batch.job.job, tx))) return;
    await markJobCreated(tx, ids.appId, ids.batchId);
    if (quietUntil) await recordQuietWait(tx, { ...ids, stored, until: quietUntil });
    await deps.queue.send(kind, [data], { tx, startAfter });
  });
  if (at) wakeWhenDue(deps, kind, afterMs);
}

/** Longest timer; for a later time the consumer's own poll is exact enough. */
const longestTimerMs = 3_600_000;

/**
 * Wakes the consumers of a queue when a job is due: they poll only once a second. If this process has ended by then, the job
 * starts up to a second late; a batch reserves a new slot.
 */
export function wakeWhenDue(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  kind: { queue: string },
  afterMs: number,
): void {
  if (afterMs > longestTimerMs) return;
  const wake = () => queue.wake(kind).catch(() => undefined);
  setTimeout(wake, Math.max(0, afterMs) + 5).unref();
}
