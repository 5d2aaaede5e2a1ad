import { reserveSlot, type Slot } from '../../shared/db/tables/pushes/pace.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import { isLate } from '../sending/pace.ts';
import type { SendSlot } from '../sending/task.ts';

/**
 * Lead of a new slot: the time to get to the thread and to load the recipients. The first slot of a push has a longer one
 * (`handOverMs`), to open the connection too.
 */
const leadMs = 100;

/** A batch whose slot begins within this time goes to its thread, which waits for the rest. */
const handOverMs = 250;

/** When a paced batch may be sent: in this slot, or not before a time (by the database's clock). */
export type SendTime = { kind: 'now'; slot: SendSlot } | { kind: 'later'; afterMs: number; at: Date };

/**
 * Reserves a slot for a batch in the flow control of its push (protocol/push.md#flow-control). A batch that is taken
 * again keeps its slot, unless it missed the slot or the rate was changed. Undefined for a push without flow control.
 */
export async function reserveFlowControl(
  { db, clock }: Pick<DispatcherDeps, 'db' | 'clock'>,
  { ids, stored }: BatchInWork,
): Promise<SendTime | undefined> {
  if (!stored.isPaced) return undefined;
  const isUsable = stored.slot !== null && !isLate(-stored.slot.inMs, stored.slot.durationMs);
  const slot = isUsable ? stored.slot : await reserveSlot(db, ids, { leadMs, firstLeadMs: handOverMs });
  return slot ? sendTimeOf(slot, clock.now()) : undefined;
}

/** Returns when a reserved slot lets its batch be sent, as of now. */
export function sendTimeOf({ at, inMs, durationMs }: Slot, nowMs: number): SendTime {
  if (inMs <= handOverMs) return { kind: 'now', slot: { startAtMs: nowMs + inMs, durationMs } };
  return { kind: 'later', afterMs: inMs - handOverMs, at: new Date(at.getTime() - handOverMs) };
}
