/**
 * Health of one push service of one profile. A profile sends to many services, and the messages of
 * one batch go to several of them. So a service that does not answer must not hold the batch.
 */

import { setImmediate } from 'node:timers/promises';
import { type Clock, isDoneWithin } from '../../shared/clock.ts';

/** For this time after an answer, a service gets many messages at once. */
const healthyForMs = 60_000;
/** A service with messages in flight that has not answered for this time gets no more messages. */
const stalledMs = 5_000;
/**
 * While the health of a service is unknown, one message tests it. Other messages wait up to this
 * time for its answer, which includes the connection.
 */
const firstAnswerMs = 5_000;
/**
 * Time and ticks of the event loop in which this process reads answers that have arrived. On a busy
 * machine, much time may pass within one tick.
 */
const readMs = 50;
const readTicks = 50;
/** Failures in a row after which the service is paused. */
const maxFailures = 20;
/** First and longest pause. Each failed test doubles the pause. */
const firstPauseMs = 2_000;
const maxPauseMs = 30_000;

/**
 * Result of a message, as far as it concerns the service: it answered, it answered with 5xx, it
 * gave no answer, or it did not get the message.
 */
export type ServiceResult = 'answered' | 'failed' | 'unanswered' | 'unsent';

export class ServiceHealth {
  readonly #clock: Clock;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #inFlight = 0;
  /** Since when the messages in flight wait for any answer. */
  #silentSinceMs = 0;
  /** The message in flight is a test: the service was not known to be healthy. */
  #isTesting = false;
  #failures = 0;
  /** Pauses since the last answer. After a pause, one message tests the service. */
  #pauses = 0;
  #pausedUntilMs = 0;
  /** Resolves at the next result. */
  #nextResult = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the time in ms until the service gets messages again; 0 if it gets them now. */
  cooldownMs(): number {
    return Math.max(0, this.#pausedUntilMs - this.#clock.monotonicMs());
  }

  /**
   * Returns how many of `wanted` messages may be sent now. The caller sends them, and calls `record`
   * once for each.
   */
  admit(wanted: number): number {
    const nowMs = this.#clock.monotonicMs();
    if (this.#inFlight > 0) {
      if (!this.#isHealthy || nowMs - this.#silentSinceMs > stalledMs) return 0;
    } else {
      if (this.cooldownMs() > 0) return 0;
      this.#silentSinceMs = nowMs;
    }
    this.#isTesting = !this.#isHealthy;
    const admitted = this.#isTesting ? Math.min(1, wanted) : wanted;
    this.#inFlight += admitted;
    return admitted;
  }

  /**
   * Waits shortly for the answer to a message that tests the service. Returns whether further
   * messages may be sent. Does not wait for a service that was paused or is silent for longer.
   */
  async untilAnswer(): Promise<boolean> {
    for (;;) {
      if (this.#pauses > 0) return false;
      const silentMs = this.#clock.monotonicMs() - this.#silentSinceMs;
      if (this.#inFlight === 0 || (this.#isHealthy && silentMs <= stalledMs)) return true;
      const leftMs = (this.#isHealthy ? stalledMs : firstAnswerMs) - silentMs;
      // The answer may wait in a socket that this busy process has not read yet.
      const hasResult = await isDoneWithin(this.#nextResult.promise, Math.max(leftMs, readMs));
      if (!hasResult && !(await this.#hasResultSoon())) return false;
    }
  }

  /** Lets this process read what has arrived. Returns whether a result was among it. */
  async #hasResultSoon(): Promise<boolean> {
    const { promise } = this.#nextResult;
    let hasResult = false;
    void promise.then(() => {
      hasResult = true;
    });
    for (let tick = 0; tick < readTicks && !hasResult; tick++) await setImmediate();
    return hasResult;
  }

  record(result: ServiceResult): void {
    const wasTest = this.#isTesting;
    this.#isTesting = false;
    this.#inFlight -= 1;
    if (result === 'answered' || result === 'failed') this.#onAnswer(result === 'failed');
    else if (result === 'unanswered') {
      this.#answeredAtMs = Number.NEGATIVE_INFINITY;
      if (++this.#failures >= maxFailures || wasTest) this.#pause();
    }
    this.#nextResult.resolve();
    this.#nextResult = Promise.withResolvers();
  }

  #onAnswer(isFailure: boolean): void {
    this.#silentSinceMs = this.#clock.monotonicMs();
    if (!isFailure) {
      this.#failures = 0;
      this.#pauses = 0;
    } else if (++this.#failures >= maxFailures || this.#pauses > 0) {
      this.#pause();
      return;
    }
    this.#answeredAtMs = this.#silentSinceMs;
  }

  #pause(): void {
    const nowMs = this.#clock.monotonicMs();
    // Many messages in flight may fail together. They are one reason to pause.
    if (this.#pausedUntilMs > nowMs) return;
    const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** Math.min(this.#pauses, 10));
    this.#pausedUntilMs = nowMs + pauseMs;
    this.#pauses += 1;
    this.#failures = 0;
    this.#answeredAtMs = Number.NEGATIVE_INFINITY;
  }

  get #isHealthy(): boolean {
    return this.#pauses === 0 && this.#clock.monotonicMs() - this.#answeredAtMs < healthyForMs;
  }
}
