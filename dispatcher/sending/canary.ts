import type {
  AttemptResult,
  Recipient,
  Sender,
  SendRequest,
} from '../../connectors/contract/connector.ts';
import { longerWait } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import {
  type CanaryAnswers,
  claimBatches,
  type RotatedProfile,
  recordCanary,
} from '../../shared/db/tables/profiles.ts';
import { canaryShare } from '../../shared/domain/apps/canary.ts';
import { reasonText } from '../../shared/domain/reasons.ts';

/**
 * Sends a batch with the candidate version of a profile. If the gateway does not accept a message
 * from the candidate, the current version sends it in the same attempt, and the current version's
 * answer counts. So wrong credentials of the candidate neither delay a retry nor delete a token.
 * After the first authentication error the candidate gets no more requests.
 */
export class CanarySender implements Sender {
  readonly #candidate: Sender;
  readonly #current: Sender;
  /** Answers to the candidate so far. */
  readonly answers: CanaryAnswers = { asked: 0, accepted: 0, refused: 0, worse: 0, detail: null };

  constructor(candidate: Sender, current: Sender) {
    this.#candidate = candidate;
    this.#current = current;
  }

  async send(request: SendRequest): Promise<void> {
    if (this.answers.refused > 0) return this.#current.send(request);
    const remaining: Recipient[] = [];
    /**
     * Waits that the gateway requested from the candidate. They apply to the current version too,
     * because it uses the same gateway.
     */
    const waits = new Map<number, number>();
    const byIndex = new Map(request.recipients.map((recipient) => [recipient.index, recipient]));
    await this.#candidate.send({
      ...request,
      // Refusals of wrong credentials say nothing about the current version.
      refusals: undefined,
      report: (index, attempt) => {
        this.#count(attempt);
        const recipient = byIndex.get(index);
        if (attempt.kind === 'retry' && attempt.afterMs) waits.set(index, attempt.afterMs);
        if (isFinal(attempt) || !recipient) request.report(index, attempt);
        else remaining.push(recipient);
      },
    });
    if (remaining.length === 0) return;
    await this.#current.send({
      ...request,
      recipients: remaining,
      report: (index, attempt) => {
        if (attempt.kind === 'sent') this.answers.worse += 1;
        const afterMs = waits.get(index);
        const isLonger = attempt.kind === 'retry' && afterMs !== undefined && attempt.afterMs !== 0;
        request.report(
          index,
          isLonger ? { ...attempt, afterMs: longerWait(attempt.afterMs, afterMs) } : attempt,
        );
      },
    });
  }

  /** Recalls with the current version only. */
  async recall(request: SendRequest): Promise<void> {
    await this.#current.recall?.(request);
  }

  async warmUp(message: Parameters<NonNullable<Sender['warmUp']>>[0]): Promise<void> {
    await Promise.all([this.#candidate.warmUp?.(message), this.#current.warmUp?.(message)]);
  }

  /** The cache owns the senders and closes them. */
  async close(): Promise<void> {}

  #count(attempt: AttemptResult): void {
    if (isUnsent(attempt)) return;
    this.answers.asked += 1;
    if (attempt.kind === 'sent') this.answers.accepted += 1;
    else
      this.answers.detail ??= `${'status' in attempt ? attempt.status : 0} ${reasonText(attempt.reason)}`;
    if (attempt.kind === 'profile_error') this.answers.refused += 1;
    // It may have been delivered, so the current version cannot be asked: a gateway that does not
    // answer is no success.
    if (attempt.kind === 'unknown') this.answers.worse += 1;
  }
}

/**
 * Returns whether the current version must not send the message again, because the gateway accepted
 * it or may have accepted it.
 */
const isFinal = (
  attempt: AttemptResult,
): attempt is Extract<AttemptResult, { kind: 'sent' | 'unknown' }> =>
  attempt.kind === 'sent' || attempt.kind === 'unknown';

/**
 * Returns whether this process ended the request, for example because the push was paused. Such a
 * result is no answer to the candidate.
 */
const isUnsent = (attempt: AttemptResult): boolean =>
  attempt.kind === 'retry' && attempt.status === 0 && attempt.afterMs === 0;

/** Batches that a thread counts with one statement. Must divide `canaryShare`. */
const batchesAtOnce = 10;

/** The canary of a profile: its candidate version and when it was staged. */
export interface Canary extends RotatedProfile {
  stagedAt: Date;
}

/**
 * Chooses the batches that are sent with a candidate: the first batch, then one of a hundred
 * batches of the profile over all threads and dispatchers. A thread counts ten batches with one
 * statement, so that many small pushes do not wait for one row.
 */
export class CanaryBatches {
  readonly #db: Database;
  readonly #clock: Clock;
  /** Batches that are already counted, by profile and version. */
  readonly #counted = new Map<string, number>();
  /** Canaries whose batch ended without a request. Their next batch is sent with the candidate. */
  readonly #owed = new Set<string>();

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /**
   * Returns whether the next batch is sent with the candidate. Never rejects: if the database is
   * unavailable, the current version sends.
   */
  async takesNext(canary: Canary): Promise<boolean> {
    const key = JSON.stringify(canary);
    if (this.#owed.delete(key)) return true;
    const left = this.#counted.get(key) ?? 0;
    this.#counted.set(key, left > 0 ? left - 1 : batchesAtOnce - 1);
    if (left > 0) return false;
    const before = await claimBatches(this.#db, canary, batchesAtOnce).catch(() => undefined);
    if (before === undefined) this.#counted.delete(key);
    return before !== undefined && before % canaryShare === 0;
  }

  /**
   * Adds the answers of a batch. If the batch was interrupted before its first request, another
   * batch takes its place. Never rejects: lost answers only delay the decision about the candidate.
   */
  async record(canary: Canary, answers: CanaryAnswers): Promise<void> {
    if (answers.asked === 0) {
      this.#owed.add(JSON.stringify(canary));
      return;
    }
    const recorded = recordCanary(this.#db, canary, { ...answers, nowMs: this.#clock.now() });
    await recorded.catch(() => undefined);
  }
}
