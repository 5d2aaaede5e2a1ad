import type { AttemptResult, Sender, SendRequest } from '../../connectors/contract/connector.ts';
import { type Clock, sleep } from '../../shared/clock.ts';
import type { SendSlot } from './task.ts';

/** Recipients of a paced push leave in groups this far apart: smooth for a gateway, cheap for us. */
const sliceMs = 40;

/** What is overdue by less is sent at once; with more, the time has become that of other batches. */
const lateMs = 50;

/** So many batches in a row may give their slots back: on a machine that is always late some have to go. */
const mostMissed = 3;

/** How a thread keeps to the slots it is given. */
export class LatenessBudget {
  #missed = 0;

  /** Whether a batch that is late is to give its slot back rather than to run into those behind it. */
  isMissed(lateByMs: number): boolean {
    const isMissed = lateByMs > lateMs && this.#missed < mostMissed;
    this.#missed = isMissed ? this.#missed + 1 : 0;
    return isMissed;
  }
}

interface Timing {
  slot: SendSlot | undefined;
  clock: Clock;
  latenessBudget: LatenessBudget;
}

/**
 * Sends to all recipients at once, or spread evenly over a slot. Those that the stop came before are left
 * unreported, and so is the rest of a batch that fell behind: a stall must not end in a burst
 * (protocol/delivery.md#promise-5). False when there is such a rest, which needs another slot. Rejects as `sender.send` does.
 */
export async function sendPaced(
  sender: Sender,
  request: SendRequest,
  { slot, clock, latenessBudget }: Timing,
): Promise<boolean> {
  const { recipients, signal } = request;
  if (recipients.length === 0) return true;
  if (!slot) {
    await sender.send(request);
    return true;
  }
  if (latenessBudget.isMissed(clock.now() - slot.startAtMs)) return false;
  // A thread that is always late begins late rather than with all that is overdue at once.
  const startAtMs = Math.max(slot.startAtMs, clock.now() - lateMs);
  const count = Math.max(1, Math.min(Math.round(slot.durationMs / sliceMs), recipients.length));
  const placeOf = (i: number) => Math.round((i * recipients.length) / count);
  let ending: AttemptResult | undefined;
  const report: SendRequest['report'] = (index, attempt) => {
    // What is wrong with the profile ends the rest as it would have ended in one go.
    if (attempt.kind === 'profile_error') ending ??= attempt;
    request.report(index, attempt);
  };
  const sends: Promise<void>[] = [];
  const failures: unknown[] = [];
  let isInTime = true;
  for (let i = 0; i < count; i++) {
    const dueAtMs = startAtMs + (i * slot.durationMs) / count;
    await sleep(Math.max(0, dueAtMs - clock.now()), signal);
    if (signal.aborted) break;
    isInTime = i === 0 || clock.now() - dueAtMs <= lateMs;
    if (!isInTime) break;
    const slice = recipients.slice(placeOf(i), placeOf(i + 1));
    if (ending) for (const { index } of slice) request.report(index, ending);
    else
      sends.push(
        sender.send({ ...request, recipients: slice, report }).catch((error: unknown) => {
          failures.push(error);
        }),
      );
  }
  await Promise.all(sends);
  if (failures.length > 0) throw failures[0];
  return isInTime;
}
