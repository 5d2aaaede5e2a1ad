import { randomInt } from 'node:crypto';
import { Breaker, type BreakerTiming } from '../../shared/breaker.ts';
import { type Clock, isDoneWithin } from '../../shared/clock.ts';
import { type BreakerKey, type BreakerState, breakerIdOf } from '../../shared/domain/breaker.ts';
import type { DeliverResult } from '../sending/task.ts';

/** What a sent batch shows about the health of its gateway. */
export type GatewayHealth = Pick<DeliverResult, 'health' | 'failureReason'>;

/** Permission to send one batch to its gateway. The holder must release it exactly once. */
export interface GatewayPermit {
  kind: 'permit';
  /** Recipients that a probe may send to; undefined for all recipients. */
  probeSize?: number;
  /**
   * Memory to watch and to stop the batch (`sending/shared-memory.ts`). Absent if the batch is not
   * watched.
   */
  progressMemory?: SharedArrayBuffer;
  /**
   * Releases the permit with the health that the batch has shown. `undefined` means that sending
   * failed for a reason inside Carillon. Resolves after the breaker has updated its state. The
   * result says whether the tries of this batch count.
   */
  release(health: GatewayHealth | undefined): Promise<boolean>;
}

/** Answer to a batch that requests a permit. */
export type PermitAnswer = GatewayPermit | { kind: 'wait'; afterMs: number };

/** Permit for the device channel, which has no gateway and no breaker. */
export const unwatchedPermit: GatewayPermit = {
  kind: 'permit',
  release: () => Promise.resolve(true),
};

/**
 * Interval at which waiting batches return, one by one, so that a long queue does not return at
 * once.
 */
const returnIntervalMs = 10;
const minWaitMs = 500;

/**
 * After an answer the gateway counts as healthy for this time. It then gets many batches at once.
 */
const healthyForMs = 60_000;
/**
 * While the health of a gateway is unknown, one batch probes it. The other batches wait up to this
 * time for its answer. A batch that arrives later waits for one poll only, because it occupies a
 * concurrency slot that other gateways need.
 */
const firstAnswerMs = 300;
/** Poll interval for this answer. A thread writes the answer to shared memory. */
const answerPollMs = 20;

const idleMs = 600_000;

export interface GatewayQueueOptions {
  clock: Clock;
  timing: BreakerTiming;
  onChange(state: BreakerState): void;
  /** Called at the first answer, and at the first answer after the breaker has opened. */
  onFirstAnswer?(): void;
}

/** A gateway of one profile of an app: its breaker, and the batches that wait for it. */
export class GatewayQueue {
  readonly key: BreakerKey;
  readonly id: string;
  readonly breaker: Breaker;
  /** When the breaker last changed its state. */
  since: Date;
  /** When the breaker last opened. Before that, when it was created. */
  openedAt: Date;
  readonly #clock: Clock;
  readonly #onFirstAnswer: (() => void) | undefined;
  #usedAtMs = 0;
  /** When the last waiting batch returns, without jitter (monotonic ms). */
  #lastReturnMs = 0;
  /** When the last waiting batch returns, with jitter (monotonic ms). */
  #allReturnedAtMs = 0;
  #healthyAtMs = Number.NEGATIVE_INFINITY;
  #inFlight = 0;
  /** When the oldest batch in flight began. */
  #probedAtMs = 0;
  /** Resolves when a batch in flight ends. Undefined if nobody waits for it. */
  #batchEnd: PromiseWithResolvers<void> | undefined;

  constructor(key: BreakerKey, { clock, timing, onChange, onFirstAnswer }: GatewayQueueOptions) {
    this.key = key;
    this.id = breakerIdOf(key);
    this.#clock = clock;
    this.#onFirstAnswer = onFirstAnswer;
    this.since = new Date(clock.now());
    this.openedAt = this.since;
    const monotonicMs = () => clock.monotonicMs();
    this.breaker = new Breaker(timing, monotonicMs, (state) => {
      this.since = new Date(clock.now());
      if (state === 'open') {
        this.#healthyAtMs = Number.NEGATIVE_INFINITY;
        this.openedAt = this.since;
      }
      onChange(state);
    });
  }

  markUsed(): void {
    this.#usedAtMs = this.#clock.monotonicMs();
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#clock.monotonicMs() - this.#usedAtMs > idleMs;
  }

  /** True if batches that had to wait have not returned yet. */
  get hasWaiting(): boolean {
    return this.#allReturnedAtMs > this.#clock.monotonicMs();
  }

  /**
   * Adds a batch to the queue. Returns the milliseconds after which it returns: after the batches
   * before it, with jitter.
   */
  enqueue(requestedMs: number): number {
    const nowMs = this.#clock.monotonicMs();
    const waitMs = Math.max(requestedMs, minWaitMs);
    this.#lastReturnMs = Math.max(this.#lastReturnMs + returnIntervalMs, nowMs + waitMs);
    const returnMs = this.#lastReturnMs + randomInt(Math.ceil(waitMs / 4));
    this.#allReturnedAtMs = Math.max(this.#allReturnedAtMs, returnMs);
    return Math.ceil(returnMs - nowMs);
  }

  /** Empties the queue after its batches were woken. */
  clear(): void {
    this.#lastReturnMs = 0;
    this.#allReturnedAtMs = 0;
  }

  /** Records an answer of the gateway, which may get many batches at once from now on. */
  markHealthy(): void {
    const isFirst = this.healthyAt === null;
    this.#healthyAtMs = this.#clock.monotonicMs();
    if (isFirst) this.#onFirstAnswer?.();
  }

  /**
   * When the gateway last answered. Null before its first answer, and after the breaker has opened.
   */
  get healthyAt(): Date | null {
    if (this.#healthyAtMs === Number.NEGATIVE_INFINITY) return null;
    return new Date(this.#clock.now() - (this.#clock.monotonicMs() - this.#healthyAtMs));
  }

  /**
   * Returns whether another batch may be sent. The batch then counts as in flight until `untrack`.
   * If the health of the gateway is unknown, waits shortly for its first answer: to a batch in
   * flight (`hasAnswer`) or to a batch that has ended.
   */
  async tryTrack(hasAnswer: () => boolean): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    const untilMs = Math.max(this.#probedAtMs + firstAnswerMs, nowMs + answerPollMs);
    for (let atMs = nowMs; ; atMs += answerPollMs) {
      if (!this.#isFree && hasAnswer()) this.markHealthy();
      if (this.#isFree) {
        if (this.#inFlight === 0) this.#probedAtMs = this.#clock.monotonicMs();
        this.#inFlight += 1;
        return true;
      }
      if (atMs >= untilMs) return false;
      this.#batchEnd ??= Promise.withResolvers();
      await isDoneWithin(this.#batchEnd.promise, answerPollMs);
    }
  }

  untrack(): void {
    this.#inFlight -= 1;
    this.#batchEnd?.resolve();
    this.#batchEnd = undefined;
  }

  /** True if the gateway is known to be up, or if no batch is in flight that will tell. */
  get #isFree(): boolean {
    return this.#inFlight === 0 || this.#clock.monotonicMs() - this.#healthyAtMs < healthyForMs;
  }
}
