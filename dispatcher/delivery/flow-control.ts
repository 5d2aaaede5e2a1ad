import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import { reserveSlot, type Slot } from '../../shared/db/tables/pushes/pace.ts';
import { type DeliverJob, deliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { SendSlot } from '../sending/task.ts';

/** What a new slot leaves for the way to the thread and for loading the recipients. */
const leadMs = 100;

/** A batch whose slot is nearer than this goes to its thread, which waits for the rest. */
const handOverMs = 250;

/**
 * A batch that comes later than this has missed its slot: what it would send now is other batches' time,
 * and a twentieth of a second is half of what the promise leaves above the rate.
 */
const lateMs = 50;

/** When a paced batch may be sent: in this slot, or not before a time (by the database's clock). */
export type SendTime = { kind: 'now'; slot: SendSlot } | { kind: 'later'; afterMs: number; at: Date };

/**
 * The slot of a batch in the pace of its push (protocol/push.md#flow-control), reserved once however often the
 * batch is taken, unless it was missed or the pace was changed. Undefined where the push has no pace.
 */
export async function reserveFlowControl(
  deps: Pick<DispatcherDeps, 'db' | 'clock'>,
  task: DeliverJob,
  batch: BatchSnapshot,
): Promise<SendTime | undefined> {
  if (!batch.isPaced) return undefined;
  const isKept = batch.slot !== null && batch.slot.inMs >= -lateMs;
  const slot = isKept ? batch.slot : await reserveSlot(deps.db, task, leadMs);
  return slot ? sendTimeOf(slot, deps.clock.now()) : undefined;
}

/** What a slot that was reserved means at this moment. */
export function sendTimeOf({ at, inMs, durationMs }: Slot, nowMs: number): SendTime {
  if (inMs <= handOverMs) return { kind: 'now', slot: { startAtMs: nowMs + inMs, durationMs } };
  return { kind: 'later', afterMs: inMs - handOverMs, at: new Date(at.getTime() - handOverMs) };
}

/** Beyond this a consumer's own look into the queue is soon enough. */
const longestTimerMs = 3_600_000;

/**
 * Wakes the consumers of a connector when a postponed batch is due: they look into their queues once a
 * second only. Should this process be gone by then, the batch is found a second late and gets a new slot.
 */
export function wakeWhenDue(
  { queue }: Pick<DispatcherDeps, 'queue'>,
  batch: BatchSnapshot,
  afterMs: number,
): void {
  if (afterMs > longestTimerMs) return;
  const wake = () => queue.wake(deliverJob(batch.connector)).catch(() => undefined);
  setTimeout(wake, afterMs + 5).unref();
}
