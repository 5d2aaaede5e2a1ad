/** Pace of a batch: how its requests are spread over a slot, and when the slot is missed. */
import type { AttemptResult, Sender, SendRequest } from '../../connectors/contract/connector.ts';
import { isFailure } from '../../connectors/contract/gateway-health.ts';
import { type Clock, sleep } from '../../shared/clock.ts';
import type { RecipientSource } from './recipients.ts';
import type { SendSlot } from './task.ts';

/** Lateness that every slot forgives: short slots are missed by a pause of the process. */
const leastToleranceMs = 50;

/**
 * Returns whether a batch is too late for its slot: by more than a quarter of it. A batch that is
 * less late begins late, and what no longer fits its slot gets another one.
 */
export const isLate = (lateByMs: number, slotMs: number): boolean =>
  lateByMs > Math.max(leastToleranceMs, slotMs / 4);

/**
 * Batches in a row that may give their slots back; on a machine that is always late the next one is
 * sent all the same. After a stall a tenth of what is overdue is sent at once, at most.
 */
const mostMissed = 9;

/** Number of slots that a thread may give back. */
export class LatenessBudget {
  #missed = 0;

  /** Whether a batch that is late gives its slot back, rather than delay the batches behind it. */
  isMissed(lateByMs: number, slotMs: number): boolean {
    const isMissed = isLate(lateByMs, slotMs) && this.#missed < mostMissed;
    this.#missed = isMissed ? this.#missed + 1 : 0;
    return isMissed;
  }
}

/** Distance between the groups of recipients of one slot: smooth for a gateway, cheap for us. */
const groupIntervalMs = 40;

/**
 * Recipients that a connector gets at a time without a slot: a large batch fills its queue no
 * further than a small one, so that requests do not wait there for too long.
 */
const groupSize = 1000;

/** A request to all open recipients of a batch. */
type BatchRequest = Omit<SendRequest, 'recipients'> & { recipients: RecipientSource };

interface Timing {
  slot: SendSlot | undefined;
  clock: Clock;
  latenessBudget: LatenessBudget;
}

/**
 * Sends to all recipients at once, or spread evenly over a slot. After a stop the rest stays
 * unreported, and so does the rest of a batch that fell behind, because a stall must not end in a
 * burst (protocol/delivery.md#promise-5), or whose gateway fails. Returns false when such a rest is
 * to be sent later. Rejects as `sender.send` does.
 */
export async function sendPaced(
  sender: Sender,
  request: BatchRequest,
  timing: Timing,
): Promise<boolean> {
  const { slot, clock, latenessBudget } = timing;
  if (request.recipients.length === 0) return true;
  const send = new GroupedSend(sender, request);
  if (!slot) return send.runAtOnce();
  // Requests that wait for a connection would leave all at once.
  await sender.warmUp?.(request.message);
  if (latenessBudget.isMissed(clock.now() - slot.startAtMs, slot.durationMs)) return false;
  return send.runInSlot(slot, clock);
}

/** The sending of one batch, group by group. */
class GroupedSend {
  readonly #sender: Sender;
  readonly #request: BatchRequest;
  readonly #sends: Promise<void>[] = [];
  readonly #errors: unknown[] = [];
  /** Ends the recipients that are left, as it would have ended them in one request. */
  #profileError: AttemptResult | undefined;
  /**
   * Requests of the group that is sent now, and those of them that the gateway failed to answer.
   */
  #reported = 0;
  #failed = 0;

  constructor(sender: Sender, request: BatchRequest) {
    this.#sender = sender;
    this.#request = request;
  }

  /**
   * Sends one group after the other; after a stop the rest stays unreported. Returns false when
   * half of a group failed and others are left: the breaker judges the gateway before they are
   * sent.
   */
  async runAtOnce(): Promise<boolean> {
    const { recipients, signal } = this.#request;
    for (
      let from = 0;
      from < recipients.length && (from === 0 || !signal.aborted);
      from += groupSize
    ) {
      if (this.#failed * 2 > this.#reported) return false;
      this.#reported = 0;
      this.#failed = 0;
      this.#send(from, from + groupSize);
      await this.#finish();
    }
    return true;
  }

  /**
   * Spreads the groups over a slot. A group that is late by more than a quarter of its own slot
   * moves the next ones back, so that a stall does not end in a burst; those that no longer fit the
   * slot are not sent. Returns false when such are left.
   */
  async runInSlot({ startAtMs, durationMs }: SendSlot, clock: Clock): Promise<boolean> {
    const { recipients, signal } = this.#request;
    const groups = Math.max(
      1,
      Math.min(Math.round(durationMs / groupIntervalMs), recipients.length),
    );
    const placeOf = (group: number) => Math.round((group * recipients.length) / groups);
    const groupMs = durationMs / groups;
    const toleranceMs = groupMs / 4;
    const lastAtMs = startAtMs + durationMs - groupMs + toleranceMs;
    let dueAtMs = startAtMs;
    let isOnTime = true;
    for (let group = 0; group < groups && isOnTime; group++) {
      await sleep(Math.max(0, dueAtMs - clock.now()), signal);
      if (signal.aborted) break;
      const nowMs = clock.now();
      isOnTime = group === 0 || nowMs <= lastAtMs;
      if (isOnTime) this.#send(placeOf(group), placeOf(group + 1));
      dueAtMs = Math.max(dueAtMs, nowMs - toleranceMs) + groupMs;
    }
    await this.#finish();
    return isOnTime;
  }

  async #finish(): Promise<void> {
    await Promise.all(this.#sends.splice(0));
    if (this.#errors.length > 0) throw this.#errors[0];
  }

  #send(from: number, to: number): void {
    const recipients = this.#request.recipients.slice(from, to);
    if (this.#profileError) {
      for (const { index } of recipients) this.#request.report(index, this.#profileError);
      return;
    }
    const sent = this.#sender.send({ ...this.#request, recipients, report: this.#report });
    this.#sends.push(sent.catch((error: unknown) => void this.#errors.push(error)));
  }

  readonly #report: SendRequest['report'] = (index, attempt) => {
    this.#reported += 1;
    if (isFailure(attempt)) this.#failed += 1;
    if (attempt.kind === 'profile_error') this.#profileError ??= attempt;
    this.#request.report(index, attempt);
  };
}
