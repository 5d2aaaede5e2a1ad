import type { Attempt, Sender, SendRequest } from '../connectors/connector.ts';
import { type Clock, sleep } from '../shared/clock.ts';
import type { SendSlot } from './task.ts';

/** Recipients of a paced push leave in groups this far apart: smooth for a gateway, cheap for us. */
const sliceMs = 40;

/** What is overdue by less is sent at once. */
const lateMs = 50;

/**
 * Sends to all recipients at once, or spread evenly over a slot. Those that the stop came before are left
 * unreported. Rejects as `sender.send` does.
 */
export async function sendInTime(
  sender: Sender,
  request: SendRequest,
  { slot, clock }: { slot: SendSlot | undefined; clock: Clock },
): Promise<void> {
  const { recipients, signal } = request;
  if (!slot) return recipients.length > 0 ? sender.send(request) : undefined;
  // A thread that was busy for long begins late rather than with all that is overdue at once.
  const startAtMs = Math.max(slot.startAtMs, clock.now() - lateMs);
  const count = Math.max(1, Math.min(Math.round(slot.durationMs / sliceMs), recipients.length));
  const placeOf = (i: number) => Math.round((i * recipients.length) / count);
  let ending: Attempt | undefined;
  const report: SendRequest['report'] = (index, attempt) => {
    // What is wrong with the profile ends the rest as it would have ended in one go.
    if (attempt.kind === 'halt') ending ??= attempt;
    request.report(index, attempt);
  };
  const sends: Promise<void>[] = [];
  const failures: unknown[] = [];
  for (let i = 0; i < count && recipients.length > 0; i++) {
    await sleep(Math.max(0, startAtMs + (i * slot.durationMs) / count - clock.now()), signal);
    if (signal.aborted) break;
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
}
