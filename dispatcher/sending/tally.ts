import type { AttemptResult } from '../../connectors/contract/connector.ts';
import {
  failureCause,
  hasReachedGateway,
  isFailure,
} from '../../connectors/contract/gateway-health.ts';
import type { HealthSample } from '../../shared/breaker.ts';
import { systemClock } from '../../shared/clock.ts';
import type { Batch } from '../../shared/db/tables/batches.ts';
import type { RecipientFailure } from '../../shared/db/tables/push-failures.ts';
import type { GatewayMessage } from '../../shared/db/tables/receipts.ts';
import type { UnknownOutcome } from '../../shared/domain/apps/app.ts';
import type { Outcome, RecipientStates } from '../../shared/domain/outcome.ts';
import { withCause, withHint } from '../../shared/domain/reasons.ts';
import type { DeliverResult, RetryGroup, Why } from './task.ts';

/** Maximum repeats after requests without an answer, if the device would show the message twice. */
const maxVisibleRepeats = 1;

/** Maximum gateway message ids that are kept for one batch. */
const maxMessages = 20;

/** Results of one batch while a thread sends it. */
export class Tally {
  readonly #batch: Batch;
  readonly #unknownOutcome: UnknownOutcome;
  readonly #retries = new RetryGroups();
  readonly #states: RecipientStates;
  /** Returns when the installation of a recipient was last saved, in epoch ms. */
  savedAtMs: (index: number) => number | undefined = () => undefined;
  readonly failures: RecipientFailure[] = [];
  /** As `Batch#sentBy`, with the earlier deliveries of the batch. */
  sentBy: Batch['sentBy'];
  readonly health: HealthSample = { requests: 0, failed: 0 };
  readonly #messages = new Map<string, GatewayMessage>();
  /** Reason of the last failed or unanswered request; null if there was none. */
  failureReason: string | null = null;
  /** Why no push can be sent with this profile, or null. */
  profileError: string | null = null;
  /**
   * Increases with every outcome. If it has changed since the last checkpoint, a new checkpoint is
   * needed.
   */
  changes = 0;

  /**
   * Starts with the states of the batch. `unknownOutcome` is the app's option: what to do after a
   * request without an answer if the device would show a repeat.
   */
  constructor(batch: Batch, unknownOutcome: UnknownOutcome = 'repeat') {
    this.#batch = batch;
    this.#states = batch.states;
    this.sentBy = batch.sentBy && { ...batch.sentBy };
    this.#unknownOutcome = unknownOutcome;
  }

  isOpen(index: number): boolean {
    return this.#states.isOpen(index);
  }

  /** Records the result of one attempt. Ignores a second result for the same recipient. */
  record(index: number, attempt: AttemptResult): void {
    if (!this.isOpen(index)) return;
    this.#measure(attempt);
    switch (attempt.kind) {
      case 'sent':
        this.#settle(index, 'sent');
        if (attempt.form !== undefined) this.#countForm(attempt.form);
        if (attempt.messageId !== undefined) this.#recordMessage(attempt.messageId);
        break;
      case 'rejected': {
        const { outcome, status, reason } = attempt;
        this.fail(index, { outcome, status, reason });
        break;
      }
      case 'invalid_token': {
        const { status, reason, isProof = false, form } = attempt;
        const invalidAsOfMs = this.#invalidAsOf(index, attempt);
        const failure = { status, reason, invalidAsOfMs, isProof, form };
        this.fail(index, { outcome: 'invalid_token', ...failure });
        break;
      }
      case 'retry': {
        const { status, reason, cause, afterMs } = attempt;
        const why = cause === undefined ? reason : withCause(reason, cause);
        this.#retry(index, { status, reason: why }, afterMs);
        break;
      }
      case 'unknown':
        if (this.#isRepeatable(attempt))
          this.#retry(
            index,
            { status: 0, reason: attempt.reason, isRepeat: true },
            attempt.afterMs ?? null,
          );
        else this.fail(index, { outcome: 'failed', status: 0, reason: 'unknown' });
        break;
      case 'profile_error': {
        // The gateway's error code, which users search for, and a hint for the operator.
        const reason = withHint(attempt.reason, attempt.hint);
        this.profileError ??= reason;
        this.fail(index, { outcome: 'failed', status: attempt.status, reason });
        break;
      }
    }
  }

