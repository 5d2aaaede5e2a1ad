import type { AttemptResult } from '../../connectors/contract/connector.ts';
import { failureCause, isFailure } from '../../connectors/contract/gateway-health.ts';
import type { HealthSample } from '../../shared/breaker.ts';
import type { GatewayMessage } from '../../shared/db/tables/gateways/messages.ts';
import type { Batch, RecipientFailure } from '../../shared/db/tables/pushes/batches.ts';
import type { UnknownOutcome } from '../../shared/domain/apps/app.ts';
import { movedCode, type Outcome, openCode, outcomeCode } from '../../shared/domain/outcome.ts';
import { RetryGroups } from './retry-groups.ts';
import type { DeliverResult, Why } from './task.ts';

/** Where nothing hides a repeat, a recipient is sent to again after so many requests without an answer. */
const maxShownRepeats = 1;

/** Ids of gateways' messages that are kept of one batch: enough for multi-target requests of any size. */
const maxMessages = 20;

/** The reason of a try that failed, with the code of the connection where that is why. */
const withCause = ({ reason, cause }: { reason: string; cause?: string | undefined }): string =>
  cause === undefined ? reason : `${reason} ${cause}`;

/** What became of the recipients of one batch while a thread has it in hand: one byte for each, and why. */
export class Tally {
  readonly #batch: Batch;
  readonly #unknownOutcome: UnknownOutcome;
  readonly #retries = new RetryGroups();
  readonly #settled: Uint8Array<ArrayBuffer>;
  /** When each recipient's installation was last saved, by place. */
  readonly #savedAtMs = new Map<number, number>();
  readonly failures: RecipientFailure[] = [];
  readonly health: HealthSample = { asked: 0, failed: 0 };
  readonly #messages = new Map<string, GatewayMessage>();
  /** Why the gateway could not be asked, by the last attempt that shows it; null when all were answered. */
  trouble: string | null = null;
  /** Why the profile was given up, or null. */
  halt: string | null = null;
  /** Grows with every outcome: whether there is anything new to write down. */
  changes = 0;

  /** `unknownOutcome`: the app's option, for requests without an answer whose repeat the device would show. */
  constructor(batch: Batch, unknownOutcome: UnknownOutcome = 'repeat') {
    this.#batch = batch;
    this.#unknownOutcome = unknownOutcome;
    this.#settled = batch.settled ? Uint8Array.from(batch.settled) : new Uint8Array(batch.recipients.length);
  }

  isOpen(index: number): boolean {
    return this.#settled[index] === openCode;
  }

  /** Has the installation at a place been saved since, it is not deleted for what was sent to it before. */
  noteSaved(index: number, updatedAtMs: number): void {
    this.#savedAtMs.set(index, updatedAtMs);
  }

  /** Notes what one try came to; a second report of the same recipient is passed over. */
  note(index: number, attempt: AttemptResult): void {
    if (!this.isOpen(index)) return;
    this.#show(attempt);
    switch (attempt.kind) {
      case 'sent':
        this.#settle(index, 'sent');
        if (attempt.messageId !== undefined) this.#noteMessage(attempt.messageId);
        break;
      case 'rejected':
        this.fail(index, attempt);
        break;
      case 'invalid_token':
        this.fail(
          index,
          { ...attempt, outcome: 'invalid_token' },
          this.#deadAsOf(index, attempt.deadSinceMs),
        );
        break;
      case 'retry':
        this.#retry(index, { status: attempt.status, reason: withCause(attempt) }, attempt.afterMs);
        break;
      case 'unknown':
        if (this.#isRepeatable(attempt))
          this.#retry(index, { status: 0, reason: attempt.reason, isRepeat: true });
        else this.fail(index, { outcome: 'failed', status: 0, reason: 'unknown' });
        break;
      case 'profile_error': {
        // The gateway's own word to search for, and the sentence to understand it by.
        const reason = `${attempt.reason}: ${attempt.hint}`;
        this.halt ??= reason;
        this.fail(index, { outcome: 'failed', status: attempt.status, reason });
        break;
      }
    }
  }

  /** Ends a recipient that is not sent to again. `deadAsOfMs`: the installation as it was when its token was told dead. */
  fail(
    index: number,
    failure: { outcome: Outcome; status: number; reason: string },
    deadAsOfMs: number | null = null,
  ): void {
    this.#settle(index, failure.outcome);
    const { outcome, status, reason } = failure;
    const installation = this.#batch.recipients[index] ?? 0;
    this.failures.push({ installation, outcome, status, reason, deadAsOfMs });
  }

  /** Ends all that is open: nothing can be sent by this profile. */
  giveUp(hint: string): void {
    this.halt = hint;
    for (const index of this.#batch.recipients.keys())
      if (this.isOpen(index)) this.fail(index, { outcome: 'failed', status: 0, reason: hint });
  }

  /** As it is to be written down: until their new batch is written, those that wait for a retry are open here. */
  withoutMoved(): Uint8Array<ArrayBuffer> {
    return this.#settled.map((code) => (code === movedCode ? openCode : code));
  }

  /**
   * The end of it. Where the rest stays open, those that the gateway has put off wait in retry batches of their
   * own all the same; those that could not leave any more (`isStopped`) simply go back.
   */
  end(isStopped: boolean): Pick<DeliverResult, 'settled' | 'movedCount' | 'retries'> {
    const { length: movedCount } = this.#batch.retried;
    const retries = this.#retries.of(this.#batch);
    const isComplete = !isStopped && !this.#settled.includes(openCode);
    if (isComplete) return { settled: this.#settled, movedCount, retries };
    const settled = this.withoutMoved();
    for (const index of [...this.#batch.retried, ...this.#retries.reached]) settled[index] = movedCode;
    return { settled, movedCount, retries: retries.filter(({ isReached }) => isReached) };
  }

  /** What the gateway called the messages it took, the first of them. */
  get messages(): GatewayMessage[] {
    return [...this.#messages.values()];
  }

  #noteMessage(messageId: string): void {
    const known = this.#messages.get(messageId);
    if (known) known.devices += 1;
    else if (this.#messages.size < maxMessages) this.#messages.set(messageId, { messageId, devices: 1 });
  }

  #show(attempt: AttemptResult): void {
    const isTrouble = isFailure(attempt);
    if (isTrouble !== null) this.health.asked += 1;
    if (isTrouble) this.health.failed += 1;
    if (isTrouble !== false) this.trouble = failureCause(attempt) ?? this.trouble;
  }

  /** A token is dead only if the installation was not saved after the gateway found it so (protocol/apns.md#answers). */
  #deadAsOf(index: number, deadSinceMs: number | undefined): number | null {
    const savedAtMs = this.#savedAtMs.get(index);
    if (savedAtMs === undefined) return null;
    return deadSinceMs === undefined || savedAtMs < deadSinceMs ? savedAtMs : null;
  }

  #settle(index: number, outcome: Outcome): void {
    this.#settled[index] = outcomeCode(outcome);
    this.changes += 1;
  }

  /** A hidden repeat is bounded like every other try (recording/retried.ts). */
  #isRepeatable({ isRepeatHidden }: Extract<AttemptResult, { kind: 'unknown' }>): boolean {
    return isRepeatHidden || (this.#unknownOutcome === 'repeat' && this.#batch.unanswered < maxShownRepeats);
  }

  #retry(index: number, why: Why & { isRepeat?: boolean }, afterMs: number | null = null): void {
    this.#settled[index] = movedCode;
    this.#retries.add(index, afterMs, why.status > 0 || why.isRepeat === true, why);
  }
}
