/** Pacing of a batch: spreads its requests over a time slot, and detects a missed slot. */

import type { AttemptResult, Sender, SendRequest } from '../../connectors/contract/connector.ts';
import { isFailure } from '../../connectors/contract/gateway-health.ts';
import { type Clock, isDoneWithin, sleep } from '../../shared/clock.ts';
import type { OpenRecipients } from './recipients.ts';
import type { SendSlot } from './task.ts';

/**
 * Delay that every slot tolerates. Without it, any short pause of the process would miss a short
 * slot.
 */
const minToleranceMs = 50;

/**
 * Returns whether a batch is too late for its time slot: by more than a quarter of the slot. If the
 * delay is smaller, the batch begins late, and the recipients that do not fit get another slot.
 */
export const isLate = (lateByMs: number, slotMs: number): boolean =>
  lateByMs > Math.max(minToleranceMs, slotMs / 4);

/**
 * Maximum consecutive batches that may give back their time slots. On a machine that is always
 * late, the next batch is sent nevertheless. This limits a burst after a stall to a tenth of the
 * overdue recipients.
 */
const maxMissed = 9;

/** Limits how many consecutive time slots a thread gives back. */
export class LatenessBudget {
  #missed = 0;

  /**
   * Returns whether a late batch gives its slot back, so that it does not delay the batches behind
   * it.
   */
  isMissed(lateByMs: number, slotMs: number): boolean {
    const isMissed = isLate(lateByMs, slotMs) && this.#missed < maxMissed;
    this.#missed = isMissed ? this.#missed + 1 : 0;
    return isMissed;
  }
}

/**
 * Interval between the groups of recipients in a slot. Short enough for a smooth rate, long enough
 * for little overhead.
 */
const groupIntervalMs = 40;

/**
 * Maximum recipients that a connector gets at once if there is no slot. It keeps the connector's
 * queue short, so that requests do not wait there.
 */
const groupSize = 1000;

/**
 * The next group starts when at most this number of recipients has no outcome. So a few slow
 * answers do not hold the batch.
 */
const maxPending = groupSize / 10;
/**
 * If half of a group has outcomes and the other half has been silent for this time, the next group
 * starts too. One of several services of the gateway may be down (protocol/delivery.md#promise-4).
 */
const maxSilentPending = groupSize / 2;
const silentMs = 1_500;

/** A request to all open recipients of a batch. */
type BatchRequest = Omit<SendRequest, 'recipients'> & {
  recipients: Pick<OpenRecipients, 'length' | 'slice'>;
};

interface Timing {
  slot: SendSlot | undefined;
  clock: Clock;
  latenessBudget: LatenessBudget;
}

/**
 * Sends to all recipients at once, or evenly over a time slot. Recipients remain unreported if the
 * batch is stopped, if it falls behind its slot (protocol/delivery.md#promise-5), or if its gateway
 * fails. Returns false if such recipients must be sent later. Rejects if `sender.send` rejects.
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
  // Requests that wait for a connection would all leave together.
  await sender.warmUp?.(request.message);
  if (latenessBudget.isMissed(clock.now() - slot.startAtMs, slot.durationMs)) return false;
  return send.runInSlot(slot, clock);
}

/** Sends one batch, group by group. */
class GroupedSend {
  readonly #sender: Sender;
  readonly #request: BatchRequest;
  readonly #sends: Promise<void>[] = [];
  readonly #errors: unknown[] = [];
  /** If set, ends the remaining recipients without a request. */
  #profileError: AttemptResult | undefined;
  /** Requests of the current group, and how many of them got no answer from the gateway. */
  #reported = 0;
  #failed = 0;
  /** Recipients without an outcome. */
  #pending = 0;
  /** Resolves when `maxPending` recipients are left. */
  #nearlyDone = Promise.withResolvers<void>();

  constructor(sender: Sender, request: BatchRequest) {
    this.#sender = sender;
    this.#request = request;
  }

  /**
   * Sends one group after the other. The next group starts when few recipients have no outcome. If
   * the batch is stopped, the remaining recipients stay unreported. If half of a group fails and
   * recipients remain, returns false: the breaker then judges the gateway before they are sent.
   */
  async runAtOnce(): Promise<boolean> {
    const { recipients, signal } = this.#request;
    let isHealthy = true;
    for (let from = 0; from < recipients.length; from += groupSize) {
      if (from > 0) await this.#untilNearlyDone();
      if (from > 0 && signal.aborted) break;
      isHealthy = this.#failed * 2 <= this.#reported;
      if (!isHealthy) break;
      this.#reported = 0;
      this.#failed = 0;
      this.#send(from, from + groupSize);
    }
    await this.#finish();
    return isHealthy;
  }

  /** Waits until the connector can take another group (`maxPending`, `maxSilentPending`). */
  async #untilNearlyDone(): Promise<void> {
    const ready = Promise.race([this.#nearlyDone.promise, Promise.all(this.#sends)]);
    for (;;) {
      const before = this.#pending;
      const isReady = await isDoneWithin(ready, silentMs);
      if (isReady || (this.#pending === before && before <= maxSilentPending)) return;
    }
  }

  /**
   * Spreads the groups over a time slot. If a group is late by more than a quarter of its share,
   * the following groups move back too, so that a stall causes no burst. Groups that no longer fit
   * the slot are not sent. Returns false if there are any.
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
    this.#pending += recipients.length;
    this.#nearlyDone = Promise.withResolvers();
    if (this.#pending <= maxPending) this.#nearlyDone.resolve();
    if (this.#profileError) {
      this.#pending -= recipients.length;
      for (const { index } of recipients) this.#request.report(index, this.#profileError);
      return;
    }
    const sent = this.#sender.send({ ...this.#request, recipients, report: this.#report });
    this.#sends.push(sent.catch((error: unknown) => void this.#errors.push(error)));
  }

  readonly #report: SendRequest['report'] = (index, attempt) => {
    this.#reported += 1;
    if (--this.#pending === maxPending) this.#nearlyDone.resolve();
    if (isFailure(attempt)) this.#failed += 1;
    if (attempt.kind === 'profile_error') this.#profileError ??= attempt;
    this.#request.report(index, attempt);
  };
}