  /** Ends a recipient without success. */
  fail(index: number, failure: Omit<RecipientFailure, 'installation'>): void {
    this.#settle(index, failure.outcome);
    this.failures.push({ installation: this.#batch.recipients[index] ?? 0, ...failure });
  }

  /** Fails all open recipients, because this profile cannot send. */
  failAll(hint: string): void {
    this.profileError = hint;
    for (const index of this.#states.openIndexes)
      this.fail(index, { outcome: 'failed', status: 0, reason: hint });
  }

  /**
   * Returns the states for a checkpoint. Recipients that need a retry stay open in it until their
   * retry batch is written.
   */
  checkpoint(): RecipientStates {
    return this.#states.withRetriedOpen();
  }

  /**
   * Ends the batch. If recipients stay open, the recipients that the gateway postponed still move
   * to retry batches. Recipients that were not sent to because of a stop (`isStopped`) return with
   * the batch.
   */
  end(isStopped: boolean): Pick<DeliverResult, 'states' | 'retriedCount' | 'retries'> {
    const { length: retriedCount } = this.#batch.retried;
    const retries = this.#retries.of(this.#batch);
    const isComplete = !isStopped && !this.#states.hasOpen;
    if (isComplete) return { states: this.#states, retriedCount, retries };
    const states = this.checkpoint();
    for (const index of [...this.#batch.retried, ...this.#retries.reached])
      states.markRetried(index);
    return { states, retriedCount, retries: retries.filter(({ isReached }) => isReached) };
  }

  /** Message ids that the gateway returned, up to `maxMessages`. */
  get messages(): GatewayMessage[] {
    return [...this.#messages.values()];
  }

  #recordMessage(messageId: string): void {
    const existing = this.#messages.get(messageId);
    if (existing) existing.devices += 1;
    else if (this.#messages.size < maxMessages)
      this.#messages.set(messageId, { messageId, devices: 1 });
  }

  #measure(attempt: AttemptResult): void {
    const hasFailed = isFailure(attempt);
    if (hasFailed !== null) this.health.requests += 1;
    if (hasFailed) this.health.failed += 1;
    if (hasFailed !== false) this.failureReason = failureCause(attempt) ?? this.failureReason;
  }

  /**
   * Returns when the installation was saved. Returns null if the installation must be kept. It is
   * kept if it was saved after the token became invalid (protocol/apns.md#answers), because it has
   * another token then, or within `keepForMs`.
   */
  #invalidAsOf(
    index: number,
    { invalidSinceMs, keepForMs = 0 }: Extract<AttemptResult, { kind: 'invalid_token' }>,
  ): number | null {
    const savedAtMs = this.savedAtMs(index);
    if (savedAtMs === undefined) return null;
    const isKept = keepForMs > 0 && systemClock.now() - savedAtMs < keepForMs;
    return !isKept && (invalidSinceMs === undefined || savedAtMs < invalidSinceMs)
      ? savedAtMs
      : null;
  }

  #countForm(form: string): void {
    this.sentBy ??= {};
    this.sentBy[form] = (this.sentBy[form] ?? 0) + 1;
  }

  #settle(index: number, outcome: Outcome): void {
    this.#states.settle(index, outcome);
    this.changes += 1;
  }

  /**
   * Returns whether a recipient may get a repeat. If the device hides repeats, only the limit of
   * tries applies (recording/recorder.ts).
   */
  #isRepeatable({ isRepeatHidden }: Extract<AttemptResult, { kind: 'unknown' }>): boolean {
    return (
      isRepeatHidden ||
      (this.#unknownOutcome === 'repeat' && this.#batch.unanswered < maxVisibleRepeats)
    );
  }

  #retry(index: number, why: Why & { isRepeat?: boolean }, afterMs: number | null = null): void {
    this.#states.markRetried(index);
    const isReached = why.isRepeat === true || (afterMs !== 0 && hasReachedGateway(why));
    this.#retries.add(index, afterMs, isReached, why);
  }
}

/** A retry group before its recipients are added. */
type IndexGroup = Omit<RetryGroup, 'recipients' | 'badges'>;

/**
 * Groups the recipients of a batch that need a retry. Recipients with similar waits share a group,
 * so that tokens with different waits do not cause thousands of small batches.
 */
export class RetryGroups {
  readonly #groups = new Map<string, IndexGroup>();

  /**
   * Adds the recipient at an index. `wantedMs`: minimum wait; null if the gateway requested none, 0
   * if the gateway did not cause the retry. `isReached`: the request reached the gateway, so the
   * try counts. `isRepeat`: the request reached the gateway, but its answer is unknown.
   */
  add(
    index: number,
    wantedMs: number | null,
    isReached: boolean,
    { status, reason, isRepeat = false }: Why & { isRepeat?: boolean },
  ): void {
    const key = `${bucketOf(wantedMs)} ${isReached} ${isRepeat}`;
    const found = this.#groups.get(key);
    const group = found ?? { afterMs: wantedMs, isReached, isRepeat, indexes: [], why: [] };
    this.#groups.set(key, group);
    // The longest wait of the group, which may be the exact start of the gateway's sending hours.
    if (wantedMs !== null) group.afterMs = Math.max(wantedMs, group.afterMs ?? 0);
    group.indexes.push(index);
    group.why.push({ status, reason });
  }

  /** Indexes of the recipients whose request reached the gateway. */
  get reached(): number[] {
    return [...this.#groups.values()].flatMap(({ isReached, indexes }) =>
      isReached ? indexes : [],
    );
  }

  /** Returns the groups, with the installations and badges of the batch. */
  of({ recipients, badges }: Pick<Batch, 'recipients' | 'badges'>): RetryGroup[] {
    return [...this.#groups.values()].map((group) => ({
      ...group,
      recipients: group.indexes.map((index) => recipients[index] ?? 0),
      badges: badges ? group.indexes.map((index) => badges[index] ?? null) : null,
    }));
  }
}

/**
 * Returns the group of a wait. Waits of one group differ by at most a quarter. There are about 60
 * groups between nothing and a day.
 */
function bucketOf(afterMs: number | null): number | null {
  if (afterMs === null) return null;
  if (afterMs <= 0) return 0;
  const stepMs = Math.max(25, 2 ** Math.floor(Math.log2(afterMs)) / 4);
  return Math.ceil(afterMs / stepMs) * stepMs;
}
